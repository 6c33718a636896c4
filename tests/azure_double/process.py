"""Starts the double of Azure for a test, and lists what exists in it."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
from pathlib import Path

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.pulumi_double.server_process import ServerProcess


class AzureProcess(ServerProcess):
    """A running double; `folder` has its log, and a certificate that its users must trust."""

    def __init__(self, folder: Path, nodes: dict[str, str] | None = None) -> None:
        """Start it; `nodes` are the arguments of `Instances`; without, no machine boots."""
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate = folder / "certificate.pem"
        self.certificate.write_bytes(_certificate())
        words = [str(self.certificate), *([json.dumps(nodes)] if nodes else [])]
        super().__init__("tests.azure_double.server", folder, *words)
        self.url = f"https://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """Return what points gcluster there: the provider's own variable, and a managed identity.

        Tokens come from where App Service has its identities, one of the places that the login of
        Azure's libraries looks at.
        """
        return {
            "ARM_METADATA_HOSTNAME": f"127.0.0.1:{self.port}",
            "IDENTITY_ENDPOINT": f"{self.url}/token",
            "IDENTITY_HEADER": "double",
            "REQUESTS_CA_BUNDLE": str(self.certificate),
        }

    def existing(self) -> list[str]:
        """Return what exists, by path."""
        reply = requests.get(f"{self.url}/standing", timeout=30, verify=str(self.certificate))
        found: list[str] = reply.json()
        return found


def _certificate() -> bytes:
    """Return a key, and a self-signed certificate of 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "double of Azure")])
    now = dt.datetime.now(dt.UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=2))
        .add_extension(here, critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private + made.public_bytes(serialization.Encoding.PEM)
