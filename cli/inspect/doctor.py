"""`gcluster doctor`: what this machine lacks, and what a cloud's login must be allowed to do."""

from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.kubernetes.managed.login import needs_of
from ...lifecycle.planning.preflight.doctor import needs, this_machine
from ...lifecycle.planning.preflight.permissions import needs_of as permissions_of
from ...stacks.pulumi.permissions import document as policy_document
from ...stacks.pulumi.permissions import needed
from ..console import emit, say, stdout
from ..options import Format, OutputFormat
from ..render.document import document
from ..render.inspect.status import doctor_report, doctor_text


def command(
    permissions: Annotated[
        str | None,
        typer.Option(
            metavar="CLOUD",
            help="Print what a login of aws, azure or gcp must be allowed to do, as its document.",
        ),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(
            "--spec",  # named: typer would spell an option like its metavar
            metavar="SPEC",
            help="What this spec needs: of permissions, or to reach its control plane in a cloud.",
        ),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Check prerequisites and show the commands to install them.

    Nothing is run or changed. Exit code 1 when a local cluster can't be brought up here; with
    --spec, when a program is missing by which its control plane in a cloud is reached.
    """
    if permissions is not None:
        return _permissions(permissions, spec)

    machine = this_machine()
    found, what = needs(machine), "local clusters"
    if spec is not None and (own := needs_of(spec)):
        found, what = own, f"clusters like {spec}"
    if fmt is Format.JSON:
        emit(document(doctor_report(machine, found)))
    else:
        say(doctor_text(machine, found, stdout(), what=what))
    return Exit.FAILED if any(n.required and not n.present for n in found) else Exit.OK


def _permissions(cloud: str, spec: Path | None) -> Exit:

    if spec is None:
        emit(policy_document(cloud, needed(cloud)))
    else:
        needs = permissions_of(spec, cloud)
        wanted = needed(cloud, needs.kinds)
        emit(policy_document(cloud, wanted, state=needs.state))
    return Exit.OK
