"""Paths on a node, and the settings that the role wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETTINGS = Path("/etc/gcluster/self-converge.json")
SIGNERS = Path("/etc/gcluster/converge-signers")
STAMPS = Path("/var/lib/gcluster/stamps")
STATE = Path("/var/lib/gcluster/self-converge")
LOCK = Path("/run/gcluster-self-converge.lock")

NAMESPACE = "gcluster-converge"
"""What a signature is for, see ssh-keygen(1): one made for files or commits doesn't count."""

JOB_PREFIX = "gcluster-update-"
"""Name of the job that holds a node out of service for its change, before the node's name."""

GRANTED = Path("/run/gcluster/granted-job")
"""Number of that job, while a change runs under it; roles count every other job on the node."""
GRANTED_UNIT = "gcluster-self-converge-granted.service"


@dataclass(frozen=True)
class Settings:
    """What this node is."""

    cluster: str
    pool: str
    mirror: str
    """URL of the folder with the pool's manifest and its bundle."""
    collector: str
    """URL that takes reports."""
    interval: int
    """Seconds between two passes."""


def load_settings() -> Settings:
    """Read what the role wrote; raises OSError, ValueError or TypeError where it can't be read."""
    return Settings(**json.loads(SETTINGS.read_text(encoding="utf-8")))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.new")
    half.write_bytes(content)
    half.replace(path)


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of our own; {} where there is none, or no JSON in it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
