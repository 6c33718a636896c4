"""The phases of `up` under the lock: machines, nodes, and the AllReduce that proves them."""

from __future__ import annotations

import time

from msgspec.structs import replace

from ...schemas.diagnostics import Diagnostic, Severity
from ..bundle.active import bring
from ..cluster.index import set_ended
from ..cluster.open_site import at_each
from ..cluster.outcome import Exit
from ..cluster.progress import Finding, StageFinished, StageStarted
from ..cluster.sites import fallback_lists_of
from ..down.expiry.expiry_guard import postpone
from ..down.ledger_check import close_missing
from ..nodes.images.golden import booting_sites, elastic_sites
from ..operations.repair.queue import save_queue
from ..planning.preflight.obstacles import refuse_obstacles, refuse_unsigned
from ..planning.purchase.attempts import apply_site
from ..planning.purchase.failover import next_sites
from ..smoke.gate import last_certificate, pass_gate
from ..smoke.run import UnprovenError
from ..state import SpecApplied
from ..state.audit.built import built
from ..status.drift.node_reports import see_changes
from ..status.observe import observe
from .compiled import compile_for
from .figures import publish
from .nodes import converge_nodes
from .phase import Phase, UpResult, UpState
from .prepare import NOTHING_TO_RESUME, sites_of
from .ready import await_machines, with_readiness


def _begin(state: UpState) -> None:
    set_ended(state.cluster.id, ended=False)
    for note in state.run.lock.notes:
        state.report(Finding(diagnostic=note))
    # Under the lock: it makes the data key and the login key.
    state.sites = sites_of(state, making=True)


def _check_obstacles(state: UpState) -> None:
    state.compiled = compile_for(state.cluster, state.before, state.compiled)
    refuse_unsigned(state.compiled.cluster)
    refuse_obstacles(state.sites, state.report)


def _store_spec(state: UpState) -> None:
    state.cluster.keep_spec()


def _bake_images(state: UpState) -> None:
    growing = {
        site.site
        for site in state.before.sites
        if any(
            c.effect in {"create", "replace"} and c.resource.kind == "node" for c in site.changes
        )
    }
    state.sites = booting_sites(
        state.cluster,
        state.sites,
        growing | elastic_sites(state.cluster.spec),
        state.before.desired.hosts,
        state.run.directory,
        state.report,
    )


def _apply_sites(state: UpState) -> None:
    """Apply every site; keep the sites as they were left, and what could not be made."""
    cluster, report = state.cluster, state.report
    made = [host for host in state.before.desired.hosts if host.connection != "api"]
    total = len(made) - len(state.before.aside)
    began = time.monotonic()
    report(StageStarted(name="nodes", total=total))
    fallbacks = fallback_lists_of(cluster, state.sites, state.wishes)

    def report_finding(found: Diagnostic) -> None:
        report(Finding(diagnostic=found))

    left = at_each(state.sites, lambda site: apply_site(cluster, site, fallbacks, report_finding))
    at_each(state.sites, lambda site: close_missing(cluster, site))
    state.sites = tuple(site.taking(left[site.name].taken) for site in state.sites)
    hosts = at_each(state.sites, lambda site: site.provider.hosts(site.context))
    present = sum(not host.silent for found in hosts.values() for host in found)
    report(
        StageFinished(
            name="nodes",
            ok=present >= total,
            summary=f"{present}/{total} up",
            seconds=time.monotonic() - began,
        )
    )
    state.diagnostics += tuple(found for site in left.values() for found in site.diagnostics)


def _has_next_site(state: UpState) -> bool:
    """Return whether a pool is to be made at another site; an approved plan says where it is."""
    return state.approved is None and bool(_next_sites(state))


def _next_sites(state: UpState) -> dict[str, str]:
    cluster = state.cluster
    at = {pool: cluster.spec.pools[pool].site for pool in cluster.failover}
    return next_sites(cluster.failover, at, cluster.events.read()) if at else {}


def _fail_over(state: UpState) -> None:
    """End the run: the pools are others at their next site, and so is the plan."""
    following = _next_sites(state)
    for found in state.diagnostics:
        pool = str(found.path[1]) if found.path[:1] == ("pools",) else ""
        if pool in following:
            note = replace(
                found,
                severity=Severity.WARNING,
                hint=f"it is made at {following[pool]} next, with a plan of its own",
            )
            state.report(Finding(diagnostic=note))
    state.result = UpResult(
        cluster=state.cluster.name,
        changed=True,
        failed_hosts={},
        verdict=None,
        certificate_path=None,
        exit_code=Exit.FAILED,
        diagnostics=state.diagnostics,
        next_sites=following,
    )


