"""What adopting gives: the spec and its catalog as plain data, and what is not in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from ..catalog import load_catalog
from ..catalog.machine import Machine

_LONGEST = 32


class NotCarried(msgspec.Struct, frozen=True, order=True):
    """A part of the source that the spec doesn't say."""

    where: str
    """Its place in the source: "partition debug: AllowAccounts"."""
    why: str


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """A draft, finished."""

    name: str
    spec: dict[str, Any]
    machines: tuple[dict[str, Any], ...]
    """Machine types that the catalog lacks: a catalog file of the user's own."""
    not_carried: tuple[NotCarried, ...]


class NothingToAdopt(Exception):  # noqa: N818  # it is no error of the program
    """The source has no cluster in it; the message says what is missing."""


class Draft:
    """A spec while it is put together."""

    def __init__(self, name: str, *, origin: str, date: str) -> None:
        """Begin one.

        Args:
            name: of the cluster; made fit where it has to be.
            origin: what it is adopted from, in words; stands as source of machine types.
            date: when the source was read, as 2026-11-22.
        """
        self.origin = origin
        self.date = date
        self.sites: dict[str, Any] = {}
        self.pools: dict[str, Any] = {}
        self.storage: dict[str, Any] = {}
        self.scheduler: dict[str, Any] = {"type": "slurm"}
        self.more: dict[str, Any] = {}
        self._machines: dict[str, dict[str, Any]] = {}
        self._not_carried: list[NotCarried] = []
        self.name = self.fit(name, "cluster")

    def leave(self, where: str, why: str) -> None:
        """List a part of the source that is not carried over."""
        self._not_carried.append(NotCarried(where, why))

    def fit(self, name: str, what: str, taken: Iterable[str] = ()) -> str:
        """Return a name as specs write names, different from those that are taken."""
        plain = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")
        plain = plain if plain[:1].isalpha() else f"{what[0]}-{plain}".rstrip("-")
        plain = plain[:_LONGEST].rstrip("-")
        others, fitted, number = set(taken), plain, 2
        while fitted in others:
            tail = f"-{number}"
            fitted, number = plain[: _LONGEST - len(tail)] + tail, number + 1
        if fitted != name:
            self.leave(f"{what} {name}", f"specs write names otherwise: it is called {fitted}")
        return fitted

    def machine(self, name: str, sites: list[str], **facts: Any) -> str:
        """Return a machine type of this name; one that the catalog lacks is written beside it."""
        if name not in load_catalog().machines and name not in self._machines:
            self._machines[name] = {
                "name": name, "sites": sites, **facts, "source": self.origin, "date": self.date,
            }  # fmt: skip
            if "gpu" not in facts:
                self.leave(f"machine type {name}", "its GPUs, if any: write them in machines.yaml")
        return name

    def finished(self) -> Adopted:
        """Return it. Raises NothingToAdopt where a part is missing that every cluster has."""
        if not any(pool.get("role") == "controller" for pool in self.pools.values()):
            raise NothingToAdopt("it names no controller")
        spec: dict[str, Any] = {"apiVersion": "gcluster/v1", "name": self.name}
        if self._machines:
            spec["catalog"] = ["machines.yaml"]
        spec |= {"sites": self.sites, "pools": self.pools}
        if self.storage:
            spec["storage"] = self.storage
        spec |= {"scheduler": self.scheduler, **self.more}
        return Adopted(
            name=self.name,
            spec=spec,
            machines=tuple(self._machines.values()),
            not_carried=tuple(dict.fromkeys(self._not_carried)),
        )


def gpu_machine(model: str, count: int, provider: str) -> Machine | None:
    """Return a machine type of the catalog with these GPUs, one without a maker first."""
    found = [
        machine
        for machine in load_catalog().machines.values()
        if machine.gpu is not None
        and provider in machine.sites
        and not machine.simulated
        and (machine.gpu.model.lower(), machine.gpu.count) == (model.lower(), count)
    ]
    return min(found, key=lambda machine: (machine.cpu is not None, machine.name), default=None)


def duration(seconds: int) -> str:
    """Write a time as specs do, in the largest unit that it is whole in."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
