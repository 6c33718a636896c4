"""Windows in which no job runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ..diagnostics import PathTuple
from .context import CheckContext
from .registry import Finding, check

_PERIOD_S = {"day": 86_400, "week": 7 * 86_400}


@check("GC546", summary="A maintenance window starts at a time that does not exist.")
def no_such_time(context: CheckContext) -> Iterator[Finding]:
    """`start` is a day of the calendar and a time of the day, in UTC."""
    for name, window in (context.slurm.maintenance if context.slurm is not None else {}).items():
        try:
            datetime.fromisoformat(window.start)
        except ValueError:
            yield Finding(
                summary=f'maintenance "{name}": {window.start} is no time of the calendar',
                path=("scheduler", "maintenance", name, "start"),
                hint="write a time such as 2027-01-15T06:00Z",
            )


@check("GC547", summary="A maintenance window has no length, or never ends.")
def no_such_length(context: CheckContext) -> Iterator[Finding]:
    """A window that repeats is shorter than the time to the next one."""
    for name, window in (context.slurm.maintenance if context.slurm is not None else {}).items():
        period = _PERIOD_S.get(window.every or "", float("inf"))
        if 0 < window.duration.value < period:
            continue
        path: PathTuple = ("scheduler", "maintenance", name, "duration")
        what = f"lasts {window.duration}, and starts again every {window.every}"
        if not window.duration.value:
            what = "has no length"
        yield Finding(
            summary=f'maintenance "{name}" {what}',
            path=path,
            hint="write a duration such as 4h",
            relies_on=(path, ("scheduler", "maintenance", name, "every")),
        )
