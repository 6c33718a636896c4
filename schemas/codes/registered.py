"""The register of codes: families, texts that are data, and who gave which code when."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from ..structure.compose import read_data_file


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A hundred of codes."""

    hundred: int
    """First digits of its codes: 2 of GC204, 10 of GC1003."""
    title: str
    about: str
    """What belongs there, in a few words."""


FAMILIES = (
    Family(
        hundred=0,
        title="Structure",
        about="what keeps a file from being read as a spec",
    ),
    Family(hundred=1, title="Capacity", about="machines, counts, hosts, zones, quotas"),
    Family(hundred=2, title="Fabric", about="what the nodes' fast network is and can do"),
    Family(hundred=3, title="Network", about="addresses and who may reach them"),
    Family(hundred=4, title="Storage", about="sizes, mounts, throughput"),
    Family(hundred=5, title="Scheduler and users", about="partitions, queues, accounts"),
    Family(hundred=6, title="Software", about="versions that go together"),
    Family(hundred=7, title="Hybrid", about="work that moves between sites"),
    Family(hundred=8, title="Budget and policy", about="money, an organisation's rules, fleets"),
    Family(
        hundred=9,
        title="Running",
        about="state, providers, nodes, the AllReduce, this command line",
    ),
    Family(
        hundred=10,
        title="Running Kubernetes",
        about="bundles, control planes, nodes and what is applied to them",
    ),
    Family(
        hundred=11,
        title="Upkeep",
        about="drift, repair, pipelines, what ends by itself, adoption, secrets that change",
    ),
    Family(
        hundred=12,
        title="Workloads",
        about="what is trained or run: sizes, checkpoints, submitted jobs",
    ),
)


def family_of(code: str) -> Family:
    """Return the family of a code such as GC204."""
    return FAMILIES[number_of(code) // 100]


def number_of(code: str) -> int:
    """Return what codes are ordered by: GC204 comes before GC1003."""
    return int(code.removeprefix("GC"))


FOLDER = Path(__file__).parent
TEXTS = ("structure.yaml", "running.yaml", "kubernetes.yaml", "upkeep.yaml")
"""Files of codes that are no rules of meaning."""
_T = TypeVar("_T")


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a code means, as data."""

    summary: str
    explanation: str


def read(name: str, kind: type[_T]) -> _T:
    """Return the typed content of a file next to this module."""
    return read_data_file(FOLDER / name, kind)


REGISTER = FOLDER / "register.yaml"
_TOP = """\
# Every code that was ever used, with the version that it came with. A code is never taken out of
# this list and never used again for another meaning: one that is not given any more gets
# `retired: true` and `was:`, its summary. New ones are added by
# python -m gcluster.schemas.codes --write
"""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One code of the register."""

    code: str
    since: str
    """Version of gcluster that gave it first."""
    retired: bool = False
    was: str = ""
    """Summary of a retired code."""


def entries() -> list[Entry]:
    """Return the register as it is written, in its order."""
    return read("register.yaml", list[Entry])


def register() -> dict[str, Entry]:
    """Return the register by code."""
    return {entry.code: entry for entry in entries()}


def with_new(codes: Iterable[str], *, since: str) -> str:
    """Return the text of the register with the codes that it lacks."""
    known = entries()
    there = {entry.code for entry in known}
    new = [Entry(code=code, since=since) for code in codes if code not in there]
    ordered = sorted([*known, *new], key=lambda entry: number_of(entry.code))
    lines = [_line(entry) for entry in ordered]
    return _TOP + "\n".join(lines) + "\n"


def _line(entry: Entry) -> str:
    retired = f', retired: true, was: "{entry.was}"' if entry.retired else ""
    return f"- {{code: {entry.code}, since: {entry.since}{retired}}}"
