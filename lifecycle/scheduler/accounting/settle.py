"""Applies the spec's accounts and maintenance windows to Slurm; safe to repeat and to kill.

Every change is one independent command. A run that is killed between two of them leaves the earlier
ones applied; the next one reads the state and continues with the rest.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence

from ....inventory.accounting.desired import keeps_accounts
from ....inventory.compile.slurm.accounting import accounting_hosts
from ....inventory.hosts import Host
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec, SlurmScheduler
from ...cluster.cluster import Cluster
from ...cluster.progress import Reporter, StageFinished, StageStarted
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import as_root
from ...status.observe import Observation
from ...status.slurm import last_error_line
from .plan import AccountingChange, AccountingPlan, Balance, balance
from .sacctmgr_state import EMPTY, AccountingError, AccountingState, exports, query_accounting

STARTS_WITHIN_S = 60
"""slurmctld and slurmdbd answer within this after they were (re)started."""
_ASK_AGAIN_S = 2
_LIMIT_S = 60
_LIMIT_PER_CHANGE_S = 5


_STOPPED = re.compile(r"\bunit (slurmctld|slurmdbd|mariadb): \S+,(?:inactive|failed)")
"""In the placeholder stamp of a step whose unit was stopped by others (`CHANGED_HERE`)."""


def accounting_plan(
    spec: ClusterSpec, observation: Observation, session: SshSession, now: int
) -> AccountingPlan | None:
    """Return what `up` would change in accounts and windows; None where no Slurm of ours has any.

    A controller that isn't set up yet counts as new, where its database is new too. What can't be
    queried is reported as unknown: otherwise all accounts would be shown as new.
    """
    controller = _controller(spec, observation)
    if controller is None:
        return None
    stamps = observation.stamps.get(controller.name, {})
    # slurmdbd may have a host of its own.
    kept = any("slurmdbd.configure" in there for there in observation.stamps.values())
    if problem := _unaskable(spec, observation, controller, kept=kept):
        return AccountingPlan(problem=problem) if _keeps_any(spec) else None
    if "slurm.configure" not in stamps:
        return balance(spec, observation.desired, EMPTY, now).plan()
    try:
        accounts = keeps_accounts(spec) and kept
        accounting = query_accounting(session, controller, spec.name, accounts=accounts)
    except AccountingError as error:
        return AccountingPlan(problem=str(error)) if _keeps_any(spec) else None
    return balance(spec, observation.desired, accounting, now).plan()


def _unaskable(spec: ClusterSpec, observation: Observation, controller: Host, *, kept: bool) -> str:
    """Return why the database's content is unknown; "": it is readable, or doesn't exist yet."""
    silent = observation.unreachable
    if controller.name in silent:
        return f"{controller.name} can't be reached: {silent[controller.name]}"
    for host in accounting_hosts(spec, observation.desired.hosts):
        if host.name in silent and not kept:
            return f"the database is on {host.name}, which can't be reached: {silent[host.name]}"
    for name, carried in observation.stamps.items():
        if stopped := _STOPPED.search(" ".join(carried.values())):
            return f"{stopped[1]} doesn't run on {name}: up starts it first"
    is_set_up = "slurm.configure" in observation.stamps.get(controller.name, {})
    if kept and not is_set_up and keeps_accounts(spec):
        return f"{controller.name} is not set up, so the database can't be queried through it"
    return ""


def settle(
    cluster: Cluster,
    observation: Observation,
    session: SshSession,
    report: Reporter,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Diagnostic, ...]:
    """Change accounts and windows on the controller; return what waits, and what failed.

    An error (GC925) says which change failed; all before it are applied.
    """
    spec, desired = cluster.spec, observation.desired
    controller = _controller(spec, observation)
    if controller is None:
        return ()
    starts_s = STARTS_WITHIN_S if _keeps_any(spec) else 0

    def read() -> Balance:
        accounting = _answered(session, controller, spec, starts_s, clock, sleep)
        return balance(spec, desired, accounting, int(clock()))

    try:
        found = read()
        if found.changes:
            _change(session, controller, found.changes, read, report)
    except AccountingError as error:
        return (_failed(cluster, str(error)),) if _keeps_any(spec) else ()
    return tuple(_waits(words) for words in found.held_back)


def _keeps_any(spec: ClusterSpec) -> bool:
    """Whether the spec has accounts or windows; else there may be old ones to remove."""
    slurm = spec.scheduler
    return keeps_accounts(spec) or (isinstance(slurm, SlurmScheduler) and bool(slurm.maintenance))


def _change(
    session: SshSession,
    controller: Host,
    changes: Sequence[AccountingChange],
    read: Callable[[], Balance],
    report: Reporter,
) -> None:
    """Run the changes and check their result; raises BooksError."""
    began = time.monotonic()
    report(StageStarted(name="accounts", total=len(changes)))
    _run(session, controller, changes)
    left = read().changes
    if left:
        raise AccountingError(f"still to do after it was done: {left[0].words}")
    seconds = time.monotonic() - began
    message = f"{len(changes)} changed"
    report(StageFinished(name="accounts", ok=True, summary=message, seconds=seconds))


def _controller(spec: ClusterSpec, observation: Observation) -> Host | None:
    """Return the host to query; None where there are no accounts, or no controller.

    Any of several controllers can be queried for the active one: the first that responds.
    """
    if not isinstance(spec.scheduler, SlurmScheduler):
        return None
    stamps = observation.stamps
    found = [h for h in observation.desired.with_role("controller") if h.connection == "ssh"]
    return max(
        found,
        key=lambda host: ("slurm.configure" in stamps.get(host.name, {}), host.name in stamps),
        default=None,
    )


def _answered(  # noqa: PLR0917  # target, time limit and clock
    session: SshSession,
    controller: Host,
    spec: ClusterSpec,
    starts_s: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> AccountingState:
    """Read the books from daemons that may just be starting; raises BooksError."""
    began = clock()
    while True:
        try:
            return query_accounting(session, controller, spec.name, accounts=keeps_accounts(spec))
        except AccountingError:
            if clock() - began >= starts_s:
                raise
        sleep(_ASK_AGAIN_S)


def _run(session: SshSession, controller: Host, changes: Sequence[AccountingChange]) -> None:
    """Run the changes one after the other in one SSH exec; raises BooksError at the first.

    They come on standard input: thousands of users don't fit on a command line.
    """
    lines = [exports()]
    for number, change in enumerate(changes):
        lines.append(f"echo {number}; {shlex.join(change.command)} </dev/null >&2 || exit 1")
    answer = session.run(
        controller,
        as_root(controller, ["sh", "-s"]),
        stdin="\n".join(lines) + "\n",
        timeout_s=_LIMIT_S + _LIMIT_PER_CHANGE_S * len(changes),
    )
    if isinstance(answer, Unreachable):
        raise AccountingError(f"{controller.name}: {answer.reason}")
    if answer.returncode != 0:
        begun = [int(word) for word in answer.stdout.split() if word.isdecimal()]
        what = changes[begun[-1]].words if begun else changes[0].words
        message = "; ".join(line.strip() for line in answer.stderr.splitlines() if line.strip())
        raise AccountingError(f"{what}: {message or last_error_line(answer)}")


def _failed(cluster: Cluster, why: str) -> Diagnostic:
    return Diagnostic(
        code="GC925",
        severity=Severity.ERROR,
        summary=f"accounts and windows differ from the spec: {why}",
        hint=f"fix it, then resume with: gcluster up {cluster.spec_path}",
    )


def _waits(words: str) -> Diagnostic:
    return Diagnostic(
        code="GC926",
        severity=Severity.WARNING,
        summary=words,
        hint="the next gcluster up after the end of these jobs removes it",
    )
