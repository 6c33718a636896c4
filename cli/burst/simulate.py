"""`gcluster burst simulate`: what a spill policy would have done with the jobs of a trace."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from pathlib import Path
from typing import Annotated, Literal

import typer

from ...lifecycle.burst.simulate.scenario import Assumed
from ...lifecycle.outcome import Exit, LifecycleError, failure
from ...schemas.spec.units import Duration
from ..options import Format, OutputFormat, SpecPath
from ..render.document import document
from ..render.output import say
from ..render.surface import stdout


def command(  # noqa: PLR0917  # typer passes them by name
    spec: SpecPath,
    trace: Annotated[
        Path,
        typer.Argument(help="Job trace in the Standard Workload Format 2.2, plain or .gz."),
    ],
    partition: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Partition; default: the one whose jobs spill."),
    ] = None,
    processor: Annotated[
        Literal["gpu", "cpu", "node"] | None,
        typer.Option(
            help="What a processor of the trace is; default: a GPU where nodes have some."
        ),
    ] = None,
    boot: Annotated[
        str, typer.Option(metavar="TIME", help="How long a rented node takes to run jobs.")
    ] = "5m",
    stage: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long staging takes; default: all of its limit."),
    ] = None,
    account: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP=NAME", help="Account of a group of the trace; *=NAME: of all others."
        ),
    ] = None,
    qos: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUEUE=NAME", help="QOS of a queue of the trace; *=NAME: of all others."
        ),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Replay a job trace against a spec's spill policy.

    Prints waits with and without it, money, and the use of both sides. Nothing is asked and nothing
    is rented. How jobs are scheduled, and what is assumed: docs/burst-simulate.md.
    """
    from ...lifecycle.burst.replay import replay

    assumed = Assumed(
        processor=processor,
        boot_s=_seconds("--boot", boot),
        stage_s=None if stage is None else _seconds("--stage", stage),
        accounts=_names("--account", account),
        qos=_names("--qos", qos),
    )
    found = replay(Path(spec), trace, partition, assumed)
    if fmt is Format.JSON:
        say(document(found))
    else:
        from ..render.burst import simulation_text

        say(simulation_text(found, stdout()))
    return Exit.OK


def _seconds(option: str, text: str) -> float:

    try:
        return Duration.parse(text).value
    except ValueError as error:
        raise _usage(f'{option} "{text}": {error}') from error


def _names(option: str, given: list[str] | None) -> dict[str, str]:
    """Read GROUP=NAME, each group once."""
    names: dict[str, str] = {}
    for text in given or ():
        group, equals, name = text.partition("=")
        if not equals or not name or not (group == "*" or group.isdigit()):
            raise _usage(f'{option} "{text}" is not NUMBER=NAME or *=NAME')
        if group in names:
            raise _usage(f"{option} says {group} twice")
        names[group] = name
    return names


def _usage(summary: str) -> "LifecycleError":

    return failure("GC941", summary, hint="gcluster burst simulate --help", exit_code=Exit.USAGE)
