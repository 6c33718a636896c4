"""`gcluster backup` and `restore` of Kubernetes: etcd, authorities and key, encrypted in the state.

Existing control planes are restored together: each gets the data of one snapshot next to its own,
and when all have it, all switch to it and form one etcd again. Where none is left, the one that
`up` creates starts from the backup: nodes and users continue to accept it, since its certificate
authorities are the same.
"""

from __future__ import annotations

import hashlib
import io
import shlex
import tarfile
import time

import msgspec

from ...inventory.hosts import ClusterInventory, Host
from ...schemas.derived.control_planes import managed_by
from ...schemas.structure.decoding import decode_json
from ..cluster.cluster import Cluster
from ..cluster.outcome import Exit, failure
from ..cluster.progress import Reporter, StageProgress
from ..nodes.ssh import SshSession
from ..nodes.ssh.arguments import AS_ROOT
from ..state import StateStore
from . import queue_state
from .database_state import broken, checked, decoded, send
from .selection import controller_of

PREFIX = "etcd"
"""State folder: `ID.json` describes a backup, `ID.age` is its content."""
WISH = "etcd-to-restore.json"
"""State key: which backup the next first control plane begins with."""
PROGRAM = "/usr/local/libexec/gcluster/kubernetes-state.py"
SEED = "/var/lib/gcluster/kubernetes-state.tar.gz"
"""On a control plane: the archive that the program works with."""
_SAVE = f"{AS_ROOT} {PROGRAM} save"
_VERSION = "kubelet --version | sed 's/^Kubernetes v//'"
_IS_CONTROL_PLANE = "[ -e /etc/kubernetes/admin.conf ] && echo yes; true"
_LIMIT_S = 900
_NEEDED = {"snapshot.db", "pki/ca.crt", "pki/ca.key", "pki/sa.key", "pki/etcd/ca.key"}


