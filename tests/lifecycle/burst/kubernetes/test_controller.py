"""The states of elastic nodes, and what is recorded of them; the API is a double in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gcluster.lifecycle.kubernetes.kubectl import ApiRefused, Kubectl
from gcluster.lifecycle.kubernetes.observe import POD_FIELDS
from gcluster.lifecycle.nodes.ssh import SshResult
from gcluster.lifecycle.operations.burst.agent.scheduler import MARK, SchedulerRefused
from gcluster.lifecycle.operations.burst.kubernetes.controller import (
    UNPLACED_S,
    KubernetesController,
    Shape,
)
from gcluster.lifecycle.operations.burst.kubernetes.power import SETTLES_S, SILENT_S
from gcluster.lifecycle.operations.burst.kubernetes.reading import (
    ELASTIC_NODE_FIELDS,
    IDLE_SINCE,
    UNPLACED,
    WAITING_FIELDS,
)

BEGIN = 1_767_225_600.0
SINCE = "2026-01-01T00:00:00Z"
GPUS = '{"containers": [{"resources": {"requests": {"nvidia.com/gpu": "8"}}}]}'
LABELS = {"gcluster.local/pool": "gpu"}
SHAPE = Shape(marks={"labels": LABELS, "taints": []}, devices={"nvidia.com/gpu": 8})


class ApiDouble(Kubectl):
    """kubectl, as far as the controller runs it."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, str]] = {"head": _node("head")}
        self.pods: list[dict[str, str]] = []
        self.waiting: list[dict[str, str]] = []
        self.record: dict[str, str] | None = None
        self.calls: list[tuple[str, ...]] = []

    def text(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> str:
        del stdin, timeout_s
        self.calls.append(arguments)
        match arguments[:2]:
            case ("get", "nodes"):
                return _printed(self.nodes.values(), ELASTIC_NODE_FIELDS)
            case ("get", "pods") if any("spec.nodeName=" in word for word in arguments):
                return _printed(self.waiting, WAITING_FIELDS)
            case ("get", "pods"):
                return _printed(self.pods, POD_FIELDS)
            case ("get", "configmap"):
                return "" if self.record is None else json.dumps({"data": self.record})
            case _:
                self._change(*arguments)
        return ""

    def _patch(self, *arguments: str) -> None:
        if self.record is None:
            raise ApiRefused('configmaps "gcluster-elastic" not found')
        patch = next(word for word in arguments if word.startswith("--patch="))
        changed = json.loads(patch.partition("=")[2])["data"]
        self.record = {k: v for k, v in (self.record | changed).items() if v is not None}

    def _change(self, *arguments: str) -> None:
        match arguments[:2]:
            case ("patch", "configmap"):
                self._patch(*arguments)
            case ("annotate", "node"):
                key, _, value = arguments[-1].partition("=")
                assert key.rstrip("-") == IDLE_SINCE
                self.nodes[arguments[2]]["idle"] = value
            case ("cordon", name) | ("uncordon", name):
                cordoned = "true" if arguments[0] == "cordon" else ""
                self.nodes[name]["cordoned"] = cordoned
            case ("delete", "node"):
                for name in arguments[4:]:
                    self.nodes.pop(name, None)
            case ("label", "node"):
                self.nodes[arguments[3]]["labels"] = json.dumps(LABELS)

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        del stdin, timeout_s
        self.calls.append(arguments)
        if arguments[:2] == ("create", "configmap"):
            self.record = {}
        return SshResult(returncode=0, stdout="", stderr="")


def _printed(found: Any, fields: dict[str, str]) -> str:
    return "".join("\x1f".join(row[name] for name in fields) + "\x1e" for row in found)


def _node(name: str, **more: str) -> dict[str, str]:
    plain = dict.fromkeys(ELASTIC_NODE_FIELDS, "")
    allocatable = json.dumps({"cpu": "2", "memory": "8Gi", "pods": "110"})
    given = {"name": name, "ready": "True", "allocatable": allocatable, "labels": "{}"}
    return plain | given | {"not_ready_since": SINCE} | more


def _waiting(name: str = "one") -> dict[str, str]:
    row = dict.fromkeys(WAITING_FIELDS, "") | {"namespace": "nlp", "name": name, "spec": GPUS}
    return row | {"created": SINCE, "reason": "Unschedulable"}


def _pod(node: str, **more: str) -> dict[str, str]:
    row = dict.fromkeys(POD_FIELDS, "") | {"namespace": "nlp", "name": "one", "node": node}
    return row | {"phase": "Running", "owner": "Job"} | more


class World:
    """A controller whose clock is set by hand."""

    def __init__(self) -> None:
        self.api, self.now = ApiDouble(), BEGIN
        self.controller = KubernetesController(
            self.api, {"gpu001": SHAPE, "gpu002": SHAPE}, clock=lambda: self.now
        )

    def states(self, after_s: float = 10) -> dict[str, str]:
        """Poll; return node -> state."""
        self.now += after_s
        return {name: node.state for name, node in self.controller.observe().nodes.items()}

    def joined(self) -> None:
        """Have a pod request a node, which comes and is idle."""
        self.api.waiting = [_waiting()]
        self.states()
        self.api.nodes["gpu001"] = _node("gpu001")
        self.api.waiting = []
        self.states()


@pytest.fixture
def world() -> World:
    return World()


def test_a_pod_requests_one_node_once_and_it_is_known_to_the_next_controller(world: World) -> None:
    assert world.states() == {"gpu001": "off", "gpu002": "off"}
    world.api.waiting = [_waiting()]
    assert world.states() == {"gpu001": "coming", "gpu002": "off"}
    world.api.waiting = []
    again = KubernetesController(world.api, {"gpu001": SHAPE, "gpu002": SHAPE})
    assert again.observe().nodes["gpu001"].state == "coming"


def test_a_node_is_here_when_its_plugins_have_registered(world: World) -> None:
    world.api.waiting = [_waiting()]
    world.states()
    labels = json.dumps({"awaits.gcluster.local/nvidia.com_gpu": "true"})
    starts = {"starts": "gcluster.local/startup", "labels": labels}
    world.api.nodes["gpu001"] = _node("gpu001", **starts)
    assert world.states()["gpu001"] == "coming"
    world.api.nodes["gpu001"] = _node("gpu001")
    assert world.states() == {"gpu001": "here", "gpu002": "off"}
    assert json.loads(world.api.nodes["gpu001"]["labels"]) == LABELS


def test_an_idle_node_is_cordoned_and_then_released(world: World) -> None:
    world.joined()
    since = world.now
    world.now += 60
    assert world.controller.observe().nodes["gpu001"].idle_since == since
    world.controller.release(["gpu001"])
    assert world.api.nodes["gpu001"]["cordoned"] == "true"
    assert world.states(SETTLES_S - 1)["gpu001"] == "here"
    assert world.states(SETTLES_S)["gpu001"] == "off"
    world.api.waiting = [_waiting()]
    assert world.states() == {"gpu001": "off", "gpu002": "coming"}
    world.controller.end_power_down(["gpu001"])
    assert "gpu001" not in world.api.nodes
    assert set(world.api.record or {}) == {"gpu002"}


def test_a_pod_that_was_placed_meanwhile_keeps_its_node(world: World) -> None:
    world.joined()
    world.controller.release(["gpu001"])
    world.api.pods = [_pod("gpu001")]
    world.states()
    assert world.api.nodes["gpu001"]["cordoned"] == ""
    seen = world.controller.observe().nodes["gpu001"]
    assert (seen.state, seen.idle_since, seen.fit) == ("here", None, True)


@pytest.mark.parametrize(
    ("pod", "holds"),
    [
        (_pod("gpu001"), True),
        (_pod("gpu001", owner="DaemonSet"), False),
        (_pod("gpu001", owner="ReplicaSet"), True),
        (_pod("gpu001", owner="ReplicaSet", namespace="kube-system"), False),
    ],
)
def test_what_holds_a_node(world: World, pod: dict[str, str], holds: bool) -> None:
    world.joined()
    world.api.pods = [pod]
    assert (world.controller.observe().nodes["gpu001"].idle_since is None) is holds


def test_a_node_that_a_person_drained_is_not_idle(world: World) -> None:
    world.joined()
    world.api.nodes["gpu001"]["cordoned"] = "true"
    seen = world.controller.observe().nodes["gpu001"]
    assert (seen.state, seen.idle_since, seen.fit) == ("here", None, False)


def test_a_silent_node_is_down_after_five_minutes_and_may_come_again(world: World) -> None:
    world.joined()
    world.api.nodes["gpu001"] |= {"ready": "Unknown", "not_ready": "no report"}
    assert world.states()["gpu001"] == "here"
    world.now += SILENT_S
    seen = world.controller.observe().nodes["gpu001"]
    assert (seen.state, seen.reason) == ("down", "Not responding: no report")
    world.controller.end_power_down(["gpu001"])
    assert world.states()["gpu001"] == "off"


def test_a_node_that_was_given_up_stays_so_until_it_is_forgotten(world: World) -> None:
    world.api.waiting = [_waiting()]
    world.states()
    world.controller.give_up(["gpu001"], f"{MARK}no capacity")
    assert world.states() == {"gpu001": "down", "gpu002": "coming"}
    world.controller.end_power_down(["gpu001"])
    assert world.states()["gpu001"] == "down"
    world.api.waiting = []
    world.controller.forget(["gpu001"])
    assert world.states()["gpu001"] == "off"


def test_no_node_after_the_other_comes_for_a_pod_that_waits_for_something_else(
    world: World,
) -> None:
    world.joined()
    world.api.waiting = [_waiting()]
    assert world.states(UNPLACED_S) == {"gpu001": "here", "gpu002": "off"}
    marked = [call for call in world.api.calls if call[-1] == f"{UNPLACED}=gpu001"]
    assert [call[:4] for call in marked] == [("annotate", "pod", "one", "--namespace=nlp")]


def test_the_object_of_a_machine_that_is_gone_is_removed(world: World) -> None:
    world.joined()
    world.controller.release(["gpu001"])
    world.states(SETTLES_S)
    world.api.nodes["gpu001"] |= {"ready": "Unknown"}
    world.now += SILENT_S
    world.states()
    assert "gpu001" not in world.api.nodes


def test_jobs_are_pods_that_wait_for_a_node_on_its_way(world: World) -> None:
    world.api.waiting = [_waiting(), _waiting("two")]
    world.now += 1
    jobs = world.controller.observe().jobs
    assert {job.job.id: job.nodes for job in jobs} == {
        "nlp/one": ("gpu001",),
        "nlp/two": ("gpu002",),
    }
    with pytest.raises(SchedulerRefused):
        world.controller.move("nlp/one", "other", "")
