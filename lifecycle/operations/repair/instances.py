"""`gcluster repair` of nodes that EKS runs: the stack recreates their instances.

They have no SSH, so nothing can be repaired in place; and the cloud names them, so they are not in
the repair queue: a named node is cordoned, drained, recreated and waited for. Nodes that serve go
in waves, as their pool's `update` says: that is how a new image gets to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

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
from ...scheduler.base import MARK, Scheduler, SchedulerSilent
from ...scheduler.select import scheduler_or_none
from ...state import acquire
from ...state.repair_queue import Repair
from ...state.store import utc_now
from ...status.observe import observe
from ...up.run import Run
from ..rolling.roll import Clock, Patient, Rolled, roll
from ..rolling.window import Window
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
    """Recreate the instances of these nodes in waves, and wait for the nodes; safe to repeat.

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
    machines = machines_of(cluster, site, seen.nodes)
    chosen = choose(words, machines, cluster.name)
    if not confirm(tuple(_intended(one, site.name) for one in chosen)):
        raise failure("GC909", "nothing was repaired", exit_code=Exit.REFUSED)
    cluster.identify()
    with (
        SshSession(cluster.workdir) as session,
        acquire(cluster.store, tuple(cluster.spec.sites), reason="repair") as lock,
        Run(cluster, "repair", lock) as run,
    ):
        sizes = Counter(one.pool for one in machines)
        result = Recreating(run, session, report, clock or Clock(), sizes).work(chosen)
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


class Recreating:
    """The machines that one run recreates, and how far it is with each."""

    def __init__(
        self,
        run: Run,
        session: SshSession,
        report: Reporter,
        clock: Clock,
        sizes: Mapping[str, int],
    ) -> None:
        """Look at the cluster; nothing is changed. `sizes`: pool -> its machines in the stack."""
        self._cluster, self._session = run.cluster, session
        self._report, self._clock = report, clock
        self._why = f"repair, run {run.id}"
        self._sizes = sizes
        self._sites = open_sites(run.cluster, making=True)
        (self._site,) = (s for s in self._sites if s.name == managed_site(run.cluster.spec))
        before = observe(run.cluster, self._sites, session)
        self._kubectl = kubectl_of(session, before.existing)
        self._service = scheduler_or_none(run.cluster.spec, before.existing, session)
        self._admitted: list[str] = []
        self._given_up: dict[str, str] = {}
        self._diagnostics: tuple[Diagnostic, ...] = ()

    def work(self, chosen: tuple[Machine, ...]) -> RepairResult:
        """Recreate at once those that serve no job and take none, the others in waves."""
        nodes = [one.node for one in chosen if one.node]
        uses = node_uses(self._service, nodes)
        held = {n: why for n in nodes if (why := blocking_reason(uses, n, replacing=uses is None))}
        serving = {n for n, use in (uses or {}).items() if n not in held and not use.is_free}
        idle = tuple(one for one in chosen if one.node not in held and one.node not in serving)
        out = [one.node for one in idle if one.node]
        try:
            if self._service is not None:
                self._service.drain(out, f"{MARK}{self._why}")
        except SchedulerSilent as silent:
            why = f"the scheduler is silent: {silent}"
            held |= dict.fromkeys((one.shown for one in chosen if one.node not in held), why)
            return self._result(held)
        self._given_up |= self._renew(idle)
        if serving and self._service is not None:
            taken = {one.node: one for one in chosen if one.node in serving}
            rolled = self._roll(taken, _Living(self._service))
            self._given_up |= rolled.failed
            held |= rolled.held
            try:
                give_back(self._service, list(rolled.failed))
            except SchedulerSilent as silent:
                for node, why in rolled.failed.items():
                    self._given_up[node] = f"{why}; the scheduler does not take it back: {silent}"
        return self._result(held)

    def _roll(self, machines: Mapping[str, Machine], service: Scheduler) -> Rolled:
        windows = []
        for name, pool in self._cluster.spec.pools.items():
            own = [node for node, one in machines.items() if one.pool == name]
            if not own:
                continue
            window = Window(own, pool.update, pool_size=self._sizes[name])
            if len(self._given_up) > pool.update.max_failed:
                window.stop(f"stopped: {', '.join(self._given_up)} failed")
            windows.append(window)
        return roll(
            windows,
            Patient(service, self._clock),
            lambda nodes: self._renew([machines[node] for node in nodes]),
            why=self._why,
            emit=lambda text: self._report(
                StageProgress(name="drain", done=0, total=0, detail=text)
            ),
            clock=self._clock,
        )

    def _result(self, held: dict[str, str]) -> RepairResult:
        return RepairResult(
            cluster=self._cluster.name,
            admitted=tuple(sorted(self._admitted)),
            given_up=self._given_up,
            held=held,
            queue=queue(self._cluster.events),
            diagnostics=self._diagnostics,
        )

    def _renew(self, machines: Collection[Machine]) -> dict[str, str]:
        """Evict what is left on them, recreate them, wait; return node -> why it failed."""
        if not machines:
            return {}
        self._diagnostics += drain_nodes(self._kubectl, [one.node for one in machines if one.node])
        if refused := _recreate(self._site, machines):
            return {one.shown: refused for one in machines}
        ready = _awaited(self._cluster, self._site, machines, self._report, self._clock)
        self._admitted += ready.values()
        after = observe(self._cluster, self._sites, self._session)
        self._diagnostics += settle(self._cluster, after, self._session, self._report, prune=False)
        late = f"its new machine is no ready node after {WITHIN_S // 60} minutes"
        return {one.shown: late for one in machines if one.name not in ready}


class _Living:
    """The scheduler, of the nodes that it still has: a recreated one comes under another name."""

    def __init__(self, service: Scheduler) -> None:
        self._service = service
        self.nodes, self.requeue, self.pinned = service.nodes, service.requeue, service.pinned

    def drain(self, nodes: Collection[str], reason: str) -> None:
        """Let no further job start on those that there are."""
        self._service.drain([*self.nodes(nodes)], reason)

    def resume(self, nodes: Collection[str]) -> None:
        """Let jobs start again on those that there are."""
        self._service.resume([*self.nodes(nodes)])


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
