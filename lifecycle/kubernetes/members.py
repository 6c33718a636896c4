"""A control plane that goes is no member of etcd any more, before its machine goes.

etcd counts a member that is away as one that doesn't answer: of three whose machines two are
deleted, the last has no majority and nothing brings it back. One by one, while they live, is safe.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec
from ..cluster.outcome import failure
from ..nodes.ssh import SshSession, Unreachable
from ..nodes.ssh.arguments import as_root
from ..planning.guards import removed_nodes
from ..status.observe import Observation
from ..status.slurm import last_error_line
from .kubectl import ApiRefused, ApiSilent, Kubectl
from .managed.login import kubectl_of
from .settle import JOINED

_ETCDCTL = ("/usr/local/libexec/gcluster/kubernetes-etcd.sh", "etcdctl")
_LIMIT_S = 60
_SETTLES_WITHIN_S = 30
"""etcd removes no member until all others were connected for five seconds ("unhealthy cluster": its
strict-reconfig-check, etcd 3.6.5)."""
_COLUMNS = 3


def leave_etcd(
    spec: ClusterSpec,
    observation: Observation,
    session: SshSession,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[str, ...]:
    """Remove control planes from etcd that will be deleted, or that the spec no longer has.

    One whose machine is lost and will be recreated is removed too: it rejoins as a new member.

    Returns:
        Their names. Safe to repeat, and to kill: the next run continues with the rest.

    Raises:
        LifecycleError: a machine would be removed whose member etcd keeps (GC1006).
    """
    gone = removed_nodes(observation.sites)
    planes = {name for name, pool in spec.pools.items() if pool.role == "controller"}
    leaving = {node.name for node in gone if node.pool in planes}
    wanted = observation.desired.with_role("controller")
    made = {name for (_, name), c in observation.changes().items() if c.effect == "create"}
    staying = {host.name for host in wanted} - {node.name for node in gone} - made
    requested = [
        host
        for host in observation.existing.with_role("controller")
        if host.connection == "ssh"
        and host.name in staying
        and JOINED in observation.stamps.get(host.name, {})
    ]
    if not requested:
        return ()  # nothing of etcd would be left, or nothing is there yet
    here = requested[0]
    try:
        members = _members(here, session)
        old = {name: identity for name, identity in members.items() if name not in staying}
        for identity in old.values():
            _remove(here, session, identity, clock=clock, sleep=sleep)
    except _Refused as refused:
        if not leaving:
            return ()
        raise failure(
            "GC1006",
            f"etcd on {here.name} keeps {', '.join(sorted(leaving))} as members: {refused}",
            detail="no machine was removed: without a majority of its members etcd stops",
            hint="gcluster status says what is wrong with it",
        ) from refused
    return tuple(sorted(old))


class _Refused(Exception):  # noqa: N818  # named for what happened
    """etcd did not do it; the text says why."""


def _members(host: Host, session: SshSession) -> dict[str, str]:
    """Return name -> id of the members; one that has never started has no name, and is left."""
    rows = [line.split(", ") for line in _requested(host, session, "member", "list").splitlines()]
    return {row[2]: row[0] for row in rows if len(row) > _COLUMNS and row[2]}


def _remove(
    host: Host,
    session: SshSession,
    identity: str,
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    until = clock() + _SETTLES_WITHIN_S
    while True:
        try:
            _requested(host, session, "member", "remove", identity)
        except _Refused as refused:
            if "member not found" in str(refused):
                return
            if "unhealthy cluster" not in str(refused) or clock() >= until:
                raise
            sleep(1)
        else:
            return


def _requested(host: Host, session: SshSession, *words: str) -> str:
    line = as_root(host, [*_ETCDCTL, *words])
    answer = session.run(host, line, timeout_s=_LIMIT_S)
    if isinstance(answer, Unreachable):
        raise _Refused(answer.reason)
    if answer.returncode != 0:
        raise _Refused(last_error_line(answer))
    return answer.stdout


_LEAVE_WITHIN_S = 120
"""Pods have this long to end, their grace included."""


def drain(observation: Observation, session: SshSession) -> tuple[Diagnostic, ...]:
    """Drain the nodes that the sites will remove or replace; return what blocked it.

    A node that is no longer in the API, and an API that doesn't respond, are no obstacle: the
    confirmed plan removes the nodes.
    """
    leaving = [*(node.name for node in removed_nodes(observation.sites)), *observation.leaving]
    if not leaving:
        return ()
    return drain_nodes(kubectl_of(session, observation.existing), leaving)


def drain_nodes(kubectl: Kubectl, names: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Cordon these nodes and evict their pods, as far as the API has the nodes."""
    try:
        known = kubectl.text("get", "nodes", "--output=name").split()
        there = [name for name in names if f"node/{name}" in known]
        if there:
            kubectl.text(
                *("drain", *there, "--ignore-daemonsets", "--delete-emptydir-data", "--force"),
                f"--timeout={_LEAVE_WITHIN_S}s",
                timeout_s=_LEAVE_WITHIN_S + 30,
            )
    except (ApiSilent, ApiRefused) as error:
        words = error.words if isinstance(error, ApiRefused) else ""
        return (
            Diagnostic(
                code="GC1008",
                severity=Severity.WARNING,
                summary=f"nodes go with pods on them: {error}",
                detail=words,
            ),
        )
    return ()
