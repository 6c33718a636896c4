"""Records the example of each machine type of AWS."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.pulumi.program import record_site
from gcluster.stacks.pulumi.recording.graph import RecordedGraph

CASES = Path(__file__).parents[2] / "cases/stacks/aws"
MACHINES = sorted(path.stem for path in (CASES / "specs").glob("*.yaml"))
FULL = "p5.48xlarge"
"""Its graph is kept as a whole."""


def spec_of(machine: str) -> ClusterSpec:
    """Return the example, which passes all checks."""
    text = (CASES / "specs" / f"{machine}.yaml").read_text(encoding="utf-8")
    loaded = load_text(text, file="spec.yaml")
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def recorded(machine: str, *, preview: bool = False) -> RecordedGraph:
    """Record an example's one site."""
    spec = spec_of(machine)
    [site] = spec.sites
    return record_site(spec, site, load_catalog(), preview=preview)


@cache
def example(machine: str) -> RecordedGraph:
    """Return the recording, made once."""
    return recorded(machine)
