"""`gcluster unlock`: breaks a lock whose owner can't release it any more."""

import re
from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit, failure
from ...lifecycle.cluster.unlock import unlock
from ..console import emit, say, stdout
from ..options import Format, OutputFormat, Target
from ..render.diagnostics import diagnostics_text
from ..render.document import document

_LOCK = re.compile(r"(?P<site>\w+([.-]\w+)*)/(?P<epoch>\d+)", re.ASCII)
"""A site or burst.agent, then its number: nothing that would lead elsewhere in the state."""


def command(
    cluster: Target,
    lock: Annotated[
        str, typer.Option("--lock", metavar="SITE/EPOCH", help="The lock as the refusal named it.")
    ],
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Break an abandoned lock and free its stack.

    Whatever the old owner still writes is refused from then on. Exit code 1 when the stack can't be
    freed.
    """
    named = _LOCK.fullmatch(lock)
    if named is None:
        raise failure(
            "GC943",
            f'"{lock}" is not a lock',
            hint="write it as the refusal named it, such as campus/42",
            exit_code=Exit.USAGE,
        )
    site = named["site"]
    done = unlock(open_cluster(cluster, running=True), site, int(named["epoch"]))
    if fmt is Format.JSON:
        emit(document(done))
    else:
        freed = f", and the stack of {site} is free" if done.stack_freed else ""
        say(f"{done.lock} is released{freed}")
        if done.diagnostics:
            say(f"the stack of {site} could not be freed:")
            say(diagnostics_text(done.diagnostics, stdout()))
    return Exit.FAILED if done.diagnostics else Exit.OK
