"""`gcluster doctor`: what this machine lacks, and what a cloud's login must be allowed to do."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from pathlib import Path
from typing import Annotated

import typer

from ..lifecycle.outcome import Exit
from ..lifecycle.preflight.doctor import needs, this_machine
from .options import Format, OutputFormat
from .render.doctor import doctor_report, doctor_text
from .render.document import document
from .render.output import say
from .render.surface import stdout


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
    """Say what this machine lacks and the command that installs it.

    Nothing is run or changed. Exit code 1 when a local cluster can't be brought up here; with
    --spec, when a program is missing by which its control plane in a cloud is reached.
    """
    if permissions is not None:
        return _permissions(permissions, spec)
    from ..lifecycle.kubernetes.managed.needs import needs_of

    machine = this_machine()
    found, what = needs(machine), "local clusters"
    if spec is not None and (own := needs_of(spec)):
        found, what = own, f"clusters like {spec}"
    if fmt is Format.JSON:
        say(document(doctor_report(machine, found)))
    else:
        say(doctor_text(machine, found, stdout(), what=what))
    return Exit.FAILED if any(n.required and not n.present for n in found) else Exit.OK


def _permissions(cloud: str, spec: Path | None) -> Exit:
    from ..lifecycle.preflight.permissions import needs_of
    from ..stacks.permissions import document, needed

    if spec is None:
        say(document(cloud, needed(cloud)))
    else:
        needs = needs_of(spec, cloud)
        wanted = needed(cloud, needs.kinds)
        say(document(cloud, wanted, state=needs.state))
    return Exit.OK
