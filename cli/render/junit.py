"""Findings as a JUnit report: what CI servers show as tests that passed and failed.

One suite a file. An error is a test that failed; warnings and notes are tests that passed and say
what was found; a file with neither is one test that passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from ...schemas.checked import Report
from ...schemas.diagnostics import Diagnostic
from .cells import printable
from .places import shown


def junit_xml(report: Report) -> str:
    """Return the report as an XML document."""
    suites = ET.Element("testsuites", name="gcluster validate")
    for checked in report.specs:
        suites.append(_suite(checked.loaded.file, checked.diagnostics))
    other: dict[str, list[Diagnostic]] = {}
    for found in report.others():
        other.setdefault(found.file, []).append(found)
    for file, notes in other.items():
        suites.append(_suite(file, notes))
    for name in ("tests", "failures", "errors", "skipped"):
        suites.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    ET.indent(suites)
    body = ET.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}'


def _suite(file: str, found: Iterable[Diagnostic]) -> ET.Element:
    name = printable(shown(file))
    cases = [_case(each, name) for each in found]
    failures = sum(case.find("failure") is not None for case in cases)
    cases = cases or [ET.Element("testcase", name="the spec is right", classname=name, file=name)]
    counts = {"tests": len(cases), "failures": failures, "errors": 0, "skipped": 0}
    suite = ET.Element("testsuite", {"name": name} | {k: str(v) for k, v in counts.items()})
    suite.extend(cases)
    return suite


def _case(found: Diagnostic, file: str) -> ET.Element:
    """Return one finding as a test, named by its code and its place in the document.

    The name stays the same when lines move, so that servers know a failure again.
    """
    place = ".".join(map(str, found.path))
    name = printable(f"{found.code} {place}".strip())
    attributes = {"name": name, "classname": file, "file": file}
    if found.span is not None:
        attributes["line"] = str(found.span.line)
    case = ET.Element("testcase", attributes)
    text = _text(found, file)
    if found.is_error:
        failure = ET.SubElement(case, "failure", message=printable(found.summary), type=found.code)
        failure.text = text
    else:
        ET.SubElement(case, "system-out").text = text
    return case


def _text(found: Diagnostic, file: str) -> str:
    """Return the whole finding; characters that XML can't hold are shown as escapes."""
    place = file if found.span is None else f"{file}:{found.span.line}:{found.span.column}"
    help_line = f"help: {found.hint}" if found.hint else ""
    title = f"{found.severity}[{found.code}]: {found.summary}"
    parts = (title, f"--> {place}", found.detail, help_line)
    text = "\n".join(part for part in parts if part)
    return "\n".join(map(printable, text.split("\n")))
