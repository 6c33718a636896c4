"""Starts a cloud's double as a process of its own, for a test."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.free_port import free_port

_CHECKOUT = Path(__file__).parents[2]


class ServerProcess:
    """A module that serves on a port of 127.0.0.1; `folder` has its log."""

    def __init__(self, module: str, folder: Path, *words: str) -> None:
        """Start `python -m MODULE PORT WORDS...` and wait until it answers."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        log = folder / "server.log"
        with log.open("w") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(self.port), *words],
                cwd=_CHECKOUT, stdout=out, stderr=out,
            )  # fmt: skip
        while True:
            if self._process.poll() is not None:
                raise RuntimeError(log.read_text(encoding="utf-8"))
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()
