"""Drift of a whole cluster, on simulated nodes: found on each plane that they have, and fixed."""

from __future__ import annotations

import msgspec
import pytest

from gcluster.lifecycle.cluster.cluster import CERTIFICATE_KEY
from gcluster.lifecycle.cluster.hosts import existing_hosts
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.nodes.ssh import SshSession
from gcluster.lifecycle.planning.changes import Plan
from gcluster.lifecycle.smoke.gate import last_certificate, reasons_against
from gcluster.lifecycle.state import StateStore
from gcluster.lifecycle.status.drift.fix import FixResult, fix_drift
from gcluster.lifecycle.status.drift.observe import find_drift
from gcluster.lifecycle.status.drift.values import DriftReport
from gcluster.stacks.provider import Leftover, provider_error
from gcluster.stacks.simulated import fleet, stamps
from gcluster.stacks.simulated.provider import SimulatedProvider

from .sample_cluster import SampleCluster, tree


@pytest.fixture
def up(sample: SampleCluster) -> SampleCluster:
    """Give a cluster that came up."""
    sample.up()
    return sample


def _look(sample: SampleCluster) -> DriftReport:
    return find_drift(sample.open(running=True))


def _fix(
    sample: SampleCluster, *, answer: bool = True, shown: list[Plan] | None = None
) -> FixResult:
    def confirm(plan: Plan) -> bool:
        if shown is not None:
            shown.append(plan)
        return answer

    return fix_drift(sample.open(running=True), silent, confirm=confirm)


def _delete(sample: SampleCluster, node: str) -> None:
    (site,) = open_sites(sample.open(running=True))
    cloud = fleet.cloud(site.context)
    cloud.delete([cloud.list()[node].id])
    stamps.forget(site.context, [node])


def _empty(sample: SampleCluster, node: str) -> None:
    """Take all stamps of a node away, as setting it up again does."""
    (site,) = open_sites(sample.open(running=True))
    stamps.forget(site.context, [node])


def test_right_after_up_nothing_has_drifted(up: SampleCluster) -> None:
    report = _look(up)
    assert (report.drifts, report.behind, report.silent) == ((), (), {})
    assert (report.exit_code, report.hosts) == (Exit.OK, 4)


def test_looking_writes_nothing(up: SampleCluster) -> None:
    _delete(up, "gpu002")
    before = tree(up.state)
    _look(up)
    assert tree(up.state) == before


def test_what_only_the_file_has_is_no_drift(up: SampleCluster) -> None:
    up.write(count=7)
    assert _look(up).drifts == ()


def test_a_machine_that_is_gone_is_drift_and_is_recreated(up: SampleCluster) -> None:
    _delete(up, "gpu002")
    (drift,) = _look(up).drifts
    assert (drift.plane, drift.kind, drift.name, drift.fixable) == ("cloud", "node", "gpu002", True)
    result = _fix(up)
    assert (result.exit_code, result.failed) == (Exit.OK, {})
    assert len(up.in_the_provider()) == 4
    assert up.in_the_ledger() == up.in_the_provider()
    assert all(up.stamps().values())


def test_a_node_that_was_set_up_again_is_drift_and_only_that_is_done_again(
    up: SampleCluster,
) -> None:
    _empty(up, "gpu003")
    (drift,) = _look(up).drifts
    assert (drift.where, drift.kind, drift.name) == ("gpu003", "node", "gpu003")
    shown: list[Plan] = []
    assert _fix(up, shown=shown).exit_code is Exit.OK
    (plan,) = shown
    assert {s.hosts for s in plan.steps} == {"gpu003"}
    assert {s.step for s in plan.steps} == set(drift.steps)
    assert not any(site.changes for site in plan.sites)


