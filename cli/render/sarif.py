"""Findings as SARIF 2.1.0, the form that code scanning services show.

What GitHub reads of it: docs.github.com, "SARIF support for code scanning" (read 2026-11-21).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ... import __version__
from ...schemas.checked import Report
from ...schemas.codes import CodeExplanation, explanations
from ...schemas.diagnostics import Diagnostic, Patch, Severity, Span
from .cells import printable
from .places import uri

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
    found += [other for other in report.others() if other.severity is not Severity.NOTE]
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
                    for other in report.others()
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
    """Return a message; braces are doubled, as SARIF asks (3.11.5): one alone marks an argument."""
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
