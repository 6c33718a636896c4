"""A policy that is not kept stops plan and up before anything is touched, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lifecycle.sample_cluster import SampleCluster, tree

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import Finding
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.status.health import read_status

_POLICIES = """\
apiVersion: gcluster/policies/v1
policies:
  - name: size
    owner: ops@example.org
    description: Few nodes.
    severity: {severity}
    applies_to: pool
    rule: pool.count.max <= {most}
"""


def _policies(sample: SampleCluster, *, most: str = "2", severity: str = "error") -> None:
    text = _POLICIES.format(most=most, severity=severity)
    sample.path.with_name("policies.yaml").write_text(text, encoding="utf-8")


def _plan(sample: SampleCluster) -> object:
    return make_plan(sample.open())


@pytest.mark.parametrize("act", [_plan, SampleCluster.up])
def test_plan_and_up_are_refused_and_leave_nothing_behind(
    sample: SampleCluster, act: Callable[[SampleCluster], object]
) -> None:
    _policies(sample)
    before = tree(sample.path.parent.parent)
    with pytest.raises(LifecycleError) as caught:
        act(sample)

    assert caught.value.exit_code is Exit.REFUSED
    (found,) = caught.value.diagnostics
    assert found.code == "GC801"
    assert found.summary.startswith('policy "size" of ops@example.org: pool "gpu"')
    assert tree(sample.path.parent.parent) == before


def test_policies_that_hold_stop_nothing(sample: SampleCluster) -> None:
    _policies(sample, most="3")
    assert sample.up().exit_code is Exit.OK


def test_policies_that_cant_be_read_let_nothing_through(sample: SampleCluster) -> None:
    _policies(sample, most="maximum")
    with pytest.raises(LifecycleError) as caught:
        sample.open()

    assert caught.value.exit_code is Exit.REFUSED
    assert [found.code for found in caught.value.diagnostics] == ["GC812"]


def test_a_warning_is_reported_and_work_continues(sample: SampleCluster) -> None:
    _policies(sample, severity="warning")
    answer: list[str] = []
    result = sample.up(
        lambda e: answer.append(e.diagnostic.code) if isinstance(e, Finding) else None
    )

    assert result.exit_code is Exit.OK
    assert "GC801" in answer


def test_a_running_cluster_can_be_observed_and_ended_whatever_its_policies(
    sample: SampleCluster,
) -> None:
    sample.up()
    _policies(sample)

    assert read_status(sample.open(running=True))
    assert sample.down().exit_code is Exit.OK


def test_what_was_applied_is_judged_too_when_its_file_is_gone(sample: SampleCluster) -> None:
    sample.up()
    _policies(sample)
    sample.path.unlink()
    with pytest.raises(LifecycleError) as caught:
        open_cluster("trial")

    assert caught.value.exit_code is Exit.REFUSED
    assert open_cluster("trial", running=True).name == "trial"
