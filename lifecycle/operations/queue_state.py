"""`gcluster backup` and `restore`: the controller's queue, kept encrypted in the cluster's state.

A queue is put back before slurmctld's first start on a new controller: a slurmctld that knew none
of the jobs would have the nodes end them as soon as these register.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import re
import tarfile
import time
from typing import TYPE_CHECKING

import msgspec

from ...inventory.hosts import ClusterInventory, Host
from ...schemas.decoding import decode_json
from ..cluster.outcome import Exit, LifecycleError, failure
from ..cluster.progress import Reporter, StageProgress
from ..nodes.ssh import Answer, SshResult, SshSession, Unreachable
from ..state import StateStore
from ..status.slurm import SchedulerView, report_of
from .selection import controller_of, refuse_kubernetes

if TYPE_CHECKING:
    from ..cluster.cluster import Cluster

PREFIX = "queue"
"""State folder: `ID.json` tells of a saved queue, `ID.age` is it."""
WISH = "queue-to-restore.json"
"""State key: which saved queue the next controller begins with."""
_PROGRAM = "/usr/local/libexec/gcluster/slurm-state"
_ROOT = '$([ "$(id -u)" = 0 ] || echo sudo -n)'
VERSION = "[ -e /etc/slurm/slurm.conf ] && PATH=$PATH:/usr/sbin slurmctld -V"
"""Tells that a controller is there and which Slurm it has: a bare image has no slurm.conf."""
SAVE = f"{{ {VERSION}; }} >&2; {_ROOT} {_PROGRAM} save"
SEED = (
    f"{_ROOT} sh -c 'umask 077 && mkdir -p /var/lib/gcluster && cd /var/lib/gcluster && "
    "base64 -d > slurm-state.new && mv slurm-state.new slurm-state.tar.gz'"
)
REPLACE = f"{_ROOT} {_PROGRAM} replace"
_LIMIT_S = 900
_NUMBERS = re.compile(r"slurm(?:-wlm)? (\d+)\.(\d+)")


class SavedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a saved queue without reading it."""

    id: str
    taken_at: str
    """RFC 3339, UTC."""
    slurm: str
    """Version that wrote it; an older slurmctld can't read it."""
    running: int | None
    """Jobs; None: slurmctld did not answer then."""
    pending: int | None
    size: int
    """Bytes of the archive."""
    sha256: str
    """Of the archive, in hex."""


class RestoreResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `restore` did."""

    cluster: str
    saved: SavedQueue
    restored: bool
    """False: no controller is there, so the next `up` gives it to the one that it makes."""
    running: int | None = None
    pending: int | None = None
    """The queue afterwards."""


def saved_queues(cluster: Cluster) -> tuple[SavedQueue, ...]:
    """Return what was saved, the oldest first."""
    keys = [key for key in cluster.store.list(PREFIX) if key.endswith(".json")]
    found = [cluster.store.read(key, SavedQueue) for key in sorted(keys)]
    return tuple(saved for saved in found if saved is not None)


def save_queue(cluster: Cluster, hosts: ClusterInventory, session: SshSession) -> SavedQueue:
    """Save the queue; slurmctld stands still for as long as the copy takes, and jobs run on.

    Raises:
        LifecycleError: the controller can't be asked, or what it gave is no state (GC969); or
            Kubernetes schedules (GC1031).
    """
    _refuse_kubernetes(cluster)
    controller = controller_of(hosts, session)
    view = report_of(session, controller).view
    answer = session.run(controller, SAVE, timeout_s=_LIMIT_S)
    archive = _archive(_answered(controller, answer))
    taken = time.gmtime()
    digest = hashlib.sha256(archive).hexdigest()
    saved = SavedQueue(
        id=f"{time.strftime('%Y%m%dT%H%M%SZ', taken)}-{digest[:6]}",
        taken_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", taken),
        slurm=_version(answer.stderr if isinstance(answer, SshResult) else ""),
        running=view.queue.running if view.queue else None,
        pending=view.queue.pending if view.queue else None,
        size=len(archive),
        sha256=digest,
    )
    cluster.vault.seal(f"{PREFIX}/{saved.id}", archive)
    cluster.store.put_new(f"{PREFIX}/{saved.id}.json", msgspec.json.encode(saved))
    return saved


def restore_queue(
    cluster: Cluster,
    hosts: ClusterInventory,
    session: SshSession,
    wanted: str | None,
    *,
    discard: bool = False,
) -> RestoreResult:
    """Put a saved queue back; without a controller it is kept for the one that `up` makes.

    Args:
        cluster: the cluster.
        hosts: its hosts that exist.
        session: how they are reached.
        wanted: id of the saved queue; None: the newest.
        discard: the controller's queue of now may be lost.

    Raises:
        LifecycleError: nothing was saved, the queue is not empty or not known, or Slurm is too old
            (GC969).
    """
    _refuse_kubernetes(cluster)
    saved = _find(cluster, wanted)
    controller = controller_of(hosts, session) if hosts.with_role("controller") else None
    version = session.run(controller, VERSION, timeout_s=30) if controller is not None else None
    if controller is None or not isinstance(version, SshResult) or version.returncode != 0:
        cluster.store.put(WISH, msgspec.json.encode(saved.id))
        return RestoreResult(cluster=cluster.name, saved=saved, restored=False)
    _refuse_older(saved, _version(version.stdout))
    if not discard:
        _refuse_loss(controller, report_of(session, controller).view)
    _send(cluster, session, controller, saved)
    _answered(controller, session.run(controller, REPLACE, timeout_s=_LIMIT_S))
    cluster.store.delete(WISH)
    after = report_of(session, controller).view.queue
    return RestoreResult(
        cluster=cluster.name,
        saved=saved,
        restored=True,
        running=after.running if after else None,
        pending=after.pending if after else None,
    )


def bring_queue(
    cluster: Cluster, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> None:
    """Give the new controller the queue that `restore` kept for it, before slurmctld starts there.

    A controller that has a queue by now keeps its own: the newer is the true one.
    """
    wish = cluster.store.get(WISH)
    controllers = [h for h in hosts.with_role("controller") if h.connection == "ssh"]
    if wish is None or not controllers:
        return
    saved = _find(cluster, decode_json(wish, str))
    _send(cluster, session, controllers[0], saved)
    cluster.store.delete(WISH)
    message = f"{controllers[0].name} begins with the queue of {saved.taken_at}"
    report(StageProgress(name="nodes", done=0, total=0, detail=message))


def saved_queue_objects(store: StateStore) -> list[str]:
    """Return the objects of what was saved; the key that reads it ends with the cluster."""
    return [*store.list(PREFIX), *([WISH] if store.get(WISH) is not None else ())]


def _refuse_kubernetes(cluster: Cluster) -> None:
    refuse_kubernetes(
        cluster.spec,
        "has no queue of Slurm: Kubernetes keeps its jobs in etcd",
        hint="control planes save etcd every six hours, and kubernetes-restore.py puts it back",
    )


def _find(cluster: Cluster, wanted: str | None) -> SavedQueue:
    saved = saved_queues(cluster)
    for one in reversed(saved):
        if wanted in {None, one.id}:
            return one
    raise failure(
        "GC969",
        f"no queue of {cluster.name} was saved" if not saved else f'no saved queue is "{wanted}"',
        hint=f"gcluster backup {cluster.name}"
        if not saved
        else f"saved are: {', '.join(one.id for one in saved)}",
    )


def _send(cluster: Cluster, session: SshSession, controller: Host, saved: SavedQueue) -> None:
    archive = cluster.vault.unseal(f"{PREFIX}/{saved.id}", saved.id)
    if archive is None:
        raise _broken(saved.id, "its archive is gone")
    if hashlib.sha256(archive).hexdigest() != saved.sha256:
        raise _broken(saved.id, "it is not what was saved")
    text = base64.encodebytes(archive).decode()
    _answered(controller, session.run(controller, SEED, stdin=text, timeout_s=_LIMIT_S))


def _archive(text: str) -> bytes:
    """Return the archive that slurm-state printed; raises where it is none of slurmctld's."""
    try:
        archive = base64.b64decode("".join(text.split()), validate=True)
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            names = {name.rpartition("/")[2] for name in tar.getnames()}
    except (binascii.Error, tarfile.TarError, EOFError, OSError) as error:
        raise _broken("the answer of the controller", str(error)) from error
    if "clustername" not in names:
        raise _broken("the answer of the controller", "it holds no state of slurmctld")
    return archive


def _answered(controller: Host, answer: Answer) -> str:
    if isinstance(answer, Unreachable):
        raise failure("GC969", f"{controller.name} can't be asked: {answer.reason}")
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines() or [f"exit {answer.returncode}"]
        raise failure("GC969", f"{controller.name}: {lines[-1]}")
    return answer.stdout


def _version(text: str) -> str:
    found = _NUMBERS.search(text)
    return f"{found[1]}.{found[2]}" if found else ""


def _refuse_older(saved: SavedQueue, here: str) -> None:
    """Slurm reads the state of two or three releases before its own, and none after."""
    if saved.slurm and here and _ordered(here) < _ordered(saved.slurm):
        raise failure(
            "GC969",
            f"Slurm {here} can't read the state of {saved.slurm}",
            hint="install that version or a newer one first",
            exit_code=Exit.REFUSED,
        )


def _refuse_loss(controller: Host, view: SchedulerView) -> None:
    """A queue that nobody tells counts as one with jobs."""
    queue = view.queue
    if queue is None:
        message = f"{view.problem or controller.name}: jobs that it has would be lost"
    elif queue.running + queue.pending:
        message = (
            f"{controller.name} has {queue.running} running and {queue.pending} pending jobs: "
            "they would be lost"
        )
    else:
        return
    raise failure("GC969", message, hint="--discard-queue loses them", exit_code=Exit.REFUSED)


def _ordered(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _broken(what: str, why: str) -> LifecycleError:
    return failure("GC969", f"{what} can't be used: {why}")
