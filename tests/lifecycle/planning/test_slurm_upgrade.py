"""Slurm changes within its window, and never back: an error of the plan, with what to write."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gcluster.lifecycle.planning.slurm_upgrade import slurm_upgrade_findings
from gcluster.lifecycle.state import Built
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.diagnostics import Diagnostic
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

CATALOG = load_catalog()


def spec(slurm: str, *, scheduler: str = "slurm") -> ClusterSpec:
    """Return a spec with a Slurm."""
    loaded = load_text(
        "apiVersion: gcluster/v1\nname: demo\nsites: {here: {provider: local}}\n"
        "pools:\n  head: {site: here, role: controller}\n"
        "  gpu: {site: here, machine: sim.h100x8, count: 1}\n"
        f"scheduler: {{type: {scheduler}}}\nsoftware: {{{slurm}}}\n"
    )
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    return loaded.spec


def findings(before: str, after: str, built: str = "") -> Sequence[Diagnostic]:
    """Return what is said of a change."""
    ran = Built(
        gcluster="1", roles={}, versions={f"{p}: slurm": built for p in ("head", "gpu") if built}
    )
    return slurm_upgrade_findings(
        spec(f'slurm: "{before}"'), ran, spec(f'slurm: "{after}"'), CATALOG
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [("24.11", "25.11"), ("24.05", "25.11"), ("25.11.7", "25.11.8"), ("auto", "25.11")],
)
def test_a_step_within_the_window_passes(before: str, after: str) -> None:
    assert findings(before, after) == ()


def test_a_jump_outside_is_refused_with_the_release_to_go_through() -> None:
    (found,) = findings("24.05", "26.05")
    assert found.is_error
    assert found.summary == (
        "pools gpu, head: Slurm 26.05.4 is 4 releases after 24.05.7, and can follow 3"
    )
    assert found.hint == 'go in steps: write slurm: "25.11", run gcluster up, then go on'


@pytest.mark.parametrize("after", ["25.05", "25.11.7", "auto", "distribution"])
def test_an_older_one_is_refused(after: str) -> None:
    (found,) = findings("25.11.8", after)
    assert "would go back from 25.11.8" in found.summary


def test_what_the_nodes_were_brought_up_with_counts_before_what_the_spec_reported() -> None:
    (found,) = findings("auto", "25.11.7", built="25.11.8")
    assert "would go back from 25.11.8 to 25.11.7" in found.summary


def test_another_scheduler_has_no_slurm_to_go_back_from() -> None:
    after = spec("", scheduler="kubernetes")
    assert slurm_upgrade_findings(spec('slurm: "25.11"'), None, after, CATALOG) == ()
