"""JUnit reports: well-formed, with counts that are right."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from gcluster.cli.render.spec.ci import junit_xml
from gcluster.schemas.diagnostics import Diagnostic, Severity, Span
from gcluster.schemas.fleet.checked import CheckedSpec, Report
from gcluster.schemas.load import Loaded

SPAN = Span(line=6, column=21, end_line=6, end_column=27)


def _finding(summary: str = "x", **more: Any) -> Diagnostic:
    base: dict[str, Any] = {"code": "GC001", "severity": Severity.ERROR, "file": "a.yaml"}
    return Diagnostic(**base | {"summary": summary} | more)


def _spec(file: str, *found: Diagnostic) -> CheckedSpec:
    return CheckedSpec(
        loaded=Loaded(spec=None, diagnostics=found, text="", file=file, document=None)
    )


def _read(report: Report) -> ET.Element:
    return ET.fromstring(junit_xml(report))  # noqa: S314  # our own text


def test_an_error_is_a_failure_with_its_place_and_what_to_write_instead() -> None:
    found = _finding('unknown key "machin"', path=("pools", "gpu"), span=SPAN, hint="write machine")
    suites = _read(Report(specs=(_spec("specs/a.yaml", found),)))
    (case,) = suites.iter("testcase")
    assert case.attrib == {
        "name": "GC001 pools.gpu", "classname": "specs/a.yaml", "file": "specs/a.yaml", "line": "6",
    }  # fmt: skip
    failure = case.find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("GC001", 'unknown key "machin"')
    assert (failure.text or "").splitlines() == [
        'error[GC001]: unknown key "machin"', "--> specs/a.yaml:6:21", "help: write machine",
    ]  # fmt: skip


def test_each_file_is_a_suite_and_the_counts_add_up() -> None:
    warning = _finding("w", severity=Severity.WARNING)
    suites = _read(
        Report(
            specs=(_spec("a.yaml", _finding(), _finding(), warning), _spec("b.yaml")),
            notes=(_finding("left out", severity=Severity.NOTE, file="c.yaml"),),
        )
    )
    answer = [(s.get("name"), s.get("tests"), s.get("failures")) for s in suites]
    assert answer == [("a.yaml", "3", "2"), ("b.yaml", "1", "0"), ("c.yaml", "1", "0")]
    assert (suites.get("tests"), suites.get("failures")) == ("5", "2")


def test_a_warning_passes_and_is_reported_all_the_same() -> None:
    (case,) = _read(
        Report(specs=(_spec("a.yaml", _finding("soon", severity=Severity.WARNING)),))
    ).iter("testcase")
    assert case.find("failure") is None
    assert "soon" in (case.findtext("system-out") or "")


@given(text=st.text(), file=st.text(min_size=1))
def test_whatever_is_found_is_well_formed_and_nothing_is_lost(text: str, file: str) -> None:
    name = file.replace("\0", "") or "a"
    found = _finding(text, detail=text, hint=text, path=(text, 1), file=name)
    (case,) = _read(Report(specs=(_spec(name, found),))).iter("testcase")
    failure = case.find("failure")
    assert failure is not None
    assert all(
        character in (failure.text or "")
        for character in text
        if character.isprintable() and not character.isspace()
    )
