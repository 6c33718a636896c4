#!/usr/bin/python
"""Check a running Prometheus server: its addresses, its certificate, its authentication."""

from __future__ import annotations

DOCUMENTATION = r"""
module: web_endpoint_check
short_description: Check that a Prometheus server answers only those who log in
description:
  - Checks the running daemon, by its certificate and its settings, without a login and with one.
author: The gcluster authors
options:
  unit:
    description: The service.
    type: str
    required: true
  settings:
    description:
      - File with its arguments or its environment; C(--web.listen-address) or
        C(DCGM_EXPORTER_LISTEN) says where it must listen.
    type: path
    required: true
  ca:
    description: File with the certificate of the authority that its own must be issued by.
    type: path
    required: true
  server_name:
    description: Name that its certificate is for.
    type: str
    required: true
  page:
    description: What is requested.
    type: str
    required: true
  user:
    description: User that may log in; empty where it takes clients by their certificate alone.
    type: str
    default: ""
  password_file:
    description: File with that user's password; empty as O(user).
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Check Alertmanager
  gcluster.cluster.web_endpoint_check:
    unit: prometheus-alertmanager
    settings: /etc/gcluster/alertmanager/args
    ca: /etc/gcluster/alertmanager/ca.pem
    server_name: prometheus
    page: /-/ready
    user: gcluster
    password_file: /etc/gcluster/alertmanager/password
"""

RETURN = r"""
changes:
  description: Always empty.
  returned: success
  type: list
  elements: str
"""

import base64
import re
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import is_active, run
from ..module_utils.state import Failed, exit_with_differences

ARGUMENTS: dict[str, Any] = {
    "unit": {"type": "str", "required": True},
    "settings": {"type": "path", "required": True},
    "ca": {"type": "path", "required": True},
    "server_name": {"type": "str", "required": True},
    "page": {"type": "str", "required": True},
    "user": {"type": "str", "default": ""},
    "password_file": {"type": "str", "default": "", "no_log": False},
}
TIMEOUT_S = 10
READY_S = 30
"""Prometheus answers 503 while it reads its write-ahead log."""
OK, UNAUTHORIZED, UNAVAILABLE = 200, 401, 503


class Endpoint(NamedTuple):
    """Where a daemon listens, and who vouches for it."""

    host: str
    port: int
    ca: str
    server_name: str

    @classmethod
    def of(cls, given: dict[str, Any]) -> Endpoint:
        """Read its listen address from its arguments.

        Raises:
            Failed: they don't have it.
        """
        try:
            text = Path(given["settings"]).read_text(encoding="utf-8")
        except OSError as error:
            raise Failed(f"{given['settings']}: {error.strerror}") from error
        found = re.search(r"(?:--web\.listen-address|DCGM_EXPORTER_LISTEN)=(\S+):(\d+)", text)
        if found is None:
            raise Failed(f"{given['settings']} says no --web.listen-address")
        return cls(found[1].strip("[]"), int(found[2]), given["ca"], given["server_name"])

    def status(self, page: str, login: str = "") -> int:
        """Return the status of a response; 0: the connection ended without one.

        Raises:
            Failed: nothing listens, or it has the wrong certificate.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except OSError as error:  # ssl.SSLError is one
            raise Failed(f"{self.ca} can't be read: {error.strerror or error}") from error
        head = f"GET {page} HTTP/1.0\r\nHost: {self.server_name}\r\n"
        if login:
            head += f"Authorization: Basic {base64.b64encode(login.encode()).decode()}\r\n"
        try:
            plain = socket.create_connection((self.host, self.port), TIMEOUT_S)
        except OSError as error:
            raise Failed(f"nothing answers at {self.host}:{self.port}: {error}") from error
        with plain:
            try:
                with context.wrap_socket(plain, server_hostname=self.server_name) as requested:
                    requested.sendall(f"{head}\r\n".encode())
                    answer = requested.recv(64)
            except ssl.SSLCertVerificationError as error:
                raise Failed(f"its certificate is not trusted: {error.verify_message}") from error
            except (ssl.SSLError, OSError):
                return 0  # with TLS 1.3 a client without a certificate learns it when it reads
        words = answer.split()
        return int(words[1]) if words[:1] and words[0].startswith(b"HTTP/") else 0


def differences(given: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the running daemon."""
    if not is_active(given["unit"]):
        yield f"{given['unit']} does not run"
        return
    endpoint = Endpoint.of(given)
    yield from listening_elsewhere(endpoint)
    if not given["user"]:
        status = endpoint.status(given["page"])
        if status:
            yield f"{given['unit']} answers a client without a certificate ({status})"
        return
    status = endpoint.status(given["page"])
    if status != UNAUTHORIZED:
        yield f"{given['unit']} answers {status} without a password, not {UNAUTHORIZED}"
    status = when_ready(endpoint, given)
    if status != OK:
        yield f"{given['unit']} answers {status} to {given['user']}, not {OK}"


def when_ready(endpoint: Endpoint, given: dict[str, Any]) -> int:
    """Return the status of an answer to the user, waiting for a daemon that still starts."""
    password = Path(given["password_file"]).read_text(encoding="utf-8").strip()
    end = time.monotonic() + READY_S
    while True:
        status = endpoint.status(given["page"], f"{given['user']}:{password}")
        if status != UNAVAILABLE or time.monotonic() > end:
            return status
        time.sleep(0.5)


def listening_elsewhere(endpoint: Endpoint) -> Iterator[str]:
    """Yield the addresses with a listener on the port, besides the expected one."""
    code, said = run("ss", "-Hltn", f"sport = :{endpoint.port}")
    if code:
        raise Failed(f"ss: {said}")
    found = {line.split()[3].rpartition(":")[0].strip("[]") for line in said.splitlines() if line}
    for address in sorted(found - {endpoint.host}):
        yield f"port {endpoint.port} is open on {address} too, not on {endpoint.host} alone"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_differences(module, lambda: differences(module.params))


if __name__ == "__main__":
    main()
