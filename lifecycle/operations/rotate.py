"""`gcluster rotate`: a new value of a secret in the vault, deployed to the hosts that use it.

The new value is stored before the first host gets it: after a kill the next `up` deploys it to the
hosts that lack it.

Tunnels: all gateways get their new keys before the first uses one (the role's configure, then
join), so a tunnel is down for the time between two gateways' turns. gcluster reaches each gateway
by SSH outside the tunnels.

Monitoring: its authority, certificates and password. Certificates of both authorities are trusted
while hosts change, so that Prometheus and the exporters know each other all the while.

MUNGE: munged has one key at a time, so both are never valid together. The new key is first put next
to the old one on every machine; then all switch to it at once, in the time of one SSH command and a
restart of munged. In between, switched and unswitched machines can't authenticate each other:
Slurm's daemons retry, running jobs need no key, and a node is counted as dead only after
SlurmdTimeout (120 s), far longer. Users only notice that a command such as sbatch is refused in
those seconds.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ...inventory.compile import CompiledCluster, compile_cluster
from ...inventory.compile.slurm.accounting import DATABASE_SECRET
from ...inventory.compile.slurm.daemons import MUNGE_SECRET
from ...inventory.compile.slurm.scheduling import JWT_SECRET
from ...inventory.compile.system.monitoring import AUTHORITY_SECRET
from ...inventory.compile.system.self_converge import SIGNERS_SECRET
from ...inventory.hosts import ClusterInventory, Host
from ...schemas.derived.control_planes import watched_by_roles
from ...schemas.derived.hostlist import fold
from ..cluster.outcome import Exit, failure
from ..cluster.progress import Reporter, StageProgress
from ..nodes.converge.pending import pending_steps
from ..nodes.converge.run import converge
from ..nodes.converge.stamps import read_stamps
from ..nodes.converge.watch import reasons
from ..nodes.ssh import Answer, SshResult, SshSession, Unreachable
from ..nodes.ssh.arguments import AS_ROOT
from ..scheduler.base import Scheduler
from ..scheduler.slurm_build import vouch_for_packages
from ..secrets.makers import (
    issue_by_newest_authority,
    maker,
    provided_secrets,
    rotate_tunnel_keys,
    trust_another_authority,
    trust_newest_authority_alone,
)
from ..secrets.vault import SecretVault, munge_key
from ..up.run import Run
from .gitops.pull.bundle import KEY_SECRET, signing_key
from .rolling.roll import Clock
from .service import wait_for_answers

SECRETS = {"jwt": JWT_SECRET, "database": DATABASE_SECRET, "signer": SIGNERS_SECRET}
"""Argument of the verb -> the secret that hosts get."""


def rotate_secret(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter, word: str
) -> Rotated:
    """Regenerate the secret of a key of `SECRETS` and deploy it to its hosts.

    Raises:
        LifecycleError: the cluster has no such secret (GC908), it is one that the spec refers to,
            or a host can't be reached (GC999): then nothing was changed.
    """
    cluster, secret = run.cluster, SECRETS[word]
    reference = provided_secrets(cluster.spec).get(secret)
    if reference is not None:
        raise failure(
            "GC999",
            f"the secret {secret} is yours, at {reference}: gcluster doesn't change it",
            hint=f"change it there, then: gcluster up {cluster.spec_path}",
        )
    compiled = compile_cluster(
        cluster.spec, hosts, cluster.catalog, cluster.bundle, cluster.kubernetes
    )
    roles = {s.role for g in compiled.groups for s in g.steps if secret in s.secrets.values()}
    if not roles:
        raise failure("GC908", f"{cluster.name} has no secret {secret}")
    compiled = only(compiled, roles)
    names = {host for group in compiled.groups for host in group.hosts}

    def remake() -> None:
        if secret == SIGNERS_SECRET:  # nodes identify the signer by its public key
            cluster.vault.keep(KEY_SECRET, signing_key())
        cluster.vault.keep(secret, maker(cluster.vault, cluster.name, secret)())

    return give(run, compiled, hosts, session, report, names=names, remake=remake)


def only(compiled: CompiledCluster, roles: Collection[str]) -> CompiledCluster:
    """Return the steps of some roles alone."""
    groups = (
        msgspec.structs.replace(g, steps=tuple(s for s in g.steps if s.role in roles))
        for g in compiled.groups
    )
    return msgspec.structs.replace(compiled, groups=tuple(g for g in groups if g.steps))


def give(
    run: Run,
    compiled: CompiledCluster,
    hosts: ClusterInventory,
    session: SshSession,
    report: Reporter,
    *,
    names: Collection[str],
    remake: Callable[[], None],
) -> Rotated:
    """Make secrets again, and run the steps that take them on the named hosts.

    Raises:
        LifecycleError: none of them can be reached at all (GC908), or one isn't there now (GC999):
            then nothing was changed.
    """
    cluster = run.cluster
    found = ClusterInventory(
        cluster=cluster.name,
        hosts=tuple(h for h in hosts.hosts if h.name in names and h.connection == "ssh"),
    )
    if not found.hosts:
        raise failure("GC908", f"{cluster.name} has no host that takes this secret")
    answers = read_stamps(session, found.hosts)
    stamps = {name: a for name, a in answers.items() if not isinstance(a, Unreachable)}
    for name, answer in answers.items():
        if isinstance(answer, Unreachable):
            raise failure(
                "GC999",
                f"the key of {name} can't be changed: {answer.reason}",
                detail="no key was changed",
            )
    remake()
    versions = cluster.make_secrets(compiled)
    # Other roles are left out of `compiled`, not out of the spec: none is removed.
    pending = pending_steps(compiled, stamps, versions).where(
        lambda host, key: host in names and not key.endswith(".remove")
    )
    with cluster.vault.materialise(compiled.secrets) as secret_files:
        result = converge(
            pending,
            found,
            session,
            secret_files=secret_files,
            run_dir=run.directory,
            report=report,
        )
    left = reasons(result)
    return Rotated(
        cluster=cluster.name,
        changed=tuple(host.name for host in found.hosts if host.name not in left),
        left=left,
        exit_code=Exit.PENDING if left else Exit.OK,
    )


_ROLE = "wireguard"


def rotate_tunnels(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> Rotated:
    """Make every gateway's key again and give it to them.

    Raises:
        LifecycleError: no tunnel is there (GC908), or a gateway can't be reached (GC999): then no
            key was changed.
    """
    cluster = run.cluster
    compiled = compile_cluster(
        cluster.spec, hosts, cluster.catalog, cluster.bundle, cluster.kubernetes
    )
    compiled = only(compiled, {_ROLE})
    names = frozenset(_gateways(compiled))
    if not names:
        raise failure("GC908", f"{cluster.name} has no tunnels between its sites")
    return give(
        run,
        compiled,
        hosts,
        session,
        report,
        names=names,
        remake=lambda: rotate_tunnel_keys(cluster.vault, compiled.secrets),
    )


def _gateways(compiled: CompiledCluster) -> list[str]:
    """Return the hosts that are gateways: one of each pool."""
    return [
        step.variables["wireguard_host"]
        for group in compiled.groups
        for step in group.steps
        if step.phase == "configure"
    ]


def rotate_monitoring(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> Rotated:
    """Make the authority, certificates and password of monitoring again, and give them to hosts.

    In three turns over all hosts: both authorities are trusted, then the certificates change, then
    the old authority is trusted no more. A turn that leaves a host is the last: that host would not
    know the others' certificates.

    Raises:
        LifecycleError: nothing watches the cluster (GC908), or a host can't be reached (GC999).
    """
    cluster, vault = run.cluster, run.cluster.vault
    compiled = compile_cluster(
        cluster.spec, hosts, cluster.catalog, cluster.bundle, cluster.kubernetes
    )
    steps = [step for group in compiled.groups for step in group.steps]
    compiled = only(compiled, {s.role for s in steps if AUTHORITY_SECRET in s.secrets.values()})
    names = {host for group in compiled.groups for host in group.hosts}
    if not watched_by_roles(cluster.spec):
        raise failure(
            "GC908", f"{cluster.name} is watched by a chart: its exporters' certificates stay"
        )
    if not names or vault.version(AUTHORITY_SECRET) is None:
        raise failure("GC908", f"{cluster.name} has no monitoring")
    turns: tuple[Callable[[], None], ...] = (
        lambda: trust_another_authority(vault, cluster.name),
        lambda: issue_by_newest_authority(vault),
        lambda: trust_newest_authority_alone(vault),
    )
    for turn in turns:
        result = give(run, compiled, hosts, session, report, names=names, remake=turn)
        if result.left:
            break
    return result


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


class Rotated(msgspec.Struct, frozen=True, kw_only=True):
    """How a rotation ended."""

    cluster: str
    changed: tuple[str, ...]
    """Machines that have the new key and understand the controller's credentials."""
    left: dict[str, str] = {}
    """Machine -> why it has the old key or none; `gcluster up` gives it the new one."""
    exit_code: Exit
    """PENDING when a machine was left."""


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
