"""What sets the machine types of a cloud apart, as one table that can be read.

The example of one type is kept as a full graph. Of the others the table has how many resources of
each type are requested, and in full those of the nodes with GPUs and those of a type that the full
graph lacks. What holds for every graph is said by tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import yaml

from gcluster.stacks.pulumi.recording.graph import RecordedGraph, RecordedResource, Value

_ELSEWHERE = frozenset({
    "customData", "freeformTags", "labels", "metadata", "osProfile", "tags", "tagSpecifications",
    "userData",
})  # fmt: skip
"""Inputs that are alike on all machines: the full graph has them."""


def table(full: RecordedGraph, others: Mapping[str, RecordedGraph], machine_key: str) -> str:
    """Return the table; `machine_key` is the input by which a node's resource says its machine."""
    shown = {_kind(resource) for resource in full.resources}
    return yaml.safe_dump(
        {machine: _rows(graph, machine, machine_key, shown) for machine, graph in others.items()},
        default_flow_style=None,
        width=110,
    )


def _rows(graph: RecordedGraph, machine: str, key: str, shown: set[str]) -> dict[str, Any]:
    requested = {
        resource.name: {_kind(resource): _plain(resource.inputs)}
        for resource in graph.resources
        if resource.custom and (_kind(resource) not in shown or _of(resource.inputs, key, machine))
    }
    counts = Counter(_kind(resource) for resource in graph.resources if resource.custom)
    return {"resources": dict(sorted(counts.items())), "requested": requested}


def _kind(resource: RecordedResource) -> str:
    return resource.type.rpartition(":")[2]


def _of(inputs: Value, key: str, machine: str) -> bool:
    """Whether an input of this name says this machine, at any depth."""
    if isinstance(inputs, list):
        return any(_of(item, key, machine) for item in inputs)
    if not isinstance(inputs, dict):
        return False
    return inputs.get(key) == machine or any(_of(item, key, machine) for item in inputs.values())


def _plain(value: Value) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in _ELSEWHERE}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