def test_drift_of_a_member_ends_the_certificate_until_the_gate_is_passed_again(
    up: SampleCluster,
) -> None:
    cluster = up.open(running=True)

    def certify(at: str, members: str) -> list[str]:
        document = {"time": at, "members": dict.fromkeys(members.split(), "")}
        cluster.store.put(CERTIFICATE_KEY, msgspec.json.encode(document))
        return against()

    def against() -> list[str]:
        kept, existing = last_certificate(cluster), existing_hosts(cluster)
        with SshSession(cluster.workdir) as session:
            reasons = reasons_against(cluster, kept or {}, existing, session)
        return [reason for reason in reasons if "drifted" in reason]

    assert certify("one", "gpu001 gpu003") == []
    _empty(up, "gpu002")
    _look(up)
    assert against() == [], "gpu002 is no member"
    _empty(up, "gpu003")
    _look(up)
    (reason,) = against()
    assert reason.startswith("gpu003: drifted since (node gpu003: it carries nothing")
    assert _fix(up).exit_code is Exit.OK
    assert against() == [reason], "it is as it should be again, and nobody has tested it since"
    assert certify("two", "gpu001 gpu003") == []


def test_a_fix_leaves_what_only_the_file_has_to_up(up: SampleCluster) -> None:
    _delete(up, "gpu001")
    up.write(count=6)
    _fix(up)
    assert len(up.in_the_provider()) == 4
    assert up.up().changed
    assert len(up.in_the_provider()) == 7


def test_the_answer_no_fixes_nothing(up: SampleCluster) -> None:
    _delete(up, "gpu002")
    with pytest.raises(LifecycleError) as error:
        _fix(up, answer=False)
    assert error.value.exit_code is Exit.REFUSED
    assert len(_look(up).drifts) == 1


def test_without_drift_there_is_no_prompt(up: SampleCluster) -> None:
    result = _fix(up, answer=False)
    assert (result.after, result.exit_code) == (None, Exit.OK)


def test_a_stray_is_drift_that_a_fix_does_not_touch(
    up: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = SimulatedProvider.sweep
    stray = Leftover(kind="volume", name="scratch", provider_id="vol-1")
    monkeypatch.setattr(SimulatedProvider, "sweep", lambda *a: (*sweep(*a), stray))
    (drift,) = _look(up).drifts
    assert (drift.kind, drift.name, drift.fixable) == ("volume", "scratch", False)
    assert drift.hint == "gcluster ledger check trial"
    assert _fix(up, answer=False).exit_code is Exit.PENDING


def test_a_site_that_can_not_be_queried_is_reported_as_unknown(
    up: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> tuple[()]:
        raise provider_error("GC966", "lab can't be reached")

    for call in ("preview", "sweep"):
        monkeypatch.setattr(SimulatedProvider, call, refuse)
    report = _look(up)
    assert report.silent == {"lab": "lab can't be reached"}
    assert report.exit_code is Exit.FAILED


def test_a_cluster_that_never_was_has_nothing_to_compare(sample: SampleCluster) -> None:
    with pytest.raises(LifecycleError) as error:
        _look(sample)
    assert error.value.diagnostics[0].code == "GC1102"


def test_nodes_in_the_repair_queue_are_reported_once_and_are_no_drift(
    sample: SampleCluster,
) -> None:
    sample.write(count=8, site=", faults: {seed: 5, boot_failure_rate: 0.6}", pool=", quorum: 1")
    missing = sample.up().failed_hosts
    report = _look(sample)
    assert missing
    assert {entry.node for entry in report.repairs} == missing.keys()
    assert report.drifts == ()


class Killed(BaseException):
    """What is raised where a process would be killed."""


def test_a_fix_that_was_killed_at_a_write_is_done_by_the_next(
    up: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = StateStore.put_new
    for number in range(4):
        _delete(up, "gpu002")
        left = iter(range(number))

        def put_new(store: StateStore, key: str, data: bytes, left: object = left) -> None:
            create(store, key, data)
            if next(left, None) is None:  # type: ignore[call-overload]  # an iterator of ints
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(StateStore, "put_new", put_new)
            with pytest.raises(Killed):
                _fix(up)
        _fix(up)
        assert _look(up).drifts == ()
        assert up.in_the_ledger() == up.in_the_provider()
