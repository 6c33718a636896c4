"""`gcluster repair`: processes the queue until each node is in service or given up.

Each attempt is recorded before it begins: after a kill the next run continues with the same
attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from ....inventory.hosts import ClusterInventory, Host
from ....schemas.derived.hostlist import HostlistError, expand
from ....schemas.diagnostics import Diagnostic
from ....stacks.provider import ProviderError
from ...cluster.cluster import Cluster
from ...cluster.open_site import OpenSite, at_each, equip, inventory
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Reporter
from ...cluster.sites import open_sites
from ...down.ledger_check import close_missing
from ...kubernetes.managed.leaving import is_of_stack
from ...nodes.ssh import SshSession
from ...state import acquire
from ...state.event_types import RepairAction, RepairStep
from ...state.repair_queue import Repair
from ...state.store import utc_now
from ...up.run import Run
from .attempt import Attempt, Intended, Outcome, RepairResult
from .instances import repair_instances
from .queue import ORDER, emit_step, failure_reason, next_action, queue, set_aside

ASKED = "requested by hand"
"""Reason of a node that was named and was not in the queue."""


def repair(
    cluster: Cluster,
    words: Collection[str],
    report: Reporter,
    *,
    confirm: Callable[[tuple[Intended, ...]], bool],
    replace: bool = True,
) -> RepairResult:
    """Work through the repair queue; safe to repeat, safe to kill.

    Args:
        cluster: as it was last applied.
        words: host ranges; empty: the whole queue. A node that was given up, or that is not in the
            queue, is worked on when it is named.
        report: receives what is waited for.
        confirm: receives what will be tried; if it returns False, nothing is changed.
        replace: nodes may be recreated where their site can.

    Raises:
        LifecycleError: no such nodes (GC908), never applied (GC1102), declined (GC909), nodes that
            GKE or AKS runs (GC1046).
        ProviderError: a tool of a site is missing.
    """
    if not cluster.was_applied:
        raise failure(
            "GC1102", f"{cluster.name} was never applied", hint=f"gcluster up {cluster.spec_path}"
        )
    if is_of_stack(cluster.spec, words):
        return repair_instances(cluster, words, report, confirm=confirm, replace=replace)
    sites = open_sites(cluster)
    planned = _planned(cluster, sites)
    todo = _chosen(cluster, planned, words)
    late = _not_removed(cluster, sites)
    if not todo and not late:
        return RepairResult(cluster=cluster.name, queue=queue(cluster.events))
    makers = {s.name for s in sites if replace and s.provider.replaces_nodes}
    # A controller has the queue, a login has people on it: only what runs jobs is recreated.
    able = {
        name
        for name, pool in cluster.spec.pools.items()
        if pool.role == "compute" and pool.site in makers
    }
    if todo and not confirm(
        tuple(_intended(entry, replaceable=entry.pool in able) for entry in todo)
    ):
        raise failure("GC909", "nothing was repaired", exit_code=Exit.REFUSED)
    equip(s for s in sites if s.name in {entry.site for entry in todo} | late)
    cluster.identify()
    with (
        SshSession(cluster.workdir) as session,
        acquire(cluster.store, tuple(cluster.spec.sites), reason="repair") as lock,
        Run(cluster, "repair", lock) as run,
    ):
        result = _Repairing(cluster, todo, able, late).work(Attempt(run, session, report))
        run.finish(result.exit_code)
        return result


class _Repairing:
    """The nodes that one run works on, and how far it is with each."""

    def __init__(
        self,
        cluster: Cluster,
        todo: tuple[Repair, ...],
        able: Collection[str],
        late: frozenset[str],
    ) -> None:
        self._cluster = cluster
        self._late = late
        self._named = {entry.node: entry for entry in todo}
        self._able = able
        self._admitted: list[str] = []
        self._given_up: dict[str, str] = {}
        self._held: dict[str, str] = {}
        self._found: list[Diagnostic] = []

    def work(self, attempt: Attempt) -> RepairResult:
        """Try one repair after the other until each node is in service, held, or given up."""
        self._begin()
        while turns := self._turns():
            action = min(turns, key=ORDER.index)
            entries = turns[action]
            for part in _by_pool(entries):
                self._emit("trying", part, action=action)
            self._take(action, entries, attempt.make(action, [entry.node for entry in entries]))
        sites = {entry.site for node, entry in self._named.items() if node in self._given_up}
        self._found += _remove_machines(self._cluster, sites | self._late)
        return RepairResult(
            cluster=self._cluster.name,
            admitted=tuple(sorted(self._admitted)),
            given_up=self._given_up,
            held=self._held,
            queue=queue(self._cluster.events),
            diagnostics=tuple(self._found),
        )

    def _begin(self) -> None:
        """Write down that what was given up, or was in no queue, is worked on from now on."""
        known = {entry.node: entry for entry in queue(self._cluster.events)}
        for node, entry in self._named.items():
            if node not in known or known[node].state == "given-up":
                self._emit("queued", (entry,), reason=entry.reason)

    def _turns(self) -> dict[RepairAction, list[Repair]]:
        """Return what is to be tried next on which nodes; gives up those with nothing left."""
        turns: dict[RepairAction, list[Repair]] = {}
        for entry in queue(self._cluster.events):
            if entry.node not in self._named or entry.state == "given-up":
                continue
            if entry.node in self._held:
                continue
            replaceable = entry.pool in self._able
            action = next_action(entry, replaceable=replaceable)
            if action is None:
                why = failure_reason(entry, replaceable=replaceable)
                self._given_up[entry.node] = why
                self._emit("given-up", (entry,), reason=why)
            else:
                turns.setdefault(action, []).append(entry)
        return turns

    def _take(self, action: RepairAction, entries: list[Repair], outcome: Outcome) -> None:
        """Write down what came of a try."""
        self._found += outcome.diagnostics
        self._held |= outcome.held
        for entry in entries:
            if entry.node in outcome.held and entry.reason == ASKED:
                self._emit("dropped", (entry,))  # nothing is known to be wrong with it
            if entry.node in outcome.failed:
                reason = outcome.failed[entry.node]
                self._emit("failed", (entry,), action=action, reason=reason)
            elif entry.node not in outcome.held:
                self._admitted.append(entry.node)
                self._emit("admitted", (entry,))

    def _emit(
        self,
        step: RepairStep,
        entries: tuple[Repair, ...],
        *,
        reason: str = "",
        action: RepairAction | None = None,
    ) -> None:
        first = entries[0]
        emit_step(
            self._cluster.events,
            step,
            [entry.node for entry in entries],
            site=first.site,
            pool=first.pool,
            reason=reason,
            action=action,
        )


def _not_removed(cluster: Cluster, sites: Iterable[OpenSite]) -> frozenset[str]:
    """Return the sites where what was given up still is, or is in the ledger.

    A run was killed in between.
    """
    aside = set_aside(cluster.spec, cluster.events)
    theirs = [site for site in sites if site.name in {entry.site for entry in aside.values()}]
    previews = at_each(theirs, lambda site: site.provider.preview(site.context))
    booked = {site.name: cluster.ledger.existing(site.name) for site in theirs}
    return frozenset(
        site
        for site, changes in previews.items()
        if any(c.effect == "delete" and c.resource.name in aside for c in changes)
        or any(entry.key in {f"node/{node}" for node in aside} for entry in booked[site])
    )


def _remove_machines(cluster: Cluster, names: Collection[str]) -> tuple[Diagnostic, ...]:
    """Remove the machines of nodes that were given up, so that they no longer cost."""

    def take_back(site: OpenSite) -> tuple[Diagnostic, ...]:
        try:
            site.provider.apply(site.context)
            close_missing(cluster, site)
        except ProviderError as error:
            return error.diagnostics
        return ()

    theirs = [site for site in open_sites(cluster, making=True) if site.name in names]
    return tuple(
        diagnostic for found in at_each(theirs, take_back).values() for diagnostic in found
    )


def _planned(cluster: Cluster, sites: Iterable[OpenSite]) -> ClusterInventory:
    hosts = (h for s in sites for h in s.provider.planned_hosts(cluster.spec, s.name))
    return inventory(cluster.spec, hosts)


def _chosen(
    cluster: Cluster, planned: ClusterInventory, words: Collection[str]
) -> tuple[Repair, ...]:
    """Return the selected entries; a node without one gets one, not yet written."""
    entries = queue(cluster.events)
    if not words:
        return tuple(entry for entry in entries if entry.state == "waiting")
    known = {entry.node: entry for entry in entries}
    hosts = {host.name: host for host in planned.hosts}
    chosen = []
    for name in dict.fromkeys(n for word in words for n in _names(word)):
        if name not in hosts:
            raise failure(
                "GC908",
                f'{cluster.name} has no node "{name}"',
                hint=f"gcluster status {cluster.name} lists them",
                exit_code=Exit.USAGE,
            )
        chosen.append(_fresh(hosts[name], known.get(name)))
    return tuple(chosen)


def _names(word: str) -> list[str]:
    try:
        return expand(word)
    except HostlistError as error:
        raise failure("GC908", str(error), exit_code=Exit.USAGE) from error


def _fresh(host: Host, entry: Repair | None) -> Repair:
    if entry is None:
        return Repair(
            node=host.name,
            site=host.site,
            pool=host.pool,
            state="waiting",
            reason=ASKED,
            since=utc_now(),
        )
    return msgspec.structs.replace(entry, tried=() if entry.state == "given-up" else entry.tried)


def _intended(entry: Repair, *, replaceable: bool) -> Intended:
    actions = tuple(
        action
        for action in ORDER
        if action not in entry.tried and (action != "replace" or replaceable)
    )
    return Intended(entry=entry, actions=actions)


def _by_pool(entries: Iterable[Repair]) -> tuple[tuple[Repair, ...], ...]:
    pools: dict[str, list[Repair]] = {}
    for entry in entries:
        pools.setdefault(entry.pool, []).append(entry)
    return tuple(tuple(part) for part in pools.values())
