"""Announces on the nodes that their cluster expires, and keeps jobs from starting too late.

The notice is shown at login (/etc/motd.d). A Slurm reservation is created that begins at the
expiry: jobs whose time limit reaches beyond it are not started; running ones are left alone.
Kubernetes has no reservations: jobs that reach beyond the expiry are refused on creation.
"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

from ....inventory.hosts import ClusterInventory, Host
from ....schemas.spec import ClusterSpec, KubernetesScheduler, NoScheduler, PoolRole
from ...cluster.outcome import LifecycleError, failure
from ...kubernetes.kubectl import ApiRefused, ApiSilent
from ...kubernetes.managed.login import kubectl_of
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import AS_ROOT
from ...operations.selection import controller_of
from ...state import ExpiryAnnounced
from ...status.slurm import last_error_line
from .kubernetes import accept_all_jobs, refuse_long_jobs

RESERVATION = "gcluster_end"
"""Not of those that `up` keeps: these begin with "gcluster-"."""
_NOTE = "/etc/motd.d/90-gcluster-end"
_LIMIT_S = 30


def announce(
    spec: ClusterSpec, hosts: ClusterInventory, session: SshSession, announced: ExpiryAnnounced
) -> None:
    """Write the notice on the login nodes, and reserve the time after an expiry. Safe to repeat.

    Args:
        spec: as it was applied: names the scheduler that runs.
        hosts: those that exist.
        session: SSH to them.
        announced: what is announced.

    Raises:
        LifecycleError: GC1141, the notice could not be written to a node: then it doesn't count as
            announced.
    """
    scheduled = not isinstance(spec.scheduler, NoScheduler)
    note = shlex.quote(notice(hosts.cluster, announced, scheduled=scheduled))
    write = (
        f"root={AS_ROOT}; $root install -d -m 0755 /etc/motd.d && "
        f"printf '%s\\n' {note} | $root tee {_NOTE} >/dev/null && $root chmod 0644 {_NOTE}"
    )
    _everywhere(hosts, session, write)
    if announced.kind == "expires" and isinstance(spec.scheduler, KubernetesScheduler):
        _at_api(hosts, session, announced.earliest)
    elif announced.kind == "expires":
        start = datetime.fromtimestamp(announced.earliest, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        _at_controller(
            hosts,
            session,
            f"export TZ=UTC; root={AS_ROOT}; "
            f"if scontrol show reservation {RESERVATION} >/dev/null 2>&1; "
            f"then $root scontrol update ReservationName={RESERVATION} StartTime={start}; "
            f"else $root scontrol create reservation ReservationName={RESERVATION} "
            f"StartTime={start} Duration=UNLIMITED Nodes=ALL Flags=MAINT,IGNORE_JOBS Users=root; "
            "fi",
        )


def withdraw(spec: ClusterSpec, hosts: ClusterInventory, session: SshSession) -> None:
    """Take notice and reservation away. Safe to repeat.

    Raises:
        LifecycleError: GC1141, a node could not be reached.
    """
    _everywhere(hosts, session, f"root={AS_ROOT}; $root rm -f {_NOTE}")
    if isinstance(spec.scheduler, KubernetesScheduler):
        _at_api(hosts, session, None)
        return
    _at_controller(
        hosts,
        session,
        f"root={AS_ROOT}; ! scontrol show reservation {RESERVATION} >/dev/null 2>&1 || "
        f"$root scontrol delete ReservationName={RESERVATION}",
    )


def notice(cluster: str, announced: ExpiryAnnounced, *, scheduled: bool = True) -> str:
    """Return what people read; without a scheduler no job waits, and programs run as they start."""
    when = f"{datetime.fromtimestamp(announced.earliest, UTC):%Y-%m-%d %H:%M} UTC"
    saves = (
        "Jobs that would run longer are not started."
        if announced.kind == "expires" and scheduled
        else f"A {'job' if scheduled else 'program that runs'} keeps it."
    )
    return f"*** Cluster {cluster} is removed on {when}: {announced.why}. {saves} ***"


def _everywhere(hosts: ClusterInventory, session: SshSession, command: str) -> None:
    roles: tuple[PoolRole, ...] = ("login", "controller")
    if not hosts.has_scheduler:  # then people log in to the nodes that they use
        roles += ("compute",)
    login_hosts = [h for role in roles for h in hosts.with_role(role) if h.connection == "ssh"]
    if login_hosts:
        _run(session, login_hosts, command)


def _at_controller(hosts: ClusterInventory, session: SshSession, command: str) -> None:
    if any(host.connection == "ssh" for host in hosts.with_role("controller")):
        _run(session, [controller_of(hosts, session)], command)


def _at_api(hosts: ClusterInventory, session: SshSession, earliest: float | None) -> None:
    """Have the API take only jobs that end before this time; None: all."""
    if not hosts.has_scheduler:
        return
    kubectl = kubectl_of(session, hosts)
    try:
        accept_all_jobs(kubectl) if earliest is None else refuse_long_jobs(kubectl, earliest)
    except (ApiRefused, ApiSilent) as error:
        raise _unreached("the API server", str(error)) from error


def _run(session: SshSession, hosts: list[Host], command: str) -> None:
    for name, answer in session.run_many(hosts, command, timeout_s=_LIMIT_S).items():
        if isinstance(answer, Unreachable):
            reason = answer.reason
        elif answer.returncode != 0:
            reason = last_error_line(answer)
        else:
            continue
        raise _unreached(name, reason)


def _unreached(who: str, message: str) -> LifecycleError:
    return failure(
        "GC1141",
        f"{who} can't be warned that the cluster ends: {message}",
        detail="nothing is removed before all users were notified",
        hint="gcluster status says what is wrong with it",
    )
