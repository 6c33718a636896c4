"""The phases of `up` before the lock: observe, plan, confirm. None of them changes the cluster."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from ...inventory.hosts import ClusterInventory
from ...stacks.provider import ProviderError, SiteEvent
from ..bundle.active import live_on
from ..cluster.cluster import Cluster
from ..cluster.open_site import OpenSite, equip
from ..cluster.outcome import Exit, LifecycleError, failure
from ..cluster.progress import Finding, Reporter, StageFinished, StageProgress
from ..cluster.remains import refuse_lost
from ..cluster.sites import fallback_lists_of
from ..cluster.sites import open_sites as open_cluster_sites
from ..down.expiry.expiry_guard import refuse_ended
from ..operations.repair.queue import queue, save_queue
from ..operations.rolling.change import RollingChange
from ..planning.guards import refuse_guarded
from ..planning.plan import plan_with_jobs
from ..planning.plan_file import refuse_moved, refuse_other
from ..planning.purchase.offerings import choose_offerings
from ..secrets.encryption import refuse_other_provider
from ..smoke.gate import cached_verdict, note_drift
from ..state import Journal, acquire
from ..status.drift.node_reports import deviations, see_changes, unfixable_findings
from ..status.observe import Observation
from ..status.observe import observe as observe_cluster
from .compiled import compile_for
from .phase import Phase, UpResult, UpState

NOTHING_TO_RESUME = "It changes nothing, and is done again."


def sites_of(state: UpState, *, making: bool = False) -> tuple[OpenSite, ...]:
    """Return the cluster's sites, with their progress reported."""

    def emit(event: SiteEvent) -> None:
        _report_site(state.report, event)

    return open_cluster_sites(state.cluster, emit, making=making, wishes=state.wishes)


def _report_site(report: Reporter, event: SiteEvent) -> None:
    report(StageProgress(name="nodes", done=event.done, total=event.total, detail=event.what))


def _check_state(state: UpState) -> None:
    refuse_other_provider(state.cluster)
    if state.approved is not None:
        refuse_moved(state.cluster, state.approved)


def _open_sites(state: UpState) -> None:
    state.sites = sites_of(state)
    for warning in state.cluster.warnings:
        state.report(Finding(diagnostic=warning))
    if state.bundle is not None:
        live_on(state.cluster, state.bundle)
    equip(state.sites)


def _observe(state: UpState) -> None:
    # Before a first `up` every site is queried: what exists already would be created twice.
    with suppress(ProviderError):  # preflight reports what a site that can't be queried lacks
        refuse_lost(state.cluster, state.sites, by_tag=True, but_data=True)
    state.before = observe_cluster(state.cluster, state.sites, state.session)


def _plan(state: UpState) -> None:
    fallbacks = fallback_lists_of(state.cluster, state.sites, state.wishes)
    unknown = fallbacks.unknown_overrides()
    if unknown:
        raise LifecycleError(*unknown, exit_code=Exit.REFUSED)
    cluster, session = state.cluster, state.session
    state.compiled = compile_for(cluster, state.before)
    changes = see_changes(cluster, state.before, state.compiled.cluster, session)
    note_drift(cluster, deviations(changes.by_node))
    state.before = changes.observation
    plan = plan_with_jobs(cluster, state.before, session, state.compiled, fallbacks)
    plan = replace(
        plan, diagnostics=(*plan.diagnostics, *unfixable_findings(cluster.name, changes.unfixable))
    )
    state.plan, state.wishes = choose_offerings(plan, state.sites, state.wishes)


def _check_plan(state: UpState) -> None:
    """Refuse what the plan says can't be set up; report what it leaves out."""
    found = [
        diagnostic
        for diagnostic in state.plan.diagnostics
        if diagnostic not in state.cluster.warnings
    ]
    errors = [diagnostic for diagnostic in found if diagnostic.is_error]
    if errors:
        raise LifecycleError(*errors, exit_code=Exit.REFUSED)
    for diagnostic in found:
        state.report(Finding(diagnostic=diagnostic))


