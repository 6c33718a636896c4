"""What is done to a running cluster is the same under Kubernetes, on simulated nodes."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.down.expiry.jobs import Jobs
from gcluster.lifecycle.down.expiry.running_work import query_jobs
from gcluster.lifecycle.operations.burst.agent.run import run_agent
from gcluster.lifecycle.operations.burst.explain import explain_job
from gcluster.lifecycle.operations.repair.work import repair
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.status.drift.observe import find_drift
from gcluster.lifecycle.status.health import read_status

from .sample_cluster import SampleCluster


@pytest.fixture
def up(sample: SampleCluster) -> SampleCluster:
    """Give a cluster of Kubernetes that came up."""
    sample.write()
    text = sample.path.read_text().replace("{type: slurm}", "{type: kubernetes}")
    sample.path.write_text(text)
    assert sample.up().exit_code is Exit.OK
    return sample


def test_what_is_as_it_was_applied_has_neither_drift_nor_a_plan(up: SampleCluster) -> None:
    report = find_drift(up.open(running=True))
    assert (report.drifts, report.silent, report.hosts) == ((), {}, 4)
    assert make_plan(up.open()).is_empty
    assert all(c.status == "true" for c in read_status(up.open(running=True)).conditions)


def test_a_node_is_recreated_when_it_is_named(up: SampleCluster) -> None:
    result = repair(up.open(running=True), ["gpu002"], silent, confirm=lambda _: True)
    assert (result.exit_code, result.admitted) == (Exit.OK, ("gpu002",))


def test_simulated_nodes_run_no_jobs_that_would_keep_it(up: SampleCluster) -> None:
    assert query_jobs(up.open(running=True)) == Jobs()
    assert up.down().exit_code is Exit.OK


def test_the_agent_of_a_cluster_without_elastic_pools_is_refused_before_any_query(
    up: SampleCluster,
) -> None:
    with pytest.raises(LifecycleError) as refused:
        run_agent(str(up.path), once=True, interval_s=1, say=lambda _: None)
    assert refused.value.diagnostics[0].code == "GC941"
    with pytest.raises(LifecycleError) as refused:
        explain_job(str(up.path), "7")
    assert refused.value.diagnostics[0].code == "GC1031"
    assert refused.value.exit_code is Exit.REFUSED
