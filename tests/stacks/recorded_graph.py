"""Questions about a recorded graph, so that tests of programs read as sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from graphlib import TopologicalSorter

from gcluster.stacks.pulumi.recording.graph import (
    RecordedGraph,
    RecordedResource,
    Value,
    short_type,
    tags_of,
)


class Graph:
    """A recorded graph with its indexes. Types are selected by token or by its last word."""

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
    """Return the resources of providers that sit in no component: `parent=self` is missing."""
    return tuple(
        r for r in graph.resources
        if r.custom and not r.parent and not r.type.startswith("pulumi:providers:")
    )  # fmt: skip


def _text(tags: Mapping[str, Value]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if isinstance(value, str)}
