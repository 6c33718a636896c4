"""`gcluster drain` and `gcluster resume`: nodes out of service for a reason, and back.

A slurmctld that restarts, or has lost munged, counts nodes as not responding ("idle*") until they
answer its next ping: nothing starts there, and they seem broken meanwhile. So resuming waits until
they respond.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

import msgspec

from ...inventory.hosts import ClusterInventory
from ...schemas.derived.hostlist import fold
from ..cluster.outcome import Exit, LifecycleError, failure
from ..scheduler.base import NodeUse, Scheduler, SchedulerSilent
from .rolling.roll import Clock
from .selection import chosen


class ServiceChange(msgspec.Struct, frozen=True, kw_only=True):
    """One node after it was drained or resumed."""

    name: str
    in_service: bool
    """Jobs can start on it."""
    changed: bool
    """It was otherwise before."""
    jobs: tuple[str, ...] = ()
    """Jobs that still run there."""
    reason: str = ""
    """Why it is out."""


class ServiceResult(msgspec.Struct, frozen=True, kw_only=True):
    """How `drain` or `resume` ended."""

    cluster: str
    nodes: tuple[ServiceChange, ...]
    exit_code: Exit
    """FAILED when a node is not in the requested state, e.g. one that is down is not in service."""


def drain(
    hosts: ClusterInventory, service: Scheduler, words: Collection[str], reason: str
) -> ServiceResult:
    """Start no further job on some nodes; running jobs continue. Safe to repeat.

    A node that is already drained keeps its reason.

    Raises:
        LifecycleError: no such nodes, nothing to drain there, or the scheduler doesn't respond
            (GC999).
    """
    if not reason.strip():
        raise failure("GC999", "why? --reason is empty", exit_code=Exit.USAGE)
    return _change(hosts, service, words, lambda names: service.drain(names, reason), out=True)


def resume(
    hosts: ClusterInventory,
    service: Scheduler,
    words: Collection[str],
    clock: Clock = Clock(),  # noqa: B008  # frozen
) -> ServiceResult:
    """Start jobs on some nodes again, and wait until the nodes respond to the scheduler.

    Safe to repeat.

    Raises:
        LifecycleError: as `drain`; or `gcluster up` or `reboot` is changing a node (GC999).
    """

    def give_back(names: list[str]) -> None:
        service.resume(names)
        wait_for_answers(service, names, clock)

    return _change(hosts, service, words, give_back, out=False)


def silent(error: SchedulerSilent) -> LifecycleError:
    """Return the error for a scheduler that does not answer."""
    return failure(
        "GC999",
        f"the scheduler does not answer: {error}",
        hint="gcluster status says what is wrong with it",
    )


def _change(
    hosts: ClusterInventory,
    service: Scheduler,
    words: Collection[str],
    act: Callable[[list[str]], None],
    *,
    out: bool,
) -> ServiceResult:
    names = [host.name for host in chosen(hosts, words).hosts]
    try:
        before = service.nodes(names)
        _refuse(names, before, resuming=not out)
        to_change = [name for name in names if before[name].out != out]
        if to_change:
            act(to_change)
        after = service.nodes(names) if to_change else before
    except SchedulerSilent as error:
        raise silent(error) from error
    nodes = tuple(
        ServiceChange(
            name=name,
            in_service=_serves(after[name]),
            changed=after[name].out != before[name].out,
            jobs=after[name].jobs,
            reason=_why_out(after[name]),
        )
        for name in names
    )
    done = all(node.in_service != out for node in nodes)
    return ServiceResult(
        cluster=hosts.cluster, nodes=nodes, exit_code=Exit.OK if done else Exit.FAILED
    )


def _serves(node: NodeUse) -> bool:
    return not node.out and not node.silent


def _why_out(node: NodeUse) -> str:
    if node.out:
        return node.reason
    return "the scheduler gets no answer from it" if node.silent else ""


def _refuse(names: list[str], uses: Mapping[str, NodeUse], *, resuming: bool) -> None:
    unknown = [name for name in names if name not in uses]
    if unknown:
        raise failure(
            "GC999",
            f"the scheduler does not know {fold(unknown)}",
            hint="gcluster up gives nodes to it",
        )
    held = [name for name in names if uses[name].is_ours]
    if resuming and held:
        raise failure(
            "GC999",
            f"{fold(held)} is being changed by gcluster: {uses[held[0]].reason}",
            hint="gcluster up goes on with it, verifies it and gives it back",
            exit_code=Exit.REFUSED,
        )


ANSWERS_S = 120.0
"""Seconds: three of Slurm's pings, one each third of SlurmdTimeout (slurm.conf(5), Slurm 25.05)."""
SILENT_S = 45.0
"""Seconds: how long a scheduler that was just started may give no answer itself."""
_NO_ANSWER = "Not responding"
"""The reason that Slurm gives a node which it took out for its silence."""
_POLL_S = 1.0


def wait_for_answers(service: Scheduler, nodes: Collection[str], clock: Clock) -> None:
    """Wait until all the nodes respond to the scheduler, for ANSWERS_S at most.

    Drained nodes are not waited for: they may be down.
    """
    began = clock.now()
    last_response = began
    while clock.now() - began < ANSWERS_S and clock.now() - last_response < SILENT_S:
        with suppress(SchedulerSilent):
            uses = service.nodes(nodes)
            last_response = clock.now()
            if not any(_will_answer(use) for use in uses.values()):
                return
        clock.sleep(_POLL_S)


def _will_answer(use: NodeUse) -> bool:
    return use.unheard or (use.silent and (not use.out or use.reason in {"", _NO_ANSWER}))
