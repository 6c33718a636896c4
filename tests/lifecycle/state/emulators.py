"""Stores of clouds on this machine: moto for S3, azurite for Azure, fake-gcs-server for GCS.

Each yields what a spec's `state:` would say, and the environment that reaches it. azurite and
fake-gcs-server come from their registries by `make test-stores`.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tests.free_port import free_port
from tests.lifecycle.state.gcs_bridge import bridged

TOOLS = Path(__file__).parents[3] / "tests" / "stores"
_PATIENCE_S = 120
"""A server starts in a second; a machine under load takes its time."""
_AZURE_ACCOUNT = "devstoreaccount1"
_AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""The same in every emulator of Azure's storage (Microsoft, "Use the Azurite emulator")."""


@contextmanager
def s3() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Run moto with a bucket; yield the URL's begin, its query, and the environment."""
    import boto3  # noqa: PLC0415 - with the server alone
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - as above

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        rights = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
        boto3.client(
            "s3",
            endpoint_url=f"http://{host}:{port}",
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",  # noqa: S106 - moto takes any
        ).create_bucket(Bucket="acme-gcluster")
        endpoint = quote(f"http://{host}:{port}", safe="")
        yield "s3://acme-gcluster", f"?region=us-east-1&endpoint={endpoint}", rights
    finally:
        server.stop()


@contextmanager
def azure() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Run azurite with a container; yield as `s3`."""
    port = free_port()
    program = TOOLS / "node_modules" / ".bin" / "azurite-blob"
    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    command = [str(program), "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]
    with _running(command, port):
        _make_container(port, "gcluster")
        query = f"?domain=127.0.0.1:{port}&protocol=http&localemu=true"
        yield f"azblob://{_AZURE_ACCOUNT}/gcluster", query, {"AZURE_STORAGE_KEY": _AZURE_KEY}


@contextmanager
def gcs() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Run fake-gcs-server with a bucket, behind the bridge to its JSON API; yield as `s3`."""
    port = free_port()
    program = TOOLS / "bin" / "fake-gcs-server"
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    with _running([str(program), *options], port):
        server = f"http://127.0.0.1:{port}"
        _send("POST", f"{server}/storage/v1/b?project=p", b'{"name": "acme-gcluster"}', {})
        with bridged(server) as host:
            yield "gs://acme-gcluster", "", {"STORAGE_EMULATOR_HOST": host}


STORES = {"s3": s3, "azure": azure, "gcs": gcs}


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            end = time.monotonic() + _PATIENCE_S
            while not _answers(port):
                assert server.poll() is None, f"{command[0]} ended"
                assert time.monotonic() < end, f"{command[0]} does not answer"
                time.sleep(0.05)
            yield
        finally:
            server.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _make_container(port: int, name: str) -> None:
    date = email.utils.formatdate(usegmt=True)
    account = _AZURE_ACCOUNT
    signed = "\n".join(
        [
            *("PUT", *[""] * 11, f"x-ms-date:{date}", "x-ms-version:2021-12-02"),
            f"/{account}/{account}/{name}",
            "restype:container",
        ]
    )
    mac = hmac.new(base64.b64decode(_AZURE_KEY), signed.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": "2021-12-02",
        "Authorization": f"SharedKey {account}:{base64.b64encode(mac).decode()}",
    }
    place = f"http://127.0.0.1:{port}/{account}/{name}?restype=container"
    _send("PUT", place, None, headers)


def _send(method: str, url: str, data: bytes | None, headers: dict[str, str]) -> None:
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 - our own server
    urllib.request.urlopen(request).read()  # noqa: S310 - our own server
