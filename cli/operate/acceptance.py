"""`gcluster acceptance`: what a team signs before it takes over a cluster."""

from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit, LifecycleError, failure
from ...lifecycle.operations.acceptance.reading.wiring import read_plan
from ...lifecycle.operations.acceptance.record import Exclusion, Options, now
from ...lifecycle.operations.acceptance.run import last_accepted, run_acceptance
from ...schemas.spec.units import Duration
from ..console import stdout
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.operate.acceptance import acceptance_text, write_files
from ..render.progress import open_progress


def command(  # noqa: PLR0917  # typer passes them by name
    cluster: Target,
    test: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this test; repeatable.")
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="HOSTS", help="Only these nodes or pools; repeatable."),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Times that each test runs [default: 3].")
    ] = None,
    soak: Annotated[
        str | None, typer.Option(metavar="TIME", help="Repeat the AllReduce so long, such as 24h.")
    ] = None,
    path: Annotated[
        str | None, typer.Option(metavar="DIRECTORY", help="Measure storage there, on the nodes.")
    ] = None,
    mib: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Size of its file [default: 1024].")
    ] = None,
    dcgm_level: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=4, help="Level of DCGM's diagnostics [default: 3]."),
    ] = None,
    wiring: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The cables: host,device,switch,port (CSV)."),
    ] = None,
    container: Annotated[
        str | None,
        typer.Option(metavar="IMAGE", help="Train in it, by pyxis: any image with PyTorch."),
    ] = None,
    drill: Annotated[
        list[str] | None,
        typer.Option(metavar="HOSTS", help="Break slurmd and a rail of these; repeatable."),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--as", metavar="USER", help="Account of the jobs [default: the first user]."),
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="NODES", help="Leave these out, for a reason.")
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="With --exclude: why.")] = None,
    accepted_by: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --exclude: who answers for it.")
    ] = None,
    wait: Annotated[
        str | None, typer.Option(metavar="TIME", help="Wait so long for nodes that jobs hold.")
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Begin another one, whatever is unfinished.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Write the last signed report again; run nothing.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Where the report goes [default: one made here]."),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Test a whole cluster for its takeover, and sign a report.

    Jobs run on idle nodes; the same command goes on with what is missing. Exit code 3 while
    something is missing, 4 when something failed.
    """
    opened = open_cluster(cluster, running=True)
    options = Options(
        tests=tuple(test) if test else None,
        nodes=tuple(nodes) if nodes else None,
        repetitions=repetitions,
        soak_s=_seconds("--soak", soak),
        wait_s=_seconds("--wait", wait) or 0,
        path=path,
        mib=mib,
        account=user,
        dcgm_level=dcgm_level,
        wiring=read_plan(wiring) if wiring else None,
        container=container,
        drilled=tuple(drill) if drill else None,
        exclude=_exclusion(exclude, reason, accepted_by),
        new=new,
    )
    if show:
        accepted = last_accepted(opened)
    else:
        with open_progress(fmt.value) as report:
            accepted = run_acceptance(opened, options, report)
    folder = out or Path(f"acceptance-{opened.name}-{accepted.report.number}")
    try:
        files = write_files(accepted, folder)
    except OSError as error:
        why = f"the report can't be written to {folder}: {error.strerror or error}"
        raise failure("GC933", why, hint="--out DIRECTORY", exit_code=Exit.USAGE) from error
    answer(fmt, accepted.report, lambda: acceptance_text(accepted, files, stdout()))
    return accepted.exit_code


def _seconds(option: str, time: str | None) -> float | None:
    if time is None:
        return None
    try:
        return float(Duration.parse(time).value)
    except ValueError as error:
        raise _usage(f"{option} {time}: {error}") from error


def _exclusion(nodes: str | None, reason: str | None, accepted_by: str | None) -> Exclusion | None:
    given = {"--exclude": nodes, "--reason": reason, "--accepted-by": accepted_by}
    missing = [name for name, value in given.items() if not value]
    if len(missing) == len(given):
        return None
    if missing or nodes is None or reason is None or accepted_by is None:
        raise _usage(f"an exclusion needs {', '.join(missing)} too: the report names all three")
    return Exclusion(nodes=nodes, reason=reason, accepted_by=accepted_by, time=now())


def _usage(summary: str) -> LifecycleError:
    return failure("GC1196", summary, hint="gcluster acceptance --help", exit_code=Exit.USAGE)
