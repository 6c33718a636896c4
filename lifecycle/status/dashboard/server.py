"""The page's server: on the loopback address, read-only, and for who has its link alone.

The link has a random token, so other users of this machine and pages of other origins can't guess a
path. A name that an attacker's DNS points to 127.0.0.1 is refused by the header Host. The page's
policy lets it load from and query this server only, and run no inline script or style.
"""

from __future__ import annotations

import hmac
import secrets
import sys
import time
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

from ...cluster.outcome import LifecycleError
from .answers import Answers, UnknownError

_PAGE = Path(__file__).parent / "page"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_HOSTS = {"127.0.0.1", "localhost"}
"""Names by which a browser may reach it; the port may be another, behind `ssh -L`."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_LIMIT_S = 30
"""For a client to send its request."""


class LinkEnded(Exception):  # noqa: N818  # no error: its time is over
    """Who had the link can't read any more; the server has ended."""


class DashboardServer(ThreadingHTTPServer):
    """Serves one cluster's page."""

    daemon_threads = True

    def __init__(self, answers: Answers, lasts_s: float, port: int = 0) -> None:
        """Listen on 127.0.0.1; port 0 takes a free one.

        Args:
            answers: of the cluster.
            lasts_s: seconds until its link leads nowhere.
            port: 0: a free one.

        Raises:
            OSError: the port is taken.
        """
        self.answers = answers
        self.token = secrets.token_urlsafe(24)
        self.ends = time.monotonic() + lasts_s
        super().__init__(("127.0.0.1", port), _Request)

    def service_actions(self) -> None:
        """End when the link's time is over; `serve_forever` calls it twice a second.

        Raises:
            LinkEnded: it is.
        """
        if time.monotonic() >= self.ends:
            raise LinkEnded

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a browser that has gone."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        """Return the page's address, with its token."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"


@cache
def page_files() -> dict[str, tuple[str, bytes]]:
    """Return name -> content type and content of the files of the page."""
    return {
        path.name: (_TYPES[path.suffix], path.read_bytes())
        for path in _PAGE.iterdir()
        if path.suffix in _TYPES
    }


def _unknown() -> bytes:
    raise UnknownError


class _Request(BaseHTTPRequestHandler):
    server: DashboardServer
    protocol_version = "HTTP/1.1"
    server_version = "gcluster"
    sys_version = ""
    timeout = _LIMIT_S
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"

    def do_GET(self) -> None:
        """Answer the page, one of its files, or a query that it has."""
        url = urlsplit(self.path)
        token, _, path = url.path.removeprefix("/").partition("/")
        if not self._is_local():
            self._send(HTTPStatus.MISDIRECTED_REQUEST, b"open it as http://127.0.0.1\n")
        elif not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._send(HTTPStatus.NOT_FOUND, b"use the link that gcluster dashboard has shown\n")
        elif time.monotonic() >= self.server.ends:
            self._send(HTTPStatus.GONE, b"the link has ended: gcluster dashboard makes another\n")
        elif path in {"", *page_files()}:
            kind, content = page_files()[path or "index.html"]
            self._send(HTTPStatus.OK, content, kind)
        else:
            self._answer(path, url.query)

    def _is_local(self) -> bool:
        """Whether the browser addressed this machine by its own name."""
        hosts = self.headers.get_all("Host") or []
        return len(hosts) == 1 and hosts[0].partition(":")[0].lower() in _HOSTS

    def _answer(self, path: str, query: str) -> None:
        parameters = {name: values[-1] for name, values in parse_qs(query).items()}
        answers = self.server.answers
        board = (parameters.get("name", ""), parameters.get("hours", "6"), parameters.get("of", ""))
        known: dict[str, Callable[[], bytes]] = {
            "api/now": answers.overview,
            "api/board": lambda: answers.board(*board),
        }
        try:
            status, text = HTTPStatus.OK, known.get(path, _unknown)()
        except UnknownError:
            status, text = HTTPStatus.NOT_FOUND, b'{"problem":"there is no such thing"}'
        except LifecycleError as error:
            [first, *_] = error.diagnostics
            status = HTTPStatus.BAD_GATEWAY
            text = msgspec.json.encode({"problem": first.summary, "hint": first.hint})
        self._send(status, text, "application/json")

    def _send(self, status: HTTPStatus, content: bytes, kind: str = _TYPES[".txt"]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **_HEADERS}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write no line for each request: the path has the token."""
