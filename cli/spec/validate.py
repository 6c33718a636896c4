"""`gcluster validate`: everything that is wrong with specs, at once, before a person waits."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from ...lifecycle.cluster.outcome import Exit, failure, rewrite
from ...lifecycle.planning.preflight.offline import offline_findings
from ...schemas.fleet.checked import STDIN, Gathered, Report, check, gather
from ...schemas.load import Loaded
from ..console import Console, emit, say, stdout
from ..options import ReportFormat, ReportFormatOption, complete_spec
from ..render.spec.validate import for_programs, report_text

STDIN_LIMIT = 8 * 2**20 + 1
"""Bytes read from standard input: one more than a spec may have, so that more is noticed."""


def command(  # noqa: PLR0917  # typer passes them by name
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC...",
            help='Paths of specs, or of folders with specs; "-" is stdin.',
            autocompletion=complete_spec,
        ),
    ],
    fmt: ReportFormatOption = ReportFormat.TEXT,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the findings here, text to the terminal."
        ),
    ] = None,
    policies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Policies; default: policies.yaml next to each spec.",
        ),
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Show what can be fixed, as a diff.", show_default=False)
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="With --fix: fix the files.", show_default=False)
    ] = False,
) -> Exit:
    """Check specs and show all findings.

    Nothing is touched, except by --fix --write. Exit code 2 when a spec has errors, 4 when only
    a policy is not kept.
    """
    _refuse_what_does_not_go_together(specs, fmt, fix, write)
    day = datetime.now(UTC).date()
    gathered = gather(specs, lambda: sys.stdin.buffer.read(STDIN_LIMIT))
    if fix:
        fixed = _apply_fixes(gathered, write, quiet=fmt != "text" and output is None)
        after = replace(gathered, specs=tuple(fixed))
        report = check(after, policies=policies, today=day, more=offline_findings)
        _report(report, fmt, output)
        before = check(gathered, policies=policies, today=day, more=offline_findings)
        return _exit_code(report if write else before)
    report = check(gathered, policies=policies, today=day, more=offline_findings)
    _report(report, fmt, output)
    return _exit_code(report)


def _refuse_what_does_not_go_together(
    specs: list[str], fmt: ReportFormat, fix: bool, write: bool
) -> None:

    wrong = ""
    if write and not fix:
        wrong = "--write goes with --fix"
    elif write and STDIN in specs:
        wrong = "standard input can't be written: name a file"
    elif fix and not write and fmt != "text":
        wrong = f"--fix alone shows a diff, which --format {fmt} can't hold: add --write"
    if wrong:
        raise failure("GC941", wrong, hint="gcluster validate --help", exit_code=Exit.USAGE)


def _apply_fixes(gathered: Gathered, write: bool, *, quiet: bool) -> list[Loaded]:
    """Fix every spec, show what changes, and write it where that is requested."""
    from ...schemas.structure.fix.apply import apply_fixes  # noqa: PLC0415  # --fix alone needs it
    from ..render.spec.diff import fixes_text  # noqa: PLC0415  # as above

    fixed = [apply_fixes(each) for each in gathered.specs]
    for each in fixed:
        if not each.is_changed:
            continue
        if write:
            rewrite(each.before.file, each.before.text, each.after.text)
        if not quiet:
            say(fixes_text(each, stdout(), written=write))
    return [each.after for each in fixed]


def _report(report: Report, fmt: ReportFormat, output: Path | None) -> None:
    """Write the report: to the terminal, or to a file with the text on the terminal."""
    if output is not None:
        written = report_text(report, Console()) if fmt == "text" else for_programs(report, fmt)
        output.write_text(f"{written}\n", encoding="utf-8", errors="backslashreplace")
    if output is not None or fmt == "text":
        say(report_text(report, stdout()))
    else:
        emit(for_programs(report, fmt))


def _exit_code(report: Report) -> Exit:
    if report.is_wrong:
        return Exit.SPEC
    return Exit.REFUSED if report.is_refused else Exit.OK
