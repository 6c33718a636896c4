"""One attempt on nodes of the repair queue: boot or recreate, converge, verify, give back."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from ....inventory.compile import CompiledCluster
from ....inventory.compile.steps import CHANGING_PHASES
from ....schemas.diagnostics import Diagnostic
from ....stacks.provider import ProviderError
from ...cluster.open_site import OpenSite, at_each
from ...cluster.outcome import Exit
from ...cluster.progress import Reporter
from ...cluster.sites import open_sites
from ...nodes.converge.pending import Scope
from ...nodes.images.golden import booting_sites
from ...nodes.ssh import SshSession
from ...scheduler.base import MARK, NodeUse, Scheduler, SchedulerSilent
from ...scheduler.select import scheduler_or_none
from ...state.event_types import RepairAction
from ...state.repair_queue import Repair
from ...status.observe import Observation, observe
from ...up.compiled import compile_for
from ...up.nodes import converge_nodes
from ...up.run import Run


class Intended(msgspec.Struct, frozen=True, kw_only=True):
    """One node, as it is shown before anything is done."""

    entry: Repair
    actions: tuple[RepairAction, ...]
    """What will be tried, in order, until it is fit."""


class RepairResult(msgspec.Struct, frozen=True, kw_only=True):
    """How `repair` ended, node by node."""

    cluster: str
    admitted: tuple[str, ...] = ()
    """They serve."""
    given_up: dict[str, str] = {}
    """Node -> why; nothing is tried on it unless it is named."""
    held: dict[str, str] = {}
    """Node -> why it was left alone; it stays in the queue."""
    queue: tuple[Repair, ...] = ()
    """What is in the queue now."""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def exit_code(self) -> Exit:
        """FAILED when a node was given up, PENDING when one was left alone."""
        if self.given_up:
            return Exit.FAILED
        return Exit.PENDING if self.held else Exit.OK


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a try ended; a node that is in neither is fit and serves."""

    failed: dict[str, str] = {}
    """Node -> why it is still not fit."""
    held: dict[str, str] = {}
    """Node -> why it was left alone, or left as it was."""
    diagnostics: tuple[Diagnostic, ...] = ()


class Attempt:
    """Makes tries on the nodes of one cluster, as the holder of its locks."""

    def __init__(self, run: Run, session: SshSession, report: Reporter) -> None:
        """Set what is needed; nothing is queried yet."""
        self._run = run
        self._session = session
        self._report = report

    def make(self, action: RepairAction, nodes: Collection[str]) -> Outcome:
        """Try one repair on some nodes, all at once."""
        run, session = self._run, self._session
        sites = open_sites(run.cluster, making=True)
        before = observe(run.cluster, sites, session)
        service = scheduler_or_none(run.cluster.spec, before.existing, session)
        uses = node_uses(service, nodes)
        held = {
            node: why
            for node in nodes
            if (why := blocking_reason(uses, node, replacing=action == "replace"))
        }
        free = [node for node in nodes if node not in held]
        if not free:
            return Outcome(held=held)
        try:
            out = {node: use for node, use in (uses or {}).items() if node in free}
            take_out(service, out, f"repair, run {run.id}")
        except SchedulerSilent as silent:
            return Outcome(held=held | dict.fromkeys(free, f"the scheduler is silent: {silent}"))
        refused = self._at_sites(action, free, sites, before)
        after = observe(run.cluster, sites, session)
        compiled = compile_for(run.cluster, after).cluster
        scope = self._scope(compiled, after, free)
        nodes_now = converge_nodes(
            run, sites, after, session, compiled, report=self._report, scope=scope
        )
        fit = [n for n in free if n in nodes_now.serving and n not in nodes_now.held]
        failed = {n: nodes_now.failed[n] for n in free if n in nodes_now.failed}
        held |= {n: nodes_now.held[n] for n in free if n in nodes_now.held}
        try:
            give_back(service, fit)
        except SchedulerSilent as silent:
            failed |= dict.fromkeys(fit, f"the scheduler does not take it back: {silent}")
        return Outcome(
            failed=_explained(failed, refused),
            held=held,
            diagnostics=tuple(d for d in nodes_now.diagnostics if _is_about(d, free)),
        )

    def _at_sites(
        self,
        action: RepairAction,
        nodes: Collection[str],
        sites: tuple[OpenSite, ...],
        before: Observation,
    ) -> dict[str, str]:
        """Have the nodes' sites boot or remake them; return site -> what it refused."""
        mine = {h.name: h.site for h in before.desired.hosts if h.name in set(nodes)}
        theirs = tuple(s for s in sites if s.name in mine.values())
        growing = {s.name for s in theirs if self._makes(action, s, before, mine)}
        theirs = booting_sites(
            self._run.cluster,
            theirs,
            growing,
            before.desired.hosts,
            self._run.directory,
            self._report,
        )

        def act(site: OpenSite) -> str:
            names = [node for node, at in mine.items() if at == site.name]
            try:
                if action == "replace" and site.provider.replaces_nodes:
                    site.provider.replace(site.context, names)
                else:
                    site.provider.apply(site.context)
            except ProviderError as error:
                return "; ".join(d.summary for d in error.diagnostics[:5])
            return ""

        return {
            site: diagnostics for site, diagnostics in at_each(theirs, act).items() if diagnostics
        }

    @staticmethod
    def _makes(
        action: RepairAction, site: OpenSite, before: Observation, mine: dict[str, str]
    ) -> bool:
        changes = before.changes()
        made = {
            name
            for name, at in mine.items()
            if (change := changes.get((at, name))) and change.effect in {"create", "replace"}
        }
        return any(at == site.name and (action == "replace" or n in made) for n, at in mine.items())

    @staticmethod
    def _scope(compiled: CompiledCluster, after: Observation, nodes: Collection[str]) -> Scope:
        """Return nodes with read-only steps to run again, and the controllers' steps."""
        read_only = {
            host: frozenset(s.key for s in group.steps if s.phase not in _MADE)
            for group in compiled.groups
            for host in group.hosts
            if host in set(nodes)
        }
        controllers = {host.name for host in after.desired.with_role("controller")}
        return Scope(hosts=frozenset(nodes) | controllers, again=read_only)


