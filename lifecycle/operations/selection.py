"""Which nodes an operator means: host ranges and names of pools, and only nodes that run jobs.

Operations that only Slurm has are refused elsewhere before anything is changed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ...inventory.hosts import ClusterInventory, Host
from ...schemas.derived.hostlist import HostlistError, expand
from ...schemas.spec import ClusterSpec, NoScheduler, SlurmScheduler
from ..cluster.outcome import Exit, failure
from ..nodes.ssh import SshResult, SshSession


def chosen(hosts: ClusterInventory, words: Iterable[str]) -> ClusterInventory:
    """Return the selected compute nodes, in the order of the cluster, each once.

    Args:
        hosts: the hosts that exist.
        words: names of pools and host ranges ("gpu[001-004]"). A pool's name comes first.

    Raises:
        LifecycleError: an argument is no node or pool (GC908), or names one that runs no jobs
            (GC999).
    """
    by_name = {host.name: host for host in hosts.hosts}
    named: set[str] = set()
    for word in words:
        pool = [host.name for host in hosts.in_pool(word)]
        named.update(pool or _nodes(word, by_name, hosts))
    for name in sorted(named):
        _refuse_unfit(by_name[name])
    return ClusterInventory(
        cluster=hosts.cluster, hosts=tuple(host for host in hosts.hosts if host.name in named)
    )


def controller_of(hosts: ClusterInventory, session: SshSession) -> Host:
    """Return the first controller that can be reached, else the first.

    Each of several answers for the one that works.

    Raises:
        LifecycleError: there is none (GC908).
    """
    controllers = hosts.with_role("controller")
    if not controllers:
        raise failure("GC908", f"{hosts.cluster} has no controller to query")
    if len(controllers) == 1:
        return controllers[0]
    answers = session.run_many(controllers, "true", timeout_s=15)
    reached = (host for host in controllers if isinstance(answers[host.name], SshResult))
    return next(reached, controllers[0])


def _nodes(word: str, known: dict[str, Host], hosts: ClusterInventory) -> list[str]:
    try:
        names = expand(word)
    except HostlistError as error:
        raise failure("GC908", str(error), exit_code=Exit.USAGE) from error
    for name in names:
        if name not in known:
            pools = {host.pool for host in hosts.hosts}
            near = difflib.get_close_matches(name, [*known, *pools], n=1)
            raise failure(
                "GC908",
                f'{hosts.cluster} has no node or pool "{name}"',
                hint=f'did you mean "{near[0]}"?'
                if near
                else f"gcluster status {hosts.cluster} lists them",
                exit_code=Exit.USAGE,
            )
    return names


def _refuse_unfit(host: Host) -> None:
    if not host.is_compute:
        raise failure(
            "GC999",
            f"{host.name} is a {host.role}: it runs no jobs, so there is nothing to drain there",
            hint=f"gcluster ssh ... {host.name}, and restart it by hand: running jobs go on",
            exit_code=Exit.REFUSED,
        )
    if not host.is_real:
        raise failure(
            "GC999",
            f"{host.name} is simulated: no scheduler runs there",
            exit_code=Exit.REFUSED,
        )


def require_scheduler(spec: ClusterSpec) -> None:
    """Refuse a cluster without a scheduler: it has neither a queue nor accounts.

    Raises:
        LifecycleError: GC1031, exit code REFUSED.
    """
    if isinstance(spec.scheduler, NoScheduler):
        why = f"{spec.name} has no scheduler: there is no queue and no account to keep"
        raise failure("GC1031", why, exit_code=Exit.REFUSED)


def require_slurm(spec: ClusterSpec, why: str, *, hint: str) -> None:
    """Refuse a cluster whose scheduler isn't Slurm.

    Args:
        spec: as it was applied.
        why: what of Slurm's it has not, after its name: "has no queue of Slurm: ...".
        hint: what to do instead.

    Raises:
        LifecycleError: GC1031, exit code REFUSED.
    """
    if not isinstance(spec.scheduler, SlurmScheduler):
        raise failure("GC1031", f"{spec.name} {why}", hint=hint, exit_code=Exit.REFUSED)
