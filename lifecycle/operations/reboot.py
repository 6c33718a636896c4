"""`gcluster reboot`: nodes restarted in waves, each drained first and given back when it is fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import msgspec

from ...inventory.hosts import ClusterInventory
from ...schemas.spec import ClusterSpec
from ..outcome import Exit, failure
from ..progress import Reporter, StageProgress
from ..rolling import NodeService, ServiceSilent, Window, roll
from ..rolling.roll import Clock
from ..rolling.services import service_of
from ..run import Run
from ..sites import existing_hosts
from ..ssh import SshSession
from ..state import acquire
from .chosen import chosen
from .restart import restart
from .service import silent

if TYPE_CHECKING:
    from ..cluster import Cluster


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool's nodes are restarted; what the person sees before they agree."""

    pool: str
    nodes: tuple[str, ...]
    at_once: int
    wait_s: float
    """Seconds that the jobs of a drained node are waited for."""
    requeues: bool
    """Its jobs are put back in line instead."""
    jobs: int
    """Jobs that hold these nodes now."""


class RebootResult(msgspec.Struct, frozen=True, kw_only=True):
    """How `reboot` ended, node by node."""

    cluster: str
    rebooted: tuple[str, ...]
    failed: dict[str, str]
    """Node -> why; it stays out of service."""
    held: dict[str, str]
    """Node -> why it was not restarted; it is in service as before."""
    exit_code: Exit
    """FAILED when a node failed, PENDING when one was held back by its jobs."""


def reboot(
    cluster: Cluster,
    words: Collection[str],
    report: Reporter,
    *,
    confirm: Callable[[tuple[Pace, ...]], bool],
    at_once: int | None = None,
    requeue: bool = False,
) -> RebootResult:
    """Drain, restart, verify and give back some nodes; the pools' `update` sets pace and patience.

    Killed anywhere, it leaves nodes drained with gcluster's mark: the next `up` or `reboot` goes
    on with them.

    Args:
        cluster: the running cluster.
        words: nodes and pools.
        report: gets what is waited for.
        confirm: shown what will be done; when it answers no, nothing is touched.
        at_once: nodes of a pool that are out at a time; None: as the spec says.
        requeue: put jobs back in line, whatever the spec says.

    Raises:
        LifecycleError: no such nodes, the scheduler is silent, or it was declined.
    """
    hosts = existing_hosts(cluster)
    nodes = chosen(hosts, words)
    paces_of = paced(cluster.spec, at_once=at_once, requeue=requeue)
    with SshSession(cluster.workdir) as session:
        service = service_of(cluster.spec, hosts, session)
        if not confirm(_paces(paces_of, hosts, nodes, service)):
            raise failure("GC909", "nothing was restarted", exit_code=Exit.REFUSED)
        cluster.identify()
        with (
            acquire(cluster.store, tuple(cluster.spec.sites), reason="reboot") as lock,
            Run(cluster, "reboot", lock) as run,
        ):
            result = reboot_nodes(
                hosts, nodes, paces_of, service, session, report, why=f"reboot, run {run.id}"
            )
            run.finish(result.exit_code)
            return result


def reboot_nodes(  # noqa: PLR0917  # the parts of one reboot
    hosts: ClusterInventory,
    nodes: ClusterInventory,
    spec: ClusterSpec,
    service: NodeService,
    session: SshSession,
    report: Reporter,
    *,
    why: str,
    clock: Clock | None = None,
) -> RebootResult:
    """Restart the nodes in windows of their pools; see `reboot`."""
    by_name = {host.name: host for host in nodes.hosts}
    clock = clock or Clock()

    def tell(detail: str) -> None:
        report(StageProgress(name="reboot", done=0, total=0, detail=detail))

    def work(ready: Collection[str]) -> Mapping[str, str]:
        tell(f"restarting {', '.join(ready)}")
        return restart(session, [by_name[name] for name in ready], clock)

    windows = tuple(
        Window(
            [host.name for host in nodes.in_pool(pool)],
            said.update,
            pool_size=len(hosts.in_pool(pool)),
        )
        for pool, said in spec.pools.items()
        if nodes.in_pool(pool)
    )
    done = roll(windows, service, work, why=why, tell=tell, clock=clock)
    code = Exit.FAILED if done.failed else Exit.PENDING if done.held else Exit.OK
    return RebootResult(
        cluster=hosts.cluster,
        rebooted=done.changed,
        failed=done.failed,
        held=done.held,
        exit_code=code,
    )


def paced(spec: ClusterSpec, *, at_once: int | None, requeue: bool) -> ClusterSpec:
    """Return the spec with the pace that was asked for in every pool."""
    changes: dict[str, object] = {} if at_once is None else {"max_unavailable": at_once}
    if requeue:
        changes["jobs"] = "requeue"
    pools = {
        name: msgspec.structs.replace(pool, update=msgspec.structs.replace(pool.update, **changes))
        for name, pool in spec.pools.items()
    }
    return msgspec.structs.replace(spec, pools=pools)


def _paces(
    spec: ClusterSpec, hosts: ClusterInventory, nodes: ClusterInventory, service: NodeService
) -> tuple[Pace, ...]:
    try:
        uses = service.look([host.name for host in nodes.hosts])
    except ServiceSilent as error:
        raise silent(error) from error
    found = []
    for pool, said in spec.pools.items():
        names = tuple(host.name for host in nodes.in_pool(pool))
        if names:
            jobs = {job for name in names if name in uses for job in uses[name].jobs}
            found.append(
                Pace(
                    pool=pool,
                    nodes=names,
                    at_once=min(len(names), said.update.at_once(len(hosts.in_pool(pool)))),
                    wait_s=said.update.wait_s,
                    requeues=said.update.jobs == "requeue",
                    jobs=len(jobs),
                )
            )
    return tuple(found)
