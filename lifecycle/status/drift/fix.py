"""`gcluster drift --fix`: plans the drifted parts alone, and restores them.

The spec is the applied one: changes of the file remain for `up`. Steps whose results were changed
are run again, then the steps that verify them; sites are applied where they differ; objects and
labels of Kubernetes are applied, and none is removed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial

import msgspec
from msgspec.structs import replace

from ....schemas.diagnostics import Diagnostic
from ....schemas.spec import KubernetesScheduler
from ....stacks.provider import ProviderError
from ...cluster.cluster import Cluster
from ...cluster.open_site import OpenSite, at_each, equip
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Finding, Reporter
from ...cluster.sites import fallback_lists_of, open_sites
from ...down.ledger_check import close_missing
from ...kubernetes.phases import drain_leaving
from ...kubernetes.phases import settle as settle_kubernetes
from ...nodes.converge.pending import Scope, worn_out
from ...nodes.images.golden import booting_sites
from ...nodes.ssh import SshSession
from ...operations.repair.queue import queue
from ...operations.rolling.roll import Clock
from ...operations.service import wait_for_answers
from ...planning.changes import Plan, SitePlan
from ...planning.guards import refuse_guarded
from ...planning.plan import plan_with_jobs
from ...scheduler.accounting.plan import AccountingPlan
from ...scheduler.select import scheduler_of
from ...state import acquire
from ...up.compiled import compile_for
from ...up.nodes import converge_nodes
from ...up.run import Run
from ..observe import Observation, observe
from .observe import find_drift
from .values import IN_THE_API, Drift, DriftReport


class FixResult(msgspec.Struct, frozen=True, kw_only=True):
    """How `drift --fix` ended."""

    before: DriftReport
    after: DriftReport | None
    """The result of a second check; None: there was nothing to fix."""
    failed: dict[str, str]
    """Host -> why it was not fixed."""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def exit_code(self) -> Exit:
        """OK when nothing differs any more, PENDING when something does, FAILED when a step did."""
        if self.failed or any(diagnostic.is_error for diagnostic in self.diagnostics):
            return Exit.FAILED
        return (self.after or self.before).exit_code


def fix_drift(
    cluster: Cluster,
    report: Reporter,
    *,
    confirm: Callable[[Plan], bool],
    requeue_jobs: bool = False,
    allow: frozenset[str] = frozenset(),
) -> FixResult:
    """Find drift, show the plan that fixes it, and run that; safe to repeat, safe to kill.

    Args:
        cluster: as it was last applied.
        report: receives the progress.
        confirm: receives the plan; if it returns False, nothing is changed.
        requeue_jobs: requeue jobs on nodes that must be drained.
        allow: what a guard blocks.

    Raises:
        LifecycleError: never applied, refused, locked, or declined.
    """
    before = find_drift(cluster)
    fixable = tuple(drift for drift in before.drifts if drift.fixable)
    if not fixable:
        return FixResult(before=before, after=None, failed={})
    theirs = frozenset(drift.where for drift in fixable if drift.plane == "cloud")
    equip(site for site in open_sites(cluster) if site.name in theirs)
    with SshSession(cluster.workdir) as session:
        sites = open_sites(cluster)
        observation = observe(cluster, sites, session)
        scope = _scope(cluster, fixable, observation)
        proposed = _plan(cluster, observation, session, sites, scope, theirs)
        proposed = replace(proposed, objects=restored_objects(fixable))
        refuse_guarded(proposed, allow)
        if not confirm(proposed):
            raise failure("GC909", "nothing was changed", exit_code=Exit.REFUSED)
    cluster.identify()
    with (
        SshSession(cluster.workdir) as session,
        acquire(cluster.store, tuple(cluster.spec.sites), reason="drift --fix") as lock,
        Run(cluster, "drift --fix", lock) as run,
    ):
        for note in lock.notes:
            report(Finding(diagnostic=note))
        failed, diagnostics = _fix(
            run,
            session,
            report,
            scope,
            theirs,
            requeue=requeue_jobs,
            objects=proposed.objects is not None,
        )
        after = find_drift(cluster)
        result = FixResult(before=before, after=after, failed=failed, diagnostics=diagnostics)
        run.finish(result.exit_code)
        return result


def _fix(
    run: Run,
    session: SshSession,
    report: Reporter,
    scope: Scope,
    theirs: frozenset[str],
    *,
    requeue: bool,
    objects: bool,
) -> tuple[dict[str, str], tuple[Diagnostic, ...]]:
    cluster = run.cluster
    sites = open_sites(cluster, making=True)
    before = observe(cluster, sites, session)
    applied = tuple(site for site in sites if site.name in theirs)
    growing = {
        site.site
        for site in before.sites
        if site.site in theirs and any(c.effect in {"create", "replace"} for c in site.changes)
    }
    applied = booting_sites(cluster, applied, growing, before.desired.hosts, run.directory, report)
    if theirs:
        pools = {name for name, pool in cluster.spec.pools.items() if pool.site in theirs}
        mine = replace(
            before,
            sites=tuple(site for site in before.sites if site.site in theirs),
            leaving={node: pool for node, pool in before.leaving.items() if pool in pools},
        )
        if isinstance(cluster.spec.scheduler, KubernetesScheduler):
            drain_leaving(cluster, mine, session, report)
    refused = [d for found in at_each(applied, partial(_apply, cluster)).values() for d in found]
    after = observe(cluster, sites, session)
    scope = _with_recreated(cluster, scope, before, after)
    compiled = compile_for(cluster, after).cluster
    nodes = converge_nodes(
        run, sites, after, session, compiled, report=report, requeue=requeue, scope=scope
    )
    in_scope = {*scope.hosts, *scope.steps}
    failed = {host: why for host, why in nodes.failed.items() if host in in_scope}
    settled = settle_kubernetes(cluster, after, session, report, prune=False) if objects else ()
    compute = (host for host in nodes.inventory.with_role("compute") if host.connection == "ssh")
    serving = [host.name for host in compute]
    if serving and after.existing.has_scheduler:
        wait_for_answers(scheduler_of(cluster.spec, after.existing, session), serving, Clock())
    return failed | nodes.held, (*refused, *nodes.diagnostics, *settled)


def restored_objects(fixable: Iterable[Drift]) -> AccountingPlan | None:
    """Return what is restored in Kubernetes' API, as text; None: nothing (pure)."""
    lines = [
        f"label {drift.where}" if drift.kind == "label" else f"apply {drift.where}: {drift.name}"
        for drift in fixable
        if drift.kind in IN_THE_API
    ]
    return AccountingPlan(changes=tuple(dict.fromkeys(lines))) if lines else None


