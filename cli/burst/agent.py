"""`gcluster burst agent`: makes and gives back rented nodes; a JSON line an event."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

import sys
import threading
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from ...lifecycle.burst.agent.calls import Happened
from ...lifecycle.burst.agent.unit import unit_file
from ...lifecycle.outcome import Exit, failure
from ...schemas.spec.units import Duration
from ..options import complete_target
from ..render.output import say


def command(
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
        str, typer.Option(metavar="TIME", help="How long between two looks at the scheduler.")
    ] = "10s",
    unit: Annotated[
        bool, typer.Option("--unit", help="Print a systemd unit that runs this, and do nothing.")
    ] = False,
) -> Exit:
    """Make the nodes that jobs need, give idle ones back, and move jobs that spill.

    Runs where the cloud's rights and the cluster's keys are, not on the controller, which it asks
    over SSH. It may be killed at any moment and started again. Each event is a JSON line. Exit
    code 6: another agent is at work.
    """
    try:
        seconds = Duration.parse(interval).value
    except ValueError as error:
        raise failure(
            "GC941", f'--interval "{interval}": {error}', hint="10s", exit_code=Exit.USAGE
        ) from error
    if unit:
        from ...lifecycle.state.process import who

        say(unit_file(cluster, who().partition("@")[0], interval).rstrip("\n"))
        return Exit.OK
    from ...lifecycle.burst.agent.run import run_agent

    run_agent(cluster, once=once, interval_s=seconds, say=_line)
    return Exit.OK


_SAYING = threading.Lock()


def _line(event: "Happened") -> None:
    """Print one event; calls that run beside each other tell theirs as they happen."""
    told = {key: value for key, value in msgspec.structs.asdict(event).items() if value}
    line = msgspec.json.encode(
        {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **told}
    )
    with _SAYING:
        say(line.decode())
        sys.stdout.flush()
