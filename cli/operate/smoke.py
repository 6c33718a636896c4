"""`gcluster smoke`: the AllReduce gate or the storage benchmark, on a cluster or a saved log."""

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, TextIO

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit, LifecycleError, failure
from ...lifecycle.operations.storage.benchmark import run_storage_benchmark
from ...lifecycle.smoke.gate import run_gate
from ...lifecycle.smoke.saved import judge_saved
from ...schemas.catalog import CatalogError, load_catalog
from ..console import emit, say, stdout
from ..options import Format, OutputFormat, complete_target
from ..render.document import answer, document
from ..render.operate.smoke import smoke_text, suspects_text
from ..render.operate.storage import storage_text
from ..render.progress import open_progress


def command(  # noqa: PLR0917  # typer passes them by name
    cluster: Annotated[
        str | None,
        typer.Argument(
            metavar="[CLUSTER]",
            help="Path of a spec, or the name of a cluster. None with --log.",
            autocompletion=complete_target,
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="FILE", help="Judge this log instead; - is standard input."),
    ] = None,
    fabric: Annotated[
        str | None, typer.Option(metavar="CLASS", help="With --log: the fabric class it ran over.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option(metavar="TYPE", help="With --log: the machine type of its nodes.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="N", help="With --log: how many nodes took part.")
    ] = None,
    catalog: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="With --log: a catalog file of your own; repeatable."),
    ] = None,
    bisect: Annotated[
        bool, typer.Option(help="After a failure, run smaller ones until the fault is located.")
    ] = True,
    storage: Annotated[
        bool,
        typer.Option("--storage", help="Measure shared storage instead.", show_default=False),
    ] = False,
    user: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --storage: who writes there [default: root]."),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Test the AllReduce, measure storage, or judge a saved log.

    Exit code 4 on a wrong number, a missing rank, another fabric than the spec has, a log that
    can't be read, or below the floor; with --storage where a storage was not measured.
    """
    if user is not None and not storage:
        raise _usage("--user goes with --storage")
    if storage and log is not None:
        raise _usage("--storage measures a cluster: leave --log out")
    only_with_log = {"--fabric": fabric, "--machine": machine, "--nodes": nodes}
    if log is None:
        useless = [name for name, value in only_with_log.items() if value is not None]
        if useless or catalog:
            raise _usage(f"{', '.join(useless) or '--catalog'} goes with --log FILE")
        if cluster is None:
            raise _usage("what to test is missing: a cluster, or --log FILE")
        return _storage(cluster, user, fmt) if storage else _run(cluster, fmt, bisect=bisect)
    if cluster is not None:
        raise _usage("--log judges a file: leave the cluster out")
    if fabric is None or machine is None or nodes is None:
        missing = [name for name, value in only_with_log.items() if value is None]
        raise _usage(f"--log needs {', '.join(missing)} too: the floor depends on it")
    return _judge(log, fabric, machine, nodes, catalog or [], fmt)


def _storage(cluster: str, user: str | None, fmt: Format) -> Exit:
    opened = open_cluster(cluster, running=True)
    with open_progress(fmt.value) as report:
        result = run_storage_benchmark(opened, report, user=user)
    answer(fmt, result, lambda: storage_text(result, stdout()))
    return Exit.OK if result.passed else Exit.REFUSED


def _run(cluster: str, fmt: Format, *, bisect: bool) -> Exit:

    opened = open_cluster(cluster, running=True)
    with open_progress(fmt.value) as report:
        result = run_gate(opened, report, bisect=bisect)
    if fmt is Format.JSON:
        emit(document(result))
    else:
        say(smoke_text(result.verdict, result.log, stdout()) + suspects_text(result, stdout()))
    return Exit.OK if result.passed else Exit.REFUSED


def _judge(  # noqa: PLR0917  # the options, one by one
    log: str, fabric: str, machine: str, nodes: int, catalog: list[Path], fmt: Format
) -> Exit:

    try:
        known = load_catalog(catalog)
        with _open(log) as stream:
            result = judge_saved(stream, fabric=fabric, machine=machine, nodes=nodes, catalog=known)
    except CatalogError as error:
        raise LifecycleError(*error.diagnostics, exit_code=Exit.SPEC) from error
    except OSError as error:
        why = f"the log {log} can't be read: {error.strerror or error}"
        raise failure("GC933", why, exit_code=Exit.USAGE) from error
    if fmt is Format.JSON:
        emit(document(result.verdict))
    else:
        say(smoke_text(result.verdict, result.log, stdout()))
    return Exit.OK if result.passed else Exit.REFUSED


def _open(log: str) -> TextIO:
    """Open a log for reading, or standard input for "-"; bytes that are no UTF-8 are replaced."""
    if log == "-":
        return TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")
    return Path(log).open(encoding="utf-8", errors="replace")


def _usage(summary: str) -> LifecycleError:

    return failure("GC941", summary, hint="gcluster smoke --help", exit_code=Exit.USAGE)
