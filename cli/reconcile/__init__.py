"""`gcluster reconcile`: clusters follow a repository; a JSON line for each thing that happens."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ...lifecycle.outcome import Exit
from ..reconciling import folder, seconds, wrong
from ..render.output import say

if TYPE_CHECKING:
    from ...lifecycle.gitops.book import Happened
    from ...lifecycle.gitops.rounds import Settings

WORDS = {
    "status": "Say where the clusters stand that are followed.",
    "pause": "Have a cluster left as it is, whatever is merged.",
    "resume": "Let a paused cluster follow the repository again.",
    "unit": "Print a systemd unit, or a container file, that runs the controller.",
}
"""Word -> one line of help."""
ALONE = True
"""Without a word it does something itself."""


def command(  # noqa: PLR0917  # typer reads the options from the parameters
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
        str, typer.Option("--interval", metavar="TIME", help="How long between two looks.")
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
    """Follow a repository of specs: apply what is merged, with the guards of up, and say how it is.

    It asks nobody, waits for whoever holds a cluster's lock, and pauses longer after each failure.
    With --once the exit code tells the worst: 0 all is as merged, 1 failed, 2 what was merged is
    wrong, 3 something waits, 4 refused, 6 locked.
    """
    if ctx.invoked_subcommand is not None:
        return None
    from ...lifecycle.gitops.controller import run_controller
    from ...lifecycle.gitops.rounds import Settings

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
        settings, state=state, interval_s=None if once else interval_s, tell=_line
    )
    _last(settings, code)
    return code


def _thing(text: str) -> tuple[str, str]:
    cluster, slash, thing = text.partition("/")
    if not (cluster and slash and thing):
        raise wrong(f'--allow "{text}" names no cluster and thing', "research/pool:train")
    return cluster, thing


def _line(event: "Happened") -> None:
    """Print one thing that happened, as a JSON line with its time."""
    told = {key: value for key, value in msgspec.structs.asdict(event).items() if value}
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
    say(msgspec.json.encode({"time": stamp, **told}).decode())
    sys.stdout.flush()


_ENDED = {
    Exit.OK: "all is as merged",
    Exit.SPEC: "what was merged is wrong, and nothing of it was applied",
    Exit.PENDING: "something waits",
    Exit.REFUSED: "refused",
    Exit.LOCKED: "somebody else holds a lock",
}


def _last(settings: "Settings", code: Exit) -> None:
    """Say how the last round ended."""
    from ...lifecycle.gitops.book import Happened

    ended = _ENDED.get(code, "failed")
    if code is not Exit.OK:
        ended += "; gcluster reconcile status tells why"
    _line(Happened(what="round", reason=f"{settings.repo}: {ended}"))
