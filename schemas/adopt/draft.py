"""The draft of a spec: sources that were read, and the YAML that is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path as FilePath
from typing import Any, TypeAlias

import msgspec
import yaml

from ..catalog import load_catalog
from ..catalog.model.machine import Machine
from ..structure.decoding import decode_yaml
from .source import ORDER, Kind, Path, Source, shown, words

_WIDTH = 100
_ARCHITECTURES = FilePath(__file__).with_name("architectures.yaml")
Why: TypeAlias = Callable[[Path, Any], tuple[str, Kind]]
"""Returns for a setting that was not read why it isn't carried over."""
_HEADS: dict[Kind, str] = {
    "unfinished": "Not known here; the spec waits for it:",
    "guess": "Written, though not in the source:",
    "lost": "Not carried over; look at each before the first `gcluster up`:",
    "replaced": "Not carried over, since gcluster does it in its own way:",
}


def reasons(table: Iterable[tuple[str, str, Kind]]) -> Why:
    """Return what says why a setting isn't carried, by the first word that is in its path.

    Args:
        table: word, why and kind; ".word" is the beginning of a key. The path is written as `words`
            writes it, after a dot.
    """
    rows = tuple(table)

    def why(path: Path, value: Any) -> tuple[str, Kind]:
        del value
        text = f".{words(path)}"
        found = ((why, kind) for word, why, kind in rows if word in text)
        return next(found, ("the spec has no word for it", "lost"))

    return why


def spec_text(adopted: Adopted, origin: str) -> str:
    """Return the spec; what is not carried over is in comments above it."""
    lines = [f"# Adopted from {_line(origin)}."]
    for kind in ORDER:
        of_kind = [each for each in adopted.not_carried if each.kind == kind]
        if of_kind:
            lines.append(f"# {_HEADS[kind]}")
            lines += [f"# - {_line(each.where)}: {_line(each.why)}" for each in of_kind]
    return "\n".join(lines) + "\n" + _yaml(adopted.spec)


def machines_text(adopted: Adopted, origin: str) -> str:
    """Return the catalog file of the machine types that gcluster doesn't know."""
    head = f"# Machine types of {_line(origin)}: what is not known is left out, and not checked.\n"
    return head + _yaml({"apiVersion": "gcluster/catalog/v1", "machines": list(adopted.machines)})


def _line(text: str) -> str:
    """Keep a text on its line of comment."""
    return "".join(c if c.isprintable() else " " for c in text)


def _yaml(data: Any) -> str:
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None,
        width=_WIDTH,
    )  # fmt: skip
    return text


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as such."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _text)


_LONGEST = 32
_LONG_NAMES = frozenset({"pool", "partition"})
"""What may have upper case and underscores in its name."""


class NotCarried(msgspec.Struct, frozen=True, order=True):
    """A part of the source that the spec doesn't say."""

    where: str
    """Its place in the source: "partition debug: AllowAccounts"."""
    why: str
    kind: Kind = "lost"


class Settings(msgspec.Struct, frozen=True):
    """What became of the settings of a source."""

    carried: int
    replaced: int
    lost: int
    unfinished: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.carried + self.replaced + self.lost + self.unfinished


class _Names(msgspec.Struct, frozen=True):
    """What a cloud's names of machine types say of their processors and GPUs."""

    provider: str
    name: str
    arm: str
    gpus: str
    source: str
    date: str


@cache
def _names() -> dict[str, _Names]:
    found = decode_yaml(_ARCHITECTURES.read_bytes(), list[_Names])
    return {each.provider: each for each in found}


def architecture_of(machine: str, provider: str) -> str:
    """Return what a cloud's machine type is built for, by its name; "" where it doesn't say."""
    names = _names().get(provider)
    if names is None or re.search(names.name, machine) is None:
        return ""
    return "aarch64" if re.search(names.arm, machine) else "x86_64"


def _may_have_gpus(machine: str, provider: str) -> bool:
    names = _names().get(provider)
    known = names is not None and re.search(names.name, machine) is not None
    return not known or (names is not None and re.search(names.gpus, machine) is not None)


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """A draft, finished."""

    name: str
    spec: dict[str, Any]
    machines: tuple[dict[str, Any], ...]
    """Machine types that the catalog lacks: a catalog file of the user's own."""
    not_carried: tuple[NotCarried, ...]
    """What blocks first is first."""
    settings: Settings


class NothingToAdopt(Exception):  # noqa: N818  # it is no error of the program
    """The source has no cluster in it; the message says what is missing."""


