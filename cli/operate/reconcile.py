"""`gcluster reconcile`: clusters follow a repository; a JSON line for each thing that happens."""

import sys
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Annotated

import msgspec
import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit, failure
from ...lifecycle.operations.gitops.controller import controllers, own_state, run_controller
from ...lifecycle.operations.gitops.record import (
    ControllerRecord,
    go_on,
    read_followed,
    read_record,
)
from ...lifecycle.operations.gitops.record import pause as pause_cluster
from ...lifecycle.operations.gitops.round_record import ControllerEvent
from ...lifecycle.operations.gitops.rounds import Settings
from ...lifecycle.operations.gitops.unit import container_file, unit_file
from ...lifecycle.state import StateStore
from ...lifecycle.state.process import user_at_host
from ...schemas.spec.units import Duration
from ..app import group
from ..console import emit, say, stdout
from ..options import Format, OutputFormat, Target, complete_target
from ..render.document import answer
from ..render.operate.operations import controllers_text, followed_text

app = group("reconcile")


def wrong(summary: str, hint: str) -> Exception:
    """Return the error of a wrong command line (GC941, exit code USAGE)."""
    return failure("GC941", summary, hint=hint, exit_code=Exit.USAGE)


def seconds(interval: str) -> float:
    """Return an interval in seconds.

    Raises:
        LifecycleError: it is none, or under a second (GC941).
    """
    try:
        found = Duration.parse(interval).value
    except ValueError as error:
        raise wrong(f'--interval "{interval}": {error}', "5m") from error
    if found < 1:
        raise wrong(f'--interval "{interval}" is too short', "5m")
    return found


def folder(path: str) -> str:
    """Return a folder of the repository, "." for its top.

    Raises:
        LifecycleError: it leads out of the repository (GC941).
    """
    if ".." in PurePosixPath(path).parts:
        raise wrong(f'--path "{path}" leads out of the repository', "--path specs/")
    return path.strip("/") or "."


@app.callback(invoke_without_command=True)
def reconcile(  # noqa: PLR0917  # typer reads the options from the parameters
    ctx: typer.Context,
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="URL", help="The repository: https, SSH or a path."),
    ] = None,
    branch: Annotated[str, typer.Option("--branch", help="The branch that is followed.")] = "main",
    path: Annotated[
        str, typer.Option("--path", metavar="FOLDER", help="Where the specs are in it.")
    ] = "specs/",
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="Longest time between two rounds.")
    ] = "5m",
    once: Annotated[bool, typer.Option("--once", help="Have one round, and end.")] = False,
    max_clusters_changed: Annotated[
        int,
        typer.Option(
            "--max-clusters-changed", min=0, help="Change none when a round would change more."
        ),
    ] = 5,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="CLUSTER/THING",
            help="With --once: let this happen, which a guard holds back: research/pool:train.",
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="URL", help="Where it keeps what it knows; default: this machine."
        ),
    ] = None,
) -> Exit | None:
    """Apply what is merged to a repository of specs.

    The guards of up apply, and the status of each cluster is reported. It needs no
    confirmation, waits for locks, and pauses longer after each failure. With --once the exit
    code is the worst result: 0 all is as merged, 1 failed, 2 what was merged is wrong, 3 something
    waits, 4 refused, 6 locked.
    """
    if ctx.invoked_subcommand is not None:
        return None

    if repo is None:
        raise wrong("which repository? --repo is missing", "--repo https://HOST/PATH --once")
    if allow and not once:
        raise wrong("--allow goes with --once", "what is allowed once is not allowed for ever")
    settings = Settings(
        repo=repo,
        branch=branch,
        path=folder(path),
        most_changed=max_clusters_changed,
        allow=frozenset(_thing(each) for each in allow or ()),
    )
    interval_s = seconds(interval)
    code = run_controller(
        settings, state=state, interval_s=None if once else interval_s, emit=_line
    )
    _last(settings, code)
    return code


