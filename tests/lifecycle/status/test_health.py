"""Status says what holds, what doesn't and why in words, and since when."""

from __future__ import annotations

import time
from types import SimpleNamespace

import msgspec
import pytest
from tests.free_port import free_port
from tests.lifecycle.sample_cluster import METAL, SampleCluster, tree

from gcluster.inventory.compile import compile_cluster
from gcluster.lifecycle.cluster.cluster import CERTIFICATE_KEY, Cluster, open_cluster
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.nodes.converge.pending import step_digests
from gcluster.lifecycle.smoke import gate
from gcluster.lifecycle.status import health
from gcluster.lifecycle.status.conditions import ClusterStatus, Condition, NodeStatus
from gcluster.lifecycle.status.drift.node_reports import Changes
from gcluster.lifecycle.status.drift.values import Drift
from gcluster.lifecycle.status.health import OBSERVED_KEY, read_status
from gcluster.lifecycle.status.observe import Observation
from gcluster.lifecycle.status.observe import observe as observe_really
from gcluster.lifecycle.status.slurm import SchedulerReport, SchedulerView
from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.simulated import fleet


def _condition(status: ClusterStatus, name: str) -> Condition:
    (found,) = [condition for condition in status.conditions if condition.name == name]
    return found


def _node(status: ClusterStatus, name: str) -> NodeStatus:
    (found,) = [node for node in status.nodes if node.name == name]
    return found


def _lose(sample: SampleCluster, node: str) -> None:
    """Delete a node behind the cluster's back."""
    (site,) = open_sites(sample.open())
    cloud = fleet.cloud(site.context)
    cloud.delete([cloud.list()[node].id])


def _at(monkeypatch: pytest.MonkeyPatch, hour: int) -> None:
    """Stop the clock of status at an hour of one day."""
    moment = time.struct_time((2031, 5, 6, hour, 0, 0, 1, 126, 0))
    clock = SimpleNamespace(strftime=time.strftime, gmtime=lambda: moment)
    monkeypatch.setattr(health, "time", clock)


def test_a_cluster_that_is_up_is_healthy(sample: SampleCluster) -> None:
    sample.up()
    assert read_status(sample.open(running=True)).healthy


def test_a_cluster_that_never_came_up_has_no_nodes_and_gets_no_state(sample: SampleCluster) -> None:
    status = read_status(sample.open(running=True))
    assert not status.healthy
    assert _condition(status, "NodesReady").reason == "no nodes exist"
    assert list(sample.path.parent.iterdir()) == [sample.path]


def test_simulated_nodes_have_no_scheduler_and_no_gate(sample: SampleCluster) -> None:
    sample.up()
    status = read_status(sample.open(running=True))
    assert {c.name for c in status.conditions} == {"NodesReady", "Converged"}
    assert status.queue is None


def test_a_node_that_is_gone_is_named_with_the_reason(sample: SampleCluster) -> None:
    sample.up()
    _lose(sample, "gpu002")
    status = read_status(sample.open(running=True))
    assert _condition(status, "NodesReady").reason == "3/4 gpu002: it does not exist"
    assert not _node(status, "gpu002").reachable


def test_more_than_five_unfit_nodes_are_counted_and_not_listed(sample: SampleCluster) -> None:
    sample.write(count=8)
    sample.up()
    for number in range(1, 8):
        _lose(sample, f"gpu{number:03d}")
    reason = _condition(read_status(sample.open(running=True)), "NodesReady").reason
    assert reason.count("it does not exist") == 5
    assert reason.endswith("; and 2 more")


def test_looking_changes_nothing_but_the_cache(sample: SampleCluster) -> None:
    sample.up()
    before = tree(sample.state)
    read_status(sample.open(running=True))
    after = tree(sample.state)
    assert after.keys() - before.keys() == {OBSERVED_KEY}
    assert {name: after[name] for name in before} == before


