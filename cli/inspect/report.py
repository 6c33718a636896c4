"""`gcluster report`: GPU hours, use, cost and waste of each account over a time."""

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ...inventory.compile.slurm.accounting import accounting_hosts
from ...lifecycle.cluster.cluster import Cluster, open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit, failure
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.status.waste.goodput import jobs_ended
from ...lifecycle.status.waste.kubernetes import is_of_pods, metrics_of
from ...lifecycle.status.waste.prometheus import monitoring_host, query_over_ssh, refuse_unwatched
from ...lifecycle.status.waste.report import Report, read_report
from ...lifecycle.status.waste.snapshot import export, is_snapshot, read_snapshot
from ...schemas.cost.pools import usd_per_hour
from ...schemas.spec.units import Duration
from ..console import emit, say, stdout
from ..options import complete_target, remember_format
from ..render.document import document
from ..render.inspect.report import report_csv, report_markdown, report_text
from ..render.inspect.report_html import report_html

SINCE = "7d"


class ReportLayout(StrEnum):
    """How a report is written: for people, programs, spreadsheets, tickets and browsers."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    HTML = "html"


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="CLUSTER",
            help="Path of a spec, name of a cluster, or a file that --export wrote.",
            autocompletion=complete_target,
        ),
    ],
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help=f"How far back, such as 30d [default: {SINCE}]."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Keep it as FILE.json, for after down."),
    ] = None,
    fmt: Annotated[
        ReportLayout,
        typer.Option("--format", help="How the report is written.", callback=remember_format),
    ] = ReportLayout.TEXT,
) -> Exit:
    """Show who used and wasted GPU hours over a time, in dollars.

    gcluster report lab --since 30d · gcluster report lab --format html > report.html
    """
    if file is not None and file.suffix != ".json":
        raise _usage(f"--export {file}: the name of an exported report ends with .json")
    if is_snapshot(target):
        if since is not None:
            raise _usage(f"{target} has its own time: leave --since out")
        report = read_snapshot(Path(target))
    else:
        report = _asked(open_cluster(target, running=True), _seconds(since or SINCE))
    if file is not None:
        export(report, file)
    _write(report, fmt)
    return Exit.OK


def _asked(cluster: Cluster, seconds: float) -> Report:
    """Query the cluster's Prometheus, and slurmdbd where there is one."""
    spec, until = cluster.spec, time.time()
    refuse_unwatched(spec, str(cluster.spec_path))
    hosts = existing_hosts(cluster)
    grafana = None if spec.monitoring is None else spec.monitoring.grafana_url
    bounds = usd_per_hour(spec, cluster.catalog).bounds
    if is_of_pods(cluster):
        with SshSession(cluster.workdir) as session:
            return read_report(
                cluster.name,
                metrics_of(cluster, session),
                since=until - seconds,
                until=until,
                bounds=bounds,
                grafana=grafana,
                of_pods=True,
            )
    keeps = bool(accounting_hosts(spec, hosts.hosts))
    with SshSession(cluster.workdir) as session:
        controller = hosts.with_role("controller")[0]
        return read_report(
            cluster.name,
            query_over_ssh(session, monitoring_host(spec, hosts)),
            since=until - seconds,
            until=until,
            goodput=jobs_ended(session, controller, until - seconds, until) if keeps else None,
            bounds=bounds,
            grafana=grafana,
        )


def _write(report: Report, fmt: ReportLayout) -> None:
    if fmt is ReportLayout.JSON:
        emit(document(report))
    elif fmt is ReportLayout.CSV:
        sys.stdout.write(report_csv(report))
    elif fmt is ReportLayout.MARKDOWN:
        emit(report_markdown(report))
    elif fmt is ReportLayout.HTML:
        emit(report_html(report))
    else:
        say(report_text(report, stdout()))


def _seconds(text: str) -> float:
    try:
        seconds = Duration.parse(text).value
    except ValueError as error:
        raise _usage(f"--since {text}: {error}") from error
    if seconds < 60:  # noqa: PLR2004  # four evaluations of a rule
        raise _usage(f"--since {text} is shorter than a minute")
    return seconds


def _usage(summary: str) -> Exception:
    return failure("GC1199", summary, hint="gcluster report --help", exit_code=Exit.USAGE)
