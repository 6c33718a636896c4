"""Findings for CI servers: SARIF 2.1.0, GitHub workflow commands, JUnit XML.

What GitHub reads of it: docs.github.com, "SARIF support for code scanning" (read 2026-11-21).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from .... import __version__
from ....schemas.codes import CodeExplanation, explanations
from ....schemas.diagnostics import Diagnostic, Patch, Severity, Span
from ....schemas.fleet.checked import Report
from ...console import printable
from ..document import document
from .validate import totals

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
FINGERPRINT = "gclusterPlace/v1"
ROOT = "%SRCROOT%"
_WEIGHT = {Severity.NOTE: 0, Severity.WARNING: 1, Severity.ERROR: 2}


def sarif_log(report: Report) -> dict[str, Any]:
    """Return a SARIF log with one run.

    What is said about files that are no specs becomes notifications: an alert on each YAML file
    of a repository would drown the others.
    """
    found = [each for checked in report.specs for each in checked.diagnostics]
    found += [other for other in report.general() if other.severity is not Severity.NOTE]
    codes = sorted({each.code for each in found})
    indexes = {code: index for index, code in enumerate(codes)}
    run = {
        "tool": {"driver": _driver(codes, found)},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            ROOT: {"description": _message("The folder that gcluster was started in.")}
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    _notification(other)
                    for other in report.general()
                    if other.severity is Severity.NOTE
                ],
            }
        ],
        "results": _results(found, indexes),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _driver(codes: Iterable[str], found: Iterable[Diagnostic]) -> dict[str, Any]:

    known = explanations()
    levels: dict[str, Severity] = {}
    for each in found:
        before = levels.get(each.code, each.severity)
        levels[each.code] = max(before, each.severity, key=lambda level: _WEIGHT[level])
    rules = [_rule(code, known.get(code), level=levels[code]) for code in codes]
    return {"name": "gcluster", "semanticVersion": __version__, "rules": rules}


def _rule(code: str, known: CodeExplanation | None, *, level: Severity) -> dict[str, Any]:
    summary, text = (known.summary, known.explanation) if known is not None else (code, code)
    return {
        "id": code,
        "shortDescription": _message(summary),
        "fullDescription": _message(text),
        "help": _message(f"{text}\n\ngcluster explain {code}"),
        "defaultConfiguration": {"level": str(level)},
    }


def _results(found: Iterable[Diagnostic], indexes: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return one result a finding; findings alike in all that the fingerprint holds are counted."""
    seen: Counter[str] = Counter()
    results = []
    for each in found:
        place = json.dumps([each.code, uri(each.file)[0], each.path])
        seen[place] += 1
        mark = hashlib.sha256(f"{place}:{seen[place]}".encode()).hexdigest()
        result: dict[str, Any] = {
            "ruleId": each.code,
            "ruleIndex": indexes[each.code],
            "level": str(each.severity),
            "message": _message(_text(each)),
            "partialFingerprints": {FINGERPRINT: mark},
        }
        if each.file:
            result["locations"] = [_location(each)]
        if each.patch is not None:
            result["fixes"] = [_fix(each, each.patch)]
        results.append(result)
    return results


def _notification(note: Diagnostic) -> dict[str, Any]:
    return {
        "descriptor": {"id": note.code},
        "level": str(note.severity),
        "message": _message(_text(note)),
        "locations": [_location(note)],
    }


def _text(found: Diagnostic) -> str:
    help_line = f"help: {found.hint}" if found.hint else ""
    return "\n".join(part for part in (found.summary, found.detail, help_line) if part)


def _message(text: str) -> dict[str, str]:
    """Return a message; braces are doubled (SARIF 3.11.5): one alone marks an argument."""
    lines = "\n".join(map(printable, text.split("\n")))
    return {"text": lines.replace("{", "{{").replace("}", "}}")}