def test_since_when_stays_while_nothing_changes(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.up()
    for hour in (7, 8):
        _at(monkeypatch, hour)
        status = read_status(sample.open(running=True))
    assert {c.since for c in status.conditions} == {"2031-05-06T07:00:00Z"}


def test_since_when_is_renewed_for_the_condition_that_changed(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.up()
    _at(monkeypatch, 7)
    read_status(sample.open(running=True))
    _lose(sample, "gpu001")
    _at(monkeypatch, 8)
    assert _condition(read_status(sample.open(running=True)), "NodesReady").since == (
        "2031-05-06T08:00:00Z"
    )


def test_another_reason_for_the_same_status_keeps_since_when(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.up()
    for hour, node in ((7, "gpu001"), (8, "gpu002")):
        _lose(sample, node)
        _at(monkeypatch, hour)
        status = read_status(sample.open(running=True))
    assert _condition(status, "NodesReady").since == "2031-05-06T07:00:00Z"


def test_a_cache_that_was_damaged_is_recreated(sample: SampleCluster) -> None:
    sample.up()
    (sample.state / OBSERVED_KEY).write_text("[{", encoding="utf-8")
    assert read_status(sample.open(running=True)).healthy


class Metal:
    """Two hosts whose answers, and whose scheduler's, a test sets: no machine is queried."""

    def __init__(self, sample: SampleCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        """Describe the cluster; by default both hosts answer and carry every stamp."""
        sample.path.write_text(METAL.format(port=free_port()), encoding="utf-8")
        self.cluster: Cluster = open_cluster(str(sample.path))
        self.view = SchedulerView(states={"gpu001": "idle"})
        self.silent: dict[str, str] = {}
        self.drop = ""
        monkeypatch.setattr(health, "observe", self._observe)
        monkeypatch.setattr(health, "report_of", lambda *_: SchedulerReport(view=self.view))
        monkeypatch.setattr(health, "causes_of", lambda *_: ())

    def status(self) -> ClusterStatus:
        """Return what status says."""
        return read_status(self.cluster)

    def _observe(self, *parts: object) -> Observation:
        seen = observe_really(*parts)  # type: ignore[arg-type]  # handed on as they came
        compiled = compile_cluster(self.cluster.spec, seen.desired, load_catalog())
        stamps = {
            host: {step.key: d for step, d in step_digests(group, {}) if step.key != self.drop}
            for group in compiled.groups
            for host in group.hosts
            if host not in self.silent
        }
        return msgspec.structs.replace(seen, stamps=stamps, unreachable=self.silent)


@pytest.fixture
def metal(sample: SampleCluster, monkeypatch: pytest.MonkeyPatch) -> Metal:
    """Give a cluster of hosts whose answers are doubles."""
    return Metal(sample, monkeypatch)


def test_hosts_that_answer_and_carry_every_stamp_are_ready_and_converged(metal: Metal) -> None:
    status = metal.status()
    assert _condition(status, "NodesReady").status == "true"
    assert _condition(status, "Converged").status == "true"
    assert _condition(status, "SchedulerUp").reason == "1 nodes known"


def test_the_scheduler_of_a_host_gives_its_state_and_its_reason(metal: Metal) -> None:
    metal.view = SchedulerView(states={"gpu001": "drained"}, reasons={"gpu001": "burn-in"})
    node = _node(metal.status(), "gpu001")
    assert (node.scheduler_state, node.reason) == ("drained", "burn-in")


def test_a_state_without_a_reason_is_the_reason(metal: Metal) -> None:
    metal.view = SchedulerView(states={"gpu001": "down*"})
    assert _node(metal.status(), "gpu001").reason == "the scheduler reports down*"


def test_a_host_that_the_scheduler_does_not_have_is_not_fit(metal: Metal) -> None:
    metal.view = SchedulerView(states={})
    assert _node(metal.status(), "gpu001").reason == "the scheduler does not know it"


def test_a_host_that_does_not_answer_is_named_with_the_nearest_cause(metal: Metal) -> None:
    metal.silent = {"gpu001": "no route to host"}
    metal.view = SchedulerView(states={"gpu001": "down*"})
    status = metal.status()
    assert _node(status, "gpu001").reason == "no route to host"
    converged = _condition(status, "Converged")
    assert (converged.status, converged.reason) == ("unknown", "gpu001 can't be queried")


def test_a_scheduler_that_is_down_blames_no_node(metal: Metal) -> None:
    metal.view = SchedulerView(problem="slurmctld on head01 does not answer: refused")
    status = metal.status()
    assert _condition(status, "SchedulerUp").status == "false"
    assert _condition(status, "SchedulerUp").reason == metal.view.problem
    assert _node(status, "gpu001").reason == ""


def test_a_controller_that_does_not_answer_leaves_the_scheduler_unknown(metal: Metal) -> None:
    metal.silent = {"head01": "connection refused"}
    condition = _condition(metal.status(), "SchedulerUp")
    assert (condition.status, condition.reason) == ("unknown", "no controller answers")


def test_a_step_whose_stamp_is_missing_is_pending_on_its_hosts(metal: Metal) -> None:
    metal.drop = "slurm.configure"
    status = metal.status()
    assert _condition(status, "Converged").reason == "2 steps to run"
    assert {node.steps_pending for node in status.nodes} == {1}


PASSED = {"spec_hash": "", "verdict": {"verdict": "pass"}}


@pytest.mark.parametrize(
    ("certificate", "status", "reason"),
    [
        (None, "unknown", "never run"),
        ({"spec_hash": "another", "verdict": {"verdict": "pass"}}, "unknown", "the spec changed"),
        ({"spec_hash": "", "verdict": {"verdict": "fail"}}, "false", "the gate failed"),
        (PASSED | {"members": {"gpu001": "b:7"}}, "true", ""),
        (PASSED | {"members": {}, "left_out": "gpu001"}, "true", "without gpu001"),
        (PASSED | {"members": {"gpu001": "b:6"}}, "unknown", "gpu001: started again or replaced"),
        (
            PASSED | {"members": {}},
            "unknown",
            "gpu001: new since: gcluster smoke metal tests again",
        ),
        (PASSED | {"members": {"gpu001": "", "gpu002": "b:9"}}, "unknown", "gpu002: not part"),
        (PASSED, "unknown", "it doesn't say which machines"),
    ],
    ids=[
        "none",
        "of another spec",
        "failed",
        "passed",
        "a node was left out",
        "a member was started again",
        "a node is new",
        "a member is gone",
        "of an older version",
    ],
)
def test_the_gate_counts_for_the_spec_that_it_was_run_for(
    metal: Metal,
    monkeypatch: pytest.MonkeyPatch,
    certificate: dict[str, object] | None,
    status: str,
    reason: str,
) -> None:
    monkeypatch.setattr(gate, "read_starts", lambda *_: {"gpu001": "b:7"})
    if certificate is not None:
        certificate = dict(certificate)
        certificate["spec_hash"] = certificate["spec_hash"] or metal.cluster.spec_hash
        metal.cluster.store.put(CERTIFICATE_KEY, msgspec.json.encode(certificate))
    condition = _condition(metal.status(), "AllReducePassed")
    assert condition.status == status
    assert condition.reason.startswith(reason)


def test_a_change_that_no_step_puts_right_ends_the_certificate(
    metal: Metal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "read_starts", lambda *_: {})
    certificate = PASSED | {"spec_hash": metal.cluster.spec_hash, "members": {"gpu001": "b:7"}}
    metal.cluster.store.put(CERTIFICATE_KEY, msgspec.json.encode(certificate | {"time": "one"}))
    changed = Drift(plane="fabric", where="gpu001", kind="link", name="eth0", now="up,1400,10000")
    by_node: dict[str, tuple[Drift, ...]] = {"gpu001": (changed,)}
    monkeypatch.setattr(
        health, "see_changes", lambda _, seen, *__: Changes(observation=seen, by_node=by_node)
    )
    ended = _condition(metal.status(), "AllReducePassed")
    assert ended.status == "unknown"
    assert ended.reason.startswith("gpu001: drifted since (link eth0: up,1400,10000) (seen 20")
    by_node["gpu001"] = ()
    assert _condition(metal.status(), "AllReducePassed").reason == ended.reason
    metal.cluster.store.put(CERTIFICATE_KEY, msgspec.json.encode(certificate | {"time": "two"}))
    assert _condition(metal.status(), "AllReducePassed").status == "true"


def test_a_member_with_steps_to_run_ends_the_certificate(
    metal: Metal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "read_starts", lambda *_: {})
    certificate = PASSED | {"spec_hash": metal.cluster.spec_hash, "members": {"gpu001": "b:7"}}
    metal.cluster.store.put(CERTIFICATE_KEY, msgspec.json.encode(certificate))
    assert _condition(metal.status(), "AllReducePassed").status == "true"
    metal.drop = "base.configure"
    assert _condition(metal.status(), "AllReducePassed").reason.startswith(
        "gpu001: not as the spec says"
    )