class Draft:
    """A spec while it is put together."""

    def __init__(self, name: str, *, origin: str, date: str) -> None:
        """Begin one.

        Args:
            name: of the cluster; made fit where it has to be.
            origin: what it is adopted from, in words; becomes the source of machine types.
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
        self._count: Counter[str] = Counter()
        self.name = self.fit(name, "cluster")

    def leave(self, where: str, why: str, kind: Kind = "lost", settings: int = 0) -> None:
        """List a part of the source that is not carried over.

        Args:
            where: its place.
            why: what to do about it.
            kind: why it is listed.
            settings: how many settings of the source these are; 0 where it is none of them, such as
                a guess, or where `settle` counts them.
        """
        self._not_carried.append(NotCarried(where, why, kind))
        self._count[kind] += settings

    def leave_count(self, kind: Kind, settings: int) -> None:
        """Count settings that were listed without their number."""
        self._count[kind] += settings

    def knows(self, machine: str) -> bool:
        """Say whether the catalog has a machine type of this name."""
        return machine in load_catalog().machines

    def leave_image(self, control_plane: str) -> None:
        """List the image of the AllReduce, which a cloud's Kubernetes needs and no source has."""
        cloud = control_plane.upper()
        why = f"smoke: {{allreduce: {{image: ...}}}}: nodes of {cloud} have no programs of ours"
        self.leave("the image of the AllReduce", why, "unfinished")

    def carry(self, settings: int) -> None:
        """Count settings that the spec says; those of a `Source` are counted by `settle`."""
        self._count["carried"] += settings

    def settle(self, source: Source, why: Why, where: Callable[[Path, Any], str] = shown) -> None:
        """List every setting of a source that isn't carried, and count them all."""
        left = 0
        for each in source.not_carried():
            reason, kind = (each.why, each.kind) if each.why else why(each.path, each.value)
            self.leave(where(each.path, each.value), reason, kind, settings=1)
            left += 1
        self.carry(source.total() - left)

    def fit(self, name: str, what: str, taken: Iterable[str] = ()) -> str:
        """Return a name as specs write names, different from those that are taken."""
        if what in _LONG_NAMES and self.scheduler["type"] == "slurm":
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
            why = f"specs write names otherwise: it is called {fitted}"
            self.leave(f"{what} {name}", why, "replaced")
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
            "guess",
        )

    def machine(self, name: str, sites: list[str], **facts: Any) -> str:
        """Return a machine type of this name; one that the catalog lacks is written next to it."""
        if name not in load_catalog().machines and name not in self._machines:
            if "cpu" not in facts:
                built_for = architecture_of(name, sites[0])
                facts["cpu"] = {"architecture": built_for or "x86_64"}
                if not built_for:
                    self.leave(
                        f"machine type {name}, architecture",
                        "not specified, x86_64 is written: aarch64 in machines.yaml where it is "
                        "ARM",
                        "guess",
                    )
            said = {key: value for key, value in facts.items() if value is not None}
            self._machines[name] = {
                "name": name, "sites": sites, **said, "source": self.origin, "date": self.date,
            }  # fmt: skip
            if "gpu" not in facts and _may_have_gpus(name, sites[0]):
                why = "none are written, since they are not specified: gpu in machines.yaml"
                self.leave(f"machine type {name}: GPUs", why, "guess")
        return name

    def finished(self) -> Adopted:
        """Return it. Raises NothingToAdopt where a part is missing that every cluster has."""
        controllers = any(pool.get("role") == "controller" for pool in self.pools.values())
        needs_one = self.scheduler["type"] != "none" and "control_plane" not in self.scheduler
        if needs_one and not controllers:
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
            not_carried=tuple(
                sorted(dict.fromkeys(self._not_carried), key=lambda each: ORDER.index(each.kind))
            ),
            settings=Settings(
                **{
                    kind: self._count[kind]
                    for kind in ("carried", "replaced", "lost", "unfinished")
                }
            ),
        )


def taints(listed: Iterable[Source]) -> list[dict[str, str]]:
    """Return taints of nodes as specs write them; clouds write effects as NO_SCHEDULE too."""
    found = []
    for each in listed:
        effect = each.text("effect")
        if effect.isupper():
            effect = "".join(word.capitalize() for word in effect.split("_"))
        taint = {"key": each.text("key"), "value": each.text("value"), "effect": effect}
        found.append({key: text for key, text in taint.items() if text})
    return found


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