def _location(found: Diagnostic) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(found.file)}
    if found.span is not None:
        physical["region"] = _region(found.span)
    location: dict[str, Any] = {"physicalLocation": physical}
    if found.path:
        path = ".".join(printable(str(step)) for step in found.path)
        location["logicalLocations"] = [{"fullyQualifiedName": path}]
    return location


def _artifact(file: str) -> dict[str, str]:
    place, is_relative = uri(file)
    return {"uri": place, "uriBaseId": ROOT} if is_relative else {"uri": place}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _fix(found: Diagnostic, patch: Patch) -> dict[str, Any]:
    replacement = {
        "deletedRegion": _region(patch.span),
        "insertedContent": {"text": patch.replacement},
    }
    change = {"artifactLocation": _artifact(found.file), "replacements": [replacement]}
    return {"description": _message(found.hint or found.summary), "artifactChanges": [change]}


_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def workflow_commands(found: Iterable[Diagnostic]) -> Iterator[str]:
    """Yield one command a finding, each on one line."""
    for each in found:
        properties: dict[str, object] = {}
        if each.file:
            properties["file"] = shown(each.file)
        if each.span is not None:
            span = each.span
            properties |= {"line": span.line, "endLine": span.end_line}
            if span.line == span.end_line:  # columns of several lines are refused
                properties |= {"col": span.column, "endColumn": span.end_column}
        properties["title"] = each.code
        written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
        yield f"::{_COMMANDS[each.severity]} {written}::{_data(_github_message(each))}"


def _github_message(found: Diagnostic) -> str:
    help_line = f"help: {found.hint}" if found.hint else ""
    text = "\n".join(part for part in (found.summary, found.detail, help_line) if part)
    return "\n".join(map(printable, text.split("\n")))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")


def junit_xml(report: Report) -> str:
    """Return the report as an XML document."""
    suites = ET.Element("testsuites", name="gcluster validate")
    for checked in report.specs:
        suites.append(_suite(checked.loaded.file, checked.diagnostics))
    other: dict[str, list[Diagnostic]] = {}
    for found in report.general():
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
    text = _junit_text(found, file)
    if found.is_error:
        failure = ET.SubElement(case, "failure", message=printable(found.summary), type=found.code)
        failure.text = text
    else:
        ET.SubElement(case, "system-out").text = text
    return case


def _junit_text(found: Diagnostic, file: str) -> str:
    """Return the whole finding; characters that XML can't hold are shown as escapes."""
    place = file if found.span is None else f"{file}:{found.span.line}:{found.span.column}"
    help_line = f"help: {found.hint}" if found.hint else ""
    title = f"{found.severity}[{found.code}]: {found.summary}"
    parts = (title, f"--> {place}", found.detail, help_line)
    text = "\n".join(part for part in parts if part)
    return "\n".join(map(printable, text.split("\n")))


def relative(file: str) -> str | None:
    """Return a file's path below the current folder, with slashes; None when it is elsewhere.

    What is no file of this machine, such as "<stdin>", stays as it is.
    """
    below = Path(os.path.relpath(file))
    return None if below.parts[:1] == (os.pardir,) else below.as_posix()


def shown(file: str) -> str:
    """Return the path that names a file to people: below the current folder, or the whole one."""
    return relative(file) or Path(os.path.abspath(file)).as_posix()  # noqa: PTH100  # keeps links


def uri(file: str) -> tuple[str, bool]:
    """Return a file's URI, and whether it is relative to the current folder."""
    below = relative(file)
    if below is not None:
        return quote(os.fsencode(below)), True
    absolute = os.path.abspath(file)  # noqa: PTH100  # links are kept: resolve() follows them
    return f"file://{quote(os.fsencode(absolute))}", False


FORMATS: Mapping[str, Callable[[Report], str]] = {
    "sarif": lambda report: document(sarif_log(report)),
    "github": lambda report: "\n".join([*workflow_commands(report.found()), totals(report)]),
    "junit": junit_xml,
}
"""What writes each format."""
