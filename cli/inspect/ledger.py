"""`gcluster ledger`: what the cluster's ledger, compared with what is there."""

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.down.ledger_check import check_ledger
from ..app import group
from ..console import emit, say, stdout
from ..options import Format, OutputFormat, Target
from ..render.diagnostics import diagnostics_text
from ..render.document import document
from ..render.inspect.status import ledger_text

app = group("ledger")


@app.callback()
def ledger() -> None:
    """Compare the ledger of created resources with the sites."""


@app.command("check")
def check(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """List resources that exist but are in no ledger.

    Every site is queried for all that carries the cluster's tag. Exit code 5 when something is left
    over, 1 when a site could not be queried; data that down keeps is no leftover. Changes nothing.
    """
    checked = check_ledger(open_cluster(cluster, running=True))
    if fmt is Format.JSON:
        emit(document(checked))
    else:
        if checked.diagnostics:
            say(f"{diagnostics_text(checked.diagnostics, stdout())}\n")
        say(ledger_text(checked, stdout()))
    return checked.exit_code
