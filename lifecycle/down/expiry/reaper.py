"""Announces the end of a cluster, withdraws it, or removes what is due: one pass per call.

Safe to repeat, from a controller's loop, a timer or by hand. Nothing is removed that was not
announced for its whole notice, or on which jobs run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import msgspec

from ...cluster.cluster import Cluster, open_applied
from ...cluster.hosts import existing_hosts
from ...cluster.outcome import Exit
from ...cluster.progress import Reporter
from ...nodes.ssh import SshSession
from ...state import ExpiryAnnounced, ExpiryKind, ExpiryWithdrawn
from ...state.audit.trail import exported
from ..down import down
from .announce import announce, withdraw
from .due import Ending, Lifetime, ending, lifetime
from .jobs import Jobs
from .running_work import query_jobs, running_spec

_SLACK_S = 60.0
"""Clocks of the controller and of this machine may differ by so much."""
EndState: TypeAlias = Literal["none", "announced", "withdrawn", "kept", "removed", "leftovers"]


class ReaperResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one pass."""

    cluster: str
    state: EndState
    """none: no end is near. announced: the notice is on the nodes. withdrawn: the notice was
    removed. kept: it has expired, but jobs run or that is unknown. removed: all but its data.
    leftovers: the removal is incomplete."""
    kind: ExpiryKind | None = None
    earliest: datetime | None = None
    """Not removed before."""
    why: str = ""

    @property
    def words(self) -> str:
        """One line of it."""
        when = f"{self.earliest:%Y-%m-%d %H:%M} UTC" if self.earliest is not None else ""
        return {
            "none": "nothing ends it soon",
            "announced": f"is removed on {when}: {self.why}",
            "withdrawn": "its announced end is withdrawn",
            "kept": f"its time was up on {when}, and it stays: {self.why}",
            "removed": f"removed, but its data: {self.why}",
            "leftovers": f"removed, and leftovers remain: {self.why}",
        }[self.state]

    @property
    def exit_code(self) -> Exit:
        """PENDING while an end is ahead, REFUSED while jobs keep it."""
        codes = {"announced": Exit.PENDING, "kept": Exit.REFUSED, "leftovers": Exit.LEFTOVERS}
        return codes.get(self.state, Exit.OK)


def reap_once(
    cluster: Cluster,
    report: Reporter,
    *,
    now: datetime,
    ask: Callable[[Cluster], Jobs] = query_jobs,
) -> ReaperResult:
    """Do one pass over a cluster's expiry.

    Args:
        cluster: with the spec whose `budget` counts: a merged one extends what runs.
        report: receives the progress.
        now: aware.
        ask: returns the use of the cluster.

    Raises:
        LifecycleError: the notice can't be written (GC1141), the cluster is locked, or can't be
            removed.
        ProviderError: a site could not be taken down.
    """
    now_living = lifetime(cluster.events.read())
    if now_living is None:
        return ReaperResult(cluster=cluster.name, state="none")
    budget = cluster.spec.budget
    idles = budget is not None and budget.idle_shutdown is not None
    jobs = ask(cluster) if idles else Jobs()
    if idles and jobs.problem and now_living.announced is not None:
        return _result(cluster, "kept", now_living.announced, jobs.why_not)
    end = ending(budget, now_living.began, jobs, now)
    if end is None:
        return _withdrawn(cluster, now_living)
    announced = now_living.announced
    if announced is None or not _same(announced, end):
        return _announced(cluster, end, now)
    if now.timestamp() < announced.earliest:
        return _result(cluster, "announced", announced, announced.why)
    return _remove_expired(cluster, announced, jobs if idles else ask(cluster), report)


def _same(announced: ExpiryAnnounced, end: Ending) -> bool:
    """Return whether this end was announced; a later end must be announced again."""
    slack = max(_SLACK_S, end.notice.total_seconds() / 10) if end.kind == "idle" else 1.0
    return announced.kind == end.kind and abs(announced.due - end.due.timestamp()) <= slack


def _announced(cluster: Cluster, end: Ending, now: datetime) -> ReaperResult:
    earliest = max(end.due, now + end.notice)
    announced = ExpiryAnnounced(
        kind=end.kind, due=end.due.timestamp(), earliest=earliest.timestamp(), why=end.why
    )
    spec, hosts = running_spec(cluster), existing_hosts(cluster)
    with exported(cluster), SshSession(cluster.workdir) as session:
        session.trust(hosts.hosts)
        if announced.kind == "idle":
            withdraw(
                spec, hosts, session
            )  # what an expiry had reserved would keep jobs from starting
        announce(spec, hosts, session, announced)
        cluster.events.append(announced)
    return _result(cluster, "announced", announced, announced.why)


def _withdrawn(cluster: Cluster, living: Lifetime) -> ReaperResult:
    if living.announced is None:
        return ReaperResult(cluster=cluster.name, state="none")
    spec, hosts = running_spec(cluster), existing_hosts(cluster)
    with exported(cluster), SshSession(cluster.workdir) as session:
        session.trust(hosts.hosts)
        withdraw(spec, hosts, session)
        cluster.events.append(ExpiryWithdrawn(why=f"not any more: {living.announced.why}"))
    return ReaperResult(cluster=cluster.name, state="withdrawn")


def _remove_expired(
    cluster: Cluster, announced: ExpiryAnnounced, jobs: Jobs, report: Reporter
) -> ReaperResult:
    """Remove an unused cluster."""
    if jobs.why_not:
        return _result(cluster, "kept", announced, jobs.why_not)
    running = open_applied(cluster.state_url, cluster.spec_path)
    running.why = announced.why
    result = down(running, report, confirm=lambda _: True)
    state: EndState = "removed" if result.exit_code is Exit.OK else "leftovers"
    return _result(cluster, state, announced, announced.why)


def _result(
    cluster: Cluster, state: EndState, announced: ExpiryAnnounced, why: str
) -> ReaperResult:
    return ReaperResult(
        cluster=cluster.name,
        state=state,
        kind=announced.kind,
        earliest=datetime.fromtimestamp(announced.earliest, UTC),
        why=why,
    )
