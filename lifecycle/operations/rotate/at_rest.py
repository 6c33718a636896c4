"""`gcluster rotate at-rest`: another key by which Kubernetes encrypts secrets in etcd.

The secret of the vault has a line for each key, `NAME:KEY`; the first one encrypts, all are read
by. In turns over all control planes: each reads by the new key, then each encrypts by it, then all
secrets are written again. So no API server ever meets a secret that it can't read. The key before
stays as one to read by, for backups and snapshots from before; older ones go.

A rotation that was killed is taken up by the next: a key whose number is above the first one's was
not in use everywhere yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ....inventory.compile.kubernetes import ENCRYPTION_SECRET
from ....inventory.hosts import ClusterInventory
from ...cluster.outcome import failure
from ...cluster.progress import Reporter, StageProgress
from ...nodes.ssh import SshSession
from ...nodes.ssh.arguments import AS_ROOT
from ...secrets.makers import maker
from ...secrets.vault import SecretVault
from ...up.run import Run
from ..database_state import checked
from ..selection import controller_of
from .kept import Rotated, compiled_for, give, in_turns, only

REWRITE = f"{AS_ROOT} /usr/local/libexec/gcluster/kubernetes-encryption.py"
FIRST = "gcluster"
"""Name of a first key, whose line is the key alone; the next one is gcluster-2."""
_KEPT = 2
"""The key that encrypts, and the one before it."""
_LIMIT_S = 900


class Key(NamedTuple):
    """A key of secrets at rest. Secrets in etcd say the name of the key that they are read by."""

    name: str
    value: str

    @property
    def number(self) -> int:
        """1 for the first one."""
        return int(self.name.removeprefix(FIRST).removeprefix("-") or 1)


def keys_of(secret: bytes) -> list[Key]:
    """Return the keys of the vault's secret; the first one encrypts."""
    words = (line.rpartition(":") for line in secret.decode().split())
    return [Key(name or FIRST, value) for name, _, value in words]


def _lines(keys: list[Key]) -> bytes:
    return "\n".join(f"{key.name}:{key.value}" for key in keys).encode()


def read_by_another(vault: SecretVault, make: Callable[[], bytes]) -> None:
    """Add a key to read by, unless one of a rotation that was killed is there."""
    keys = keys_of(vault.reveal(ENCRYPTION_SECRET))
    newest = max(key.number for key in keys)
    if keys[0].number == newest:
        keys.append(Key(f"{FIRST}-{newest + 1}", make().decode()))
        vault.keep(ENCRYPTION_SECRET, _lines(keys))


def encrypt_by_newest(vault: SecretVault) -> None:
    """Have the newest key be the one that encrypts."""
    keys = keys_of(vault.reveal(ENCRYPTION_SECRET))
    vault.keep(ENCRYPTION_SECRET, _lines(sorted(keys, key=lambda key: -key.number)))


def forget_older(vault: SecretVault) -> None:
    """Keep the key that encrypts and the one before it."""
    vault.keep(ENCRYPTION_SECRET, _lines(keys_of(vault.reveal(ENCRYPTION_SECRET))[:_KEPT]))


def rotate_at_rest(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> Rotated:
    """Encrypt all secrets of Kubernetes in etcd by another key.

    A turn that leaves a control plane is the last one: its API server could not read what the
    others write.

    Raises:
        LifecycleError: the cluster has no such key (GC908), a control plane can't be reached
            (GC999), or secrets could not be written again (GC969): the next rotation does that.
    """
    cluster, vault = run.cluster, run.cluster.vault
    compiled = compiled_for(cluster, hosts)
    steps = [(step, group.hosts) for group in compiled.groups for step in group.steps]
    names = {h for step, on in steps if ENCRYPTION_SECRET in step.secrets.values() for h in on}
    if not names or vault.version(ENCRYPTION_SECRET) is None:
        raise failure(
            "GC908",
            f"{cluster.name} has no key of secrets at rest",
            hint="control planes of clouds encrypt by the site's kms_key",
        )
    compiled = only(compiled, {"kubernetes"})
    make = maker(vault, cluster.name, ENCRYPTION_SECRET)

    def turn(remake: Callable[[], None]) -> Rotated:
        return give(run, compiled, hosts, session, report, names=names, remake=remake)

    result = in_turns(turn, lambda: read_by_another(vault, make), lambda: encrypt_by_newest(vault))
    if result.left:
        return result
    host = controller_of(hosts, session)
    written = checked(host, session.run(host, REWRITE, timeout_s=_LIMIT_S)).strip()
    report(StageProgress(name="nodes", done=0, total=0, detail=written))
    if len(keys_of(vault.reveal(ENCRYPTION_SECRET))) > _KEPT:
        result = turn(lambda: forget_older(vault))
    return result
