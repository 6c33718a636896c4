"""What `gcluster validate` found in one or many specs: as text, and as one JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gcluster.cli.render.surface import Surface
    from gcluster.schemas.diagnostics import Diagnostic
    from gcluster.schemas.load import Loaded
    from gcluster.schemas.spec import ClusterSpec


class CheckedSpec(NamedTuple):
    """A spec and everything that is said about it, clashes and policies included."""

    loaded: Loaded
    diagnostics: tuple[Diagnostic, ...]
    hosts: int | None
    """How many machines it asks for; None when that is not known."""

    @property
    def spec(self) -> ClusterSpec | None:
        """The spec, when nothing at all is wrong with it."""
        wrong = any(found.is_error for found in self.diagnostics)
        return None if wrong else self.loaded.spec


class Report(NamedTuple):
    """What was checked and what was found."""

    specs: tuple[CheckedSpec, ...]
    notes: tuple[Diagnostic, ...] = ()
    """What is said about other files and folders than the specs."""
    many: bool = False
    """Whether a folder or several files were asked for: then the end says how many there were."""

    def found(self) -> Iterator[Diagnostic]:
        """Yield every finding, file by file."""
        for checked in self.specs:
            yield from checked.diagnostics
        yield from self.notes

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(found.is_error for found in self.found())


def report_text(report: Report, surface: Surface) -> str:
    """Return the report as a person reads it."""
    found = list(report.found())
    lines: list[str] = []
    if found:
        from gcluster.cli.render.diagnostics import (  # noqa: PLC0415  # a right spec needs none
            diagnostics_text,
            summary_line,
        )

        sources = {checked.loaded.file: checked.loaded.text for checked in report.specs}
        lines.append(diagnostics_text(found, surface, sources))
        lines += ["", summary_line(found)] if not report.many else [""]
    lines += [_right(checked) for checked in report.specs if checked.spec is not None]
    if report.many:
        lines.append(totals(report))
    return "\n".join(lines)


def totals(report: Report) -> str:
    """Return "3 specs: 2 errors, 1 warning"."""
    from gcluster.cli.render.diagnostics import summary_line  # noqa: PLC0415  # as above

    return f"{_counted(len(report.specs), 'spec')}: {summary_line(report.found())}"


def _right(checked: CheckedSpec) -> str:
    spec = checked.loaded.spec
    if spec is None:
        return ""
    hosts = "" if checked.hosts is None else f", {_counted(checked.hosts, 'host')}"
    return f"ok: {spec.name}: {_counted(len(spec.pools), 'pool')}{hosts}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def report_value(report: Report) -> dict[str, Any]:
    """Return what the JSON document says."""
    return {
        "ok": report.ok,
        "specs": [
            {
                "file": checked.loaded.file,
                "ok": checked.spec is not None,
                "cluster": checked.spec and checked.spec.name,
                "pools": checked.spec and len(checked.spec.pools),
                "hosts": checked.hosts if checked.spec is not None else None,
                "diagnostics": checked.diagnostics,
            }
            for checked in report.specs
        ],
        "notes": report.notes,
    }


def _json(report: Report) -> str:
    from gcluster.cli.render.document import document  # noqa: PLC0415  # only for this format

    return document(report_value(report))


def _sarif(report: Report) -> str:
    from gcluster.cli.render.document import document  # noqa: PLC0415  # only for this format
    from gcluster.cli.render.sarif import sarif_log  # noqa: PLC0415  # as above

    return document(sarif_log(report))


def _github(report: Report) -> str:
    from gcluster.cli.render.github import workflow_commands  # noqa: PLC0415  # only for this format

    return "\n".join([*workflow_commands(report.found()), totals(report)])


def _junit(report: Report) -> str:
    from gcluster.cli.render.junit import junit_xml  # noqa: PLC0415  # only for this format

    return junit_xml(report)


FORMATS: Mapping[str, Callable[[Report], str]] = {
    "json": _json,
    "sarif": _sarif,
    "github": _github,
    "junit": _junit,
}
"""What writes each format for programs; each imports what it needs when it is asked for."""
