"""Questions about a recorded graph, for tests that read as sentences and for `gcluster plan`.

And its picture: a Mermaid flowchart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter

import msgspec

from ..provider import Resource, ResourceGraph
from .names import POOL
from .recorded import RecordedGraph, RecordedResource, Value


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of the tree and what sits in it."""

    type: str
    name: str
    urn: str
    custom: bool
    children: tuple[Branch, ...] = ()


class Graph:
    """A recorded graph with its indexes. Types are asked for by token or by its last word."""

    def __init__(self, recorded: RecordedGraph) -> None:
        """Index the graph."""
        self.recorded = recorded
        self.by_urn = {resource.urn: resource for resource in recorded.resources}
        self._children: dict[str, list[RecordedResource]] = {}
        for resource in recorded.resources:
            self._children.setdefault(resource.parent, []).append(resource)

    def of_type(self, kind: str) -> tuple[RecordedResource, ...]:
        """Return the resources of a type: "aws:ec2/vpc:Vpc", or "Vpc"."""
        return tuple(r for r in self.recorded.resources if kind in {r.type, short_type(r.type)})

    def only(self, kind: str) -> RecordedResource:
        """Return the one resource of a type.

        Raises:
            LookupError: there is none, or more than one.
        """
        found = self.of_type(kind)
        if len(found) != 1:
            names = ", ".join(resource.name for resource in found) or "none"
            raise LookupError(f"one {kind} was expected, found: {names}")
        return found[0]

    def named(self, name: str, kind: str = "") -> RecordedResource:
        """Return the resource of this name, and of this type where two have the name.

        Raises:
            LookupError: there is none, or more than one.
        """
        among = self.of_type(kind) if kind else self.recorded.resources
        found = [resource for resource in among if resource.name == name]
        if len(found) != 1:
            types = ", ".join(resource.type for resource in found) or "none"
            raise LookupError(f'one resource called "{name}" was expected, found: {types}')
        return found[0]

    def children(self, of: RecordedResource | None = None) -> tuple[RecordedResource, ...]:
        """Return what sits in a component; without one, what sits in the stack."""
        return tuple(self._children.get(of.urn if of else "", ()))

    def within(self, component: RecordedResource) -> tuple[RecordedResource, ...]:
        """Return all that sits in a component, at any depth."""
        found: list[RecordedResource] = []
        for child in self.children(component):
            found += (child, *self.within(child))
        return tuple(found)

    def components(self) -> tuple[RecordedResource, ...]:
        """Return the components."""
        return tuple(r for r in self.recorded.resources if not r.custom)

    def needs(self, resource: RecordedResource) -> tuple[RecordedResource, ...]:
        """Return what must exist before this resource."""
        return tuple(self.by_urn[urn] for urn in resource.dependencies if urn in self.by_urn)

    def needed_by(self, resource: RecordedResource) -> tuple[RecordedResource, ...]:
        """Return what must be gone before this resource goes."""
        return tuple(r for r in self.recorded.resources if resource.urn in r.dependencies)

    def tags(self, resource: RecordedResource) -> dict[str, Value]:
        """Return the tags or labels of a resource, {} where it has none."""
        return tags_of(resource)

    def counts(self) -> dict[str, int]:
        """Return how many resources of each type providers make, most first."""
        count = Counter(r.type for r in self.recorded.resources if r.custom)
        return dict(sorted(count.items(), key=lambda item: (-item[1], item[0])))

    def creation_order(self) -> tuple[RecordedResource, ...]:
        """Return the resources so that each comes after what it needs; destroy goes backwards.

        Raises:
            graphlib.CycleError: two resources need each other.
        """
        before = {
            resource.urn: sorted({*resource.dependencies, resource.parent} & self.by_urn.keys())
            for resource in self.recorded.resources
        }
        return tuple(self.by_urn[urn] for urn in TopologicalSorter(before).static_order())

    def tree(self) -> tuple[Branch, ...]:
        """Return the stack's resources as a tree: components before the others, by name."""
        return self._branches("")

    def _branches(self, urn: str) -> tuple[Branch, ...]:
        below = self._children.get(urn, [])
        return tuple(
            Branch(type=r.type, name=r.name, urn=r.urn, custom=r.custom,
                   children=self._branches(r.urn))
            for r in sorted(below, key=lambda r: (r.custom, natural(r.name), r.type))
        )  # fmt: skip


def tags_of(resource: RecordedResource) -> dict[str, Value]:
    """Return the tags or labels of a resource, {} where it has none; lists of pairs as a map."""
    tags = resource.inputs.get(resource.takes_tags) if resource.takes_tags else None
    if isinstance(tags, list):
        pairs = (pair for pair in tags if isinstance(pair, dict))
        return {str(pair.get("key")): pair.get("value") for pair in pairs}
    return dict(tags) if isinstance(tags, dict) else {}


