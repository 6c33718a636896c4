"""In which order `gcluster repair` recreates machines of EKS, and what a failure stops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.operations.repair import instances
from gcluster.lifecycle.operations.repair.attempt import RepairResult
from gcluster.lifecycle.operations.repair.instances import Machine
from gcluster.lifecycle.operations.rolling.roll import Clock
from gcluster.lifecycle.scheduler.base import NodeUse
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.stacks.provider import ProviderError

from .eks_spec import EKS, spec_of

NODES = ("ip-1", "ip-2", "ip-3", "ip-4")
MACHINES = tuple(
    Machine(name=f"cpu00{n}", pool="cpu", id=f"i-{n}", node=node)
    for n, node in enumerate(NODES, start=1)
)


class SchedulerDouble:
    """Nodes as a scheduler has them; one that is recreated comes under another name."""

    def __init__(self) -> None:
        self.uses = {node: NodeUse(out=False) for node in NODES}

    def nodes(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        return {node: self.uses[node] for node in nodes if node in self.uses}

    def drain(self, nodes: Collection[str], reason: str) -> None:
        for node in nodes:
            self.uses[node] = NodeUse(out=True, reason=reason, jobs=self.uses[node].jobs)

    def resume(self, nodes: Collection[str]) -> None:
        for node in nodes:
            self.uses[node] = NodeUse(out=False)

    def requeue(self, jobs: Collection[str]) -> None:
        raise AssertionError(jobs)

    pinned = nodes


class Site:
    """A stack that recreates machines, and the site that it is of."""

    name, replaces_nodes, context = "here", True, None

    def __init__(self, scheduler: SchedulerDouble) -> None:
        self.provider, self.scheduler = self, scheduler
        self.waves: list[list[str]] = []
        self.refused: set[str] = set()
        """Machines that it doesn't make again."""
        self.silent: set[str] = set()
        """Machines that never join again."""

    def replace(self, _: None, names: Iterable[str]) -> None:
        self.waves.append([*names])
        if self.refused & {*self.waves[-1]}:
            summary = "InsufficientInstanceCapacity"
            raise ProviderError(Diagnostic(code="GC900", severity=Severity.ERROR, summary=summary))
        for one in MACHINES:
            if one.name in self.waves[-1]:
                del self.scheduler.uses[one.node]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(SchedulerDouble())
    scheduler = made.scheduler

    def awaited(_: Any, __: Any, machines: Iterable[Machine], *___: Any) -> dict[str, str]:
        return {m.name: f"new-{m.node}" for m in machines if m.name not in made.silent}

    for name, value in {
        "open_sites": lambda *_, **__: (made,),
        "observe": lambda *_: SimpleNamespace(existing=None),
        "kubectl_of": lambda *_: None,
        "scheduler_or_none": lambda *_: scheduler,
        "drain_nodes": lambda *_: (),
        "settle": lambda *_, **__: (),
        "queue": lambda *_: (),
        "_awaited": awaited,
    }.items():
        monkeypatch.setattr(instances, name, value)
    return made


def repaired(update: str = "") -> RepairResult:
    spec = spec_of(EKS.replace("count: 2", f"count: 4{update}"))
    run = SimpleNamespace(id="r1", cluster=SimpleNamespace(spec=spec, name="demo", events=()))
    clock = Clock(now=lambda: 0.0, sleep=lambda _: None)
    work = instances.Recreating(
        cast("Any", run), cast("Any", None), silent, clock, {"cpu": len(MACHINES)}
    )
    return work.work(MACHINES)


def test_what_takes_no_job_goes_at_once_and_the_others_one_by_one(site: Site) -> None:
    for node in NODES[2:]:
        site.scheduler.uses[node] = NodeUse(out=True, reason="not ready: kubelet is silent")
    done = repaired()
    assert site.waves == [["cpu003", "cpu004"], ["cpu001"], ["cpu002"]]
    assert done.admitted == ("new-ip-1", "new-ip-2", "new-ip-3", "new-ip-4")
    assert (done.held, done.given_up) == ({}, {})


def test_what_a_person_drained_is_left_alone(site: Site) -> None:
    site.scheduler.uses["ip-1"] = NodeUse(out=True, reason="a fan is loud")
    done = repaired(", update: {max_unavailable: 4}")
    assert site.waves == [["cpu002", "cpu003", "cpu004"]]
    assert done.held == {"ip-1": 'taken out of service by hand: "a fan is loud"'}


def test_a_wave_that_the_cloud_refuses_stops_the_others_and_gives_its_nodes_back(
    site: Site,
) -> None:
    site.refused = {"cpu001"}
    done = repaired()
    assert site.waves == [["cpu001"]]
    assert done.given_up == {"ip-1": "InsufficientInstanceCapacity"}
    assert done.held == dict.fromkeys(NODES[1:], "stopped: ip-1 failed")
    assert {node: use.out for node, use in site.scheduler.uses.items()} == dict.fromkeys(
        NODES, False
    )


def test_more_failures_are_borne_where_the_spec_allows_them(site: Site) -> None:
    site.silent = {"cpu001"}
    done = repaired(", update: {max_failed: 1}")
    assert site.waves == [["cpu001"], ["cpu002"], ["cpu003"], ["cpu004"]]
    assert list(done.given_up) == ["ip-1"]
    assert "no ready node after 15 minutes" in done.given_up["ip-1"]
    assert len(done.admitted) == 3


def test_broken_nodes_that_do_not_come_back_stop_the_waves(site: Site) -> None:
    site.scheduler.uses["ip-4"] = NodeUse(out=True, reason="not ready: kubelet is silent")
    site.silent = {"cpu004"}
    done = repaired()
    assert site.waves == [["cpu004"]]
    assert done.held == dict.fromkeys(NODES[:3], "stopped: ip-4 failed")
    assert not any(use.out for use in site.scheduler.uses.values())
