"""The check of slurmrestd asks its API with a token, and says in words what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/slurm/files/libexec/slurm-rest-check.py"


class Rest(BaseHTTPRequestHandler):
    """The double of slurmrestd: two versions of its API."""

    lets_anyone_in = False
    errors: tuple[str, ...] = ()

    def do_GET(self) -> None:
        """Answer a request that has the token."""
        allowed = self.lets_anyone_in or self.headers.get("X-SLURM-USER-TOKEN") == "abc.def"
        paths: dict[str, dict[str, str]] = {
            "/slurm/v0.0.41/ping/": {},
            "/slurm/v0.0.42/ping/": {},
            "/slurm/v0.0.42/jobs/": {},
        }
        body = {"paths": paths} if self.path == "/openapi/v3" else {"errors": list(self.errors)}
        self.send_response(200 if allowed and "v0.0.41" not in self.path else 401)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


@pytest.fixture
def rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Give what asks a double of slurmrestd."""
    server = HTTPServer(("127.0.0.1", 0), Rest)
    Thread(target=server.serve_forever, daemon=True).start()
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho SLURM_JWT=abc.def\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def ask(port: int = server.server_port) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, PROGRAM, str(port)], capture_output=True, text=True, check=False
        )

    yield ask
    server.shutdown()
    server.server_close()


def test_an_api_that_wants_a_token_and_reaches_slurmctld_is_well(rest: Any) -> None:
    done = rest()
    assert (done.returncode, done.stderr) == (0, "")


def test_an_api_that_lets_anyone_in_is_not_well(rest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rest, "lets_anyone_in", True)
    assert "lets in who has no token" in rest().stderr


def test_errors_of_slurmctld_are_told(rest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rest, "errors", ("Unable to contact slurm controller",))
    done = rest()
    assert done.returncode == 1
    assert "Unable to contact slurm controller" in done.stderr


def test_silence_is_told(rest: Any) -> None:
    assert "no answer at http://127.0.0.1:1" in rest(1).stderr