class SavedEtcd(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a saved control plane without reading it."""

    id: str
    taken_at: str
    """RFC 3339, UTC."""
    kubernetes: str
    """Version of the control plane that was queried."""
    size: int
    """Bytes of the archive."""
    sha256: str
    """Of the archive, in hex."""


class EtcdRestored(msgspec.Struct, frozen=True, kw_only=True):
    """What `restore` did."""

    cluster: str
    saved: SavedEtcd
    restored: tuple[str, ...]
    """Control planes that are one etcd again; (): there was none, so the next `up` makes one."""


def saved_etcd(cluster: Cluster) -> tuple[SavedEtcd, ...]:
    """Return what was saved, the oldest first."""
    keys = [key for key in cluster.store.list(PREFIX) if key.endswith(".json")]
    found = [cluster.store.read(key, SavedEtcd) for key in sorted(keys)]
    return tuple(saved for saved in found if saved is not None)


def saved_objects(store: StateStore) -> list[str]:
    """Return the objects of all backups; the key that reads them ends with the cluster."""
    wishes = [key for key in (queue_state.WISH, WISH) if store.get(key) is not None]
    return [*store.list(queue_state.PREFIX), *store.list(PREFIX), *wishes]


def save_etcd(cluster: Cluster, hosts: ClusterInventory, session: SshSession) -> SavedEtcd:
    """Save etcd, the authorities and the key of secrets of one control plane, without downtime.

    Raises:
        LifecycleError: no control plane is reachable, or its output is no backup (GC969); or the
            control plane is a cloud's (GC1031).
    """
    _refuse_managed(cluster)
    host = controller_of(hosts, session)
    version = checked(host, session.run(host, _VERSION, timeout_s=30)).strip()
    archive = decoded(host.name, checked(host, session.run(host, _SAVE, timeout_s=_LIMIT_S)))
    _refuse_incomplete(host, archive)
    taken = time.gmtime()
    digest = hashlib.sha256(archive).hexdigest()
    saved = SavedEtcd(
        id=f"{time.strftime('%Y%m%dT%H%M%SZ', taken)}-{digest[:6]}",
        taken_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", taken),
        kubernetes=version,
        size=len(archive),
        sha256=digest,
    )
    cluster.vault.seal(f"{PREFIX}/{saved.id}", archive)
    cluster.store.put_new(f"{PREFIX}/{saved.id}.json", msgspec.json.encode(saved))
    return saved


def restore_etcd(
    cluster: Cluster,
    hosts: ClusterInventory,
    session: SshSession,
    wanted: str | None,
    *,
    discard: bool = False,
) -> EtcdRestored:
    """Restore a backup on all control planes; nothing is changed unless all can.

    Where none is left it is kept for the one that `up` creates.

    Args:
        cluster: the cluster.
        hosts: its hosts that exist.
        session: SSH to them.
        wanted: id of the backup; None: the newest.
        discard: what was written to the control planes since may be lost.

    Raises:
        LifecycleError: there is no backup; a control plane is unreachable, has other authorities or
            another key (GC969); what was written since would be lost (exit code REFUSED).
    """
    _refuse_managed(cluster)
    saved = _find(cluster, wanted)
    planes = [host for host in hosts.with_role("controller") if _serves(host, session)]
    if not planes:
        cluster.store.put(WISH, msgspec.json.encode(saved.id))
        return EtcdRestored(cluster=cluster.name, saved=saved, restored=())
    if not discard:
        raise failure(
            "GC969",
            f"{', '.join(host.name for host in planes)}: what was written to etcd since "
            f"{saved.taken_at} would be lost",
            hint=f"--discard-queue loses it; a snapshot there may be newer: {PROGRAM} restore",
            exit_code=Exit.REFUSED,
        )
    _put_back(cluster, session, planes, saved)
    cluster.store.delete(WISH)
    return EtcdRestored(
        cluster=cluster.name, saved=saved, restored=tuple(host.name for host in planes)
    )


def bring_etcd(
    cluster: Cluster, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> None:
    """Give the first control plane the backup that `restore` kept for it, before it is made.

    One that serves by now keeps what it has: the newer is the true one.
    """
    wish = cluster.store.get(WISH)
    planes = [h for h in hosts.with_role("controller") if h.connection == "ssh"]
    if wish is None or not planes:
        return
    if not any(_serves(host, session) for host in planes):
        saved = _find(cluster, decode_json(wish, str))
        send(session, planes[0], _archive(cluster, saved), saved.sha256, SEED)
        message = f"{planes[0].name} begins with etcd of {saved.taken_at}"
        report(StageProgress(name="nodes", done=0, total=0, detail=message))
    cluster.store.delete(WISH)


def _put_back(cluster: Cluster, session: SshSession, planes: list[Host], saved: SavedEtcd) -> None:
    archive = _archive(cluster, saved)
    members = []
    for host in planes:
        send(session, host, archive, saved.sha256, SEED)
        said = checked(host, session.run(host, f"{AS_ROOT} {PROGRAM} check", timeout_s=60))
        members.append(said.strip())
    token = f"{saved.id}-{time.time():.0f}"  # so that no member of before is taken for one
    laid = f"{AS_ROOT} {PROGRAM} prepare {shlex.join([token, *filter(None, members)])}"
    for verb in (laid, f"{AS_ROOT} {PROGRAM} replace"):
        answers = session.run_many(planes, verb, timeout_s=_LIMIT_S)
        for host in planes:
            checked(host, answers[host.name])


def _serves(host: Host, session: SshSession) -> bool:
    """Return whether a host is a complete control plane; an unreachable one may be."""
    answer = session.run(host, f"{AS_ROOT} sh -c '{_IS_CONTROL_PLANE}'", timeout_s=30)
    return checked(host, answer).strip() == "yes"


def _refuse_managed(cluster: Cluster) -> None:
    by = managed_by(cluster.spec)
    if by is not None:
        raise failure(
            "GC1031",
            f"{cluster.name} has no etcd of its own: the control plane is the cloud's",
            hint="the cloud keeps it; keep your manifests in version control",
            exit_code=Exit.REFUSED,
        )


def _refuse_incomplete(host: Host, archive: bytes) -> None:
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            missing = _NEEDED.difference(tar.getnames())
    except (tarfile.TarError, EOFError, OSError) as error:
        raise broken(f"the answer of {host.name}", str(error)) from error
    if missing:
        raise broken(f"the answer of {host.name}", f"it lacks {', '.join(sorted(missing))}")


def _archive(cluster: Cluster, saved: SavedEtcd) -> bytes:
    archive = cluster.vault.unseal(f"{PREFIX}/{saved.id}", saved.id)
    if archive is None:
        raise broken(saved.id, "its archive is gone")
    return archive


def _find(cluster: Cluster, wanted: str | None) -> SavedEtcd:
    saved = saved_etcd(cluster)
    for one in reversed(saved):
        if wanted in {None, one.id}:
            return one
    raise failure(
        "GC969",
        f'no backup is "{wanted}"' if saved else f"nothing of {cluster.name} was saved",
        hint=f"saved are: {', '.join(one.id for one in saved)}"
        if saved
        else f"gcluster backup {cluster.name}",
    )