def _apply(cluster: Cluster, site: OpenSite) -> tuple[Diagnostic, ...]:
    try:
        site.provider.apply(site.context)
        close_missing(cluster, site)
    except ProviderError as error:
        return error.diagnostics
    return ()


def _scope(cluster: Cluster, fixable: Iterable[Drift], observation: Observation) -> Scope:
    """Return the steps that are run again; a machine that comes back is done whole."""
    steps: dict[str, set[str]] = defaultdict(set)
    for drift in fixable:
        steps[drift.where].update(drift.steps)
    again = {host: frozenset(found) for host, found in steps.items() if found}
    return _with_recreated(cluster, Scope(steps=again, again=again), observation, observation)


def _with_recreated(
    cluster: Cluster, scope: Scope, before: Observation, after: Observation
) -> Scope:
    """Add the nodes that their site creates or starts, and the controllers, which configure them.

    A machine that a cloud's engine found missing is another one afterwards. Nodes in the repair
    queue are not handled here.
    """
    was = {host.name: host.address for host in before.existing.hosts}
    changed = {name for (_, name), c in before.changes().items() if c.effect != "keep"}
    new = {host.name for host in after.existing.hosts if was.get(host.name) != host.address}
    made = (changed | new) & {host.name for host in after.desired.hosts}
    made -= {entry.node for entry in queue(cluster.events)}
    if not made:
        return scope
    controllers = {host.name for host in after.desired.with_role("controller")}
    return replace(scope, hosts=scope.hosts | made | controllers)


def _plan(  # noqa: PLR0917  # what a plan is made from
    cluster: Cluster,
    observation: Observation,
    session: SshSession,
    sites: tuple[OpenSite, ...],
    scope: Scope,
    theirs: frozenset[str],
) -> Plan:
    """Return the plan of the drifted parts: nothing else of what is pending is in it."""
    only = tuple(
        site
        if site.site in theirs
        else SitePlan(site=site.site, provider=site.provider, changes=())
        for site in observation.sites
    )
    seen = replace(
        observation, sites=only, stamps=worn_out(observation.stamps, scope), unreachable={}
    )
    compiled = compile_for(cluster, seen)
    return plan_with_jobs(
        cluster, seen, session, compiled, fallback_lists_of(cluster, sites), scope=scope
    )
