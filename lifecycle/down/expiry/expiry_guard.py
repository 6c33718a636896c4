"""An announced end while `up` works on the cluster: refused when it is due, gone when put off.

From then on no job is started, under Slurm not even the AllReduce's own, so a cluster whose time is
up can't be brought up; one that is given more time is freed of that before it is tested.
"""

from __future__ import annotations

from ....inventory.hosts import ClusterInventory
from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, failure
from ...nodes.ssh import SshSession
from ...state import ExpiryWithdrawn
from ...state.store import utc_now
from .announce import withdraw
from .due import Lifetime, ending, lifetime
from .jobs import Jobs
from .running_work import running_spec


def refuse_ended(cluster: Cluster) -> None:
    """Refuse to bring up what is only kept by its last jobs, or would begin after its end.

    Raises:
        LifecycleError: its announced time is up, by the spec that is to be applied too; or it is
            not there, and the spec's day is past (GC1141, exit code REFUSED).
    """
    living = lifetime(cluster.events.read())
    if living is None:
        _refuse_past(cluster)
        return
    if living.announced is None or living.announced.kind != "expires":
        return
    if utc_now().timestamp() >= living.announced.earliest and not _is_postponed(cluster, living):
        raise failure(
            "GC1141",
            f"{cluster.name} is to be removed: {living.announced.why}",
            detail="no job starts any more; nothing was changed",
            hint="give it more time in the spec: budget: {expires: ...}; or gcluster expire",
            exit_code=Exit.REFUSED,
        )


def _refuse_past(cluster: Cluster) -> None:
    now = utc_now()
    end = ending(cluster.spec.budget, now, Jobs(), now)
    if end is not None and end.kind == "expires" and end.due <= now:
        raise failure(
            "GC1141",
            f"{cluster.name} is not brought up: {end.why}, and that is past",
            detail="nothing was changed",
            hint="write a day to come in the spec: budget: {expires_on: ...}",
            exit_code=Exit.REFUSED,
        )


def refuse_late_test(cluster: Cluster, minutes: int) -> None:
    """Refuse to submit a job that Slurm would not start before the expiry.

    Args:
        cluster: has the events of its expiry.
        minutes: the job's time limit: Slurm starts nothing that may run into the reservation.

    Raises:
        LifecycleError: less time than that is left until an announced expiry (GC1141).
    """
    living = lifetime(cluster.events.read())
    if living is None or living.announced is None or living.announced.kind != "expires":
        return
    if utc_now().timestamp() + minutes * 60 < living.announced.earliest:
        return
    raise failure(
        "GC1141",
        f"{cluster.name} is not tested any more: it is to be removed, {living.announced.why}",
        detail=f"no job starts that may run for {minutes} minutes; all else was done",
        hint="give it more time in the spec: budget: {expires: ...}; then gcluster up",
    )


def postpone(cluster: Cluster, hosts: ClusterInventory, session: SshSession) -> None:
    """Withdraw an announced expiry that the spec to be applied has postponed.

    Raises:
        LifecycleError: the notice could not be removed from a node (GC1141).
    """
    living = lifetime(cluster.events.read())
    if living is not None and living.announced is not None and _is_postponed(cluster, living):
        withdraw(running_spec(cluster), hosts, session)
        cluster.events.append(ExpiryWithdrawn(why="the spec gives it more time"))


def _is_postponed(cluster: Cluster, living: Lifetime) -> bool:
    announced = living.announced
    if announced is None or announced.kind != "expires":
        return False
    end = ending(cluster.spec.budget, living.began, Jobs(), utc_now())
    return end is None or end.due.timestamp() > announced.due + 1
