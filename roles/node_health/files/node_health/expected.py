"""What this machine must have: /etc/gcluster/node-health.json, compiled from the cluster's spec."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from .finding import CheckIncomplete

T = TypeVar("T")


@dataclass(frozen=True)
class Gpus:
    """The GPUs of the machine type."""

    vendor: str
    count: int
    memory_gib: float = 0
    """Of one GPU; 0: not known."""
    nvlink: bool = False
    """They reach each other over NVLink."""
    links: int = 0
    """NVLinks of one GPU; 0: not known, then all that are there must be up and be as many."""
    slices: int = 0
    """MIG slices that each GPU is cut into; 0: it is whole."""


@dataclass(frozen=True)
class Nics:
    """Network interfaces of one kind."""

    kind: str
    count: int
    gbps: float = 0
    """Speed of one; 0: not known."""
    devices: tuple[str, ...] = ()
    """RDMA devices in the rails' order; empty: they are found (rails.py)."""
    front_end: bool = False
    """For SSH, storage and the scheduler; the others are rails."""


@dataclass(frozen=True)
class Mount:
    """A file system that must be there."""

    path: str
    type: str
    """As /proc/mounts writes it, or the start of it: lustre, nfs, fuse."""


@dataclass(frozen=True)
class Program:
    """A program of the cluster's own."""

    name: str
    path: str


@dataclass(frozen=True)
class BurnIn:
    """What a repaired node must pass before it takes jobs again."""

    runs: int = 3
    """Clean runs in a row."""
    minutes: float = 30
    """Least time over which they stretch."""
    dcgm_level: int = 0
    """dcgmi diag level (1 to 4) that must pass; 0: none."""


@dataclass(frozen=True)
class Expected:
    """All expected values; None or empty means not checked."""

    node: str
    simulated: bool = False
    gpus: Gpus | None = None
    nics: tuple[Nics, ...] = ()
    mounts: tuple[Mount, ...] = ()
    programs: tuple[Program, ...] = ()
    memory_gib: float = 0
    clock: bool = True
    clock_most_s: float = 0.1
    disks: tuple[str, ...] = ("/",)
    disk_most_percent: float = 95
    link_errors_per_hour: float = 100
    resume: bool = False
    """Lift our own drains when all is well again."""
    notice: bool = False
    """Without a scheduler to drain the node: a notice at its logins shows that it is unhealthy."""
    timeout_s: float = 45
    """For all checks together; Slurm kills the program after 60 s."""
    burn_in: BurnIn = field(default_factory=BurnIn)


def load(path: Path) -> Expected:
    """Read the file.

    Raises:
        CheckIncomplete: it isn't there or isn't what this program reads.
    """
    try:
        data = json.loads(path.read_text())
        gpus, burn_in = data.pop("gpus", None), data.pop("burn_in", {})
        return _made(
            Expected,
            data
            | {
                "gpus": _made(Gpus, gpus) if gpus else None,
                "nics": tuple(
                    _made(Nics, nic | {"devices": tuple(nic.get("devices", ()))})
                    for nic in data.pop("nics", ())
                ),
                "mounts": tuple(_made(Mount, mount) for mount in data.pop("mounts", ())),
                "programs": tuple(_made(Program, one) for one in data.pop("programs", ())),
                "disks": tuple(data.pop("disks", ("/",))),
                "burn_in": _made(BurnIn, burn_in),
            },
        )
    except OSError as error:
        raise CheckIncomplete(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise CheckIncomplete(f"{path} can't be read: {error}") from error


def _made(kind: type[T], data: dict[str, Any]) -> T:
    """Make a dataclass; an unknown key is an error, as a version that differs would be."""
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]  # T is one of ours
    unknown = data.keys() - known
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    return kind(**data)
