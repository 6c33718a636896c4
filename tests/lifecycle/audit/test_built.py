"""A newer gcluster or another software lock says what it changes on a cluster that is there."""

from __future__ import annotations

import msgspec
import pytest
from tests.lifecycle.sample_cluster import SampleCluster

import gcluster
from gcluster.cli.console import Console
from gcluster.cli.render.operate.plan import plan_text
from gcluster.cli.render.operate.plan_markdown import plan_markdown
from gcluster.lifecycle.planning.changes import UpgradeLine
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.state import Built, Journal
from gcluster.lifecycle.state.audit import built as built_module
from gcluster.lifecycle.state.audit.built import upgrade_lines


def test_what_a_cluster_was_brought_up_with_is_kept(sample: SampleCluster) -> None:
    sample.up()
    kept = Journal(sample.open().events).built()
    assert kept is not None
    assert kept.gcluster == gcluster.__version__
    assert {"base", "slurm", "munge"} <= kept.roles.keys()
    assert make_plan(sample.open()).upgrades == ()


def test_another_gcluster_and_another_role_are_reported_by_the_plan(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.up()
    digest = built_module.role_digest
    monkeypatch.setattr(gcluster, "__version__", "9.9.9")
    monkeypatch.setattr(
        built_module, "role_digest", lambda r, p: "other" if r == "slurm" else digest(r, p)
    )
    plan = make_plan(sample.open())
    assert [line.what for line in plan.upgrades] == ["gcluster", "role slurm"]
    assert plan.upgrades[0].after == "9.9.9"
    for text in (plan_text(plan, Console()), plan_markdown(plan)):
        assert f"gcluster  {plan.upgrades[0].before} → 9.9.9" in text
        assert "role slurm  changed" in text


def test_another_version_of_software_is_reported_with_both() -> None:
    before = Built(gcluster="1", versions={"gpu: cuda": "12.8", "gpu: gone": "1"})
    after = msgspec.structs.replace(before, versions={"gpu: cuda": "13.0", "gpu: new": "2"})
    assert upgrade_lines(before, after) == (
        UpgradeLine(what="gpu: cuda", before="12.8", after="13.0"),
    )
