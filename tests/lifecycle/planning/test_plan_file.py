"""A plan as a file: what was approved is done, and refused when anything moved."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.nodes.converge import pending
from gcluster.lifecycle.nodes.converge.role_files import files_digest
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.planning.plan_file import (
    PlanFile,
    plan_file,
    read_plan,
    refuse_moved,
    serial,
    write_plan,
)
from gcluster.lifecycle.state import EventLog, JobMoved, StageDone
from gcluster.lifecycle.up.phase import UpResult
from gcluster.lifecycle.up.up import up
from gcluster.stacks.simulated import stamps


@pytest.fixture
def file(sample: SampleCluster) -> PlanFile:
    """Return the plan of a cluster that isn't there yet."""
    return _planned(sample)


def _planned(sample: SampleCluster) -> PlanFile:
    cluster = sample.open()
    return plan_file(cluster, make_plan(cluster))


def _up(sample: SampleCluster, file: PlanFile) -> UpResult:
    def confirm(_: object) -> bool:
        raise AssertionError("nobody is asked")

    return up(sample.open(), silent, confirm=confirm, approved=file)


def _moved(sample: SampleCluster, file: PlanFile) -> str:
    """Return what is said to have moved; nothing may have been changed."""
    before = sorted(sample.in_the_provider()) if sample.state.exists() else []
    with pytest.raises(LifecycleError) as caught:
        _up(sample, file)
    assert caught.value.exit_code is Exit.REFUSED
    assert (sorted(sample.in_the_provider()) if sample.state.exists() else []) == before
    (message,) = caught.value.diagnostics
    return message.detail


def test_an_approved_plan_is_done_without_confirmation(
    sample: SampleCluster, file: PlanFile
) -> None:
    assert _up(sample, file).exit_code is Exit.OK
    assert len(sample.in_the_provider()) == 4


def test_planning_into_a_file_writes_no_state(sample: SampleCluster) -> None:
    file = _planned(sample)
    assert not sample.state.exists()
    assert (file.serial, file.state_id) == (0, "")


def test_a_plan_is_written_and_read_as_it_is(file: PlanFile, tmp_path: Path) -> None:
    write_plan(tmp_path / "cluster.gcplan", file)
    assert read_plan(tmp_path / "cluster.gcplan") == file


def test_a_plan_is_done_once(sample: SampleCluster, file: PlanFile) -> None:
    _up(sample, file)
    answer = _moved(sample, file)
    assert "state" in answer


def test_a_spec_that_moved_is_reported_by_its_fields(sample: SampleCluster, file: PlanFile) -> None:
    sample.write(count=4)
    assert _moved(sample, file) == "spec: pools.gpu.count"


def test_a_run_in_between_is_reported_with_who_it_was(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=4)
    file = _planned(sample)
    sample.write(count=3)
    log = sample.open().events
    log.bind(run="20261122T000000Z-abc", epochs={"lab": 1})
    log.append(StageDone(stage="x", ok=True))
    sample.write(count=4)
    answer = _moved(sample, file)
    assert f"state: serial {file.serial} then, {file.serial + 1} now" in answer
    assert "run 20261122T000000Z-abc by " in answer


def test_what_the_burst_agent_writes_moves_no_plan(sample: SampleCluster) -> None:
    sample.up()
    cluster = sample.open()
    before = serial(cluster)
    log = EventLog(cluster.store)
    log.append(JobMoved(job="1", home="a", to="b"), epochs={"burst.agent": 1})
    assert serial(sample.open()) == before


def test_another_version_of_gcluster_refuses(sample: SampleCluster, file: PlanFile) -> None:
    older = msgspec.structs.replace(file, gcluster="0.0.9")
    assert "0.0.9 made the plan" in _moved(sample, older)


def test_another_state_refuses(sample: SampleCluster) -> None:
    sample.up()
    file = msgspec.structs.replace(_planned(sample), state_id="0123456789abcdef")
    assert "state: the plan is for" in _moved(sample, file)


def test_all_that_moved_is_reported_at_once(sample: SampleCluster, file: PlanFile) -> None:
    sample.write(count=5)
    with pytest.raises(LifecycleError) as caught:
        refuse_moved(sample.open(), msgspec.structs.replace(file, gcluster="0.0.9", serial=7))
    assert caught.value.diagnostics[0].detail.count("\n") == 2


def test_a_world_that_moved_is_reported_by_lines(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=4)
    file = _planned(sample)
    plan = msgspec.structs.replace(file.plan, steps=file.plan.steps[1:])
    answer = _moved(sample, msgspec.structs.replace(file, plan=plan))
    assert "what would be done moved" in answer
    assert "\n+" in answer
    assert "\n-" not in answer


def test_a_node_that_was_recreated_in_between_is_reported_with_each_step(
    sample: SampleCluster,
) -> None:
    sample.up()
    sample.write(count=4)
    file = _planned(sample)
    (site,) = open_sites(sample.open())
    stamps.forget(site.context, ["gpu002"])
    _, *lines = _moved(sample, file).splitlines()
    assert lines[0].startswith("+steps: step base.preflight, pool gpu, hosts gpu002, count 1, ")
    assert all(line.startswith("+steps: step ") and "hosts gpu002," in line for line in lines)


def test_a_step_that_would_run_with_other_content_is_reported(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _planned(sample)
    digest = files_digest
    monkeypatch.setattr(
        pending,
        "files_digest",
        lambda step: "other" if step.key == "slurm.configure" else digest(step),
    )
    lines = _moved(sample, file).splitlines()[1:]
    assert lines
    assert {line[1:].split(",")[0] for line in lines} == {
        "steps: step slurm.configure",
        "steps: step slurm.verify",
    }
    assert {line[0] for line in lines} == {"-", "+"}


def test_another_price_is_reported_with_both(sample: SampleCluster, file: PlanFile) -> None:
    cheaper = msgspec.structs.replace(file.plan, usd_per_hour=1.5)
    answer = _moved(sample, msgspec.structs.replace(file, plan=cheaper))
    assert "-usd_per_hour: 1.5\n+usd_per_hour: " in answer


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": 1'])
def test_what_is_no_plan_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.gcplan").write_text(content)
    with pytest.raises(LifecycleError, match="is no plan") as caught:
        read_plan(tmp_path / "x.gcplan")
    assert caught.value.exit_code is Exit.REFUSED


def test_a_plan_of_another_format_is_refused(file: PlanFile, tmp_path: Path) -> None:
    path = tmp_path / "cluster.gcplan"
    write_plan(path, file)
    path.write_text(path.read_text().replace("gcluster/plan/v1", "gcluster/plan/v9"))
    with pytest.raises(LifecycleError, match="is no plan"):
        read_plan(path)


def test_a_file_that_is_not_there_is_a_wrong_call(tmp_path: Path) -> None:
    with pytest.raises(LifecycleError, match="can't be read") as caught:
        read_plan(tmp_path / "none.gcplan")
    assert caught.value.exit_code is Exit.USAGE
