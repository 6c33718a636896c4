"""Replays a recorded program in a cloud: each resource once all that it needs is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from gcluster.stacks.pulumi.recording.graph import RecordedGraph, RecordedResource

from .clouds import Cloud

Json = dict[str, Any]  # a provider's JSON
_REFERENCE = re.compile(r"\$\{(\w+)/([^}]+)\.(\w+)\}")


class Made(msgspec.Struct, frozen=True):
    """A resource as it went to the cloud: with the ids of what it refers to."""

    resource: RecordedResource
    inputs: Json
    identifier: str
    """The id that the cloud gave it."""


def replay(
    graph: RecordedGraph, cloud: Cloud, choose: Callable[[list[str]], str] = min
) -> Iterator[Made]:
    """Yield each resource that a provider makes, made; `choose` picks the next that can be.

    Raises:
        CloudError: the cloud refuses one.
    """
    waiting = {r.urn: r for r in graph.resources}
    needs = {urn: set(needed(r)) & waiting.keys() for urn, r in waiting.items()}
    outputs: dict[tuple[str, str], Json] = {}
    while waiting:
        ready = sorted(urn for urn in waiting if not needs[urn] & waiting.keys())
        resource = waiting.pop(choose(ready))
        if not resource.custom or resource.type.startswith("pulumi:"):
            continue
        inputs = _resolved(msgspec.to_builtins(resource.inputs), outputs)
        identifier, computed = cloud.create(resource.urn, inputs)
        key = (resource.type.rpartition(":")[2], resource.name)
        outputs[key] = {**inputs, **computed, "id": identifier}
        yield Made(resource, inputs, identifier)


def needed(resource: RecordedResource) -> Iterator[str]:
    """Yield the URNs of all that the engine waits for: it sees these and no others."""
    yield from resource.dependencies
    for urns in resource.property_dependencies.values():
        yield from urns
    if resource.options.provider:
        yield resource.options.provider
    if resource.parent:
        yield resource.parent


def _resolved(value: Any, outputs: dict[tuple[str, str], Json]) -> Any:
    if isinstance(value, dict):
        if value.get("$") == "unknown":  # a computed value that isn't text: a version, a list
            return "1"
        return {key: _resolved(item, outputs) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, outputs) for item in value]
    if not isinstance(value, str):
        return value
    return _REFERENCE.sub(lambda m: str(outputs[m[1], m[2]].get(m[3], m[0])), value)
