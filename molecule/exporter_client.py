"""A TLS client for the exporters of a node, run on the node with the scenario's certificates."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from testinfra.host import Host

_FOLDER = "/root/keys"
_CERTIFICATES = ("authority", "other-authority", "exporter", "server", "other-server")
_PROGRAM = """
import socket, ssl, sys
address, port, ca, certificate = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
if certificate:
    context.load_cert_chain(certificate)
try:
    with socket.create_connection((address, int(port)), 10) as plain:
        with context.wrap_socket(plain, server_hostname="node-exporter") as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\\r\\nHost: node-exporter\\r\\n\\r\\n")
            print(b"".join(iter(lambda: connection.recv(65536), b"")).decode())
except OSError as error:
    sys.exit(f"refused: {error}")
"""


class Response(NamedTuple):
    """The result of one request."""

    code: int
    """Exit code of the client; 0: the connection was accepted."""
    text: str
    """The response, or the client's error."""


class ExporterClient:
    """Requests the metrics page of an exporter at the node's own address."""

    def __init__(self, host: Host, port: int) -> None:
        """Copy the certificates and the client program to the node."""
        self._host = host
        self._port = port
        self.address = host.check_output("hostname -I").split()[0]
        source = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])
        files = {f"{name}.pem": (source / f"{name}.pem").read_text() for name in _CERTIFICATES}
        host.check_output(f"mkdir -p {_FOLDER}")
        for name, text in {**files, "client.py": _PROGRAM}.items():
            host.check_output(f"cat > {_FOLDER}/{name} <<'END'\n{text}END")

    def get(self, certificate: str, *, ca: str = "authority") -> Response:
        """Request the page.

        Args:
            certificate: the client's, of the scenario's; "": none. "server" is the monitoring
                host's.
            ca: the authority that the client accepts.
        """
        file = f"{_FOLDER}/{certificate}.pem" if certificate else "''"
        run = self._host.run(
            f"python3 {_FOLDER}/client.py {self.address} {self._port} {_FOLDER}/{ca}.pem {file}"
        )
        return Response(run.rc, run.stdout + run.stderr)
