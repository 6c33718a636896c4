"""A phase of `up`, the state that the phases of one run share, and the loop over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from ...schemas.diagnostics import Diagnostic
from ..bundle.active import Bundle
from ..cluster.cluster import Cluster
from ..cluster.open_site import OpenSite
from ..cluster.outcome import Exit
from ..cluster.progress import Reporter
from ..nodes.readiness import Readiness
from ..nodes.ssh import SshSession
from ..planning.changes import Plan
from ..planning.plan_file import PlanFile
from ..planning.purchase.decision import NO_WISHES, OptionOverrides
from ..smoke.run import SmokeResult
from ..status.observe import Observation
from .compiled import Compiled
from .nodes import NodesResult
from .run import Run


class UpResult(msgspec.Struct, frozen=True, kw_only=True):
    """How `up` ended."""

    cluster: str
    changed: bool
    """Whether anything was done to the cluster."""
    failed_hosts: dict[str, str]
    """Host -> why it was left behind."""
    verdict: dict[str, object] | None
    """The AllReduce's verdict; None when no gate was run (simulated nodes)."""
    certificate_path: str | None
    exit_code: Exit
    diagnostics: tuple[Diagnostic, ...] = ()
    left_out: str = ""
    """Nodes that took no part in the AllReduce, as a host range: drained, or busy."""
    out_of_service: dict[str, str] = {}
    """Node that takes no jobs though it matches the spec -> why, where nothing else was done."""
    next_sites: dict[str, str] = {}
    """Pool -> the site where the next `up` makes it: no option of its own had its nodes."""


@dataclass(slots=True, kw_only=True)
class UpState:
    """Shared state of the phases of one `up`; each field names the phase that sets it."""

    cluster: Cluster
    report: Reporter
    confirm: Callable[[Plan], bool]
    wishes: OptionOverrides = NO_WISHES
    requeue_jobs: bool = False
    bundle: Bundle | None = None
    approved: PlanFile | None = None
    allow: frozenset[str] = frozenset()

    session: SshSession = field(init=False)
    """Connections to the nodes; `up` opens them once before the lock and once under it."""
    run: Run = field(init=False)
    """The run in the journal; only under the lock."""
    sites: tuple[OpenSite, ...] = ()
    """Set by `open sites`; under the lock `apply sites` notes what was bought."""
    before: Observation = field(init=False)
    """Set by `observe`."""
    plan: Plan = field(init=False)
    """Set by `plan`."""
    compiled: Compiled = field(init=False)
    """Set by `plan`, and by `observe again` where the hosts are others."""
    ready: Mapping[str, Readiness] = field(default_factory=dict)
    """Set by `await machines`: how those are that it waited for."""
    after: Observation = field(init=False)
    """Set by `observe again`: what is there once the sites were applied."""
    nodes: NodesResult = field(init=False)
    """Set by `converge`."""
    gate: SmokeResult | None = None
    """Set by `gate`."""
    is_unproven: bool = False
    """Set by `gate` where too few nodes were idle to prove anything."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What went wrong and didn't end the run."""
    result: UpResult | None = None
    """A phase that sets it is the last."""

    def settled(self, found: Iterable[Diagnostic]) -> None:
        """Keep what a scheduler could not be brought to; an error is the end of the run."""
        found = tuple(found)
        self.diagnostics += found
        if any(diagnostic.is_error for diagnostic in found):
            self.end(Exit.FAILED)

    def end(self, exit_code: Exit) -> None:
        """Let the run end here with what is known of nodes and gate."""
        gate, nodes = self.gate, self.nodes
        self.result = UpResult(
            cluster=self.cluster.name,
            changed=True,
            failed_hosts=nodes.failed,
            verdict=msgspec.to_builtins(gate.verdict) if gate is not None else None,
            certificate_path=self.cluster.certificate_path if gate is not None else None,
            exit_code=exit_code,
            diagnostics=(*self.diagnostics, *nodes.diagnostics, *nodes.below_quorum),
            left_out=gate.left_out if gate is not None else "",
        )


def _always(_: UpState) -> bool:
    return True


class Phase(msgspec.Struct, frozen=True):
    """A part of `up`: when it is wanted, what it does, and how a later run takes it up again."""

    name: str
    run: Callable[[UpState], None]
    resume: str
    """Where the `up` after a killed one finds what this phase did; shown in docs/up.md."""
    condition: Callable[[UpState], bool] = _always


class SchedulerPhases(msgspec.Struct, frozen=True, kw_only=True):
    """What a scheduler adds to `up`, by the place where it is done."""

    check: tuple[Phase, ...] = ()
    """Before the lock, once the plan is known: may refuse it, and changes nothing."""
    prepare: tuple[Phase, ...] = ()
    """Before the lock, once the plan was confirmed: fetches what the change needs."""
    before_sites: tuple[Phase, ...] = ()
    """Under the lock, before machines are made or removed."""
    after_sites: tuple[Phase, ...] = ()
    """Once the machines are there."""
    before_nodes: tuple[Phase, ...] = ()
    """Set once the nodes' stamps were read, before they are converged."""
    after_nodes: tuple[Phase, ...] = ()
    """Once the nodes are converged, before the AllReduce."""


def run_phases(phases: Iterable[Phase], state: UpState) -> None:
    """Run the phases that are wanted, in order, until one has set the result."""
    for phase in phases:
        if phase.condition(state):
            phase.run(state)
        if state.result is not None:
            return
