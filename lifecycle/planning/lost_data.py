"""Lost data that only a removed host had: a controller's queue, and the accounting database.

`up` would recreate the host empty, and nodes would kill the jobs that its controller doesn't have.
So that is blocked until it is named, or the newest backup is restored.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...inventory.compile.slurm.accounting import accounting_hosts
from ...inventory.hosts import Host
from ...schemas.spec import ClusterSpec, KubernetesScheduler, SlurmScheduler
from ..cluster.cluster import Cluster
from ..operations import etcd_state, queue_state
from ..operations.database_state import owns_database
from ..operations.etcd_state import SavedEtcd, saved_etcd
from ..operations.queue_state import SavedQueue, saved_queues
from ..state import Journal
from ..status.observe import Observation
from .changes import Guard
from .guards import ever_converged


def lost_data_guards(cluster: Cluster, observation: Observation) -> tuple[Guard, ...]:
    """Return what has to be named before hosts that were lost with their data are recreated.

    Nothing where a restore was requested, or the last command that created or removed hosts was a
    `down`, which announced the loss.
    """
    before = cluster.applied_spec
    wishes = (queue_state.WISH, etcd_state.WISH)
    if before is None or _was_taken_down(cluster) or any(map(cluster.store.get, wishes)):
        return ()
    ever = ever_converged(cluster.events)
    hosts = [h for h in observation.desired.hosts if h.connection == "ssh"]
    lost = {host.name for host in hosts if host.name in ever and _is_lost(host, observation)}
    if not lost:
        return ()
    kubernetes = isinstance(before.scheduler, KubernetesScheduler)
    saved: tuple[SavedQueue | SavedEtcd, ...]
    saved = saved_etcd(cluster) if kubernetes else saved_queues(cluster)
    return tuple(_guards(before, hosts, lost, cluster.name, saved[-1] if saved else None))


def _guards(
    spec: ClusterSpec,
    hosts: list[Host],
    lost: set[str],
    cluster: str,
    saved: SavedQueue | SavedEtcd | None,
) -> Iterator[Guard]:
    controllers = [host.name for host in hosts if host.role == "controller"]
    database = {host.name for host in accounting_hosts(spec, hosts)[:1] if owns_database(spec)}
    for name in sorted(lost):
        what = []
        if name in controllers and not _is_elsewhere(spec, controllers, lost):
            kubernetes = isinstance(spec.scheduler, KubernetesScheduler)
            what.append("all objects of Kubernetes" if kubernetes else "its queue")
        if name in database:
            what.append("the accounting database")
        if what:
            thing = f"controller:{name}" if name in controllers else f"accounting:{name}"
            yield Guard(
                thing=thing,
                reason=f"{name} is gone with {' and '.join(what)}, and would be made again empty",
                hint=_hint(cluster, saved),
            )


def _hint(cluster: str, saved: SavedQueue | SavedEtcd | None) -> str:
    if saved is None:
        return f"nothing was saved (gcluster backup {cluster})"
    restored = (
        f"gcluster restore {cluster}, then up, has it begin with the newest backup, "
        f"of {saved.taken_at}: "
    )
    if isinstance(saved, SavedEtcd):
        return f"{restored}etcd, authorities and key"
    jobs = "unknown jobs"
    if saved.running is not None:
        jobs = f"{saved.running} running and {saved.pending} pending jobs"
    accounts = "with" if saved.accounts else "without"
    return f"{restored}{jobs}, {accounts} accounts"


def _is_elsewhere(spec: ClusterSpec, controllers: list[str], lost: set[str]) -> bool:
    """Return whether another host or a shared file system has a controller's data."""
    if isinstance(spec.scheduler, SlurmScheduler):
        return spec.scheduler.state_save is not None
    return 2 * len(lost.intersection(controllers)) < len(controllers)


def _is_lost(host: Host, observation: Observation) -> bool:
    """Return whether a host doesn't exist, or exists without stamps: it was set up again."""
    existing = {one.name for one in observation.existing.hosts}
    if host.name not in existing:
        return True
    return observation.stamps.get(host.name) == {}


def _was_taken_down(cluster: Cluster) -> bool:
    last = [r for r in Journal(cluster.events).runs() if r.command in {"up", "down", "drift --fix"}]
    return bool(last) and last[-1].command == "down"
