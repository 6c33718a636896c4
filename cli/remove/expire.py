"""`gcluster expire`: check once whether clusters expire: announced, withdrawn, removed when due."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.down.expiry.reaper import reap_once
from ...lifecycle.state.store import utc_now
from ..console import emit, say
from ..options import Format, OutputFormat, complete_target
from ..render.document import document
from ..render.progress import open_progress


def command(
    clusters: Annotated[
        list[str],
        typer.Argument(
            metavar="CLUSTER...",
            help="Paths of specs, or names of clusters.",
            autocompletion=complete_target,
        ),
    ],
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Remove expired clusters.

    It is announced before, and never happens while jobs run. Meant for a timer: each look announces
    what is due soon, withdraws what holds no more, and removes what was announced long enough, but
    its data. Exit code 3 while an end is ahead, 4 when jobs keep a cluster.
    """
    results = []
    with open_progress(fmt.value) as report:
        for target in clusters:
            results.append(reap_once(open_cluster(target), report, now=utc_now()))  # noqa: PERF401  # each is reported
    if fmt is Format.JSON:
        emit(document(results))
    else:
        say("\n".join(f"{each.cluster}: {each.words}" for each in results))
    return max((each.exit_code for each in results), default=Exit.OK)
