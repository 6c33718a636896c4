"""`gcluster repair` of nodes that EKS runs: the stack recreates their instances.

They have no SSH, so nothing can be repaired in place; and the cloud names them, so they are not in
the repair queue: a named node is cordoned, drained, recreated and waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from ....schemas.derived.hostlist import HostlistError, expand
from ....schemas.diagnostics import Diagnostic
from ....stacks.provider import ProviderError
from ...cluster.cluster import Cluster
from ...cluster.open_site import OpenSite, equip
from ...cluster.outcome import Exit, LifecycleError, failure
from ...cluster.progress import Reporter, StageProgress
from ...cluster.sites import open_sites
from ...kubernetes.managed.joining import WITHIN_S
from ...kubernetes.managed.login import kubectl_of
from ...kubernetes.managed.nodes import ApiNode, managed_site, see, silence
from ...kubernetes.members import drain_nodes
from ...kubernetes.phases import settle
from ...nodes.ssh import SshSession
from ...scheduler.base import MARK, SchedulerSilent
from ...scheduler.select import scheduler_or_none
from ...state import acquire
from ...state.repair_queue import Repair
from ...state.store import utc_now
from ...status.observe import observe
from ...up.run import Run
from ..rolling.roll import Clock
from .attempt import Intended, RepairResult, blocking_reason, give_back, node_uses
from .queue import queue

_ASK_AGAIN_S = 5


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """An instance of the stack."""

    name: str
    """As the spec calls it."""
    pool: str
    id: str
    node: str = ""
    """As the API calls it; "": it has not joined."""

    @property
    def shown(self) -> str:
        """Name it as people do."""
        return self.node or self.name


def repair_instances(
    cluster: Cluster,
    words: Collection[str],
    report: Reporter,
    *,
    confirm: Callable[[tuple[Intended, ...]], bool],
    replace: bool = True,
    clock: Clock | None = None,
) -> RepairResult:
    """Recreate the instances of these nodes, and wait for the nodes; safe to repeat.

    Args:
        cluster: as it was last applied.
        words: nodes, by the API's names or by the spec's.
        report: receives what is waited for.
        confirm: receives what will be done; if it returns False, nothing is changed.
        replace: nodes may be recreated; nothing else can be tried on these.
        clock: time source.

    Raises:
        LifecycleError: no such node (GC908), an API that doesn't respond (GC1043), declined
            (GC909), not to be recreated (GC1046).
        ProviderError: the stack can't be read.
    """
    if not replace:
        raise failure(
            "GC1046",
            "nodes of EKS can only be recreated: there is no login",
            hint="leave out --no-replace",
            exit_code=Exit.REFUSED,
        )
    (site,) = (s for s in open_sites(cluster) if s.name == managed_site(cluster.spec))
    equip([site])
    seen = see(cluster.spec, [site], cluster.workdir)
    if seen.problem or not seen.exists:
        raise LifecycleError(silence(cluster.spec, seen.problem), exit_code=Exit.REFUSED)
    chosen = choose(words, machines_of(cluster, site, seen.nodes), cluster.name)
    if not confirm(tuple(_intended(one, site.name) for one in chosen)):
        raise failure("GC909", "nothing was repaired", exit_code=Exit.REFUSED)
    cluster.identify()
    with (
        SshSession(cluster.workdir) as session,
        acquire(cluster.store, tuple(cluster.spec.sites), reason="repair") as lock,
        Run(cluster, "repair", lock) as run,
    ):
        result = _work(run, session, report, chosen, clock or Clock())
        run.finish(result.exit_code)
        return result


def machines_of(cluster: Cluster, site: OpenSite, nodes: Iterable[ApiNode]) -> tuple[Machine, ...]:
    """Return the instances of the stack that are one node each.

    Raises:
        ProviderError: the stack can't be read.
    """
    joined = {node.machine_id: node.name for node in nodes}
    bought = site.provider.purchases(cluster.spec, site.name)
    return tuple(
        Machine(name=of.nodes[0], pool=of.pool, id=known, node=joined.get(known, ""))
        for resource, known in site.provider.machine_ids(site.context).items()
        if (of := bought.get(resource)) is not None
        and len(of.nodes) == 1
        and cluster.spec.pools[of.pool].role == "compute"
    )


def choose(
    words: Collection[str], machines: Iterable[Machine], cluster: str
) -> tuple[Machine, ...]:
    """Return the selected machines (pure).

    Raises:
        LifecycleError: GC908: there is none of that name.
    """
    known = {name: one for one in machines for name in (one.name, one.node) if name}
    chosen: dict[str, Machine] = {}
    for word in words:
        try:
            names = [word] if word in known else expand(word)
        except HostlistError as error:
            raise failure("GC908", str(error), exit_code=Exit.USAGE) from error
        for name in names:
            if name not in known:
                raise failure(
                    "GC908",
                    f'{cluster} has no machine "{name}" that its stack made for EKS',
                    hint=f"gcluster status {cluster} lists its nodes",
                    exit_code=Exit.USAGE,
                )
            chosen[known[name].name] = known[name]
    return tuple(chosen.values())


def _work(
    run: Run,
    session: SshSession,
    report: Reporter,
    chosen: tuple[Machine, ...],
    clock: Clock,
) -> RepairResult:
    cluster = run.cluster
    sites = open_sites(cluster, making=True)
    before = observe(cluster, sites, session)
    service = scheduler_or_none(cluster.spec, before.existing, session)
    nodes = [one.node for one in chosen if one.node]
    uses = node_uses(service, nodes)
    held = {n: why for n in nodes if (why := blocking_reason(uses, n, replacing=True))}
    free = tuple(one for one in chosen if one.node not in held)
    out = [one.node for one in free if one.node]
    diagnostics: tuple[Diagnostic, ...] = ()
    if out and service is not None:
        try:
            service.drain(out, f"{MARK}repair, run {run.id}")
        except SchedulerSilent as silent:
            why = f"the scheduler is silent: {silent}"
            return _result(cluster, held=held | {one.shown: why for one in free})
        diagnostics = drain_nodes(kubectl_of(session, before.existing), out)
    (site,) = (s for s in sites if s.name == managed_site(cluster.spec))
    failed = _recreate(site, free) if free else ""
    if failed and uses:
        give_back(service, [node for node in out if node in uses and not uses[node].out])
    if failed or not free:
        return _result(cluster, held=held, given_up={one.shown: failed for one in free})
    ready = _awaited(cluster, site, free, report, clock)
    after = observe(cluster, sites, session)
    diagnostics += settle(cluster, after, session, report, prune=False)
    late = f"its new machine is no ready node after {WITHIN_S // 60} minutes"
    result = _result(
        cluster, held=held, given_up={m.shown: late for m in free if m.name not in ready}
    )
    return msgspec.structs.replace(
        result, admitted=tuple(sorted(ready.values())), diagnostics=diagnostics
    )


def _recreate(site: OpenSite, machines: Iterable[Machine]) -> str:
    """Have the stack make them again; return what it refused, "" where it did not."""
    if not site.provider.replaces_nodes:
        return "its site can't make it again"
    try:
        site.provider.replace(site.context, [one.name for one in machines])
    except ProviderError as error:
        return "; ".join(d.summary for d in error.diagnostics[:5])
    return ""


def _awaited(
    cluster: Cluster,
    site: OpenSite,
    machines: Collection[Machine],
    report: Reporter,
    clock: Clock,
) -> dict[str, str]:
    """Wait for the nodes of the new machines; return name -> node of those that are ready.

    The old node may be shown as ready for a while: a new one is identified by its machine's id.
    """
    until, old = clock.now() + WITHIN_S, {one.name: one.id for one in machines}
    while True:
        nodes = see(cluster.spec, [site], cluster.workdir).nodes
        fit = tuple(node for node in nodes if node.ready)
        ready = {
            one.name: one.node
            for one in machines_of(cluster, site, fit)
            if one.node and old.get(one.name, one.id) != one.id
        }
        if len(ready) == len(old) or clock.now() >= until:
            return ready
        detail = f"{len(ready)} of {len(old)} new nodes are ready"
        report(StageProgress(name="join", done=len(ready), total=len(old), detail=detail))
        clock.sleep(_ASK_AGAIN_S)


def _result(
    cluster: Cluster, *, held: dict[str, str], given_up: dict[str, str] | None = None
) -> RepairResult:
    return RepairResult(
        cluster=cluster.name, held=held, given_up=given_up or {}, queue=queue(cluster.events)
    )


def _intended(one: Machine, site: str) -> Intended:
    entry = Repair(
        node=one.shown,
        site=site,
        pool=one.pool,
        state="waiting",
        reason="requested by hand",
        since=utc_now(),
    )
    return Intended(entry=entry, actions=("replace",))
