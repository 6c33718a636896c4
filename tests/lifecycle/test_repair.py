"""A cluster runs with a quorum; what is missing is retried until it serves, or given up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from gcluster.inventory.hosts import Host
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.operations.repair import attempt
from gcluster.lifecycle.operations.repair.attempt import RepairResult
from gcluster.lifecycle.operations.repair.queue import emit_step, queue
from gcluster.lifecycle.operations.repair.work import repair
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.scheduler.base import NodeUse
from gcluster.lifecycle.state import Journal, StateStore
from gcluster.lifecycle.state.repair_queue import Repair
from gcluster.stacks.provider import SiteContext
from gcluster.stacks.simulated.cloud import Cloud, Order, _File
from gcluster.stacks.simulated.provider import SimulatedProvider

from .sample_cluster import SampleCluster


class Broken:
    """Which nodes of the simulated site don't boot, and how often each was made."""

    def __init__(self) -> None:
        """Let all be well."""
        self.nodes: set[str] = set()
        self.made: list[str] = []


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Broken:
    """Decide by name which nodes boot: the site's own faults are drawn."""
    found = Broken()
    create = Cloud._create_one  # noqa: SLF001  # a site has no setting of which node fails

    def create_one(cloud: Cloud, stored: _File, order: Order) -> str:
        answer = create(cloud, stored, order)
        found.made.append(order.name)
        if order.name in found.nodes:
            made = stored.nodes[order.name]
            stored.nodes[order.name] = type(made)(
                **{f: getattr(made, f) for f in made.__struct_fields__} | {"booted": False}
            )
        return answer

    monkeypatch.setattr(Cloud, "_create_one", create_one)
    return found


@pytest.fixture
def short(sample: SampleCluster, broken: Broken) -> SampleCluster:
    """Give a cluster that went live with two of four nodes: gpu002 and gpu003 don't boot."""
    sample.write(count=4, pool=", quorum: 2")
    broken.nodes = {"gpu002", "gpu003"}
    assert sample.up().exit_code is Exit.OK
    return sample


def _queue(sample: SampleCluster) -> dict[str, Repair]:
    return {entry.node: entry for entry in queue(sample.open(running=True).events)}


def _repair(
    sample: SampleCluster, *words: str, answer: bool = True, replace: bool = True
) -> RepairResult:
    opened = sample.open(running=True)
    return repair(opened, words, silent, confirm=lambda _: answer, replace=replace)


def test_a_cluster_with_its_quorum_goes_live_and_the_missing_wait(short: SampleCluster) -> None:
    assert Journal(short.open().events).applied_spec() == short.open().spec_hash
    waiting = _queue(short)
    assert waiting.keys() == {"gpu002", "gpu003"}
    assert {entry.state for entry in waiting.values()} == {"waiting"}
    assert all("did not make it" in entry.reason for entry in waiting.values())


def test_below_its_quorum_it_fails_with_the_names_and_nothing_waits(
    sample: SampleCluster, broken: Broken
) -> None:
    sample.write(count=4, pool=", quorum: 3")
    broken.nodes = {"gpu002", "gpu003"}
    result = sample.up()
    assert result.exit_code is Exit.FAILED
    (message,) = [d for d in result.diagnostics if d.code == "GC923"]
    assert message.summary == "pool gpu: 2 of 4 nodes are fit, 3 are needed"
    assert [line.partition(":")[0] for line in message.detail.splitlines()] == ["gpu002", "gpu003"]
    assert _queue(sample) == {}


def test_a_pool_without_a_quorum_has_no_queue(sample: SampleCluster, broken: Broken) -> None:
    broken.nodes = {"gpu002"}
    assert sample.up().exit_code is Exit.FAILED
    assert _queue(sample) == {}


def test_what_boots_again_is_admitted(short: SampleCluster, broken: Broken) -> None:
    broken.nodes = set()
    result = _repair(short)
    assert (result.exit_code, result.admitted) == (Exit.OK, ("gpu002", "gpu003"))
    assert _queue(short) == {}
    assert all(short.stamps().values())
    assert not short.up(answer=False).changed, "the cluster is as its spec says"


