"""Starts the double of Google for a test, and lists what exists in it."""

from __future__ import annotations

import json
from pathlib import Path

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.pulumi_double.server_process import ServerProcess

_SERVICES = {
    "COMPUTE": "compute/v1/", "IAM": "v1/", "LUSTRE": "v1/", "RESOURCE_MANAGER": "v1/",
    "SECRET_MANAGER": "v1/", "SERVICE_USAGE": "v1/", "STORAGE": "storage/v1/",
}  # fmt: skip


class GoogleProcess(ServerProcess):
    """A running double; `folder` has its log and a credential that only it accepts."""

    def __init__(self, folder: Path, nodes: dict[str, str]) -> None:
        """Start it; `nodes` are the arguments of `Instances`."""
        super().__init__("tests.google_double.server", folder, json.dumps(nodes))
        self.url = f"http://127.0.0.1:{self.port}"
        self._login = folder / "login.json"
        self._login.write_text(json.dumps(_login(self.url)), encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """Return what points gcluster there: the provider's own variables, and the login."""
        given = {
            f"GOOGLE_{name}_CUSTOM_ENDPOINT": f"{self.url}/{path}"
            for name, path in _SERVICES.items()
        }
        return given | {"GOOGLE_APPLICATION_CREDENTIALS": str(self._login)}

    def existing(self) -> list[str]:
        """Return what exists, by path, and the rights that were granted."""
        found: list[str] = requests.get(f"{self.url}/standing", timeout=30).json()
        return found


def _login(url: str) -> dict[str, str]:
    """Return the file of a service account, whose tokens come from the double."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {
        "type": "service_account", "project_id": "double", "private_key": key.decode(),
        "private_key_id": "double", "client_email": "double@double.iam.gserviceaccount.com",
        "client_id": "1", "token_uri": f"{url}/token",
    }  # fmt: skip
