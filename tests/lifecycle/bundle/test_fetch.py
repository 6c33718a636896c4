"""Files come once, go on where they were cut off, and are never taken when they are wrong."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gcluster.lifecycle.bundle.fetch import INCOMING, RequiredFile, fetch_all, incoming

CONTENT = bytes(range(256)) * 64


class Mirror(ThreadingHTTPServer):
    """A mirror on this machine that knows ranges and counts what it sent."""

    def __init__(self) -> None:
        """Listen on a free port."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sent = 0

    def wanted(self, path: str = "pool/a.deb", content: bytes = CONTENT) -> RequiredFile:
        """Return the file as a bundle requires it."""
        return RequiredFile(
            url=f"http://127.0.0.1:{self.server_port}/{path}",
            path=path,
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            roles="slurm",
        )


class _Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        """Send the content, or the rest of it."""
        if "gone" in self.path:
            self.send_error(404)
            return
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start:])
        self.server.sent += len(CONTENT) - start

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    """Serve while a test runs."""
    server = Mirror()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def quiet(_: int, __: int, ___: str) -> None:
    """Ignore the progress message."""


def test_what_is_there_is_not_fetched_twice(mirror: Mirror, tmp_path: Path) -> None:
    assert fetch_all([mirror.wanted()], tmp_path, quiet) == (len(CONTENT), [])
    assert fetch_all([mirror.wanted()], tmp_path, quiet) == (0, [])
    assert (tmp_path / "pool/a.deb").read_bytes() == CONTENT


def test_an_interrupted_file_continues_where_it_was(mirror: Mirror, tmp_path: Path) -> None:
    file = mirror.wanted()
    (tmp_path / INCOMING).mkdir()
    incoming(file, tmp_path).write_bytes(CONTENT[:1000])
    assert fetch_all([file], tmp_path, quiet) == (len(CONTENT) - 1000, [])
    assert (tmp_path / "pool/a.deb").read_bytes() == CONTENT


def test_a_damaged_file_is_fetched_again(mirror: Mirror, tmp_path: Path) -> None:
    fetch_all([mirror.wanted()], tmp_path, quiet)
    (tmp_path / "pool/a.deb").write_bytes(CONTENT[::-1])
    assert fetch_all([mirror.wanted()], tmp_path, quiet) == (len(CONTENT), [])


def test_what_differs_from_the_signed_index_is_refused_and_the_rest_is_kept(
    mirror: Mirror, tmp_path: Path
) -> None:
    wrong = mirror.wanted("pool/b.deb", CONTENT[::-1])
    _, findings = fetch_all([wrong, mirror.wanted("gone.deb"), mirror.wanted()], tmp_path, quiet)
    assert [finding.code for finding in findings] == ["GC939", "GC939"]
    assert "slurm" in findings[0].summary
    assert not (tmp_path / "pool/b.deb").exists()
    assert (tmp_path / "pool/a.deb").exists()
