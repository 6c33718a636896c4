"""The report of an acceptance: as text, and as files to keep and to hand over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ....lifecycle.operations.acceptance.judge import Finding, MetricSummary, TestSummary
from ....lifecycle.operations.acceptance.report import NAMESPACE, Report, digest, signer
from ....lifecycle.operations.acceptance.run import Accepted
from ....schemas.derived.hostlist import fold
from ...console import Console, Tone, printable
from ..table import Column, tabulate
from .acceptance_html import acceptance_html

_COLUMNS = (
    Column("test", right=False),
    Column("outcome", right=False),
    Column("figure", right=False),
    *(Column(title) for title in ("of", "median", "MAD", "least", "most")),
    Column("unit", right=False),
)
_TONES: dict[str, Tone] = {"pass": "good", "fail": "error", "missing": "warning"}
_SHOWN = 20


def acceptance_text(accepted: Accepted, files: Sequence[Path], console: Console) -> str:
    """Return the verdict, what limits it, the tests with their figures, and what was found."""
    report = accepted.report
    lines = [*_table(report, console), "", _headline(report, console)]
    lines += _listed("simulated", report.simulated, "warning", console)
    lines += _listed("not tested", report.not_tested, "warning", console)
    for test in report.tests:
        whys = {gap.why for gap in test.missing.values()}
        if whys:
            lines += _listed("missing", [f"{test.name}: {'; '.join(whys)}"], "warning", console)
    for one in report.exclusions:
        text = f"{one.nodes}: {one.reason} (accepted by {one.accepted_by}, {one.time})"
        lines += _listed("excluded", [text], "warning", console)
    lines += _findings(report.findings, "fail", "error", console)
    lines += _findings(report.findings, "remark", "note", console)
    lines += ["", *(f"  {path}" for path in files)]
    return console.plain("\n".join(lines).lstrip("\n"))


def _headline(report: Report, console: Console) -> str:
    mark = {"pass": console.paint("good", "✔"), "fail": console.paint("error", "✘")}
    compared = f", compared with {report.compared_with}" if report.compared_with else ""
    simulated = " (simulated)" if report.simulated else ""
    return (
        f"{mark.get(report.verdict, '·')} acceptance {report.number} of {report.cluster}: "
        f"{report.verdict}{simulated}, {report.nodes}, as {report.account}{compared}"
    )


def _table(report: Report, console: Console) -> Iterator[str]:
    rows = [row for test in report.tests for row in _rows(test, console)]
    titles, *cells = tabulate(_COLUMNS, rows, console).lines
    yield from (console.paint("faint", titles), *cells)


def _rows(test: TestSummary, console: Console) -> Iterator[tuple[str, ...]]:
    outcome = console.paint(_TONES.get(test.outcome, "faint"), test.outcome)
    if not test.metrics:
        yield test.name, outcome, *[""] * (len(_COLUMNS) - 2)
    for number, metric in enumerate(test.metrics):
        first = (test.name, outcome) if number == 0 else ("", "")
        yield *first, *_cells(metric)


def _cells(metric: MetricSummary) -> tuple[str, ...]:
    summary = metric.summary
    figures = (summary.median, summary.mad, summary.least, summary.most)
    return metric.metric, str(summary.count), *(figure(value) for value in figures), metric.unit


def figure(value: float) -> str:
    """Return a figure with the digits that repetitions don't change."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"  # noqa: PLR2004  # no exponent


def _listed(title: str, texts: Sequence[str], tone: Tone, console: Console) -> list[str]:
    return [f"  {console.paint(tone, title)}: {printable(text)}" for text in texts]


def _findings(
    findings: Sequence[Finding], level: str, tone: Tone, console: Console
) -> Iterator[str]:
    alike: dict[tuple[str, str], list[str]] = {}
    chosen = [finding for finding in findings if finding.level == level]
    for finding in chosen[:_SHOWN]:
        alike.setdefault((finding.test, finding.text), []).extend(finding.nodes)
    for test, text in alike:
        yield f"  {console.paint(tone, test)}: {printable(text)}"
    if len(chosen) > _SHOWN:
        yield f"  and {len(chosen) - _SHOWN} more in the report"


def write_files(accepted: Accepted, folder: Path) -> tuple[Path, ...]:
    """Write the report, its signature, the HTML and a certificate for each node.

    Raises:
        OSError: the folder can't be written.
    """
    report, sha256 = accepted.report, digest(accepted.content)
    certificates = folder / "certificates"
    certificates.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_bytes(accepted.content)
    (folder / "report.html").write_text(acceptance_html(report, sha256), encoding="utf-8")
    files = [folder / "report.html", folder / "report.json"]
    if accepted.signature:
        (folder / "report.json.sig").write_text(accepted.signature, encoding="ascii")
        (folder / "allowed_signers").write_text(accepted.allowed_signers, encoding="ascii")
        (folder / "verify.sh").write_text(verify_line(report.cluster) + "\n", encoding="utf-8")
        files += [folder / "report.json.sig"]
    for certificate in report.certificates:
        document = {
            "format": report.format,
            "cluster": report.cluster,
            "acceptance": report.number,
            "ended": report.ended,
            "report_sha256": sha256,
            "signed": bool(accepted.signature),
            **msgspec.to_builtins(certificate),
        }
        path = certificates / f"{certificate.node}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(document)))
    names = fold(certificate.node for certificate in report.certificates)
    return (*files, certificates / f"{names}.json")


def verify_line(cluster: str) -> str:
    """Return the shell line that verifies a report in its folder; it needs no gcluster."""
    return (
        f"ssh-keygen -Y verify -f allowed_signers -I {signer(cluster)} -n {NAMESPACE}"
        " -s report.json.sig < report.json"
    )
