"""Records the example spec of each machine type."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.stacks.recorded_graph import Graph

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
from gcluster.schemas.spec import ClusterSpec, Pool
from gcluster.stacks.oci.plan.layout import site_plan
from gcluster.stacks.oci.plan.types import SitePlan
from gcluster.stacks.oci.program.site import answers, program
from gcluster.stacks.pulumi.recording.graph import RecordedGraph, RecordedResource, Value
from gcluster.stacks.pulumi.recording.record import record

CASES = Path(__file__).parents[2] / "cases" / "stacks" / "oci"
FULL = "BM.GPU.H100.8"
"""Its graph is kept as a whole."""
SITE = "here"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGNsdXN0ZXI"


def machines() -> list[str]:
    """Return the machine types that have an example."""
    return sorted(path.stem for path in (CASES / "specs").glob("*.yaml"))


def spec_of(machine: str, **pool: object) -> ClusterSpec:
    """Return the example spec of a machine type; `pool` changes fields of its pool train."""
    loaded = load(CASES / "specs" / f"{machine}.yaml")
    assert loaded.spec is not None, loaded.diagnostics
    return with_pool(loaded.spec, **pool) if pool else loaded.spec


def with_pool(spec: ClusterSpec, name: str = "train", **fields: object) -> ClusterSpec:
    """Return the spec with a pool changed, or added."""
    pools = dict(spec.pools)
    pools[name] = msgspec.structs.replace(pools.get(name, Pool(site=SITE)), **fields)
    return msgspec.structs.replace(spec, pools=pools)


def plan_of(machine: str, **pool: object) -> SitePlan:
    """Return the plan of an example."""
    return site_plan(spec_of(machine, **pool), SITE, load_catalog())


def recorded(
    spec: ClusterSpec, *, preview: bool = False, purchased: dict[str, str] | None = None
) -> RecordedGraph:
    """Return what the program of the spec's site requests."""
    run = program(spec, SITE, load_catalog(), authorized_key=KEY, purchased=purchased)
    return record(run, project="gcluster", stack=SITE, preview=preview, answers=answers(""))


def graph_of(machine: str) -> Graph:
    """Return the recorded graph of the example of a machine type, for queries."""
    return Graph(recorded(spec_of(machine)))


def part(resource: RecordedResource | dict[str, Value], *keys: str) -> dict[str, Value]:
    """Return an input that is an object, by its path; of a list its only item."""
    value: Value = resource.inputs if isinstance(resource, RecordedResource) else resource
    for key in keys:
        assert isinstance(value, dict)
        value = value[key]
        if isinstance(value, list):
            [value] = value
    assert isinstance(value, dict)
    return value


def launched(graph: Graph) -> list[dict[str, Value]]:
    """Return what is said of every machine: of instances, and in instance configurations."""
    found = [r.inputs for r in graph.of_type("Instance")]
    configured = graph.of_type("InstanceConfiguration")
    return found + [part(r, "instanceDetails", "launchDetails") for r in configured]
