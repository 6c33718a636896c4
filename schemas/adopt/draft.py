"""The draft of a spec: sources that were read, and the YAML that is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec
import yaml

from ..catalog import load_catalog
from ..catalog.model.machine import Machine

_WIDTH = 100


def spec_text(adopted: Adopted, origin: str) -> str:
    """Return the spec; what is not carried over stands in comments above it."""
    lines = [f"# Adopted from {_line(origin)}."]
    if adopted.not_carried:
        lines.append("# Not carried over; look at each before the first `gcluster up`:")
        lines += [f"# - {_line(each.where)}: {_line(each.why)}" for each in adopted.not_carried]
    return "\n".join(lines) + "\n" + _yaml(adopted.spec)


def machines_text(adopted: Adopted, origin: str) -> str:
    """Return the catalog file of the machine types that gcluster doesn't know."""
    head = f"# Machine types of {_line(origin)}: what is not known is left out, and not checked.\n"
    return head + _yaml({"apiVersion": "gcluster/catalog/v1", "machines": list(adopted.machines)})


def _line(text: str) -> str:
    """Keep a text on its line of comment."""
    return "".join(c if c.isprintable() else " " for c in text)


def _yaml(data: Any) -> str:
    text: str = yaml.safe_dump(
        data, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH
    )
    return text


Path: TypeAlias = tuple[str | int, ...]


class Source:
    """A mapping read from a file; `take` reads a value and marks it, `rest` gives the unread."""

    def __init__(self, data: Any, path: Path = (), read: set[Path] | None = None) -> None:
        """Hold data; parts made by `part` and `each` share what was read."""
        self._data = data if isinstance(data, dict) else {}
        self._path = path
        self._read = set() if read is None else read

    def take(self, *keys: str) -> Any:
        """Return a value and mark it, with all below it, as read; None where it is not there."""
        value = self._find(keys)
        if value is not None:
            self._read.add((*self._path, *keys))
        return value

    def text(self, *keys: str) -> str:
        """Return a value as text; "" where there is none, or no plain value."""
        value = self.take(*keys)
        return "" if value is None or isinstance(value, dict | list) else str(value)

    def number(self, *keys: str) -> int | None:
        """Return a whole number; None where there is none, unread where it is something else."""
        value = self._find(keys)
        if isinstance(value, bool) or not isinstance(value, int | str):
            return None
        try:
            found = int(value)
        except ValueError:
            return None
        self.take(*keys)
        return found

    def part(self, *keys: str) -> Source:
        """Return a mapping below this one; an empty one where there is none."""
        return Source(self._find(keys), (*self._path, *keys), self._read)

    def each(self, *keys: str) -> Iterator[Source]:
        """Yield the mappings of a list below this one."""
        found = self._find(keys)
        for index, item in enumerate(found if isinstance(found, list) else ()):
            if isinstance(item, dict):
                yield Source(item, (*self._path, *keys, index), self._read)

    def names(self) -> list[str]:
        """Return the keys of this mapping."""
        return [str(key) for key in self._data]

    def rest(self) -> Iterator[tuple[Path, Any]]:
        """Yield the path and value of each leaf below this mapping that nobody has read."""
        yield from self._unread(self._data, self._path)

    def _find(self, keys: tuple[str, ...]) -> Any:
        found: Any = self._data
        for key in keys:
            if not isinstance(found, dict):
                return None
            found = found.get(key)
        return found

    def _unread(self, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
        if path in self._read:
            return
        if isinstance(value, dict) and value:
            for key, item in value.items():
                yield from self._unread(item, (*path, str(key)))
        elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
            for index, item in enumerate(value):
                yield from self._unread(item, (*path, index))
        elif value not in (None, {}, []):
            yield path, value


def words(path: Path) -> str:
    """Write a path: Scheduling.SlurmQueues[0].Name."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


_LONGEST = 32
_LONG_NAMES = frozenset({"pool", "partition"})
"""What may have upper case and underscores in its name."""


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
        if what in _LONG_NAMES:
            plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")
        else:
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

    def tunnel(self, site: str, kind: str) -> None:
        """Lead the way into a cloud site through the cloud's own tunnel, and list that it does.

        The source may say that machines have public addresses, but not from where one logs in.
        """
        self.sites[site]["ssh"] = {"tunnel": kind}
        self.leave(
            f"the way in to site {site}",
            f"ssh: {{tunnel: {kind}}} is written; for public addresses public_address of a pool "
            "and network: {admin_cidrs} of the site",
        )

    def machine(self, name: str, sites: list[str], **facts: Any) -> str:
        """Return a machine type of this name; one that the catalog lacks is written beside it."""
        if name not in load_catalog().machines and name not in self._machines:
            if "cpu" not in facts:
                facts["cpu"] = {"architecture": "x86_64"}
                self.leave(
                    f"machine type {name}, architecture",
                    "nothing says it, x86_64 is written: aarch64 in machines.yaml where it is ARM",
                )
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
    return min(found, key=lambda machine: (bool(machine.cpu.threads), machine.name), default=None)


def duration(seconds: int) -> str:
    """Write a time as specs do, in the largest unit that it is whole in."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
