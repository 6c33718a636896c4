"""Records the example of each machine type of AWS, and writes the golden graphs.

`python -m tests.stacks.aws.recorded_cases` writes them again: read the difference first.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.stacks.aws.program.site import record_site

if TYPE_CHECKING:
    from gcluster.schemas.spec import ClusterSpec
    from gcluster.stacks.pulumi.recorded import RecordedGraph

CASES = Path(__file__).parents[2] / "cases/stacks/aws"
MACHINES = sorted(folder.parent.name for folder in CASES.glob("*/spec.yaml"))


def spec_of(machine: str) -> ClusterSpec:
    """Return the example, which passes all checks."""
    text = (CASES / machine / "spec.yaml").read_text(encoding="utf-8")
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


def main() -> None:
    """Write the golden graphs."""
    for machine in MACHINES:
        (CASES / machine / "graph.json").write_bytes(example(machine).to_json())


if __name__ == "__main__":
    main()
