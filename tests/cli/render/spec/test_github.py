"""Workflow commands: one line each, whatever is in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gcluster.cli.render.spec.ci import workflow_commands
from gcluster.schemas.diagnostics import Diagnostic, Severity, Span

SPAN = Span(line=6, column=21, end_line=6, end_column=27)


def _command(**more: Any) -> str:
    base: dict[str, Any] = {"code": "GC102", "severity": Severity.ERROR, "summary": "no such site"}
    (written,) = workflow_commands([Diagnostic(**base | more)])
    return written


def test_an_annotation_names_file_place_and_code() -> None:
    assert _command(file="specs/a.yaml", span=SPAN) == (
        "::error file=specs/a.yaml,line=6,endLine=6,col=21,endColumn=27,title=GC102::no such site"
    )


def test_severities_are_the_three_commands() -> None:
    answer = [_command(severity=severity).split(" ")[0] for severity in Severity]
    assert answer == ["::error", "::warning", "::notice"]


def test_columns_are_left_out_where_several_lines_are_selected() -> None:
    several = Span(line=6, column=21, end_line=8, end_column=2)
    assert "line=6,endLine=8,title" in _command(file="a.yaml", span=several)


def test_what_ends_a_property_or_a_message_is_escaped() -> None:
    written = _command(file="a,b:c%.yaml", summary="50% of, all: x", hint="one\ntwo")
    assert written == (
        "::error file=a%2Cb%3Ac%25.yaml,title=GC102::50%25 of, all: x%0Ahelp: one%0Atwo"
    )


def test_a_file_below_the_current_folder_is_named_from_there() -> None:
    assert "file=specs/a.yaml," in _command(file=str(Path.cwd() / "specs" / "a.yaml"))


@given(text=st.text(), file=st.text(min_size=1))
def test_nothing_in_a_spec_starts_a_second_command(text: str, file: str) -> None:
    name = file.replace("\0", "") or "a"
    written = _command(summary=text, detail=text, hint=text, file=name, span=SPAN)
    assert len(written.splitlines()) == 1
    match = re.fullmatch(r"::error file=([^,:]*),line=6,endLine=6,.*?,title=GC102::(.*)", written)
    assert match is not None
    assert "\x1b" not in written
