"""Records the example of each machine type of Azure."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from tests.stacks.recorded_graph import Graph

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.azure.plan.types import LiveState
from gcluster.stacks.azure.program.site import answers, program
from gcluster.stacks.pulumi.recording.graph import RecordedGraph
from gcluster.stacks.pulumi.recording.record import record

CASES = Path(__file__).parents[2] / "cases/stacks/azure"
MACHINES = sorted(path.stem for path in (CASES / "specs").glob("*.yaml"))
FULL = "Standard_ND96isr_H100_v5"
"""Its graph is kept as a whole."""


def spec_of(machine: str) -> ClusterSpec:
    return parsed((CASES / "specs" / f"{machine}.yaml").read_text(encoding="utf-8"))


def parsed(text: str) -> ClusterSpec:
    loaded = load_text(text, file="spec.yaml")
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def recorded(
    spec: ClusterSpec, *, preview: bool = False, live_state: LiveState | None = None
) -> RecordedGraph:
    [site] = spec.sites
    run = program(spec, site, load_catalog(), live_state)
    project = f"gcluster-{spec.name}"
    return record(run, project=project, stack=site, preview=preview, answers=answers(""))


@cache
def example(machine: str) -> RecordedGraph:
    return recorded(spec_of(machine))


def kept(graph: RecordedGraph) -> RecordedGraph:
    """Return a graph without the aliases that the SDK gives every type: its older API versions."""
    plain = (
        msgspec.structs.replace(
            resource, options=msgspec.structs.replace(resource.options, aliases=())
        )
        for resource in graph.resources
    )
    return msgspec.structs.replace(graph, resources=tuple(plain))


@cache
def graph(machine: str) -> Graph:
    return Graph(example(machine))
