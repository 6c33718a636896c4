"""Starts the double of Google for a test, and tells what stands in it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

_CHECKOUT = Path(__file__).parents[2]
_SERVICES = {
    "COMPUTE": "compute/v1/", "IAM": "v1/", "LUSTRE": "v1/", "RESOURCE_MANAGER": "v1/",
    "SECRET_MANAGER": "v1/", "SERVICE_USAGE": "v1/", "STORAGE": "storage/v1/",
}  # fmt: skip


class GoogleProcess:
    """A running double; `folder` has its log and a login that only it believes."""

    def __init__(self, folder: Path, nodes: dict[str, str]) -> None:
        """Start it and wait until it answers; `nodes` are the arguments of `Instances`."""
        folder.mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._login = folder / "login.json"
        self._login.write_text(json.dumps(_login(self.url)), encoding="utf-8")
        words = [sys.executable, "-m", "tests.google_double.server", str(port), json.dumps(nodes)]
        with (folder / "google.log").open("w") as log:
            self._process = subprocess.Popen(words, cwd=_CHECKOUT, stdout=log, stderr=log)
        while True:
            if self._process.poll() is not None:
                raise RuntimeError((folder / "google.log").read_text(encoding="utf-8"))
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)

    def environment(self) -> dict[str, str]:
        """Return what points gcluster there: the provider's own variables, and the login."""
        given = {
            f"GOOGLE_{name}_CUSTOM_ENDPOINT": f"{self.url}/{path}"
            for name, path in _SERVICES.items()
        }
        return given | {"GOOGLE_APPLICATION_CREDENTIALS": str(self._login)}

    def standing(self) -> list[str]:
        """Return what exists, by path, and the rights that were granted."""
        found: list[str] = requests.get(f"{self.url}/standing", timeout=30).json()
        return found

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()


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
