"""`gcluster backup` and `restore` of Slurm: queue and accounts, encrypted in the state.

A queue is restored before slurmctld's first start on a new controller: a slurmctld without the jobs
would make the nodes kill them as soon as these register. So are the accounts that it refers to,
where their database was lost too (`database_state`).
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import time
from typing import Literal, TypeAlias

import msgspec

from ...inventory.hosts import ClusterInventory, Host
from ...schemas.structure.decoding import decode_json
from ..cluster.cluster import Cluster
from ..cluster.outcome import Exit, LifecycleError, failure
from ..cluster.progress import Reporter, StageProgress
from ..nodes.ssh import SshResult, SshSession
from ..nodes.ssh.arguments import AS_ROOT
from ..status.slurm import SchedulerView, report_of
from . import database_state as database
from .database_state import broken, checked, database_host, decoded, send
from .selection import controller_of

PREFIX = "queue"
"""State folder: `ID.json` describes a backup, `ID.age` is its queue, `ID-accounts.age` the dump."""
WISH = "queue-to-restore.json"
"""State key: which saved queue the next controller begins with."""
_PROGRAM = "/usr/local/libexec/gcluster/slurmctld-state.py"
VERSION = "[ -e /etc/slurm/slurm.conf ] && PATH=$PATH:/usr/sbin slurmctld -V"
"""Shows that a controller exists and which Slurm it has: a bare image has no slurm.conf."""
SAVE = f"{{ {VERSION}; }} >&2; {AS_ROOT} {_PROGRAM} save"
REPLACE = f"{AS_ROOT} {_PROGRAM} replace"
SEED = "/var/lib/gcluster/slurm-state.tar.gz"
"""On a controller: what its slurmctld begins with, where it has no queue."""
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
    accounts: int = 0
    """Bytes of the accounting database's dump, compressed; 0: there is none in this backup."""
    accounts_sha256: str = ""
    """Of the dump, in hex."""


Accounts: TypeAlias = Literal["restored", "kept", "none"]
"""What became of the accounting database: as it was saved; its own, which is the newer one; or not
in the backup."""


class RestoreResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `restore` did."""

    cluster: str
    saved: SavedQueue
    restored: bool
    """False: a host is gone that it belongs on, so the next `up` gives it to the one it makes."""
    accounts: Accounts = "none"
    running: int | None = None
    pending: int | None = None
    """The queue afterwards."""


def saved_queues(cluster: Cluster) -> tuple[SavedQueue, ...]:
    """Return what was saved, the oldest first."""
    keys = [key for key in cluster.store.list(PREFIX) if key.endswith(".json")]
    found = [cluster.store.read(key, SavedQueue) for key in sorted(keys)]
    return tuple(saved for saved in found if saved is not None)


def save_queue(cluster: Cluster, hosts: ClusterInventory, session: SshSession) -> SavedQueue:
    """Save queue and accounts; slurmctld is stopped meanwhile, and jobs continue to run.

    Raises:
        LifecycleError: the controller is unreachable, or its output is no state (GC969).
    """
    controller = controller_of(hosts, session)
    view = report_of(session, controller).view
    answer = session.run(controller, SAVE, timeout_s=_LIMIT_S)
    archive = _archive(decoded("the controller", checked(controller, answer)))
    keeper = database_host(cluster.spec, hosts)
    dump = b""
    if keeper is not None:
        dump = database.read_dump(session, keeper, written=keeper.name == controller.name)
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
        accounts=len(dump),
        accounts_sha256=hashlib.sha256(dump).hexdigest() if dump else "",
    )
    cluster.vault.seal(f"{PREFIX}/{saved.id}", archive)
    if dump:
        cluster.vault.seal(_accounts_of(saved), dump)
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
    """Put a saved queue back with its accounts; all of it, or nothing is changed.

    Without a controller, or without the host that had the database, it is kept for those that `up`
    makes. Accounts are put back where their database was lost: one that has the cluster's id still
    is the newer one.

    Args:
        cluster: the cluster.
        hosts: its hosts that exist.
        session: SSH to them.
        wanted: id of the saved queue; None: the newest.
        discard: the controller's queue of now may be lost.

    Raises:
        LifecycleError: nothing was saved, the queue is not empty or not known, Slurm is too old,
            or it failed and all is as before (GC969).
    """
    saved = _find(cluster, wanted)
    controller = controller_of(hosts, session) if hosts.with_role("controller") else None
    version = session.run(controller, VERSION, timeout_s=30) if controller is not None else None
    keeper = database_host(cluster.spec, hosts) if saved.accounts else None
    lost = saved.accounts and keeper is None and database.owns_database(cluster.spec)
    if controller is None or not isinstance(version, SshResult) or version.returncode or lost:
        cluster.store.put(WISH, msgspec.json.encode(saved.id))
        return RestoreResult(cluster=cluster.name, saved=saved, restored=False)
    _refuse_older(saved, _version(version.stdout))
    if not discard:
        _refuse_loss(controller, report_of(session, controller).view)
    accounts = _replace(cluster, session, saved, controller, keeper)
    cluster.store.delete(WISH)
    after = report_of(session, controller).view.queue
    return RestoreResult(
        cluster=cluster.name,
        saved=saved,
        restored=True,
        accounts=accounts,
        running=after.running if after else None,
        pending=after.pending if after else None,
    )


def _replace(
    cluster: Cluster,
    session: SshSession,
    saved: SavedQueue,
    controller: Host,
    keeper: Host | None,
) -> Accounts:
    """Put queue and accounts in the place of those that are there; both, or none."""
    _send(cluster, session, controller, saved)
    if keeper is None:
        checked(controller, session.run(controller, REPLACE, timeout_s=_LIMIT_S))
        return "none"
    _send_accounts(cluster, session, keeper, saved, database.REPLACEMENT)
    if keeper.name == controller.name:
        answer = session.run(controller, REPLACE, timeout_s=_LIMIT_S)
        checked(controller, answer)
    else:
        answer = session.run(keeper, database.REPLACE, timeout_s=_LIMIT_S)
        checked(keeper, answer)
        try:
            checked(controller, session.run(controller, REPLACE, timeout_s=_LIMIT_S))
        except LifecycleError:
            checked(keeper, session.run(keeper, database.UNDO, timeout_s=_LIMIT_S))
            raise
        checked(keeper, session.run(keeper, database.KEEP, timeout_s=_LIMIT_S))
    said = answer.stderr if isinstance(answer, SshResult) else ""
    return "kept" if database.KEPT in said else "restored"


def bring_queue(
    cluster: Cluster, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> None:
    """Give new hosts the queue and the accounts that `restore` kept for them, before Slurm starts.

    A controller that has a queue by now keeps its own, and a host its database: the newer is the
    true one.
    """
    wish = cluster.store.get(WISH)
    controllers = [h for h in hosts.with_role("controller") if h.connection == "ssh"]
    if wish is None or not controllers:
        return
    saved = _find(cluster, decode_json(wish, str))
    keeper = database_host(cluster.spec, hosts) if saved.accounts else None
    _send(cluster, session, controllers[0], saved)
    if keeper is not None:
        _send_accounts(cluster, session, keeper, saved, database.SEED)
    cluster.store.delete(WISH)
    what = "queue" if keeper is None else "queue and the accounts"
    message = f"{controllers[0].name} begins with the {what} of {saved.taken_at}"
    report(StageProgress(name="nodes", done=0, total=0, detail=message))


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
        raise broken(saved.id, "its archive is gone")
    send(session, controller, archive, saved.sha256, SEED)


def _send_accounts(
    cluster: Cluster, session: SshSession, host: Host, saved: SavedQueue, path: str
) -> None:
    dump = cluster.vault.unseal(_accounts_of(saved), saved.id)
    if dump is None:
        raise broken(saved.id, "its accounts are gone")
    send(session, host, dump, saved.accounts_sha256, path)


def _accounts_of(saved: SavedQueue) -> str:
    return f"{PREFIX}/{saved.id}-accounts"


def _archive(archive: bytes) -> bytes:
    """Return the archive that the program printed; raises where it is none of slurmctld's."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            names = {name.rpartition("/")[2] for name in tar.getnames()}
    except (tarfile.TarError, EOFError, OSError) as error:
        raise broken("the answer of the controller", str(error)) from error
    if "clustername" not in names:
        raise broken("the answer of the controller", "it holds no state of slurmctld")
    return archive


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
    """A queue that can't be read counts as one with jobs."""
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