_MADE = CHANGING_PHASES - {"join"}
"""Phases that are not run again: their stamps are taken as true. Joining is checked again."""


def _explained(failed: dict[str, str], refused: dict[str, str]) -> dict[str, str]:
    """Add a site's facts to nodes that it did not create."""
    message = "; ".join(dict.fromkeys(refused.values()))
    return {
        node: f"{why}: {message}" if message and "its site did not make it" in why else why
        for node, why in failed.items()
    }


def _is_about(diagnostic: Diagnostic, nodes: Collection[str]) -> bool:
    return any(node in diagnostic.summary for node in nodes)


_BY_ITSELF = (
    MARK,
    "gcluster-health: ",
    "Not responding",
    "Node unexpectedly rebooted",
    "ResumeTimeout reached",
    "Kill task failed",
    "Duplicate jobid",
    "Low socket",
    "Low RealMemory",
    "gres/",
    "not ready: ",
)
"""Prefixes of reasons that a scheduler, a health check or gcluster sets (slurm 22.05-25.05; for
Kubernetes what `NodeSeen.why` returns of a node that is not cordoned). All others were set by an
administrator."""


def node_uses(service: Scheduler | None, nodes: Collection[str]) -> Mapping[str, NodeUse] | None:
    """Return the scheduler's view of nodes; {} without a scheduler, None: no response."""
    if service is None:
        return {}
    try:
        return service.nodes(nodes)
    except SchedulerSilent:
        return None


def blocking_reason(uses: Mapping[str, NodeUse] | None, node: str, *, replacing: bool) -> str:
    """Return why a node must be left alone; "" when it may be repaired (pure).

    Args:
        uses: the scheduler's view of its nodes; None: it doesn't respond.
        node: the node in question.
        replacing: the node would be removed, and running jobs with it.
    """
    if uses is None:
        return "the scheduler does not answer: jobs may run there" if replacing else ""
    use = uses.get(node)
    if use is None:
        return ""
    if use.jobs and replacing:
        return f"jobs run there: {', '.join(use.jobs[:5])}"
    if use.out and use.reason and not use.reason.startswith(_BY_ITSELF):
        return f'taken out of service by hand: "{use.reason}"'
    return ""


def take_out(service: Scheduler | None, uses: Mapping[str, NodeUse], why: str) -> None:
    """Mark nodes that are out of service by themselves as ours: they go back when they are fit."""
    out = [name for name, use in uses.items() if use.out and not use.is_ours]
    if service is not None and out:
        service.drain(out, f"{MARK}{why}")


def give_back(service: Scheduler | None, nodes: Collection[str]) -> None:
    """Let jobs start again on those of the nodes that we took out; raises SchedulerSilent."""
    if service is None or not nodes:
        return
    mine = [name for name, use in service.nodes(nodes).items() if use.is_ours]
    if mine:
        service.resume(mine)