def _check_approved(state: UpState) -> None:
    if state.approved is not None:
        refuse_other(state.approved, state.plan)


def _is_done(state: UpState) -> bool:
    """Return whether nothing differs, and the last `up` was of this spec and successful."""
    if not state.plan.is_empty:
        return False
    journal = Journal(state.cluster.events)
    if journal.applied_spec() != state.cluster.spec_hash:
        return False
    last = next((run for run in reversed(journal.runs()) if run.command == "up"), None)
    if last is None or last.exit_code != Exit.OK:
        return False
    testable = state.before.desired.real.with_role("compute")
    return not testable or _certified(state) is not None


def _certified(state: UpState) -> dict[str, object] | None:
    return cached_verdict(state.cluster, state.before.existing, state.session)


def _admit_repaired(cluster: Cluster, observation: Observation) -> None:
    """Remove nodes from the repair queue that match the spec: they were repaired by hand."""
    there = {host.name for host in observation.existing.hosts} - observation.unreachable.keys()
    if not any(entry.node in there for entry in queue(cluster.events)):
        return
    with acquire(cluster.store, tuple(cluster.spec.sites), reason="up") as lock:
        cluster.events.bind(run="", epochs=lock.epochs)
        desired = [host for host in observation.desired.hosts if host.connection != "api"]
        save_queue(cluster.spec, cluster.events, desired=desired, fit=there, failed={}, below=())


def _give_back(state: UpState) -> dict[str, str]:
    """Give back nodes that a killed run or a killed slurmctld left out of service.

    Returns the nodes that are out of service after it -> why.
    """
    cluster, before = state.cluster, state.before
    reachable = (
        host
        for host in before.existing.hosts
        if host.connection == "ssh" and host.name not in before.unreachable
    )
    inventory = ClusterInventory(cluster=cluster.name, hosts=tuple(reachable))
    rolling = RollingChange(cluster.spec, inventory, state.session, state.report, why="up")
    if rolling.taken_out(before.stamps, ()):
        with acquire(cluster.store, tuple(cluster.spec.sites), reason="up"):
            rolling.give_back(before.stamps, ())
    return rolling.out_of_service(before.stamps)


def _end_unchanged(state: UpState) -> None:
    cluster = state.cluster
    _admit_repaired(cluster, state.before)
    out = _give_back(state)
    state.report(StageFinished(name="plan", ok=True, summary="nothing to change", seconds=0.0))
    verdict = _certified(state)
    state.result = UpResult(
        cluster=cluster.name,
        changed=False,
        failed_hosts={},
        verdict=verdict,
        certificate_path=cluster.certificate_path if verdict is not None else None,
        exit_code=Exit.OK,
        out_of_service=out,
    )


def _confirm(state: UpState) -> None:
    refuse_ended(state.cluster)
    # A pool that is to be bought again was named by that already.
    refuse_guarded(state.plan, state.allow | {f"pool:{pool}" for pool in state.wishes.again})
    state.cluster.vault.prove()
    asks = state.approved is None and not state.plan.is_empty
    if asks and not state.confirm(state.plan):
        raise failure("GC909", "nothing was changed", exit_code=Exit.REFUSED)


OBSERVE_AND_PLAN = (
    Phase("check state", _check_state, NOTHING_TO_RESUME),
    Phase("open sites", _open_sites, NOTHING_TO_RESUME),
    Phase("observe", _observe, NOTHING_TO_RESUME),
    Phase("plan", _plan, NOTHING_TO_RESUME),
    Phase("check plan", _check_plan, NOTHING_TO_RESUME),
)
CONFIRM = (
    Phase("check approved plan", _check_approved, NOTHING_TO_RESUME),
    Phase("nothing to do", _end_unchanged, NOTHING_TO_RESUME, _is_done),
    Phase("confirm", _confirm, NOTHING_TO_RESUME),
)
