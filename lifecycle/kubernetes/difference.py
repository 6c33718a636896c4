"""What differs between the objects that a cluster is to have and those it has (pure)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ...inventory.compile.kubernetes_objects.nodes import (
    AWAITED_DOMAIN,
    NO_PARTITION,
    PARTITION_DOMAIN,
    TAINT_DOMAIN,
    taint_label,
)
from ...inventory.compile.kubernetes_objects.objects import DOMAIN
from ...schemas.derived.hostlist import fold
from ..scheduler.accounting.plan import AccountingPlan
from .objects import DIGEST, DesiredObjects, ObjectKey
from .observe import Live, LiveNode, is_ours

_MIG = "nvidia.com/mig.config"
_NAMED = 4
"""Most names that a line has."""


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """What is changed of one node."""

    labels: dict[str, str | None]
    """Label -> value; None: it goes."""
    taints: tuple[str, ...]
    """As `kubectl taint` takes them."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What `up` changes in a cluster's API."""

    missing: tuple[ObjectKey, ...]
    other: tuple[ObjectKey, ...]
    pruned: tuple[ObjectKey, ...]
    """Ours and compiled no more; the last applied goes first."""
    marks: dict[str, Marks]
    forgotten: tuple[str, ...]
    """Nodes that joined for an earlier spec."""
    kept: dict[str, list[str]] = {}
    """Namespace -> the work in it, for which it isn't pruned."""
    digests: dict[ObjectKey, str] = {}
    """Of what is missing or other: what it is to be."""

    @property
    def is_empty(self) -> bool:
        """Whether all is as compiled."""
        return not (self.missing or self.other or self.pruned or self.marks or self.forgotten)

    def keeping(self, occupied: Mapping[str, list[str]]) -> Difference:
        """Return the same without the namespaces that have work in them."""
        pruned = tuple(key for key in self.pruned if not _is_namespace(key, occupied))
        return msgspec.structs.replace(self, pruned=pruned, kept=dict(occupied))

    @property
    def emptied(self) -> list[str]:
        """Namespaces that would go, with all that is in them."""
        return [key.name for key in self.pruned if key.kind == "Namespace"]

    def plan(self) -> AccountingPlan:
        """Return the text of it."""
        return AccountingPlan(
            changes=(
                *_lines("add", self.missing),
                *_lines("change", self.other),
                *([f"label {fold(sorted(self.marks))}"] if self.marks else []),
                *_lines("remove", self.pruned),
                *([f"remove Node: {fold(self.forgotten)}"] if self.forgotten else []),
            ),
            held_back=tuple(
                f"namespace {name} stays: {_few(work)} in it" for name, work in self.kept.items()
            ),
            exact=tuple(self._exact()),
        )

    def _exact(self) -> Iterator[str]:
        """Yield every change with its details."""
        for key in (*self.missing, *self.other):
            yield f"apply {_full(key)} {self.digests.get(key, '')}"
        for name, marks in sorted(self.marks.items()):
            yield f"mark node {name}: {msgspec.json.encode(marks, order='sorted').decode()}"
        yield from (f"delete {_full(key)}" for key in self.pruned)
        yield from (f"forget node {name}" for name in self.forgotten)


def difference(wanted: DesiredObjects, live: Live, hosts: Collection[str]) -> Difference:
    """Compare.

    Args:
        wanted: compiled.
        live: as the API server has it.
        hosts: names of all hosts of the spec, control planes included.
    """
    digests = {key: _digest(made) for key, made in wanted.objects.items()}
    gone = [key for key in live.objects if key not in digests]
    missing = tuple(key for key in digests if key not in live.objects)
    other = tuple(key for key, made in digests.items() if live.objects.get(key, made) != made)
    return Difference(
        missing=missing,
        other=other,
        digests={key: digests[key] for key in (*missing, *other)},
        pruned=tuple(sorted(gone, key=lambda key: (key.kind == "Namespace", key))),
        marks={
            name: marks
            for name, answer in wanted.nodes.items()
            if (node := live.nodes.get(name)) is not None
            and (marks := marks_of(answer, node)) is not None
        },
        forgotten=tuple(
            sorted(n for n, node in live.nodes.items() if n not in hosts and is_ours(node))
        ),
    )


def _digest(made: Mapping[str, Any]) -> str:
    return str(made["metadata"]["annotations"][DIGEST])


def _full(key: ObjectKey) -> str:
    return f"{key.kind}.{key.group} {key.words}" if key.group else f"{key.kind} {key.words}"


def _is_namespace(key: ObjectKey, names: Collection[str]) -> bool:
    return key.kind == "Namespace" and key.name in names


def marks_of(marks: Mapping[str, Any], node: LiveNode) -> Marks | None:
    """Return what is to change of a node's labels and taints, as far as they are gcluster's.

    Args:
        marks: `labels` and `taints` that it is to have.
        node: as the API server has it.
    """
    labels: dict[str, str | None] = {
        label: value for label, value in marks["labels"].items() if node.labels.get(label) != value
    }
    labels |= {
        label: None
        for label in node.labels
        if label not in marks["labels"] and _is_our_label(label)
    }
    there = {(t["key"], t.get("value", ""), t["effect"]) for t in node.taints}
    wanted = {(t["key"], t.get("value", ""), t["effect"]) for t in marks["taints"]}
    taints = [f"{key}={value}:{effect}" for key, value, effect in sorted(wanted - there)]
    taints += [
        f"{key}:{effect}-"
        for key, _, effect in sorted(there - wanted)
        if (key == NO_PARTITION or taint_label(key) in node.labels)
        and (key, effect) not in {(k, e) for k, _, e in wanted}
    ]
    return Marks(labels=labels, taints=tuple(taints)) if labels or taints else None


def _is_our_label(label: str) -> bool:
    ours = {AWAITED_DOMAIN, DOMAIN, PARTITION_DOMAIN, TAINT_DOMAIN}
    return label.partition("/")[0] in ours or label == _MIG


def _lines(verb: str, keys: Iterable[ObjectKey]) -> Iterator[str]:
    """Yield a line for each kind."""
    alike: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        alike[key.kind].append(key.words)
    for kind, names in alike.items():
        yield f"{verb} {kind}: {_few(names)}"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