def _observe_again(state: UpState) -> None:
    observed = observe(state.cluster, state.sites, state.session)
    state.after = with_readiness(observed, state.ready)
    state.compiled = compile_for(state.cluster, state.after, state.compiled)
    compiled = state.compiled.cluster
    state.after = see_changes(state.cluster, state.after, compiled, state.session).observation


def _bring_bundle(state: UpState) -> None:
    if state.bundle is not None:
        bring(state.cluster, state.bundle, state.after.existing, state.session, state.report)


def _converge(state: UpState) -> None:
    """Run the pending steps on all nodes; the run ends where a pool is below its quorum."""
    state.nodes = nodes = converge_nodes(
        state.run,
        state.sites,
        state.after,
        state.session,
        state.compiled.cluster,
        report=state.report,
        requeue=state.requeue_jobs,
    )
    save_queue(
        state.cluster.spec,
        state.cluster.events,
        desired=[host for host in state.after.desired.hosts if host.connection != "api"],
        fit=nodes.serving,
        failed={n: why for n, why in nodes.failed.items() if n not in state.after.aside},
        below=nodes.pools_below,
    )
    if nodes.below_quorum:
        state.end(Exit.FAILED)


def _postpone_end(state: UpState) -> None:
    postpone(state.cluster, state.after.existing, state.session)


def _gate(state: UpState) -> None:
    try:
        state.gate = pass_gate(state.run, state.nodes.inventory, state.session, state.report)
    except UnprovenError as unproven:
        state.diagnostics += unproven.diagnostics
        state.is_unproven = True


def _publish_figures(state: UpState) -> None:
    certificate = last_certificate(state.cluster)
    unwritten = publish(state.cluster, state.nodes.inventory, state.session, certificate)
    state.diagnostics += () if unwritten is None else (unwritten,)


def _finish(state: UpState) -> None:
    code = Exit.OK if state.gate is None or state.gate.passed else Exit.REFUSED
    if code is Exit.OK and (state.nodes.held or state.is_unproven or _has_surplus(state)):
        code = Exit.PENDING
    if code is Exit.OK:
        now = built(state.compiled.cluster)
        applied = SpecApplied(spec_hash=state.cluster.spec_hash, built=now)
        state.cluster.events.append(applied)
    state.end(code)


def _has_surplus(state: UpState) -> bool:
    """Return whether machines exist, and cost, that the spec no longer has."""
    changes = (change for site in state.after.sites for change in site.changes)
    return any(c.effect == "delete" and c.resource.kind == "node" for c in changes)


BEGIN = (
    Phase("begin", _begin, "Keys that exist are read, others made."),
    Phase("check obstacles", _check_obstacles, NOTHING_TO_RESUME),
    Phase("keep spec", _store_spec, "The state has the spec that was begun; it is written again."),
    Phase("bake images", _bake_images, "An image is known by the hash of what it is made from."),
)
SITES = (
    Phase(
        "apply sites",
        _apply_sites,
        "The ledger has an intent before each call, so a machine is adopted and never made twice.",
    ),
    Phase(
        "fail over",
        _fail_over,
        "The events say which sites of a pool had none of it; the next run makes it at another.",
        _has_next_site,
    ),
)
OBSERVE_AGAIN = (
    Phase("await machines", await_machines, "A machine that is ready is so at once."),
    Phase("observe again", _observe_again, NOTHING_TO_RESUME),
    Phase("bring bundle", _bring_bundle, "Files that are there, by their hashes, stay."),
)
NODES = (
    Phase(
        "converge",
        _converge,
        "Each node has a stamp for each step that succeeded; drained nodes carry the run's mark.",
    ),
)
PROVE = (
    Phase("postpone end", _postpone_end, "An announced end is in the events until withdrawn."),
    Phase("gate", _gate, "A certificate counts for its spec, and its members since their start."),
    Phase("publish figures", _publish_figures, "They are replaced as a whole."),
    Phase("finish", _finish, "The event SpecApplied says that nothing is left to do."),
)
