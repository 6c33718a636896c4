"""The double of who publishes add-ons: files and a registry, by HTTP on this machine's loopback."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gcluster.lifecycle.kubernetes.release.registry import fetched

CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def digest(content: bytes) -> str:
    """Return a digest as registries write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def get(url: str) -> bytes:
    """Fetch as gcluster does, from a server without a certificate."""
    return fetched(url.replace("https://127.0.0.1", "http://127.0.0.1"))


class Publisher(dict[str, bytes]):
    """Path -> content; paths below /v2/ require a token that every client gets."""

    host = ""

    def __init__(self) -> None:
        """Begin with nothing but the tokens."""
        super().__init__({"/token": b'{"token": "anybody"}'})
        self.calls: list[str] = []

    def has_chart(self, name: str, version: str, chart: bytes) -> None:
        """Publish a chart in the registry's folder `charts`."""
        layer = {"mediaType": CHART, "digest": digest(chart), "size": len(chart)}
        manifest = json.dumps({"layers": [layer]}).encode()
        self[f"/v2/charts/{name}/manifests/{version}"] = manifest
        self[f"/v2/charts/{name}/blobs/{digest(chart)}"] = chart


@contextmanager
def published() -> Iterator[Publisher]:
    """Serve what a test puts in."""
    content = Publisher()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name is the library's
            path, needs = self.path.partition("?")[0], self.path.startswith("/v2/")
            content.calls.append(path)
            if needs and self.headers.get("Authorization") != "Bearer anybody":
                self.send_response(401)
                realm = f'Bearer realm="http://{content.host}/token",service="here",scope="pull"'
                self.send_header("WWW-Authenticate", realm)
                self.end_headers()
                return
            found = content.get(path)
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", MANIFEST)
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    content.host = f"127.0.0.1:{server.server_port}"
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    yield content
    server.shutdown()
    server.server_close()
