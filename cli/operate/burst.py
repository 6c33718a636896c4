"""`gcluster burst`: jobs that spill to rented nodes. Each subcommand is a module here."""

import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from ...lifecycle.cluster.outcome import Exit, LifecycleError, failure
from ...lifecycle.operations.burst.agent.calls import AgentEvent
from ...lifecycle.operations.burst.agent.run import run_agent
from ...lifecycle.operations.burst.agent.unit import unit_file
from ...lifecycle.operations.burst.explain import explain_job
from ...lifecycle.operations.burst.replay import replay
from ...lifecycle.operations.burst.saved_queue import read_queue, try_out
from ...lifecycle.operations.burst.simulate.scenario import Assumed
from ...lifecycle.state.process import user_at_host
from ...schemas.spec.units import Duration
from ..app import group
from ..console import emit, say, stdout
from ..options import Format, OutputFormat, SpecPath, complete_target
from ..render.document import document
from ..render.operate.burst import explained_text, round_text, simulation_text

app = group("burst")


@app.callback()
def burst() -> None:
    """Run jobs on rented nodes, and simulate when they spill."""


@app.command("simulate")
def simulate(  # noqa: PLR0917  # typer passes them by name
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

    Prints waits with and without it, costs, and the use of both sides. Nothing is queried and
    nothing is rented. How jobs are scheduled, and what is assumed: docs/burst-simulate.md.
    """
    assumed = Assumed(
        processor=processor,
        boot_s=_seconds("--boot", boot),
        stage_s=None if stage is None else _seconds("--stage", stage),
        accounts=_names("--account", account),
        qos=_names("--qos", qos),
    )
    found = replay(Path(spec), trace, partition, assumed)
    if fmt is Format.JSON:
        emit(document(found))
    else:
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
            raise _usage(f"{option} has {group} twice")
        names[group] = name
    return names


def _usage(summary: str) -> LifecycleError:

    return failure("GC941", summary, hint="gcluster burst simulate --help", exit_code=Exit.USAGE)


@app.command("agent")
def agent(
    cluster: Annotated[
        str,
        typer.Argument(
            metavar="CLUSTER",
            help="Path of a spec, or the name of a cluster that is up.",
            autocompletion=complete_target,
        ),
    ],
    once: Annotated[
        bool, typer.Option("--once", help="Have one round, wait for its calls, and end.")
    ] = False,
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Longest time between two polls of the scheduler.")
    ] = "10s",
    unit: Annotated[
        bool, typer.Option("--unit", help="Print a systemd unit that runs this, and do nothing.")
    ] = False,
) -> Exit:
    """Add rented nodes for waiting jobs and remove idle ones.

    Jobs that may run elsewhere are moved. Runs where the cloud's rights and the cluster's keys are,
    not on the controller, which it queries over SSH. It may be killed at any moment and started
    again. Each event is a JSON line. Exit code 6: another agent is at work.
    """
    try:
        seconds = Duration.parse(interval).value
    except ValueError as error:
        raise failure(
            "GC941", f'--interval "{interval}": {error}', hint="10s", exit_code=Exit.USAGE
        ) from error
    if unit:
        emit(unit_file(cluster, user_at_host().partition("@")[0], interval).rstrip("\n"))
        return Exit.OK

    run_agent(cluster, once=once, interval_s=seconds, say=_line)
    return Exit.OK


_OUTPUT_LOCK = threading.Lock()


def _line(event: AgentEvent) -> None:
    """Print one event; concurrent calls emit theirs as they happen."""
    fields = {key: value for key, value in msgspec.structs.asdict(event).items() if value}
    line = msgspec.json.encode(
        {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields}
    )
    with _OUTPUT_LOCK:
        emit(line.decode())
        sys.stdout.flush()


@app.command("explain")
def explain(
    cluster: Annotated[
        str,
        typer.Argument(
            metavar="CLUSTER",
            help="Path of a spec, or the name of a cluster that is up.",
            autocompletion=complete_target,
        ),
    ],
    job: Annotated[str, typer.Argument(help="The job's number; an array is one job.")],
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Show why a waiting job spills or stays.

    The cluster must be up. Queries the scheduler and the burst agent's state, and changes nothing.
    """
    found = explain_job(cluster, job)
    if fmt is Format.JSON:
        emit(document(found))
    else:
        say(explained_text(found, stdout()))
    return Exit.OK


@app.command("dry-run")
def dry_run(
    spec: SpecPath,
    queue: Annotated[
        str,
        typer.Argument(
            help='JSON of pending jobs and rented nodes (docs/burst-simulate.md); "-": stdin.'
        ),
    ],
    partition: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Partition; default: the one whose jobs spill."),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Show which jobs of a saved queue would spill, and why.

    Nothing is moved, queried or rented.
    """
    source = sys.stdin.buffer.read() if queue == "-" else Path(queue)
    found = try_out(Path(spec), read_queue(source), partition)
    if fmt is Format.JSON:
        emit(document(found))
    else:
        say(round_text(found, stdout()))
    return Exit.OK