def untagged(graph: RecordedGraph, expected: Mapping[str, str]) -> tuple[RecordedResource, ...]:
    """Return the resources that take tags and lack one of these, or have it with another value."""
    return tuple(
        resource
        for resource in graph.resources
        if resource.takes_tags and not expected.items() <= _text(tags_of(resource)).items()
    )


def unregistered(graph: RecordedGraph) -> tuple[RecordedResource, ...]:
    """Return the components that registered no outputs."""
    return tuple(r for r in graph.resources if not r.custom and not r.outputs)


def orphans(graph: RecordedGraph) -> tuple[RecordedResource, ...]:
    """Return the resources of providers that sit in no component: `parent=self` was forgotten."""
    return tuple(
        r for r in graph.resources
        if r.custom and not r.parent and not r.type.startswith("pulumi:providers:")
    )  # fmt: skip


def short_type(type_: str) -> str:
    """Return the last word of a type token: aws:ec2/vpc:Vpc -> Vpc."""
    return type_.rpartition(":")[2]


def natural(name: str) -> tuple[str, int, str]:
    """Return a sort key that puts gpu-10 after gpu-9."""
    stem = name.rstrip("0123456789")
    number = name[len(stem) :]
    return stem, int(number) if number else -1, name


def _text(tags: Mapping[str, Value]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if isinstance(value, str)}


_SCRIPTS = frozenset({"customData", "userData"})
"""First-boot scripts: long, encoded, and no property that a plan compares by eye."""


def site_graph(recorded: RecordedGraph, *, provider: str, site: str) -> ResourceGraph:
    """Return what providers make in a recording, with their plain inputs."""
    names = {resource.urn: resource.name for resource in recorded.resources}
    return ResourceGraph(
        site=site,
        provider=provider,
        resources=tuple(
            Resource(
                kind=short_type(made.type),
                name=made.name,
                pool=_pool(made),
                properties=_plain(made),
                parent=names.get(made.parent),
            )
            for made in recorded.resources
            if made.custom and not made.type.startswith("pulumi:providers:")
        ),
    )


def _pool(made: RecordedResource) -> str | None:
    pool = tags_of(made).get(POOL)
    return pool if isinstance(pool, str) else None


def _plain(made: RecordedResource) -> dict[str, str | int | bool | None]:
    return {
        key: value
        for key, value in made.inputs.items()
        if isinstance(value, str | int | bool) and key not in _SCRIPTS
    }


FOLD_ABOVE = 3
"""More siblings of one type than this are drawn as one box with their number."""


def mermaid(graph: RecordedGraph) -> str:
    """Return the graph as a flowchart: components are frames, arrows go to what is needed.

    Same graph, same text. Siblings of one type are folded, so that 64 nodes are one box.
    """
    boxes: dict[str, str] = {}
    lines = ["flowchart TD"]
    lines += _boxes(Graph(graph).tree(), boxes, "  ")
    arrows = {
        (boxes[resource.urn], boxes[needed])
        for resource in graph.resources
        for needed in resource.dependencies
        if needed in boxes and boxes[needed] != boxes[resource.urn]
    }
    lines += [f"  {start} --> {end}" for start, end in sorted(arrows, key=_numbers)]
    return "\n".join(lines) + "\n"


def _boxes(branches: tuple[Branch, ...], boxes: dict[str, str], indent: str) -> Iterator[str]:
    by_type: dict[str, list[Branch]] = {}
    for branch in branches:
        by_type.setdefault(branch.type, []).append(branch)
    for type_, same in by_type.items():
        if len(same) > FOLD_ABOVE:
            yield _folded(type_, same, boxes, indent)
            continue
        for branch in same:
            box = boxes[branch.urn] = _new(boxes)
            if branch.children:
                yield f'{indent}subgraph {box}["{_quoted(branch.name)}"]'
                yield from _boxes(branch.children, boxes, indent + "  ")
                yield f"{indent}end"
            else:
                yield f'{indent}{box}["{short_type(type_)}<br>{_quoted(branch.name)}"]'


def _folded(type_: str, same: list[Branch], boxes: dict[str, str], indent: str) -> str:
    box = _new(boxes)
    for branch in same:
        _take(branch, box, boxes)
    names = f"{_quoted(same[0].name)} ... {_quoted(same[-1].name)}"
    return f'{indent}{box}["{len(same)} {short_type(type_)}<br>{names}"]'


def _take(branch: Branch, box: str, boxes: dict[str, str]) -> None:
    boxes[branch.urn] = box
    for child in branch.children:
        _take(child, box, boxes)


def _new(boxes: dict[str, str]) -> str:
    return f"n{len(boxes)}"


def _numbers(arrow: tuple[str, str]) -> tuple[int, int]:
    return int(arrow[0][1:]), int(arrow[1][1:])


def _quoted(name: str) -> str:
    return name.replace('"', "#quot;")
