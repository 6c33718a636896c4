"""Records the example spec of each machine type."""

from __future__ import annotations

from pathlib import Path

from tests.stacks.recorded_graph import Graph

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load, load_text
from gcluster.schemas.spec import ClusterSpec, GcpSite
from gcluster.stacks.gcp.program.site import answers, program
from gcluster.stacks.pulumi.recording.graph import RecordedGraph, RecordedResource, Value
from gcluster.stacks.pulumi.recording.record import record

CASES = Path(__file__).parents[2] / "cases" / "stacks" / "gcp"
FULL = "a3-megagpu-8g"
"""Its graph is kept as a whole."""
TEMPLATE = "InstanceTemplate"
MACHINE = "InstanceFromTemplate"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGNsdXN0ZXI"


def machines() -> list[str]:
    """Return the machine types that have an example."""
    return sorted(path.stem for path in (CASES / "specs").glob("*.yaml"))


def spec_of(machine: str) -> ClusterSpec:
    """Return the example spec of a machine type."""
    loaded = load(CASES / "specs" / f"{machine}.yaml")
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def spec_from(text: str) -> ClusterSpec:
    """Return a spec that a test writes out."""
    loaded = load_text(text, file="spec.yaml", check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def site_of(spec: ClusterSpec) -> str:
    """Return the site of Google Cloud."""
    return next(name for name, site in spec.sites.items() if site.provider == "gcp")


def recorded(
    spec: ClusterSpec, *, preview: bool = False, purchased: dict[str, str] | None = None
) -> RecordedGraph:
    """Return what the program of the spec's site requests."""
    name = site_of(spec)
    site = spec.sites[name]
    assert isinstance(site, GcpSite)
    run = program(spec, name, load_catalog(), login_key=KEY, purchased=purchased)
    known = answers(site.region)
    return record(run, project="gcluster", stack=name, preview=preview, answers=known)


def graph_of(machine: str) -> Graph:
    """Return the recorded graph of the example of a machine type, for queries."""
    return Graph(recorded(spec_of(machine)))


def items(value: Value) -> list[dict[str, Value]]:
    """Return the objects of a list."""
    assert isinstance(value, list)
    return [item for item in value if isinstance(item, dict)]


def part(resource: RecordedResource, key: str) -> dict[str, Value]:
    """Return an input that is an object."""
    value = resource.inputs[key]
    assert isinstance(value, dict)
    return value


def template(graph: Graph, pool: str) -> RecordedResource:
    """Return a pool's template, its first option's."""
    found = [t for t in graph.of_type(TEMPLATE) if graph.tags(t)["gcluster-pool"] == pool]
    return found[0]
