"""What operations did: service of nodes, queues, keys, images, repairs, controllers, the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from ....lifecycle.cluster.state_upgrade import StateUpgrade
from ....lifecycle.nodes.images.ahead import Images
from ....lifecycle.operations.etcd_state import EtcdRestored, SavedEtcd
from ....lifecycle.operations.gitops.record import ControllerRecord, Followed
from ....lifecycle.operations.queue_state import RestoreResult, SavedQueue
from ....lifecycle.operations.reboot import Pace, RebootResult
from ....lifecycle.operations.repair.attempt import Intended, RepairResult
from ....lifecycle.operations.rotate.kept import Rotated
from ....lifecycle.operations.service import ServiceChange, ServiceResult
from ....lifecycle.secrets.encryption import RotatedEncryption
from ....lifecycle.state.check import Damage, StateCheck
from ....lifecycle.state.repair import StateRepair
from ....lifecycle.state.repair_queue import Repair
from ....lifecycle.status.conditions import Cause, PartitionQueue, QueueStatus, QuotaUse
from ....schemas.derived.hostlist import fold
from ...console import Console, Tone, pad, printable, stdout, width
from ..diagnostics import diagnostics_text
from ..quantities import duration, plural
from ..table import Column, tabulate


def service_text(result: ServiceResult) -> str:
    """Return one line a node: in service or out, its jobs, and why."""
    return "\n".join(_named_lines((node.name, _node_text(node)) for node in result.nodes))


def _named_lines(
    rows: Iterable[tuple[str, str]], *, console: Console | None = None, indent: int = 0
) -> list[str]:
    """Return a line for each name, with its text in a second column."""
    columns = (Column(right=False), Column(right=False, wraps=True))
    found = list(rows)
    return tabulate(columns, found, console or stdout(), indent=indent).lines if found else []


def paces_text(paces: Iterable[Pace]) -> str:
    """Return what a reboot would do, pool by pool."""
    return "\n".join(
        f"{pace.pool}: {fold(pace.nodes)}, {pace.at_once} at a time; "
        + (
            f"{pace.jobs} jobs are put back in line"
            if pace.requeues
            else f"waits up to {duration(pace.wait_s)} for {pace.jobs} jobs"
        )
        for pace in paces
    )


def rebooted_text(result: RebootResult) -> str:
    """Return how a reboot ended."""
    lines = [f"{fold(result.rebooted)} restarted"] if result.rebooted else []
    lines += [f"{n} failed, and stays drained: {printable(s)}" for n, s in result.failed.items()]
    lines += [f"{n} not restarted, in service: {printable(s)}" for n, s in result.held.items()]
    return "\n".join(lines)


def _node_text(node: ServiceChange) -> str:
    facts = ["in service" if node.in_service else "out of service"]
    facts += [] if node.changed else ["as before"]
    facts += [f"{len(node.jobs)} jobs run on"] if node.jobs and not node.in_service else []
    facts += [printable(node.reason)] if node.reason else []
    return ", ".join(facts)


def saved_text(saved: SavedQueue | SavedEtcd) -> str:
    """Return a backup on one line."""
    if isinstance(saved, SavedEtcd):
        return f"{saved.id}  etcd and keys, {saved.size:,} bytes, Kubernetes {saved.kubernetes}"
    known = saved.running is not None
    jobs = f"{saved.running} running and {saved.pending} pending jobs" if known else "unknown jobs"
    accounts = f"{saved.accounts:,} bytes" if saved.accounts else "not in it"
    slurm = saved.slurm or "unknown"
    return f"{saved.id}  {jobs}, {saved.size:,} bytes, accounts {accounts}, Slurm {slurm}"


def restored_text(result: RestoreResult | EtcdRestored) -> str:
    """Return what became of a backup."""
    if not result.restored:
        return (
            f"kept for the next host: {saved_text(result.saved)}\n"
            f"gcluster up {result.cluster} makes it"
        )
    if isinstance(result, EtcdRestored):
        names = ", ".join(result.restored)
        return f"restored: {names} with etcd of {result.saved.taken_at}"
    if result.running is None:
        return "restored; slurmctld does not report its jobs yet: gcluster status"
    accounts = {
        "restored": "accounts as they were saved",
        "kept": "the accounting database is the newer one and stays",
        "none": "no accounts in this backup",
    }[result.accounts]
    return f"restored: {result.running} running, {result.pending} pending jobs; {accounts}"


def rotated_encryption_text(result: RotatedEncryption) -> str:
    """Return what was re-encrypted, and by whom."""
    before, after = printable(result.before), printable(result.after)
    same = "a new data key" if before == after else f"it was {before}"
    return f"{result.count} secrets of {result.cluster} are encrypted by {after}; {same}"


def rotated_text(result: Rotated) -> str:
    """Return which machines have the new key, and which have not and why."""
    lines = [f"{fold(result.changed)}: new key"] * bool(result.changed)
    lines += [f"{name}: left with the old key: {printable(w)}" for name, w in result.left.items()]
    lines += [f"gcluster up {result.cluster} gives it to them"] * bool(result.left)
    lines += [f"waits for {name}: {printable(why)}" for name, why in result.waits_for.items()]
    lines += ["run it again when they have ended, or with --now"] * bool(result.waits_for)
    return "\n".join(lines)


_MOST_REASONS = 5


def queue_lines(queue: QueueStatus) -> Iterator[str]:
    """Yield the queue as a whole, and by partition where there are several."""
    yield f"queue        {_jobs(queue)}"
    if len(queue.partitions) > 1:
        yield from _named_lines(((one.name, _jobs(one)) for one in queue.partitions), indent=2)
    for waiting in queue.reasons[:_MOST_REASONS]:
        yield f"  {waiting.jobs:,} wait: {printable(waiting.reason)}"
    if more := queue.reasons[_MOST_REASONS:]:
        yield f"  {sum(one.jobs for one in more):,} wait for other reasons"


def quota_lines(quotas: Iterable[QuotaUse]) -> list[str]:
    """Return what accounts have now and may have."""
    rows = [(printable(one.account), _used(one)) for one in quotas]
    return ["accounts"] * bool(rows) + _named_lines(rows, indent=2)


MANY_CAUSES = 20
"""Causes that are shown one by one; a data hall without power has one for each of its nodes."""


def causes_lines(causes: Sequence[Cause], console: Console) -> Iterator[str]:
    """Yield each cause and what to do about it; of very many the first, and their number."""
    for cause in causes[:MANY_CAUSES]:
        yield console.paint("error", f"cause: {printable(cause.summary)}")
        yield f"  next: {printable(cause.next_step)}"
    if len(causes) > MANY_CAUSES:
        yield f"and {len(causes) - MANY_CAUSES} causes more: --format json has them"


def _used(quota: QuotaUse) -> str:
    limit = "" if quota.limit is None else f" of {quota.limit:,}"
    return f"{quota.used:,}{limit} {quota.resource.removeprefix('gres/')}"


def _jobs(queue: QueueStatus | PartitionQueue) -> str:
    waits = queue.oldest_wait_s
    oldest = f", the oldest for {duration(waits)}" if waits is not None else ""
    return f"{queue.running} running, {queue.pending} pending{oldest}"


def images_text(images: Images, console: Console) -> str:
    """Return a line for each site, and one for each playbook."""
    return console.plain("\n".join(_lines(images, console)))


def _lines(images: Images, console: Console) -> Iterator[str]:
    for image in images.sites:
        title = console.paint("strong", f"site {image.site} ({image.provider})")
        what = f"image {image.key[:12]} with {plural(len(image.steps), 'step')}"
        how = "was there" if image.was_there else f"baked in {duration(image.seconds)}"
        yield f"{title}  {what}, {how}"
    for site, provider in images.unbaked.items():
        title = console.paint("strong", f"site {site} ({provider})")
        yield f"{title}  its nodes boot from no image that gcluster bakes"
    for pool, path in images.playbooks.items():
        yield f"pool {pool}: wrote {path}, to be run with the collection gcluster.cluster"


_LISTED = 24
"""Nodes of the queue that are listed; the rest is counted."""
_TRIED = {"retry": "booted and converged again", "replace": "recreated"}


def repair_lines(
    cluster: str, queue: tuple[Repair, ...], console: Console, *, now: datetime | None = None
) -> list[str]:
    """Return the queue under its heading; none where it is empty.

    Args:
        cluster: its name, for the command that goes on.
        queue: oldest first.
        console: what it is written on.
        now: the moment that waiting is counted to; None: no times, so that a plan stays the same.
    """
    if not queue:
        return []
    waiting = sum(1 for entry in queue if entry.state == "waiting")
    parts = [f"{waiting} waiting"] if waiting else []
    parts += [f"{len(queue) - waiting} given up"] if len(queue) > waiting else []
    lines = [console.paint("strong", f"repair queue   {', '.join(parts)}")]
    rows = []
    for entry in queue[:_LISTED]:
        mark = console.paint("error", "x") if entry.state == "given-up" else "·"
        since = ""
        if now is not None:
            waited = duration(max(0.0, (now - entry.since).total_seconds()))
            since = console.paint("faint", f"   for {waited}")
        rows.append((f"{mark} {entry.node}", f"{printable(entry.reason)}{since}"))
    lines += _named_lines(rows, console=console, indent=2)
    if len(queue) > _LISTED:
        lines.append(f"  and {len(queue) - _LISTED:,} more")
    words = "" if waiting else " NODE"
    return [*lines, f"  work on them with: gcluster repair {cluster}{words}"]


def intended_text(intended: tuple[Intended, ...]) -> str:
    """Return what will be tried, node by node."""
    lines = []
    for item in intended:
        tries = ", then ".join(_TRIED[action] for action in item.actions) or "given up"
        lines.append(f"  {item.entry.node}: {printable(item.entry.reason)}")
        lines.append(f"      {tries}")
    return "\n".join(lines)


def repaired_text(result: RepairResult, console: Console) -> str:
    """Return how it ended: who serves, who was given up and why, what still waits."""
    if not (result.admitted or result.given_up or result.held):
        nothing = f"{result.cluster}: the repair queue has nothing that waits"
        return console.plain("\n".join([nothing, *_left(result, console)]))
    lines = []
    if result.diagnostics:
        lines.append(diagnostics_text(result.diagnostics, console))
    if result.admitted:
        many = plural(len(result.admitted), "node")
        lines.append(f"{console.paint('good', '✔')} {many} in service: {fold(result.admitted)}")
    lines += _named(console.paint("error", "x"), "given up", result.given_up.items())
    lines += _named(console.paint("warning", "·"), "left alone", result.held.items())
    lines += _left(result, console)
    if result.admitted:
        lines.append(f"prove them with: gcluster smoke {result.cluster}")
    return console.plain("\n".join(lines))


def _named(mark: str, what: str, nodes: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{mark} {node} {what}: {printable(why)}" for node, why in nodes]


def _left(result: RepairResult, console: Console) -> list[str]:
    failed = {*result.given_up, *result.held}
    rest = tuple(entry for entry in result.queue if entry.node not in failed)
    return repair_lines(result.cluster, rest, console)


_TONES: dict[str, Tone] = {
    "synced": "good",
    "down": "faint",
    "paused": "note",
    "waiting": "warning",
    "locked": "warning",
    "orphaned": "warning",
}
_SHORT = 10
"""Digits of a commit that are shown."""


def controllers_text(records: Iterable[ControllerRecord], console: Console) -> str:
    """Return every controller with its clusters; says so where there is none."""
    lines = [line for record in records for line in _controller(record, console)]
    return console.plain("\n".join(lines) or "nothing is followed on this machine")


def followed_text(followed: Followed, console: Console) -> str:
    """Return one cluster."""
    return console.plain("\n".join(_cluster(followed, console, width(followed.name))))


def _controller(record: ControllerRecord, console: Console) -> Iterator[str]:
    yield console.paint("strong", f"{printable(record.repo)}   {record.branch}:{record.path}")
    if record.read_at is not None:
        head = f"{record.commit[:_SHORT]} {printable(record.title)}"
        yield f"  {head}   read {record.read_at:%Y-%m-%d %H:%M} UTC"
    for found in record.problem:
        place = f"{printable(found.file)}: " if found.file else ""
        yield console.paint("error", f"  {place}{printable(found.summary)} [{found.code}]")
    if record.problem:
        yield "  nothing of it was applied"
    columns = max((width(name) for name in record.clusters), default=0)
    for followed in record.clusters.values():
        yield from _cluster(followed, console, columns)


def _cluster(followed: Followed, console: Console, columns: int) -> Iterator[str]:
    phase = console.paint(_TONES.get(followed.phase, "error"), pad(followed.phase, 8))
    commit = followed.applied[:_SHORT] or "-"
    since = f"since {followed.since:%Y-%m-%d %H:%M} UTC"
    reason = f"   {printable(followed.reason)}" if followed.reason else ""
    yield f"  {pad(followed.name, columns)}  {phase}  {pad(commit, _SHORT)}  {since}{reason}"
    if followed.next_try is not None:
        times = f"failed {followed.failures} times" if followed.failures > 1 else "failed once"
        yield f"    {times}; tried again after {followed.next_try:%Y-%m-%d %H:%M:%S} UTC"
    if followed.ends:
        yield f"    {console.paint('warning', printable(followed.ends))}"
    for found in followed.diagnostics:
        if found.hint:
            yield f"    {printable(found.summary)} [{found.code}]: {printable(found.hint)}"


def check_text(check: StateCheck, console: Console) -> str:
    """Return the check as text: the verdict first, the next command last."""
    many = plural(check.objects, "object")
    if not check.damage:
        return f"{check.target}: {many}, none of them damaged"
    verdict = f"{check.target}: {len(check.damage)} of {many} damaged or missing"
    lines = [console.paint("error", verdict), *damage_lines(check.damage, console)]
    lines.append(f"repair what can be: gcluster state repair {check.target}")
    return console.plain("\n".join(lines))


def damage_lines(damage: Iterable[Damage], console: Console) -> Iterator[str]:
    """Yield two lines for each damaged object."""
    for item in damage:
        mark = console.paint("error", "!")
        yield f"  {mark} {item.what} {printable(item.key)}: {printable(item.problem)}"
        yield f"      {item.remedy}: {item.then}"


def upgrade_text(done: StateUpgrade) -> str:
    """Return the upgrade of a state as text, with the next command."""
    if not done.objects:
        return f"{done.target}: the state has format {done.after}, and nothing was changed"
    return (
        f"{done.target}: {plural(done.objects, 'object')} of format {done.before} rewritten as "
        f"format {done.after}\ngo on with: gcluster up {done.target}"
    )


def repair_text(repair: StateRepair, console: Console) -> str:
    """Return the repair as text: what was done, what is left, the next command."""
    done = [f"  {printable(key)}: {printable(what)}" for key, what in repair.done.items()]
    done += [f"  in the ledger again: {printable(each)}" for each in repair.adopted]
    target = repair.target
    if repair.left:
        verdict = f"{target}: {plural(len(repair.left), 'object')} can't be rebuilt"
        give_up = f"restore them from a backup, or: gcluster state repair {target} --discard KEY"
        lines = [*done, console.paint("error", verdict), *damage_lines(repair.left, console)]
        return console.plain("\n".join([*lines, give_up]))
    if not done:
        return f"{target}: nothing is damaged, and nothing was changed"
    lines = [f"{target}: the state is whole", *done, f"see what is there: gcluster status {target}"]
    return console.plain("\n".join(lines))
