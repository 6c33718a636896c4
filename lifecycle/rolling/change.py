"""The rolling part of one convergence: its nodes, its scheduler, its patience."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec

from ...inventory.hosts import ClusterInventory
from ...schemas.spec import ClusterSpec
from ..converge.pending import Pending
from ..converge.run import Rolling
from ..progress import Reporter, StageProgress
from ..ssh import SshSession
from .patience import Patient
from .plan import in_service, must_roll, windows
from .roll import Clock, roll
from .service import NodeService, ServiceSilent
from .services import service_of

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
        """Hold what is needed; nothing is asked yet. `why` is shown by the scheduler."""
        self._spec = spec
        self._inventory = inventory
        self._report = report
        self._why = why
        self._clock = clock or Clock()
        self._service: NodeService | None = (
            service_of(spec, inventory, session) if inventory.has_scheduler else None
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
            tell=self._tell,
            clock=self._clock,
        )
        return rolled.held

    def give_back(self, stamps: Mapping[str, Mapping[str, str]], unfit: Collection[str]) -> None:
        """Give back nodes that a killed run took out, and that are as the spec says by now."""
        serving = in_service(self._inventory, stamps) - frozenset(unfit)
        if self._service is None or not serving:
            return
        try:
            uses = self._service.look(serving)
            if mine := [name for name, use in uses.items() if use.is_ours]:
                self._service.give_back(mine)
        except ServiceSilent as silent:
            self._tell(f"the scheduler does not answer: {silent}")

    def _tell(self, detail: str) -> None:
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
