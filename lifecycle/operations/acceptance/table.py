"""The table of acceptance tests (`tests.yaml`): what each needs, starts and gives."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from ....schemas.catalog import Machine
from ....schemas.structure.decoding import decode_yaml

Scope: TypeAlias = Literal["node", "pairs", "domain", "whole", "fabric", "drill"]
"""node: on each node by itself, many at once. pairs: each node with others. domain: in each block,
and over all nodes that one fabric joins; whole: over those alone. fabric: from one node of them.
drill: on each node that was named for it, one after the other."""
Better: TypeAlias = Literal["higher", "lower"]
ReaderName: TypeAlias = Literal[
    "collective",
    "measure",
    "dcgm",
    "rvs",
    "nvbandwidth",
    "gpu-burn",
    "ibdiagnet",
    "ior",
    "mdtest",
    "fio",
    "hpl",
    "elbencho",
    "wiring",
]
OptionName: TypeAlias = Literal["path", "wiring", "drill", "container"]


class Needs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What nodes must have for one variant of a test; what is missing is reported as the reason."""

    gpu: Literal["", "nvidia", "amd", "none"] = ""
    """Vendor of real GPUs; none: there must be none."""
    programs: tuple[str, ...] = ()
    """By name on the PATH, or by path; files that a program reads, too."""
    rdma: Literal["", "any", "InfiniBand", "Ethernet"] = ""
    """Link layer of the RDMA devices that a node must have."""
    options: tuple[OptionName, ...] = ()
    """What must have been requested or named on the command line."""


class Way(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to run a test; the first whose needs all nodes meet is taken."""

    command: str
    """A shell line; {names} are filled in (`targets.fillings`)."""
    reader: ReaderName
    needs: Needs = Needs()
    in_container: bool = False
    """Whether its ranks run in the image that was named (`--container`), by pyxis."""
    on_controller: bool = False
    """Whether the controller runs it, as root, instead of the nodes; drill.sh is copied with it
    then.
    """
    stands_in: str = ""
    """What this way is instead of the real test, for the report; "": it is the real one."""


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure that a test gives."""

    unit: str
    better: Better = "higher"
    title: str = ""
    floored: bool = False
    """Whether the test's constant floor is for it."""


class Floor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a constant floor comes from."""

    of: Literal["allreduce", "nic"]
    """allreduce: as the gate has it. nic: a share of the speed of one NIC, in Gb/s."""
    share: float = 1.0
    source: str = ""
    date: str = ""


class AcceptanceTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A test of the table."""

    name: str
    title: str
    scope: Scope
    ways: tuple[Way, ...]
    minutes: float
    """Longest time that its job may take; jobs over many nodes get more (`jobs.limit_s`)."""
    metrics: dict[str, Metric]
    floor: Floor | None = None
    """None: there is none, neighbours judge alone."""
    root: bool = False
    """Whether it takes root's rights; all else runs as an ordinary account."""
    once: bool = False
    """Whether repetitions would add nothing."""
    soak: bool = False
    """Whether it is begun again and again until the time of `--soak` is over; left out without."""


class _Peak(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tflops: float
    source: str
    date: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tests: tuple[AcceptanceTest, ...]
    peaks: dict[str, _Peak]
    """Model of a GPU -> what one computes at most."""


def peak_tflops(machine: Machine | None) -> float:
    """Return the peak of one GPU of a machine in TFLOP/s, bfloat16 and dense; 0: unknown."""
    if machine is None or machine.gpu is None or machine.nvlink is None:
        return 0
    known = _table().peaks.get(machine.gpu.model)
    return known.tflops if known else 0


@cache
def _table() -> _File:
    return decode_yaml(Path(__file__).with_name("tests.yaml").read_bytes(), _File)


def acceptance_tests() -> tuple[AcceptanceTest, ...]:
    """Return the tests in the order in which they run."""
    return _table().tests
