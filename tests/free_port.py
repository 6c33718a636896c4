"""A port of 127.0.0.1 that nothing listens on."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port that the system has just given out, and that is closed again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
