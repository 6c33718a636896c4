"""`gcluster reconcile status`: where the clusters stand that are followed."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from typing import TYPE_CHECKING, Annotated

import typer

from ...lifecycle.outcome import Exit, failure
from ..options import Format, OutputFormat, complete_target
from ..render.document import document
from ..render.output import say
from ..render.reconcile import controllers_text, followed_text
from ..render.surface import stdout

if TYPE_CHECKING:
    from ...lifecycle.gitops.record import ControllerRecord


def command(
    cluster: Annotated[
        str | None,
        typer.Argument(
            metavar="[CLUSTER]",
            help="Path of a spec, or the name of a cluster; default: all that are followed here.",
            autocompletion=complete_target,
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="URL", help="State of a controller elsewhere."),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Say where the clusters stand that are followed.

    Reads what the controller wrote last: of one cluster from its own state, of all from the
    controller's. Exit code 3 when one is not as merged.
    """
    if cluster is not None:
        from ...lifecycle.cluster import open_cluster
        from ...lifecycle.gitops.record import read_followed

        opened = open_cluster(cluster, running=True)
        followed = read_followed(opened.store)
        if followed is None:
            raise failure("GC907", f"no controller follows {opened.name}")
        say(document(followed) if fmt is Format.JSON else followed_text(followed, stdout()))
        return Exit.OK if followed.condition.status == "true" else Exit.PENDING
    records = _records(state)
    say(document(records) if fmt is Format.JSON else controllers_text(records, stdout()))
    well = all(
        not record.problem and all(f.condition.status == "true" for f in record.clusters.values())
        for record in records
    )
    return Exit.OK if well else Exit.PENDING


def _records(state: str | None) -> "tuple[ControllerRecord, ...]":
    from ...lifecycle.gitops.controller import controllers, own_state
    from ...lifecycle.gitops.record import read_record
    from ...lifecycle.state import StateStore

    if state is not None:
        urls = [state]
    else:
        urls = [own_state(folder) for folder in sorted(controllers().glob("*")) if folder.is_dir()]
    found = [read_record(StateStore.open(url)) for url in urls]
    return tuple(record for record in found if record is not None)
