"""The rolling part of one convergence: which steps need it, its nodes, its scheduler, its patience.

A step is rolled on nodes in service when running jobs would notice it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping

import msgspec

from ....inventory.hosts import ClusterInventory
from ....schemas.derived.hostlist import fold
from ....schemas.spec import ClusterSpec
from ...cluster.progress import Reporter, StageProgress
from ...nodes.converge.pending import Pending
from ...nodes.converge.run import Rolling
from ...nodes.ssh import SshSession
from ...scheduler.base import Scheduler, SchedulerSilent
from ...scheduler.select import has_observable_use, scheduler_of
from .roll import Clock, Patient, roll
from .window import Window

Work = Callable[[Collection[str]], Mapping[str, str]]


class RollingChange:
    """Nodes in service, changed through the controller of their cluster."""

    def __init__(
        self,
        spec: ClusterSpec,
        inventory: ClusterInventory,
        session: SshSession,
        report: Reporter,
        *,
        why: str,
        clock: Clock | None = None,
    ) -> None:
        """Set what is needed; nothing is queried yet. `why` is the scheduler's reason."""
        self._spec = spec
        self._inventory = inventory
        self._report = report
        self._why = why
        self._clock = clock or Clock()
        self._service: Scheduler | None = (
            scheduler_of(spec, inventory, session) if has_observable_use(spec, inventory) else None
        )

    def of(
        self,
        pending: Pending,
        stamps: Mapping[str, Mapping[str, str]],
        *,
        requeue: bool = False,
    ) -> Rolling | None:
        """Return the rolling part of a convergence; None when no node must be drained for it."""
        nodes = must_roll(pending, in_service(self._inventory, stamps))
        if not nodes:
            return None
        return Rolling(nodes=nodes, run=lambda work: self._run(nodes, work, requeue=requeue))

    def _run(self, nodes: frozenset[str], work: Work, *, requeue: bool) -> dict[str, str]:
        service = self._service
        if service is None:
            return dict.fromkeys(sorted(nodes), "no controller answers")
        spec = _impatient(self._spec) if requeue else self._spec
        rolled = roll(
            windows(nodes, self._inventory, spec),
            Patient(service, self._clock),
            work,
            why=self._why,
            emit=self._emit,
            clock=self._clock,
        )
        return rolled.held

    def give_back(self, stamps: Mapping[str, Mapping[str, str]], unfit: Collection[str]) -> None:
        """Give back nodes as the spec has them that a killed run or slurmctld took out."""
        if self._service is None or not (mine := self.taken_out(stamps, unfit)):
            return
        try:
            self._service.resume(mine)
        except SchedulerSilent as silent:
            self._emit(f"the scheduler does not answer: {silent}")
        else:
            self._emit(f"{fold(mine)}: resumed, since it was not drained by hand")

    def out_of_service(self, stamps: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        """Return the nodes that take no jobs though they match the spec -> why."""
        serving = in_service(self._inventory, stamps)
        if self._service is None or not serving:
            return {}
        try:
            uses = self._service.nodes(serving)
        except SchedulerSilent as silent:
            self._emit(f"the scheduler does not answer: {silent}")
            return {}
        return {name: use.reason for name, use in sorted(uses.items()) if use.out}

    def taken_out(
        self, stamps: Mapping[str, Mapping[str, str]], unfit: Collection[str]
    ) -> list[str]:
        """Return the nodes in service, but for unfit ones, that no person took out."""
        serving = in_service(self._inventory, stamps) - frozenset(unfit)
        if self._service is None or not serving:
            return []
        try:
            uses = self._service.nodes(serving)
        except SchedulerSilent as silent:
            self._emit(f"the scheduler does not answer: {silent}")
            return []
        return sorted(name for name, use in uses.items() if use.is_ours or use.is_forgotten)

    def _emit(self, detail: str) -> None:
        self._report(StageProgress(name="converge", done=0, total=0, detail=detail))


def _impatient(spec: ClusterSpec) -> ClusterSpec:
    """Return the spec with every pool's jobs put back in line."""
    pools = {
        name: msgspec.structs.replace(
            pool, update=msgspec.structs.replace(pool.update, jobs="requeue")
        )
        for name, pool in spec.pools.items()
    }
    return msgspec.structs.replace(spec, pools=pools)


_JOINS = frozenset({"slurm.join", "kubernetes.join"})
"""The steps whose stamp shows that a node has joined, outdated or not."""


def has_joined(stamps: Mapping[str, str]) -> bool:
    """Return whether a node's stamps show that it has joined a scheduler."""
    return not _JOINS.isdisjoint(stamps)


def in_service(
    inventory: ClusterInventory, stamps: Mapping[str, Mapping[str, str]]
) -> frozenset[str]:
    """Return the compute nodes that have joined a scheduler and so may have jobs."""
    return frozenset(
        host.name
        for host in inventory.with_role("compute")
        if host.connection == "ssh" and has_joined(stamps.get(host.name, {}))
    )


def must_roll(pending: Pending, serving: frozenset[str]) -> frozenset[str]:
    """Return the nodes in service on which a step would run that jobs feel.

    All their steps wait for the drain: a later step may rely on the one that needs it.
    """
    felt = {host for item in pending.steps if item.step.needs_drain for host in item.hosts}
    return frozenset(felt) & serving


def windows(
    nodes: frozenset[str], inventory: ClusterInventory, spec: ClusterSpec
) -> tuple[Window, ...]:
    """Return one window for each pool that has nodes to be changed."""
    sizes = Counter(host.pool for host in inventory.hosts)
    mine: dict[str, list[str]] = defaultdict(list)
    for host in inventory.hosts:
        if host.name in nodes:
            mine[host.pool].append(host.name)
    return tuple(
        Window(mine[name], pool.update, pool_size=sizes[name])
        for name, pool in spec.pools.items()
        if name in mine
    )
