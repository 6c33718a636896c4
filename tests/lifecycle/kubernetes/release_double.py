"""Doubles of the servers that a release is fetched from: the download site and a registry."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from gcluster.lifecycle.kubernetes.release.release import Release, release

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
VERSION = "1.35.4"


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Servers(dict[str, tuple[bytes, str]]):
    """Path -> content and its type, as the download site and the registry would have it."""

    def publish(self, path: str, content: bytes) -> None:
        """Serve a file, and its checksum."""
        self[path] = (content, "application/octet-stream")
        self[f"{path}.sha256"] = (hashlib.sha256(content).hexdigest().encode(), "text/plain")

    def push(self, name: str, tag: str) -> str:
        """Serve an image; return the digest of its index."""
        config, layer = f'{{"name": "{name}"}}'.encode(), f"layer of {name}".encode()
        parts = [{"digest": digest(part), "size": len(part)} for part in (config, layer)]
        manifest = json.dumps({"config": parts[0], "layers": [parts[1]]}).encode()
        platform = {"os": "linux", "architecture": "amd64"}
        entry = {"digest": digest(manifest), "platform": platform}
        index = json.dumps({"manifests": [entry]}).encode()
        root = f"/v2/{name}"
        self[f"{root}/manifests/{tag}"] = (index, INDEX)
        self[f"{root}/manifests/{digest(index)}"] = (index, INDEX)
        self[f"{root}/manifests/{digest(manifest)}"] = (manifest, MANIFEST)
        for part in (config, layer):
            self[f"{root}/blobs/{digest(part)}"] = (part, "application/octet-stream")
        return digest(index)


@contextmanager
def serving() -> Iterator[tuple[Servers, Release]]:
    """Serve a release; return what is served, and where."""
    content = Servers()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name is the library's
            found = content.get(self.path)
            self.send_response(404 if found is None else 200)
            body, kind = found or (b"", "text/plain")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    of = release()
    of = msgspec.structs.replace(
        of,
        programs=msgspec.structs.replace(of.programs, root=url),
        registry=msgspec.structs.replace(of.registry, url=url),
    )
    for name in of.programs.names:
        content.publish(f"/v{VERSION}/bin/linux/amd64/{name}", f"program {name}".encode())
    tags = dict.fromkeys(of.registry.own, f"v{VERSION}")
    other = of.tags[0]
    tags |= {"etcd": other.etcd, "pause": other.pause, "coredns/coredns": f"v{other.coredns}"}
    for name, tag in tags.items():
        content.push(name, tag)
    try:
        yield content, of
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
