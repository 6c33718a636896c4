"""`gcluster run`: a workload of the spec, or a command, as a job that is followed to its end."""

from typing import Annotated

import msgspec
import typer

from ...lifecycle.cluster.cluster import Cluster, open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit, failure
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.operations.storage.figures import write_speeds
from ...lifecycle.scheduler.workloads.command import check_command, command_name
from ...lifecycle.scheduler.workloads.select import open_queue, planned, submission, submit
from ...schemas.diagnostics import listing
from ...schemas.spec import CommandWorkload, Workload
from ...schemas.spec.units import Duration
from ..app import single
from ..console import emit, say
from ..inspect.logs import follow_job
from ..inspect.ssh import RestOfLine, rest_of_line
from ..options import Target

_OF_COMMANDS = "--nodes, --gpus, --partition, --time, --image and --account"


class CommandAfterDashes(RestOfLine):
    """As `gcluster ssh`; options may come anywhere before the dashes."""

    allow_interspersed_args = True


def command(  # noqa: PLR0917  # typer passes them by name
    ctx: typer.Context,
    cluster: Target,
    workload: Annotated[
        str | None, typer.Argument(metavar="[WORKLOAD]", help="Name of a workload of the spec.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Nodes of a command [default: 1].")
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="GPUs of a command, instead of nodes.")
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="Partition of a command.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", metavar="LIMIT", help="Longest run time of a command: 2h."),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option("--image", metavar="NAME", help="Container image of a command."),
    ] = None,
    account: Annotated[
        str | None,
        typer.Option("--account", metavar="NAME", help="Account that pays for a command."),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who it runs as [default: who gcluster logs in as]."),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Submit it and return.", show_default=False)
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the script, and submit nothing.")
    ] = False,
) -> Exit:
    """Submit a workload or a command, and follow it.

    gcluster run lab.yaml llama --user ada · gcluster run lab --nodes 4 -- python train.py

    Ctrl-C ends the following; the job goes on.
    """
    words = rest_of_line(ctx)
    opened = open_cluster(cluster)  # of a path, what the file says now: its workloads
    chosen: Workload
    if words:
        if workload is not None:
            raise _usage("a workload has its own command: leave out one of the two")
        chosen = _command(words, nodes, gpus, time)
        chosen = msgspec.structs.replace(chosen, partition=partition, image=image, account=account)
        check_command(opened, chosen)
        name = command_name(opened, words)
    else:
        if any(option is not None for option in (nodes, gpus, partition, time, image, account)):
            raise _usage(f"{_OF_COMMANDS} are for a command after --")
        name, chosen = _named(opened, workload)
    saved = chosen.checkpoint
    is_auto = saved is not None and saved.every.is_auto
    measured = write_speeds(opened.store, opened.spec) if is_auto else {}
    if dry_run:
        emit(planned(opened, name, chosen, measured).text.rstrip("\n"))
        return Exit.OK
    with SshSession(opened.workdir) as session:
        hosts = existing_hosts(opened)
        what = submission(opened, name, chosen, measured, hosts)
        queue = open_queue(opened, hosts, session)
        job = submit(opened, queue, what, user)
        say(
            f"job {job} is queued   gcluster logs {cluster} {job} · gcluster cancel {cluster} {job}"
        )
        if detach:
            return Exit.OK
        try:
            last = follow_job(opened, hosts, session, queue, job)
        except KeyboardInterrupt:  # running the verb again would queue a second job
            say(f"job {job} goes on   gcluster logs {cluster} {job} -f")
            return Exit.INTERRUPTED
    return Exit.OK if last.has_succeeded else Exit.FAILED


def _named(opened: Cluster, word: str | None) -> tuple[str, Workload]:
    known = opened.spec.workloads
    if word is None and len(known) == 1:
        return next(iter(known.items()))
    if word is None or word not in known:
        what = "no workload is named" if word is None else f'no workload "{word}"'
        raise failure(
            "GC1211",
            f"{what} in the spec of {opened.spec.name}",
            hint=f"workloads: {listing(known)}"
            if known
            else "write one under workloads, or a "
            "command: gcluster run CLUSTER --nodes 2 -- COMMAND",
            exit_code=Exit.USAGE,
        )
    return word, known[word]


def _command(
    words: list[str], nodes: int | None, gpus: int | None, time: str | None
) -> CommandWorkload:
    if nodes is not None and gpus is not None:
        raise _usage("--nodes and --gpus: keep one of the two")
    try:
        limit = None if time is None else Duration.parse(time)
    except ValueError as error:
        raise _usage(f"--time {time}: {error}") from error
    return CommandWorkload(
        command=words,
        nodes=nodes if nodes is not None or gpus is not None else 1,
        gpus=gpus,
        time=limit,
    )


def _usage(text: str) -> Exception:
    return failure("GC1216", text, exit_code=Exit.USAGE)


app = single("run", command, cls=CommandAfterDashes)
