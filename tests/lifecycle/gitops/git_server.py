"""A real git server on this machine: bare repositories behind git http-backend (CGI)."""

from __future__ import annotations

import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit


class GitServer:
    """Serves the bare repositories of a folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        """Make one bare repository, `specs.git`, that may be pushed to."""
        self.folder = folder
        folder.mkdir(parents=True)
        git("init", "--quiet", "--bare", "--initial-branch=main", str(folder / "specs.git"))
        git("config", "http.receivepack", "true", at=folder / "specs.git")
        self.answers = True
        """False: it says 503, as a server does that is being restarted."""
        self.calls: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.serve(self)

            def do_POST(self) -> None:
                outer.serve(self)

            def log_message(self, *_: object) -> None:
                """Keep the tests' output clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> Self:
        """Begin to answer."""
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where the repository is."""
        return f"http://127.0.0.1:{self._server.server_port}/specs.git"

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        """Hand a request to git http-backend, as RFC 3875 says, and its answer back."""
        self.calls.append(request.path)
        if not self.answers:
            request.send_error(503)
            return
        parts = urlsplit(request.path)
        length = int(request.headers.get("Content-Length") or 0)
        done = subprocess.run(
            ["git", "http-backend"],
            input=request.rfile.read(length),
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": request.command,
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "CONTENT_TYPE": request.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
                "REMOTE_USER": "tests",
            },
            capture_output=True,
            check=False,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
        request.send_response(int(headers.pop("Status", "200").split()[0]))
        for key, value in headers.items():
            request.send_header(key, value)
        request.end_headers()
        request.wfile.write(body)


class Author:
    """A person with a clone: writes files and merges them to main by pushing."""

    def __init__(self, server: GitServer, folder: Path) -> None:
        """Clone the repository."""
        self.folder = folder
        git("clone", "--quiet", server.url, str(folder))

    def merge(self, files: dict[str, str | None], message: str = "change") -> str:
        """Write files (None: remove), commit, push; return the commit."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        git("add", "--all", at=self.folder)
        git(
            "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "--quiet",
            "--allow-empty", "-m", message, at=self.folder,
        )  # fmt: skip
        git("push", "--quiet", "origin", "HEAD:main", at=self.folder)
        return git("rev-parse", "HEAD", at=self.folder).strip()


def git(*arguments: str, at: Path | None = None) -> str:
    """Run git; its own configuration files are left out."""
    place = ["-C", str(at)] if at is not None else []
    done = subprocess.run(
        ["git", *place, *arguments],
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
