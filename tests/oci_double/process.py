"""Starts the double of OCI for a test, and lists what exists in it."""

from __future__ import annotations

import json
from pathlib import Path

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.pulumi_double.server_process import ServerProcess

from .operations import CLIENTS

_CONFIG = """\
[double]
user=ocid1.user.oc1..double
tenancy=ocid1.tenancy.oc1..double
fingerprint={fingerprint}
region=us-ashburn-1
key_file={key}
"""


class OciProcess(ServerProcess):
    """A running double; `folder` has its log and a credential that only it accepts."""

    def __init__(self, folder: Path, nodes: dict[str, str]) -> None:
        """Start it; `nodes` are the arguments of `Instances`."""
        super().__init__("tests.oci_double.server", folder, json.dumps(nodes))
        self.url = f"http://127.0.0.1:{self.port}"
        self._config = folder / "config"
        _write_login(folder / "key.pem", self._config)

    def environment(self) -> dict[str, str]:
        """Return what points gcluster there: the provider's own variable, and the login."""
        return {
            "CLIENT_HOST_OVERRIDES": ";".join(f"oci_{name}={self.url}" for name in CLIENTS),
            "OCI_CLI_PROFILE": "double",
            "OCI_CONFIG_FILE": str(self._config),
        }

    def existing(self) -> list[str]:
        """Return the OCID of what exists."""
        found: list[str] = requests.get(f"{self.url}/standing", timeout=30).json()
        return found


def _write_login(key: Path, config: Path) -> None:
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key.write_bytes(
        made.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    key.chmod(0o600)
    config.write_text(_CONFIG.format(key=key, fingerprint=":".join(["ab"] * 16)))