def _thing(text: str) -> tuple[str, str]:
    cluster, slash, thing = text.partition("/")
    if not (cluster and slash and thing):
        raise wrong(f'--allow "{text}" names no cluster and thing', "research/pool:train")
    return cluster, thing


def _line(event: ControllerEvent) -> None:
    """Print one thing that happened, as a JSON line with its time."""
    fields = {key: value for key, value in msgspec.structs.asdict(event).items() if value}
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
    emit(msgspec.json.encode({"time": stamp, **fields}).decode())
    sys.stdout.flush()


_ENDED = {
    Exit.OK: "all is as merged",
    Exit.SPEC: "what was merged is wrong, and nothing of it was applied",
    Exit.PENDING: "something waits",
    Exit.REFUSED: "refused",
    Exit.LOCKED: "lock held by another process",
}


def _last(settings: Settings, code: Exit) -> None:
    """Say how the last round ended."""
    ended = _ENDED.get(code, "failed")
    if code is not Exit.OK:
        ended += "; gcluster reconcile status says why"
    _line(ControllerEvent(what="round", reason=f"{settings.repo}: {ended}"))


@app.command("status")
def status(
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
    """Show the clusters that are followed and their state.

    Reads what the controller wrote last: of one cluster from its own state, of all from the
    controller's. Exit code 3 when one is not as merged.
    """
    if cluster is not None:
        opened = open_cluster(cluster, running=True)
        followed = read_followed(opened.store)
        if followed is None:
            raise failure(
                "GC907",
                f"no controller follows {opened.name}",
                hint="gcluster reconcile status, without a cluster, shows those that are followed",
            )
        answer(fmt, followed, lambda: followed_text(followed, stdout()))
        return Exit.OK if followed.condition.status == "true" else Exit.PENDING
    records = _records(state)
    answer(fmt, records, lambda: controllers_text(records, stdout()))
    well = all(
        not record.problem and all(f.condition.status == "true" for f in record.clusters.values())
        for record in records
    )
    return Exit.OK if well else Exit.PENDING


def _records(state: str | None) -> "tuple[ControllerRecord, ...]":

    if state is not None:
        urls = [state]
    else:
        urls = [own_state(folder) for folder in sorted(controllers().glob("*")) if folder.is_dir()]
    found = [read_record(StateStore.open(url)) for url in urls]
    return tuple(record for record in found if record is not None)


@app.command("pause")
def pause(
    cluster: Target,
    reason: Annotated[str, typer.Option("--reason", help="Why; status and history show it.")],
) -> Exit:
    """Pause a cluster: merges no longer change it.

    It is written into the cluster's state, so every controller sees it.
    """
    opened = open_cluster(cluster, running=True)
    paused = pause_cluster(opened, reason)
    say(f"{opened.name} is left as it is, for {paused.by}: gcluster reconcile resume {cluster}")
    return Exit.OK


@app.command("resume")
def resume(cluster: Target) -> Exit:
    """Resume a paused cluster: it follows merges again."""
    opened = open_cluster(cluster, running=True)
    paused = go_on(opened)
    if paused is None:
        say(f"{opened.name} was not paused")
    else:
        say(f"{opened.name} follows the repository again; {paused.by} had it paused")
    return Exit.OK


@app.command("unit")
def unit(
    repo: Annotated[
        str, typer.Option("--repo", metavar="URL", help="The repository: https, SSH or a path.")
    ],
    branch: Annotated[str, typer.Option("--branch", help="The branch that is followed.")] = "main",
    path: Annotated[
        str, typer.Option("--path", metavar="FOLDER", help="Where the specs are in it.")
    ] = "specs/",
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="Longest time between two rounds.")
    ] = "5m",
    container: Annotated[
        bool, typer.Option("--container", help="A container file instead of a unit.")
    ] = False,
) -> Exit:
    """Print a systemd unit or container file for the controller."""
    seconds(interval)
    folder(path)
    options = {"repo": repo, "branch": branch, "path": path, "interval": interval}
    text = (
        container_file(options)
        if container
        else unit_file(options, user_at_host().partition("@")[0])
    )
    emit(text.rstrip("\n"))
    return Exit.OK
