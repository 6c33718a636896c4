"""From a spec to a running, tested cluster; safe to repeat, safe to kill, goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from ..schemas.diagnostics import Diagnostic
from ..stacks.provider import SiteEvent
from .accounting.settle import settle
from .audit.built import built
from .bundle.use import Bundle, bring, live_on
from .cluster import Cluster
from .expiry.standing_end import put_off, refuse_ended
from .images.golden import booting_sites, elastic_sites
from .known import set_ended
from .kubernetes import while_up
from .ladders.standing import NO_WISHES, Wishes
from .ladders.walk import apply_site
from .ledger_check import close_absent
from .nodes import NodesResult, converge_nodes
from .observe import Observation, observe
from .operations.queue_state import bring_queue
from .outcome import Exit, LifecycleError, failure
from .planning.changes import Plan
from .planning.guards import refuse_guarded
from .planning.plan import compile_for, plan_with_jobs
from .planning.plan_file import PlanFile, holding, refuse_moved, refuse_other
from .preflight.obstacles import refuse_obstacles, refuse_unkeyed
from .progress import (
    Finding,
    Reporter,
    StageFinished,
    StageProgress,
    StageStarted,
)
from .repair.queue import keep_queue
from .run import Run
from .secrets.encryption import refuse_other_provider
from .sites import OpenSite, at_each, equip, ladders_of, open_sites
from .smoke.gate import pass_gate, standing_verdict
from .smoke.run import SmokeResult
from .ssh import SshSession
from .state import Journal, SpecApplied, acquire


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


def up(
    cluster: Cluster,
    report: Reporter,
    *,
    confirm: Callable[[Plan], bool],
    wishes: Wishes = NO_WISHES,
    requeue_jobs: bool = False,
    bundle: Bundle | None = None,
    approved: PlanFile | None = None,
    allow: frozenset[str] = frozenset(),
) -> UpResult:
    """Bring the cluster to what its spec says, and prove it with the AllReduce.

    `confirm` is shown the plan when there is something to do; when it answers no, nothing is
    touched. `wishes` is what was asked for by a pool's name. `requeue_jobs` puts jobs on nodes
    that must be drained back in line instead of waiting for their end. `bundle` is what the
    nodes are to live on: all that they need is looked for in it before anything is changed.
    `approved` is the plan that may be done, and no other; nobody is asked then. `allow` names what
    a guard holds back (`lifecycle.planning.guards`).

    Raises:
        LifecycleError: refused, locked, or a step that nothing can go on without failed.
        ProviderError: a site could not be brought up.
    """
    refuse_other_provider(cluster)
    if approved is not None:
        refuse_moved(cluster, approved)
    sites = open_sites(cluster, lambda event: report(_site_progress(event)), wishes=wishes)
    for warning in cluster.warnings:
        report(Finding(diagnostic=warning))
    if bundle is not None:
        live_on(cluster, bundle)
    equip(sites)
    with SshSession(cluster.workdir) as session:
        observation = observe(cluster, sites, session)
        ladders = ladders_of(cluster, sites, wishes)
        unknown = ladders.unknown_wishes()
        if unknown:
            raise LifecycleError(*unknown, exit_code=Exit.REFUSED)
        proposed = plan_with_jobs(cluster, observation, session, ladders)
        while_up.refuse_unfit(cluster, proposed, report)
        while_up.refuse_silent(cluster, sites, observation)
        if approved is not None:
            refuse_other(approved, proposed)
        if proposed.is_empty and _is_proven(cluster, observation):
            return _nothing_to_do(cluster, report)
        refuse_ended(cluster)
        # A pool that is to be bought anew was named by that already.
        refuse_guarded(proposed, allow | {f"pool:{pool}" for pool in wishes.again})
        cluster.vault.prove()
        if approved is None and not proposed.is_empty and not confirm(proposed):
            raise failure("GC909", "nothing was changed", exit_code=Exit.REFUSED)
        while_up.ready_addons(cluster, observation, session, report, bundle)
    if not proposed.is_empty:
        while_up.ready_bundle(cluster, observation, report)
    cluster.identify()
    with (
        acquire(cluster.store, tuple(cluster.spec.sites), reason="up") as lock,
        SshSession(cluster.workdir) as session,  # a `down` that has the lock removes its folder
        holding(cluster, approved),
        Run(cluster, "up", lock) as run,
    ):
        set_ended(cluster.id, ended=False)
        for note in lock.notes:
            report(Finding(diagnostic=note))
        # Under the lock: it makes the data key and the login key.
        sites = open_sites(
            cluster, lambda event: report(_site_progress(event)), making=True, wishes=wishes
        )
        result = _bring_up(
            run,
            sites,
            session,
            observation,
            report,
            wishes=wishes,
            requeue_jobs=requeue_jobs,
            bundle=bundle,
        )
        run.finish(result.exit_code)
        return result


def _bring_up(
    run: Run,
    sites: tuple[OpenSite, ...],
    session: SshSession,
    before: Observation,
    report: Reporter,
    *,
    wishes: Wishes,
    requeue_jobs: bool,
    bundle: Bundle | None,
) -> UpResult:
    cluster = run.cluster
    compiled = compile_for(cluster, before)
    refuse_unkeyed(compiled)
    refuse_obstacles(sites, report)
    cluster.keep_spec()
    growing = {
        site.site
        for site in before.sites
        if any(
            c.effect in {"create", "replace"} and c.resource.kind == "node" for c in site.changes
        )
    }
    growing |= elastic_sites(cluster.spec)
    sites = booting_sites(cluster, sites, growing, before.desired.hosts, run.directory, report)
    while_up.drain_leaving(cluster, before, session, report)
    sites, refused = _apply(cluster, sites, before, report, wishes)
    refused += while_up.await_nodes(cluster, sites, before, report)
    after = observe(cluster, sites, session)
    if bundle is not None:
        bring(cluster, bundle, after.existing, session, report)
    bring_queue(cluster, after.existing, session, report)
    nodes = converge_nodes(run, sites, after, session, report=report, requeue=requeue_jobs)
    keep_queue(
        cluster.spec,
        cluster.events,
        desired=[host for host in after.desired.hosts if host.connection != "api"],
        fit=nodes.serving,
        failed={n: why for n, why in nodes.failed.items() if n not in after.aside},
        below=nodes.pools_below,
    )
    if nodes.below_quorum:
        return _result(cluster, nodes, None, refused, Exit.FAILED)
    settled = settle(cluster, after, session, report)
    settled += while_up.settle(cluster, after, session, report)
    if any(said.is_error for said in settled):
        return _result(cluster, nodes, None, (*refused, *settled), Exit.FAILED)
    refused = (*refused, *settled)
    put_off(cluster, after.existing, session)
    gate = pass_gate(run, nodes.inventory, session, report)
    code = Exit.OK if gate is None or gate.passed else Exit.REFUSED
    if code is Exit.OK and (nodes.held or _still_there(after)):
        code = Exit.PENDING
    if code is Exit.OK:
        now = built(compile_for(cluster, after))
        cluster.events.append(SpecApplied(spec_hash=cluster.spec_hash, built=now))
    return _result(cluster, nodes, gate, refused, code)


def _apply(
    cluster: Cluster,
    sites: tuple[OpenSite, ...],
    before: Observation,
    report: Reporter,
    wishes: Wishes,
) -> tuple[tuple[OpenSite, ...], tuple[Diagnostic, ...]]:
    """Apply every site; return the sites as they were left, and what could not be made."""
    made = [host for host in before.desired.hosts if host.connection != "api"]
    total = len(made) - len(before.aside)
    began = time.monotonic()
    report(StageStarted(name="nodes", total=total))
    book = ladders_of(cluster, sites, wishes)

    def tell(found: Diagnostic) -> None:
        report(Finding(diagnostic=found))

    left = at_each(sites, lambda site: apply_site(cluster, site, book, tell))
    at_each(sites, lambda site: close_absent(cluster, site))
    sites = tuple(site.taking(left[site.name].taken) for site in sites)
    hosts = at_each(sites, lambda site: site.provider.hosts(site.context))
    present = sum(len(found) for found in hosts.values())
    report(
        StageFinished(
            name="nodes",
            ok=present >= total,
            summary=f"{present}/{total} up",
            seconds=time.monotonic() - began,
        )
    )
    return sites, tuple(found for site in left.values() for found in site.diagnostics)


def _still_there(after: Observation) -> bool:
    """Say whether machines that the spec no longer asks for are there, and cost."""
    changes = (change for site in after.sites for change in site.changes)
    return any(c.effect == "delete" and c.resource.kind == "node" for c in changes)


def _is_proven(cluster: Cluster, observation: Observation) -> bool:
    """Say whether the last `up` was of this very spec and ended well, gate included."""
    journal = Journal(cluster.events)
    if journal.applied_spec() != cluster.spec_hash:
        return False
    last = next((run for run in reversed(journal.runs()) if run.command == "up"), None)
    if last is None or last.exit_code != Exit.OK:
        return False
    testable = any(not host.is_simulated for host in observation.desired.with_role("compute"))
    return not testable or standing_verdict(cluster) is not None


def _nothing_to_do(cluster: Cluster, report: Reporter) -> UpResult:
    report(StageFinished(name="plan", ok=True, summary="nothing to change", seconds=0.0))
    verdict = standing_verdict(cluster)
    return UpResult(
        cluster=cluster.name,
        changed=False,
        failed_hosts={},
        verdict=verdict,
        certificate_path=cluster.certificate_path if verdict is not None else None,
        exit_code=Exit.OK,
    )


def _result(
    cluster: Cluster,
    nodes: NodesResult,
    gate: SmokeResult | None,
    refused: tuple[Diagnostic, ...],
    code: Exit,
) -> UpResult:
    return UpResult(
        cluster=cluster.name,
        changed=True,
        failed_hosts=nodes.failed,
        verdict=msgspec.to_builtins(gate.verdict) if gate is not None else None,
        certificate_path=cluster.certificate_path if gate is not None else None,
        exit_code=code,
        diagnostics=(*refused, *nodes.diagnostics, *nodes.below_quorum),
    )


def _site_progress(event: SiteEvent) -> StageProgress:
    return StageProgress(name="nodes", done=event.done, total=event.total, detail=event.what)
