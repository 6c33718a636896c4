"""A cluster comes up, goes on where it was, and says what it left behind."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from tests.free_port import free_port

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import Progress, StageFinished, StageStarted
from gcluster.lifecycle.state import Journal, acquire
from gcluster.lifecycle.up.up import up
from gcluster.stacks.provider import provider_error
from gcluster.stacks.simulated.cloud import Cloud

from .sample_cluster import METAL, SampleCluster, tree

NODES = {"lab/node/head", "lab/node/gpu001", "lab/node/gpu002", "lab/node/gpu003"}


def test_a_cluster_comes_up(sample: SampleCluster) -> None:
    result = sample.up()
    assert (result.exit_code, result.changed, result.failed_hosts) == (Exit.OK, True, {})
    assert set(sample.in_the_provider()) == NODES


def test_the_ledger_and_the_provider_report_the_same(sample: SampleCluster) -> None:
    sample.up()
    assert sample.in_the_ledger() == sample.in_the_provider()
    assert sample.open().ledger.open_intents() == ()


def test_simulated_nodes_pass_no_gate_and_get_no_certificate(sample: SampleCluster) -> None:
    result = sample.up()
    assert (result.verdict, result.certificate_path) == (None, None)
    assert not (sample.state / "certificate.json").exists()


def test_the_stages_are_reported_in_order(sample: SampleCluster) -> None:
    reported: list[Progress] = []
    sample.up(reported.append)
    assert [p.name for p in reported if isinstance(p, StageStarted)] == ["nodes", "converge"]
    assert [p.ok for p in reported if isinstance(p, StageFinished)] == [True, True]


def test_the_journal_has_what_was_applied(sample: SampleCluster) -> None:
    sample.up()
    journal = Journal(sample.open().events)
    assert journal.applied_spec() == sample.open().spec_hash
    assert [(r.command, r.exit_code) for r in journal.runs()] == [("up", 0)]


def test_the_second_up_has_nothing_to_do(sample: SampleCluster) -> None:
    sample.up()
    before = tree(sample.state)
    result = sample.up(answer=False)
    assert (result.changed, result.exit_code) == (False, Exit.OK)
    assert tree(sample.state) == before


def test_the_answer_no_changes_nothing(sample: SampleCluster) -> None:
    with pytest.raises(LifecycleError) as error:
        sample.up(answer=False)
    assert error.value.exit_code is Exit.REFUSED
    assert list(sample.path.parent.iterdir()) == [sample.path]


def test_the_answer_no_leaves_a_running_cluster_as_it_is(sample: SampleCluster) -> None:
    sample.up()
    before = tree(sample.state)
    sample.write(count=1)
    with pytest.raises(LifecycleError):
        sample.up(answer=False)
    assert tree(sample.state) == before
    assert set(sample.in_the_provider()) == NODES


def test_a_site_that_another_command_works_on_is_locked_by_name(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=4)
    held = acquire(sample.open().store, ["lab"], reason="smoke")
    with held, pytest.raises(LifecycleError) as error:
        sample.up()
    assert error.value.exit_code is Exit.LOCKED
    assert 'site "lab" is locked by' in error.value.diagnostics[0].summary
    assert error.value.diagnostics[0].summary.endswith("for smoke")


def test_growing_creates_only_the_new_nodes(sample: SampleCluster) -> None:
    sample.up()
    before = sample.in_the_provider()
    sample.write(count=5)
    sample.up()
    after = sample.in_the_provider()
    assert after.keys() - before.keys() == {"lab/node/gpu004", "lab/node/gpu005"}
    assert {name: after[name] for name in before} == before
    assert sample.created_ever() == 6


def test_shrinking_removes_only_the_nodes_that_are_no_longer_wanted(sample: SampleCluster) -> None:
    sample.up()
    before = sample.in_the_provider()
    sample.write(count=1)
    sample.up(allow="pool:gpu")
    kept = {name: before[name] for name in ("lab/node/head", "lab/node/gpu001")}
    assert sample.in_the_provider() == kept
    assert sample.in_the_ledger() == kept


def test_nodes_that_the_provider_refuses_are_named_and_the_others_continue(
    sample: SampleCluster,
) -> None:
    sample.write(count=8, site=", faults: {seed: 3, create_failure_rate: 0.7}")
    result = sample.up()
    there = {name.rpartition("/")[2] for name in sample.in_the_provider()}
    assert result.failed_hosts
    assert result.exit_code is Exit.FAILED
    assert there | result.failed_hosts.keys() == {"head", *(f"gpu{n:03d}" for n in range(1, 9))}
    assert {n for n, steps in sample.stamps().items() if steps} == there
    for host in result.failed_hosts:
        assert any(f"node {host} is missing" in d.summary for d in result.diagnostics)


def test_a_call_that_the_provider_refuses_as_a_whole_leaves_no_intent_open(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An `up` may end well by its quorum, and nothing of such a call is to be found."""

    def refuses(*_: object) -> NoReturn:
        raise provider_error("GC918", "the site is asked too often")

    sample.up()
    sample.write(count=5, pool=", quorum: 1")
    monkeypatch.setattr(Cloud, "create", refuses)
    assert sample.up().exit_code is Exit.OK
    assert sample.open().ledger.open_intents() == ()


def test_a_pool_below_its_quorum_reports_how_many_it_needs(sample: SampleCluster) -> None:
    sample.write(count=8, site=", faults: {seed: 3, create_failure_rate: 0.7}")
    summaries = [d.summary for d in sample.up().diagnostics if d.code == "GC923"]
    assert any(summary.endswith("of 8 nodes are fit, 8 are needed") for summary in summaries)


def test_a_spec_below_its_quorum_does_not_count_as_applied(sample: SampleCluster) -> None:
    sample.write(count=8, site=", faults: {seed: 3, create_failure_rate: 0.7}")
    sample.up()
    assert Journal(sample.open().events).applied_spec() is None


def test_a_quorum_that_holds_lets_the_cluster_go_live_without_the_missing(
    sample: SampleCluster,
) -> None:
    sample.write(count=8, site=", faults: {seed: 5, boot_failure_rate: 0.6}", pool=", quorum: 1")
    result = sample.up()
    assert result.failed_hosts
    assert "head" not in result.failed_hosts
    assert result.exit_code is Exit.OK


def test_more_nodes_than_the_site_can_give_are_refused_before_any_is_made(
    sample: SampleCluster,
) -> None:
    sample.write(count=8, site=", max_nodes: 4")
    with pytest.raises(LifecycleError) as error:
        sample.up()
    assert error.value.exit_code is Exit.REFUSED
    assert sample.in_the_provider() == {}


def test_nodes_that_were_refused_come_with_the_next_up(sample: SampleCluster) -> None:
    sample.write(count=8, site=", faults: {seed: 3, create_failure_rate: 0.7}")
    missing = sample.up().failed_hosts
    sample.write(count=8)
    result = sample.up()
    assert missing
    assert (result.exit_code, result.failed_hosts) == (Exit.OK, {})
    assert sample.in_the_ledger() == sample.in_the_provider()


def test_hosts_that_do_not_answer_are_named_with_the_reason_as_text(own_places: Path) -> None:
    path = own_places / "metal.yaml"
    path.write_text(METAL.format(port=free_port()), encoding="utf-8")
    result = up(open_cluster(str(path)), lambda _: None, confirm=lambda _: True)
    assert result.exit_code is Exit.FAILED
    assert result.failed_hosts.keys() == {"head01", "gpu001"}
    assert all("connection refused" in reason for reason in result.failed_hosts.values())
