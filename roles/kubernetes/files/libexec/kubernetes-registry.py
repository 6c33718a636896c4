#!/usr/bin/python3
"""Serve the images of this host's archives to its own containerd, as a registry does.

usage: kubernetes-registry.py STORE VERSION PORT
       archives are STORE/*/*.tar, those of VERSION come first

A pod that wants its image pulled each time (imagePullPolicy: Always) has its tag resolved here, to
an image that containerd has already. It only serves this host, and only reads what was brought by
its checksum: https://github.com/opencontainers/distribution-spec, version 1.1, its pull half.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import tarfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

NAMED = "io.containerd.image.name"
ASKED = re.compile(r"/v2/(?P<name>.+)/(?P<what>manifests|blobs)/(?P<which>[^/]+)")


class Handler(BaseHTTPRequestHandler):
    """Answers one connection of containerd's."""

    protocol_version = "HTTP/1.1"
    store, version = Path(), ""

    def do_HEAD(self) -> None:
        """Report what exists."""
        self.answer(body=False)

    def do_GET(self) -> None:
        """Give what there is."""
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        """Answer with a manifest or a blob; 404: it is in no archive."""
        address = urlsplit(self.path)
        if address.path == "/v2/":
            self.headed(200, "application/json", 0)
            return
        requested = ASKED.fullmatch(address.path)
        registry = parse_qs(address.query).get("ns", [""])[0]
        for archive in self.archives() if requested is not None else ():
            try:
                with tarfile.open(archive) as tar:
                    if requested is not None and self.given(
                        tar, requested, f"{registry}/{requested['name']}", body=body
                    ):
                        return
            except (OSError, tarfile.TarError, ValueError) as error:
                self.log_error("%s: %s", archive, error)
        self.headed(404, "application/json", 0)

    def archives(self) -> list[Path]:
        """Return the archives of this host, those of the version that it runs first."""
        found = self.store.glob("*/*.tar")
        return sorted(found, key=lambda path: (path.parent.name != self.version, path))

    def given(
        self, tar: tarfile.TarFile, requested: re.Match[str], name: str, *, body: bool
    ) -> bool:
        """Respond from an archive; False: it lacks the requested object."""
        which, kind, digest = requested["which"], "application/octet-stream", requested["which"]
        if requested["what"] == "manifests":
            entries = json.load(tar.extractfile("index.json") or io.BytesIO())["manifests"]
            names = {f"{name}:{which}", f"{name}@{which}"}
            entry = next(
                (
                    e
                    for e in entries
                    if e.get("annotations", {}).get(NAMED) in names or e["digest"] == which
                ),
                None,
            )
            if entry is not None:
                kind, digest = entry["mediaType"], entry["digest"]
        try:
            member = tar.getmember(f"blobs/{digest.replace(':', '/', 1)}")
        except KeyError:
            return False
        content = tar.extractfile(member) or io.BytesIO()
        if (
            requested["what"] == "manifests" and kind == "application/octet-stream"
        ):  # one that an index names
            kind = json.load(content).get("mediaType", "application/vnd.oci.image.manifest.v1+json")
            content.seek(0)
        self.headed(200, kind, member.size, digest)
        if body:
            shutil.copyfileobj(content, self.wfile, 1 << 20)
        return True

    def headed(self, status: int, kind: str, size: int, digest: str = "") -> None:
        """Send the head of an answer."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()

    def log_request(self, *_: object) -> None:
        """Log no successful requests."""


def main() -> None:
    """Serve until the end."""
    Handler.store, Handler.version = Path(sys.argv[1]), sys.argv[2]
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[3])), Handler).serve_forever()


main()
