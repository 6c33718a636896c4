"""A small Redfish client (DMTF DSP0266 1.20): get, post, push; with clear errors."""

from __future__ import annotations

import base64
import json
import ssl
import uuid
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

TIMEOUT_S = 30.0
PUSH_TIMEOUT_S = 900.0
"""A firmware bundle of an HGX baseboard is some hundred MB, and BMCs are slow to take it."""
_MOST_ANSWER = 16 * 2**20


class RedfishError(Exception):
    """The service refused, or is unreachable; with its message."""


@dataclass(frozen=True)
class Answer:
    """The service's response."""

    status: int
    body: dict[str, Any]
    location: str = ""
    """Of the task, where there is one."""


class Redfish:
    """One service. Credentials go to it alone: a link that leads to another host is refused."""

    def __init__(self, url: str, user: str, password: str, ca_file: Path | None = None) -> None:
        """Set the address and the credentials; nothing is sent yet.

        Raises:
            RedfishError: it isn't an https URL, or the certificate file can't be read.
        """
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise RedfishError(f"{url}: a BMC is reached by https://")
        self._host, self._port = parts.hostname, parts.port or 443
        try:
            self._tls = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
        except (OSError, ssl.SSLError) as error:
            raise RedfishError(f"{ca_file}: {error}") from error
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}", "OData-Version": "4.0",
                         "Accept": "application/json"}  # fmt: skip

    def get(self, path: str) -> dict[str, Any]:
        """Return a resource.

        Raises:
            RedfishError: it can't be had.
        """
        return self._request("GET", path).body

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        """Post JSON.

        Raises:
            RedfishError: it was refused.
        """
        return self._request(
            "POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )

    def push(self, path: str, parameters: dict[str, Any], image: Path) -> Answer:
        """Push an image (multipart, DSP0266 "Software update": UpdateParameters, UpdateFile).

        Raises:
            RedfishError: it was refused.
        """
        border = uuid.uuid4().hex
        head = (
            f'--{border}\r\nContent-Disposition: form-data; name="UpdateParameters"\r\n'
            f"Content-Type: application/json\r\n\r\n{json.dumps(parameters)}\r\n"
            f'--{border}\r\nContent-Disposition: form-data; name="UpdateFile"; '
            f'filename="{image.name}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        )
        body = head.encode() + image.read_bytes() + f"\r\n--{border}--\r\n".encode()
        kind = {"Content-Type": f"multipart/form-data; boundary={border}"}
        return self._request("POST", path, body, kind, PUSH_TIMEOUT_S)

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        more: dict[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Answer:
        target = urlsplit(urljoin(f"https://{self._host}:{self._port}/", path))
        if (target.hostname, target.port or 443) != (self._host, self._port):
            raise RedfishError(f"{self._host} sends us to another host: {target.hostname}")
        where = target.path + (f"?{target.query}" if target.query else "")
        connection = HTTPSConnection(self._host, self._port, timeout=timeout_s, context=self._tls)
        try:
            connection.request(method, where, body, {**self._headers, **(more or {})})
            answer = connection.getresponse()
            return self._read(method, where, answer)
        except (OSError, HTTPException) as error:
            raise RedfishError(f"{self._host}: {method} {where}: {error}") from error
        finally:
            connection.close()

    def _read(self, method: str, where: str, answer: HTTPResponse) -> Answer:
        text = answer.read(_MOST_ANSWER).decode(errors="replace")
        try:
            data = json.loads(text) if text.strip() else {}
        except ValueError:
            data = {}
        body = data if isinstance(data, dict) else {}
        if answer.status >= 300:  # noqa: PLR2004  # HTTP: from here on it isn't done
            reason = message_of(body) or text.strip()[:200] or answer.reason
            raise RedfishError(f"{self._host}: {method} {where}: {answer.status} {reason}")
        return Answer(answer.status, body, answer.getheader("Location") or "")


def message_of(body: dict[str, Any]) -> str:
    """Return the message of an error or a task."""
    error = body.get("error", body)
    lines = error.get("@Message.ExtendedInfo") or error.get("Messages") or []
    messages = [str(line.get("Message") or line.get("MessageId")) for line in lines]
    return "; ".join(messages) or str(error.get("message") or "")
