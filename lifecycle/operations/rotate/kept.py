"""Secrets of the vault that hosts are given by their roles' steps.

Tunnels: all gateways get their new keys before the first uses one (the role's configure, then
join), so a tunnel is down for the time between two gateways' turns. gcluster reaches each gateway
by SSH outside the tunnels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from ....inventory.compile import CompiledCluster, compile_cluster
from ....inventory.compile.slurm.accounting import DATABASE_SECRET
from ....inventory.compile.slurm.scheduling import JWT_SECRET
from ....inventory.compile.system.self_converge import SIGNERS_SECRET
from ....inventory.hosts import ClusterInventory
from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Reporter
from ...nodes.converge.pending import pending_steps
from ...nodes.converge.run import converge
from ...nodes.converge.stamps import read_stamps
from ...nodes.converge.watch import reasons
from ...nodes.ssh import SshSession, Unreachable
from ...secrets.makers import maker, provided_secrets, rotate_tunnel_keys
from ...up.run import Run
from ..gitops.pull.bundle import KEY_SECRET, signing_key

SECRETS = {"jwt": JWT_SECRET, "database": DATABASE_SECRET, "signer": SIGNERS_SECRET}
"""Argument of the verb -> the secret that hosts get."""


class Rotated(msgspec.Struct, frozen=True, kw_only=True):
    """How a rotation ended."""

    cluster: str
    changed: tuple[str, ...]
    """Machines that have the new key and understand the controller's credentials; of Kubernetes'
    chart the Secrets that have new ones."""
    left: dict[str, str] = {}
    """Machine -> why it has the old key or none; `gcluster up` gives it the new one."""
    waits_for: dict[str, str] = {}
    """NAMESPACE/POD -> why a rotation goes on only when it has ended or was made again."""
    exit_code: Exit
    """PENDING when a machine was left, or a pod is waited for."""


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
    compiled = compiled_for(cluster, hosts)
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


def compiled_for(cluster: Cluster, hosts: ClusterInventory) -> CompiledCluster:
    """Return the cluster compiled for its hosts."""
    return compile_cluster(cluster.spec, hosts, cluster.catalog, cluster.bundle, cluster.kubernetes)


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


def in_turns(
    give_after: Callable[[Callable[[], None]], Rotated], *turns: Callable[[], None]
) -> Rotated:
    """Give secrets to all hosts after each turn has made them; one that leaves a host is the last.

    Args:
        give_after: makes secrets by a turn, and gives them: `give` with all else that it takes.
        turns: at least one.
    """
    for turn in turns:
        result = give_after(turn)
        if result.left:
            break
    return result


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
    compiled = compiled_for(cluster, hosts)
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
