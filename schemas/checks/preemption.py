"""Whose jobs give way to whose: preemption among qualities of service."""

from __future__ import annotations

from collections.abc import Iterator

from ..cycles import cycles
from ..diagnostics import PathTuple, Severity
from ..spec import Qos
from .context import CheckContext
from .registry import Finding, check


def _qos(context: CheckContext) -> dict[str, Qos]:
    return context.scheduler.qos if context.scheduler is not None else {}


def _path(name: str, *steps: str | int) -> PathTuple:
    return ("scheduler", "qos", name, *steps)


@check("GC518", summary="Qualities of service preempt each other in a circle.")
def preemption_in_a_circle(context: CheckContext) -> Iterator[Finding]:
    """Preemption goes one way.

    In a circle two jobs would take the nodes from each other again and again, and neither would
    end.
    """
    for circle in cycles({name: qos.preempts for name, qos in _qos(context).items()}):
        if len(circle) == 1:
            summary = f'QOS "{circle[0]}" preempts itself'
        else:
            summary = f"QOS preempt in a circle: {' > '.join([*circle, circle[0]])}"
        yield Finding(
            summary=summary,
            path=_path(circle[0], "preempts"),
            hint="let only the more urgent one preempt",
            relies_on=tuple(_path(name, "preempts") for name in circle),
        )


@check("GC519", summary="A QOS is preempted whose jobs never give way.")
def preempting_the_unyielding(context: CheckContext) -> Iterator[Finding]:
    """A QOS whose jobs others take the nodes of says what happens to them.

    `preemptible: requeue` starts them again later, `cancel` ends them. Without it they stay, and
    the urgent job waits.
    """
    qualities = _qos(context)
    for name, qos in qualities.items():
        for index, other in enumerate(qos.preempts):
            if other == name or other not in qualities or qualities[other].preemptible != "no":
                continue
            path = _path(name, "preempts", index)
            yield Finding(
                summary=f'QOS "{name}" preempts "{other}", whose jobs never give way',
                path=path,
                hint=f'write preemptible: requeue (or cancel) in "{other}"',
                relies_on=(path, _path(other, "preemptible")),
            )


@check("GC520", summary="A QOS preempts one of higher priority.")
def preempting_upwards(context: CheckContext) -> Iterator[Finding]:
    """A job that may preempt should also stand before the others in the queue.

    With the lower priority it waits behind the jobs that it could take the nodes from. Kubernetes
    preempts by priority alone, so there it would never preempt.
    """
    qualities = _qos(context)
    for name, qos in qualities.items():
        for index, other in enumerate(qos.preempts):
            if other not in qualities or qos.priority >= qualities[other].priority:
                continue
            path = _path(name, "preempts", index)
            yield Finding(
                summary=f'QOS "{name}" (priority {qos.priority:,}) preempts "{other}" '
                f"(priority {qualities[other].priority:,})",
                path=path,
                severity=Severity.WARNING,
                hint=f"give {name} a priority above {qualities[other].priority}",
                relies_on=(path, _path(name, "priority"), _path(other, "priority")),
            )


@check("GC521", summary="A QOS has a grace time, but its jobs never give way.")
def grace_for_nothing(context: CheckContext) -> Iterator[Finding]:
    """`grace` is the time a job gets to save before it gives way, so it needs `preemptible`.

    Where another QOS preempts it, GC519 says so.
    """
    preempted = {other for qos in _qos(context).values() for other in qos.preempts}
    for name, qos in _qos(context).items():
        if qos.grace is not None and qos.preemptible == "no" and name not in preempted:
            path = _path(name, "grace")
            yield Finding(
                summary=f'QOS "{name}" has a grace time, but its jobs never give way',
                path=path,
                at_key=True,
                severity=Severity.WARNING,
                hint="add preemptible: requeue, or remove grace",
                relies_on=(path, _path(name, "preemptible")),
            )
