"""The program of role firmware against a double of a BMC: TLS, HTTP and tasks are real."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCENARIO = ROOT / "molecule/firmware"
sys.path.insert(0, str(ROOT / "roles/firmware/files"))
from gcluster_firmware.redfish import Redfish  # noqa: E402  # the path comes first


def _double() -> Callable[..., object]:
    spec = importlib.util.spec_from_file_location("double", SCENARIO / "redfish_double.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.serve  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a certificate for 127.0.0.1; its key is in the same folder."""
    path = tmp_path_factory.mktemp("bmc") / "bmc.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
            *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=bmc"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(path.with_suffix(".key")), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    return path


class Machine:
    """A BMC double that runs, and its settings."""

    def __init__(self, server: object, state: Path, certificate: Path) -> None:
        """Hold the server."""
        self.url = f"https://127.0.0.1:{server.server_address[1]}"  # type: ignore[attr-defined]
        self._state, self.certificate = state, certificate

    def plays(self, **state: object) -> None:
        """Change what happens."""
        self._state.write_text(json.dumps(state))

    def bmc(self, password: str = "only-for-the-double") -> Redfish:  # noqa: S107  # the double's
        """Return a client of it."""
        return Redfish(self.url, "root", password, self.certificate)


@pytest.fixture
def machine(tmp_path: Path, certificate: Path) -> Iterator[Machine]:
    """Run a BMC double."""
    recording, state = SCENARIO / "recordings/redfish.json", tmp_path / "state.json"
    server = _double()(recording, 0, certificate, certificate.with_suffix(".key"), state)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})  # type: ignore[attr-defined]
    thread.start()
    yield Machine(server, state, certificate)
    server.shutdown()  # type: ignore[attr-defined]
    server.server_close()  # type: ignore[attr-defined]
    thread.join()
