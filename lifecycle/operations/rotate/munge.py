"""MUNGE: munged has one key at a time, so two are never valid together.

The new key is first put next to the old one on every machine; then all switch to it at once, in
the time of one SSH command and a restart of munged. In between, switched and unswitched machines
can't authenticate each other: Slurm's daemons retry, running jobs need no key, and a node is
counted as dead only after SlurmdTimeout (120 s), far longer. Users only notice that a command such
as sbatch is refused in those seconds.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ....inventory.compile.slurm.daemons import MUNGE_SECRET
from ....inventory.hosts import ClusterInventory, Host
from ....schemas.derived.hostlist import fold
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Reporter, StageProgress
from ...nodes.ssh import Answer, SshResult, SshSession, Unreachable
from ...nodes.ssh.arguments import AS_ROOT
from ...scheduler.base import Scheduler
from ...scheduler.slurm_build import vouch_for_packages
from ...secrets.vault import SecretVault, munge_key
from ..rolling.roll import Clock
from ..service import wait_for_answers
from .kept import Rotated

STAGE = (
    f"{AS_ROOT} sh -c 'umask 077 && base64 -d > /etc/munge/munge.key.next && "
    "chown munge: /etc/munge/munge.key.next && chmod 0400 /etc/munge/munge.key.next && "
    "sha256sum /etc/munge/munge.key.next'"
)
"""The key comes on standard input."""
CHANGE = (
    f"{AS_ROOT} sh -c 'cd /etc/munge && cp -p munge.key munge.key.old && "
    "mv munge.key.next munge.key && systemctl restart munge'"
)
BACK = (
    f"{AS_ROOT} sh -c 'cd /etc/munge && [ ! -f munge.key.old ] || "
    "{ mv munge.key.old munge.key && systemctl restart munge; }; rm -f munge.key.next'"
)
CLEAN = f"{AS_ROOT} rm -f /etc/munge/munge.key.next /etc/munge/munge.key.old"
CREDENTIAL = "munge --no-input"
UNDERSTAND = "unmunge --output /dev/null"
_LIMIT_S = 60
_PARALLEL = 64


def rotate_munge(
    hosts: ClusterInventory,
    session: SshSession,
    vault: SecretVault,
    service: Scheduler,
    report: Reporter,
) -> Rotated:
    """Give every machine another key; on failure all of them have the old one again.

    Machines that can't be reached are left: they are given the new key by the next `up`. Killed
    half-way, run it again, or `up`.

    Raises:
        LifecycleError: a controller can't be reached, or the new key doesn't work (GC999).
    """
    machines = [host for host in hosts.hosts if host.connection == "ssh"]
    controllers = [host for host in machines if host.role == "controller"]
    if not controllers:
        raise failure("GC908", f"{hosts.cluster} has no controller")
    key = munge_key()
    _emit(report, f"putting the new key next to the old one on {len(machines)} machines")
    left = _stage(session, machines, key)
    _refuse_without(controllers, left, session, machines)
    ready = [host for host in machines if host.name not in left]
    # Stored first: after a kill the next `up` deploys the new key to the hosts with the old one.
    before = vault.reveal(MUNGE_SECRET)
    vault.keep(MUNGE_SECRET, key)
    _emit(report, "changing to it: commands of Slurm may be refused for seconds, jobs go on")
    session.run_many(ready, CHANGE, timeout_s=_LIMIT_S)
    deaf = _deaf(session, controllers[0], ready)
    if controllers[0].name in deaf or len(deaf) == len(ready):
        session.run_many(ready, BACK, timeout_s=_LIMIT_S)
        vault.keep(MUNGE_SECRET, before)
        raise failure(
            "GC999",
            f"the new key does not work on {controllers[0].name}: {deaf[controllers[0].name]}",
            detail="every machine has its old key again",
        )
    session.run_many(ready, CLEAN, timeout_s=_LIMIT_S)
    vouch_for_packages(session, controllers, key)
    _emit(report, "waiting until every node has registered with the controller")
    nodes = [host.name for host in ready if host.is_compute and host.name not in deaf]
    wait_for_answers(service, nodes, Clock())
    left |= deaf
    return Rotated(
        cluster=hosts.cluster,
        changed=tuple(host.name for host in ready if host.name not in deaf),
        left=left,
        exit_code=Exit.PENDING if left else Exit.OK,
    )


def _stage(session: SshSession, hosts: list[Host], key: bytes) -> dict[str, str]:
    """Put the key next to the old one; return machine -> why that failed."""
    text, digest = base64.encodebytes(key).decode(), hashlib.sha256(key).hexdigest()

    def one(host: Host) -> Answer:
        return session.run(host, STAGE, stdin=text, timeout_s=_LIMIT_S)

    return {
        host.name: _why(answer) or "the key arrived damaged"
        for host, answer in _each(hosts, one).items()
        if not (_is_ok(answer) and isinstance(answer, SshResult) and digest in answer.stdout)
    }


def _refuse_without(
    controllers: list[Host], left: dict[str, str], session: SshSession, machines: list[Host]
) -> None:
    """Nothing is changed while a controller would keep the old key: it would reject all nodes."""
    lost = [host.name for host in controllers if host.name in left]
    if lost:
        session.run_many([h for h in machines if h.name not in left], CLEAN, timeout_s=_LIMIT_S)
        raise failure(
            "GC999",
            f"the key of {fold(lost)} can't be changed: {left[lost[0]]}",
            detail="no machine was changed",
        )


def _deaf(session: SshSession, controller: Host, hosts: list[Host]) -> dict[str, str]:
    """Return machine -> why it doesn't understand a credential of the controller."""
    made = session.run(controller, CREDENTIAL, timeout_s=_LIMIT_S)
    if not isinstance(made, SshResult) or made.returncode:
        return {host.name: _why(made) for host in hosts}

    def one(host: Host) -> Answer:
        return session.run(host, UNDERSTAND, stdin=made.stdout, timeout_s=_LIMIT_S)

    return {
        host.name: _why(answer) for host, answer in _each(hosts, one).items() if not _is_ok(answer)
    }


def _each(hosts: list[Host], call: Callable[[Host], Answer]) -> dict[Host, Answer]:
    with ThreadPoolExecutor(min(_PARALLEL, max(1, len(hosts)))) as pool:
        return dict(zip(hosts, pool.map(call, hosts), strict=True))


def _is_ok(answer: Answer) -> bool:
    return isinstance(answer, SshResult) and answer.returncode == 0


def _why(answer: Answer) -> str:
    if isinstance(answer, Unreachable):
        return answer.reason
    lines = answer.stderr.strip().splitlines()
    return lines[-1] if lines else ""


def _emit(report: Reporter, detail: str) -> None:
    report(StageProgress(name="rotate", done=0, total=0, detail=detail))
