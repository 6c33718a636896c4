"""Clusters that end by themselves: told in time, and only where something would be removed."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import Severity
from .context import CheckContext
from .registry import Finding, check


@check("GC860", summary="A cluster is shut down when it is idle for no time at all.")
def idle_at_once(context: CheckContext) -> Iterator[Finding]:
    """`idle_shutdown` is how long no job has run or waited: between two jobs there is always some.

    Give it the time in which the people of the cluster send their next job.
    """
    budget = context.budget
    if budget is not None and budget.idle_shutdown is not None and budget.idle_shutdown.value == 0:
        yield Finding(
            summary="a cluster that is shut down at its first idle moment is never used",
            path=("budget", "idle_shutdown"),
            hint="write a time such as 8h, or remove it",
        )


@check("GC861", summary="A cluster's end is announced before the time that leads to it begins.")
def notice_too_long(context: CheckContext) -> Iterator[Finding]:
    """`notice` is shorter than `expires` and `idle_shutdown`.

    People are told for the whole notice before anything is removed. A notice as long as the time
    itself begins with the cluster, or with its first idle moment, and tells nothing.
    """
    budget = context.budget
    if budget is None or budget.notice is None:
        return
    for key in ("expires", "idle_shutdown"):
        time = getattr(budget, key)
        if time is not None and 0 < time.value <= budget.notice.value:
            yield Finding(
                summary=f"people are told {budget.notice} before, and {key} is {time}",
                path=("budget", "notice"),
                hint=f"write a notice that is shorter than {time}",
                relies_on=(("budget", "notice"), ("budget", key)),
            )


@check("GC862", summary="A cluster that makes no machines ends by itself.")
def nothing_to_remove(context: CheckContext) -> Iterator[Finding]:
    """Removing a cluster removes the machines that gcluster made. Of bare metal there are none.

    Its hosts stay as they are, with Slurm on them; only the cluster's keys and secrets would go.
    """
    budget = context.budget
    if budget is None or not context.sites:
        return
    if any(site.makes_machines for site in context.sites.values()):
        return
    for key in ("expires", "expires_on", "idle_shutdown"):
        if getattr(budget, key) is not None:
            yield Finding(
                summary="no site makes machines: there is nothing to remove when it ends",
                path=("budget", key),
                at_key=True,
                severity=Severity.WARNING,
                hint=f"remove {key}; the hosts are yours",
                relies_on=(("budget", key), ("sites", "*", "provider")),
            )
            return
