"""Which nodes repair leaves alone, and which it takes out and gives back: a double schedules."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, LocalShell
from tests.lifecycle.kubernetes.spec import spec_of

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.operations.repair.attempt import (
    blocking_reason,
    give_back,
    node_uses,
    take_out,
)
from gcluster.lifecycle.scheduler.base import MARK, NodeUse, SchedulerSilent
from gcluster.lifecycle.scheduler.select import scheduler_or_none


class Scheduler:
    """A scheduler in memory; a real one can't be had here."""

    def __init__(self, **uses: NodeUse) -> None:
        """Know these nodes."""
        self.uses = uses
        self.is_silent = False
        self.given: list[str] = []

    def nodes(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        """Return the nodes that are known."""
        if self.is_silent:
            raise SchedulerSilent("no answer")
        return {node: self.uses[node] for node in nodes if node in self.uses}

    def drain(self, nodes: Collection[str], reason: str) -> None:
        """Take nodes out."""
        for node in nodes:
            self.uses[node] = NodeUse(out=True, jobs=self.uses[node].jobs, reason=reason)

    def resume(self, nodes: Collection[str]) -> None:
        """Note what comes back."""
        self.given += nodes

    def requeue(self, jobs: Collection[str]) -> None:
        """Repair puts no job back in line."""
        raise NotImplementedError(jobs)

    def pinned(self, nodes: Collection[str]) -> Mapping[str, str]:
        """Repair removes no name."""
        raise NotImplementedError(nodes)


BUSY = NodeUse(out=False, jobs=("7", "8"))


@pytest.mark.parametrize(
    ("use", "replacing", "why"),
    [
        (NodeUse(out=False), True, ""),
        (BUSY, False, ""),
        (BUSY, True, "jobs run there: 7, 8"),
        (NodeUse(out=True, reason="link 3 is off"), False,
         'taken out of service by hand: "link 3 is off"'),
        (NodeUse(out=True, reason="Not responding"), True, ""),
        (NodeUse(out=True, reason="Duplicate jobid"), True, ""),
        (NodeUse(out=True, reason="gcluster-health: gpu-count: 7 of 8 GPUs"), True, ""),
        (NodeUse(out=True, reason=f"{MARK}run 7"), True, ""),
        (NodeUse(out=True), True, ""),
        (NodeUse(out=True, reason="not ready: Kubelet stopped posting node status."), True, ""),
        (NodeUse(out=True, reason="cordoned without a reason; not ready: x"), True,
         'taken out of service by hand: "cordoned without a reason; not ready: x"'),
    ],
)  # fmt: skip
def test_a_node_with_jobs_is_not_replaced_and_a_persons_drain_is_left(
    use: NodeUse, replacing: bool, why: str
) -> None:
    assert blocking_reason({"gpu001": use}, "gpu001", replacing=replacing) == why


def test_nothing_is_replaced_while_it_is_unknown_what_runs_there() -> None:
    scheduler = Scheduler(gpu001=BUSY)
    scheduler.is_silent = True
    uses = node_uses(scheduler, ["gpu001"])
    assert "jobs may run there" in blocking_reason(uses, "gpu001", replacing=True)
    assert blocking_reason(uses, "gpu001", replacing=False) == ""


def test_a_node_that_the_scheduler_does_not_have_is_free() -> None:
    assert blocking_reason({}, "gpu001", replacing=True) == ""
    assert node_uses(None, ["gpu001"]) == {}


def test_what_is_out_by_itself_is_marked_and_goes_back_and_a_persons_is_not() -> None:
    scheduler = Scheduler(
        gpu001=NodeUse(out=True, reason="Not responding"),
        gpu002=NodeUse(out=False),
        gpu003=NodeUse(out=True, reason="link 3"),
    )
    out = {node: scheduler.uses[node] for node in ("gpu001", "gpu002")}
    take_out(scheduler, out, "repair, run 1")
    assert scheduler.uses["gpu001"].is_ours
    assert not scheduler.uses["gpu002"].out
    give_back(scheduler, ["gpu001", "gpu002", "gpu003"])
    assert scheduler.given == ["gpu001"]


def test_the_scheduler_that_the_spec_names_is_queried(tmp_path: Path) -> None:
    shell = LocalShell(tmp_path)
    shell.has("sudo", 'shift; exec "$@"')
    shell.has("sinfo", "exit 9")
    node = r"gpu001\037False\037Kubelet stopped posting node status." + r"\037" * 10 + r"\036"
    shell.has("kubectl", f"""case "$*" in *" get nodes "*) printf '{node}' ;; esac""")
    hosts = ClusterInventory(cluster="trial", hosts=(HEAD,))
    uses = node_uses(scheduler_or_none(spec_of(), hosts, shell), ["gpu001"])
    assert uses == {
        "gpu001": NodeUse(out=True, reason="not ready: Kubelet stopped posting node status.")
    }


def test_simulated_controllers_run_no_scheduler(tmp_path: Path) -> None:
    head = msgspec.structs.replace(HEAD, connection="simulated")
    hosts = ClusterInventory(cluster="trial", hosts=(head,))
    assert scheduler_or_none(spec_of(), hosts, LocalShell(tmp_path)) is None
