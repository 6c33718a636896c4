"""`gcluster rotate`: a secret of the vault made anew, and given to the hosts whose steps take it.

The new value is kept before the first host has it: killed from then on, the next `up` gives it to
whoever lacks it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from ...inventory.compile import CompiledCluster, compile_cluster
from ...inventory.compile.self_converge import SIGNERS_SECRET
from ...inventory.compile.slurm_accounting import DATABASE_SECRET
from ...inventory.compile.slurm_state import JWT_SECRET
from ...inventory.hosts import ClusterInventory
from ..converge.findings import reasons
from ..converge.pending import pending_steps
from ..converge.run import converge
from ..converge.stamps import read_stamps
from ..outcome import Exit, failure
from ..progress import Reporter
from ..pull.keys import KEY_SECRET, signing_key
from ..run import Run
from ..secrets.makers import given_secrets, maker
from ..ssh import SshSession, Unreachable
from .rotate_munge import Rotated

SECRETS = {"jwt": JWT_SECRET, "database": DATABASE_SECRET, "signer": SIGNERS_SECRET}
"""Word of the verb -> the secret that hosts are given."""


def rotate_secret(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter, word: str
) -> Rotated:
    """Make the secret behind a word of `SECRETS` anew and give it to its hosts.

    Raises:
        LifecycleError: the cluster has no such secret (GC908), it is one that the spec refers to,
            or a host can't be reached (GC999): then nothing was changed.
    """
    cluster, secret = run.cluster, SECRETS[word]
    reference = given_secrets(cluster.spec).get(secret)
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
        if secret == SIGNERS_SECRET:  # nodes know the signer by its public half
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
    """Make secrets anew, and run the steps that take them on the named hosts.

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
    pending = pending_steps(compiled, stamps, versions).for_hosts(frozenset(names))
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
