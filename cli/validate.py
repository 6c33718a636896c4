"""`gcluster validate`: everything that is wrong with specs, at once, before a person waits."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcluster.cli.options import ReportFormat, ReportFormatOption, complete_spec
from gcluster.cli.render.output import say
from gcluster.cli.render.report import FORMATS, CheckedSpec, Report, report_text
from gcluster.lifecycle.outcome import Exit

if TYPE_CHECKING:
    from gcluster.schemas.diagnostics import Diagnostic
    from gcluster.schemas.load import Loaded
    from gcluster.schemas.spec import ClusterSpec, Pool

STDIN_LIMIT = 8 * 2**20 + 1
"""Bytes read from standard input: one more than a spec may have, so that the limit is told."""


def command(
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
) -> Exit:
    """Check specs and say everything that is wrong with them.

    Nothing is touched. Exit code 2 when a spec has errors.
    """
    report = _check(specs)
    _tell(report, fmt, output)
    return Exit.OK if report.ok else Exit.SPEC


def _tell(report: Report, fmt: ReportFormat, output: Path | None) -> None:
    from gcluster.cli.render.surface import Surface, stdout

    if output is not None:
        written = report_text(report, Surface()) if fmt == "text" else FORMATS[fmt](report)
        output.write_text(f"{written}\n", encoding="utf-8", errors="backslashreplace")
    if output is not None or fmt == "text":
        say(report_text(report, stdout()))
    else:
        say(FORMATS[fmt](report))


def _check(named: list[str]) -> Report:
    """Load what is named, and look for clashes when there is more than one spec."""
    loaded: list[Loaded] = []
    notes: list[Diagnostic] = []
    many = len(named) > 1
    for name in dict.fromkeys(named):
        if name != "-" and _is_folder(name):
            from gcluster.schemas.fleet.folder import load_folder

            folder = load_folder(Path(name))
            loaded += folder.specs
            notes += folder.notes
            many = True
        else:
            loaded.append(_load(name))
    specs = _once(loaded)
    clashes: dict[str, list[Diagnostic]] = {}
    if len(specs) > 1:
        from gcluster.schemas.fleet import check_fleet

        for clash in check_fleet(specs):
            clashes.setdefault(clash.file, []).append(clash)
    checked = tuple(_checked(each, clashes.get(each.file, [])) for each in specs)
    return Report(specs=checked, notes=tuple(notes), many=many)


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # loading says why
        return False


def _load(spec: str) -> "Loaded":
    from gcluster.schemas.load import load, load_text

    if spec == "-":
        return load_text(sys.stdin.buffer.read(STDIN_LIMIT), file="<stdin>")
    return load(Path(spec))


def _once(loaded: "list[Loaded]") -> "list[Loaded]":
    """Return each file once, however often it was named: it doesn't clash with itself."""
    if len(loaded) == 1:
        return loaded
    kept: dict[Path, Loaded] = {}
    for each in loaded:
        kept.setdefault(Path(each.file).resolve(), each)
    return list(kept.values())


def _checked(loaded: "Loaded", more: "list[Diagnostic]") -> CheckedSpec:
    found = loaded.diagnostics
    if more:
        from gcluster.schemas.diagnostics import in_file_order

        found = tuple(in_file_order([*found, *more]))
    hosts = None if loaded.spec is None else host_count(loaded.spec)
    return CheckedSpec(loaded=loaded, diagnostics=found, hosts=hosts)


def host_count(spec: "ClusterSpec") -> int:
    """Return how many machines the spec asks for at most."""
    count = 0
    for name, site in spec.sites.items():
        if site.__struct_config__.tag == "bare-metal":
            from gcluster.inventory.bare_metal import bare_metal_hosts

            count += len(bare_metal_hosts(spec, name))
        else:
            count += sum(_most(pool) for pool in spec.pools.values() if pool.site == name)
    return count


def _most(pool: "Pool") -> int:
    return 1 if pool.most is None else pool.most