def test_each_try_is_made_once_and_then_the_node_is_given_up_with_its_reason(
    short: SampleCluster, broken: Broken
) -> None:
    broken.nodes = {"gpu003"}
    broken.made.clear()
    result = _repair(short)
    assert result.exit_code is Exit.FAILED
    assert result.admitted == ("gpu002",)
    assert result.given_up.keys() == {"gpu003"}
    assert result.given_up["gpu003"].startswith("booted and converged again and recreated: ")
    assert _queue(short)["gpu003"].state == "given-up"
    assert _queue(short)["gpu003"].tried == ("retry", "replace")
    assert broken.made.count("gpu002") == 1


def test_what_was_given_up_is_not_paid_for_and_no_up_touches_it(
    short: SampleCluster, broken: Broken
) -> None:
    broken.nodes = {"gpu003"}
    _repair(short)
    assert "lab/node/gpu003" not in short.in_the_provider()
    assert short.in_the_ledger() == short.in_the_provider()
    broken.made.clear()
    again = short.up(answer=False)
    assert (again.changed, again.exit_code) == (False, Exit.OK)
    assert broken.made == []
    plan = make_plan(short.open())
    assert plan.is_empty
    assert [entry.node for entry in plan.repairs] == ["gpu003"]


def test_it_begins_again_when_it_is_named(short: SampleCluster, broken: Broken) -> None:
    broken.nodes = {"gpu003"}
    _repair(short)
    assert _repair(short) == RepairResult(cluster="trial", queue=(_queue(short)["gpu003"],))
    broken.nodes = set()
    result = _repair(short, "gpu003")
    assert (result.exit_code, result.admitted) == (Exit.OK, ("gpu003",))
    assert "lab/node/gpu003" in short.in_the_provider()


def test_what_waits_is_tried_by_every_up_that_has_something_to_do(
    short: SampleCluster, broken: Broken
) -> None:
    broken.nodes = {"gpu003"}
    short.write(count=5, pool=", quorum: 2")
    result = short.up()
    assert result.exit_code is Exit.OK
    assert _queue(short).keys() == {"gpu003"}
    assert "lab/node/gpu005" in short.in_the_provider()


def test_what_was_given_up_stays_out_of_a_larger_pool_too(
    short: SampleCluster, broken: Broken
) -> None:
    broken.nodes = {"gpu003"}
    _repair(short)
    broken.made.clear()
    short.write(count=5, pool=", quorum: 2")
    assert short.up().exit_code is Exit.OK
    assert broken.made == ["gpu005"]
    assert _queue(short).keys() == {"gpu003"}


def test_scaled_down_the_queue_drops_what_the_spec_no_longer_has(
    short: SampleCluster, broken: Broken
) -> None:
    broken.nodes = {"gpu003"}
    _repair(short)
    short.write(count=2, pool=", quorum: 1")
    short.up(allow="pool:gpu")
    assert _queue(short) == {}
    short.write(count=3, pool=", quorum: 1")
    broken.nodes = set()
    assert short.up().exit_code is Exit.OK
    assert "lab/node/gpu003" in short.in_the_provider()


def test_without_a_quorum_nothing_is_set_aside_any_more(
    short: SampleCluster, broken: Broken
) -> None:
    _repair(short)
    assert {entry.state for entry in _queue(short).values()} == {"given-up"}
    broken.nodes = set()
    short.write(count=4)
    assert short.up().exit_code is Exit.OK
    assert len(short.in_the_provider()) == 5
    assert _queue(short) == {}


def test_down_empties_the_queue(short: SampleCluster) -> None:
    _repair(short)
    assert short.down().exit_code is Exit.OK
    assert _queue(short) == {}
    assert short.in_the_ledger() == short.in_the_provider() == {}


def test_the_answer_no_touches_nothing(short: SampleCluster) -> None:
    before = _queue(short)
    with pytest.raises(LifecycleError) as error:
        _repair(short, answer=False)
    assert error.value.exit_code is Exit.REFUSED
    assert _queue(short) == before


def test_no_machine_is_recreated_where_that_is_not_wanted(short: SampleCluster) -> None:
    result = _repair(short, replace=False)
    assert all("can't make it again" in why for why in result.given_up.values())
    assert _queue(short)["gpu002"].tried == ("retry",)


def test_a_site_that_can_not_recreate_a_node_is_not_queried_to(
    short: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedProvider, "replaces_nodes", False)
    assert _queue(short)["gpu002"].tried == ()
    _repair(short)
    assert _queue(short)["gpu002"].tried == ("retry",)


