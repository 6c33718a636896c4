"""Between obstore and fake-gcs-server: what one says in GCS' XML API the other takes as JSON API.

fake-gcs-server 1.56 has of the XML API only reading. Bytes and conditions go through as they are,
so who may create an object is still decided by the server.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

_CREATE = "x-goog-if-generation-match"


@contextmanager
def bridged(server: str) -> Iterator[str]:
    """Serve the XML API in front of a JSON API at `server`; yield HOST:PORT."""
    handler = type("Bridge", (_Bridge,), {"behind": server})
    bridge = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=bridge.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"127.0.0.1:{bridge.server_address[1]}"
    finally:
        bridge.shutdown()
        bridge.server_close()


class _Bridge(BaseHTTPRequestHandler):
    """One request of obstore; subclassed with the address of the server behind it."""

    behind: str
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        bucket, name, _ = self._parsed_path()
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        condition = self.headers.get(_CREATE)
        only = "" if condition is None else f"&ifGenerationMatch={condition}"
        place = f"{self.behind}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}{only}"
        status, body = _request("POST", place, data)
        if status != 200:
            return self._answer(status, body)
        made = json.loads(body)
        return self._answer(200, b"", ETag=made["etag"], **{"x-goog-generation": "1"})

    def do_DELETE(self) -> None:
        bucket, name, _ = self._parsed_path()
        self._answer(*_request("DELETE", f"{self.behind}/storage/v1/b/{bucket}/o/{name}"))

    def do_GET(self) -> None:
        bucket, name, query = self._parsed_path()
        if not name:
            return self._list(bucket, query)
        place = f"{self.behind}/storage/v1/b/{bucket}/o/{name}"
        status, body = _request("GET", place)
        if status != 200:
            return self._answer(status, body)
        facts = json.loads(body)
        _, body = _request("GET", f"{place}?alt=media")
        modified = "Sun, 01 Nov 2026 00:00:00 GMT"
        return self._answer(200, body, ETag=facts["etag"], **{"Last-Modified": modified})

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        after = query.get("start-after", "")
        requested = f"prefix={quote(query.get('prefix', ''), safe='')}&maxResults=1000"
        if token := query.get("continuation-token"):
            requested += f"&pageToken={quote(token, safe='')}"
        status, body = _request("GET", f"{self.behind}/storage/v1/b/{bucket}/o?{requested}")
        if status != 200:
            return self._answer(status, body)
        found = json.loads(body)
        rows = "".join(
            f"<Contents><Key>{escape(item['name'])}</Key><Size>{item['size']}</Size>"
            "<LastModified>2026-11-01T00:00:00Z</LastModified><ETag>e</ETag></Contents>"
            for item in found.get("items", ())
            if item["name"] > after
        )
        if more := found.get("nextPageToken"):
            rows += f"<NextContinuationToken>{escape(more)}</NextContinuationToken>"
        return self._answer(200, f"<ListBucketResult>{rows}</ListBucketResult>".encode())

    def _parsed_path(self) -> tuple[str, str, dict[str, str]]:
        parts = urlsplit(self.path)
        bucket, _, name = unquote(parts.path).lstrip("/").partition("/")
        return bucket, quote(name, safe=""), dict(parse_qsl(parts.query))

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 204:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _request(method: str, url: str, data: bytes | None = None) -> tuple[int, bytes]:
    request = urllib.request.Request(url, data=data, method=method)  # noqa: S310 - our own server
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - our own server
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
