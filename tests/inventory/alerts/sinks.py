"""A mail server and a webhook that keep what they get: sinks of the tests, no products.

The mail server has the minimum of RFC 5321, STARTTLS and AUTH PLAIN. What it keeps is
read by Python's own parser of mail.
"""

from __future__ import annotations

import base64
import json
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast


class MailSink(socketserver.ThreadingTCPServer):
    """Takes mail of who has logged in over TLS."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, tls: ssl.SSLContext | None, login: tuple[str, str] | None) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.tls, self.login = tls, login
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.said_in_the_clear: list[str] = []

    @property
    def address(self) -> str:
        return f"localhost:{self.server_address[1]}"


class _Session(socketserver.StreamRequestHandler):
    server: MailSink
    stream: Any

    def handle(self) -> None:
        self.stream = self.connection.makefile("rwb", buffering=0)
        self.is_safe, self.is_known = False, self.server.login is None
        self.reply("220 sink ESMTP")
        while raw := self.stream.readline():
            line = raw.decode().rstrip("\r\n")
            if not self.is_safe:
                self.server.said_in_the_clear.append(line)
            word = line.split(" ")[0].upper()
            if not self.is_known and word in {"MAIL", "RCPT", "DATA"}:
                self.reply("530 log in first")
            else:
                getattr(self, f"on_{word.lower()}", self.on_other)(line)
            if word == "QUIT":
                return

    def reply(self, text: str) -> None:
        self.stream.write(f"{text}\r\n".encode())

    def on_ehlo(self, _: str) -> None:
        tls = self.server.tls
        offers = ["sink"]
        offers += ["STARTTLS"] if tls and not self.is_safe else []
        offers += ["AUTH PLAIN"] if self.is_safe or not tls else []
        for offer in offers:
            self.reply(f"250-{offer}")
        self.reply("250 HELP")

    def on_starttls(self, _: str) -> None:
        assert self.server.tls is not None
        self.reply("220 go on")
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.stream, self.is_safe = self.connection.makefile("rwb", buffering=0), True

    def on_auth(self, line: str) -> None:
        _, user, password = base64.b64decode(line.split(" ")[2]).decode().split("\0")
        self.is_known = (user, password) == self.server.login
        self.reply("235 welcome" if self.is_known else "535 who?")

    def on_rcpt(self, line: str) -> None:
        self.server.recipients.append(line.partition(":")[2].strip("<>"))
        self.reply("250 yes")

    def on_data(self, _: str) -> None:
        self.reply("354 go on")
        body = b""
        while (part := self.stream.readline()) != b".\r\n":
            body += part.removeprefix(b".") if part.startswith(b"..") else part
        mail = message_from_bytes(body, policy=policy.default)
        self.server.mails.append(cast("EmailMessage", mail))
        self.reply("250 kept")

    def on_other(self, _: str) -> None:
        self.reply("250 yes")


class WebhookSink(ThreadingHTTPServer):
    """Keeps the JSON that is posted to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.posted: list[tuple[str, dict[str, Any]]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def at(self, path: str) -> list[dict[str, Any]]:
        return [document for where, document in self.posted if where == path]


class _Post(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        document = json.loads(self.rfile.read(length))
        cast("WebhookSink", self.server).posted.append((self.path, document))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def awaited(what: str, holds: Callable[[], object], at_most_s: float = 60) -> None:
    """Return once it holds; fail where it doesn't in time."""
    end = time.monotonic() + at_most_s
    while not holds():
        assert time.monotonic() < end, f"{what}: not in {at_most_s} s"
        time.sleep(0.1)