def test_a_name_of_no_node_is_refused(short: SampleCluster) -> None:
    with pytest.raises(LifecycleError) as error:
        _repair(short, "gpu009")
    assert (error.value.exit_code, error.value.diagnostics[0].code) == (Exit.USAGE, "GC908")


def test_a_node_that_serves_is_verified_again_when_it_is_named(short: SampleCluster) -> None:
    before = short.in_the_provider()["lab/node/gpu001"]
    result = _repair(short, "gpu001")
    assert (result.exit_code, result.admitted) == (Exit.OK, ("gpu001",))
    assert short.in_the_provider()["lab/node/gpu001"] == before, "it was not recreated"


def test_a_node_that_a_person_took_out_is_left_alone_and_stays_in_no_queue(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm is a double here: simulated nodes run none."""
    sample.up()
    out = NodeUse(out=True, reason="link 3 is off", jobs=())
    monkeypatch.setattr(attempt, "node_uses", lambda *_: {"gpu001": out})
    assert _repair(sample, "gpu001").held == {
        "gpu001": 'taken out of service by hand: "link 3 is off"'
    }
    assert _queue(sample) == {}


def test_a_node_that_was_repaired_by_hand_leaves_the_queue_with_the_next_up(
    sample: SampleCluster,
) -> None:
    sample.up()
    events = sample.open().events
    emit_step(events, "queued", ["gpu001"], site="lab", pool="gpu", reason="disk full")
    assert _queue(sample).keys() == {"gpu001"}
    assert not sample.up().changed
    assert _queue(sample) == {}


def test_a_cluster_that_never_was_has_nothing_to_repair(sample: SampleCluster) -> None:
    with pytest.raises(LifecycleError) as error:
        _repair(sample)
    assert error.value.diagnostics[0].code == "GC1102"


class Killed(BaseException):
    """What is raised where a process would be killed."""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_every_write_it_ends_the_same(
    own_places: Path, broken: Broken, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    create = StateStore.put_new
    for number in range(60):
        sample = SampleCluster(own_places / f"{moment}{number}" / "cluster.yaml")
        sample.write(count=2, pool=", quorum: 1")
        broken.nodes = {"gpu002"}
        sample.up()
        steps = _killed_at(number)

        def put_new(
            store: StateStore, key: str, data: bytes, steps: Iterator[None] = steps
        ) -> None:
            if moment == "before":
                next(steps, None)
            create(store, key, data)
            if moment == "after":
                next(steps, None)

        with monkeypatch.context() as patch:
            patch.setattr(StateStore, "put_new", put_new)
            killed = False
            try:
                _repair(sample)
            except Killed:
                killed = True
        _repair(sample)
        entry = _queue(sample)["gpu002"]
        assert (entry.state, entry.tried) == ("given-up", ("retry", "replace")), number
        assert sample.in_the_ledger() == sample.in_the_provider()
        assert sorted(sample.in_the_provider()) == ["lab/node/gpu001", "lab/node/head"]
        assert sample.open(running=True).ledger.open_intents() == ()
        if not killed:
            assert number > 8  # every write was tried
            return
    pytest.fail("repair never ended")


def _killed_at(number: int) -> Iterator[None]:
    for step in count():
        if step == number:
            raise Killed
        yield


def test_a_node_that_shows_no_host_key_is_left_to_the_quorum_with_the_end_of_its_console(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = SimulatedProvider.hosts

    def one_silent(provider: SimulatedProvider, context: SiteContext) -> tuple[Host, ...]:
        return tuple(
            replace(host, silent="it showed no host key", last_lines=("Kernel panic",))
            if host.name == "gpu002"
            else host
            for host in hosts(provider, context)
        )

    monkeypatch.setattr(SimulatedProvider, "hosts", one_silent)
    sample.write(count=3, pool=", quorum: 2")
    result = sample.up()
    assert result.exit_code is Exit.OK
    assert result.failed_hosts == {"gpu002": "it showed no host key"}
    [message] = [d for d in result.diagnostics if d.code == "GC921"]
    assert "Kernel panic" in message.detail
    sample.write(count=3)
    assert sample.up().exit_code is Exit.FAILED, "without a quorum every node is needed"
