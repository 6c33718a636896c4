"""Findings as text."""

from __future__ import annotations

import msgspec
import pytest
from tests.cli.render.conftest import Check, Read

from gcluster.cli.console import Console
from gcluster.cli.render.diagnostics import diagnostics_text, summary_line
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.schemas.load import load_text

_WRITTEN_OUT = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools: {head: {site: here, role: controller}, gpu: {site: here, machine: sim.h100x8, count: 4}}
scheduler: {type: slurm}
users: {source: sssd, ldap: ldaps://d.example.edu, bind_password: hunter2, bsae: dc=example}
secrets: {provider: age, key: AGE-SECRET-KEY-1QQQ}
"""


def test_a_case_is_rendered_as_its_golden_text(
    read: Read, check_text: Check, diagnostics_case: str
) -> None:
    console, values = read("diagnostics", diagnostics_case)
    found = msgspec.convert(values["diagnostics"], list[Diagnostic])
    check_text(
        "diagnostics",
        diagnostics_case,
        diagnostics_text(found, console, {"cluster.yaml": values["source"]}) + "\n",
    )


def _finding(severity: str) -> Diagnostic:
    return Diagnostic(code="GC001", severity=Severity(severity), summary="x")


@pytest.mark.parametrize(
    ("severities", "says"),
    [
        ([], "no findings"),
        (["error"], "1 error"),
        (["warning", "error", "error"], "2 errors, 1 warning"),
        (["note"], "1 note"),
    ],
)
def test_the_summary_counts_by_severity_and_leaves_out_what_is_none(
    severities: list[str], says: str
) -> None:
    assert summary_line([_finding(severity) for severity in severities]) == says


def test_nothing_found_is_no_text() -> None:
    assert diagnostics_text([], Console()) == ""


def test_a_secret_that_is_written_out_is_never_shown() -> None:
    found = load_text(_WRITTEN_OUT, file="cluster.yaml").diagnostics
    shown = diagnostics_text(found, Console(width=200), {"cluster.yaml": _WRITTEN_OUT})

    assert len(found) == 3
    assert "hunter2" not in shown
    assert "AGE-SECRET-KEY-1QQQ" not in shown
    assert "bind_password: *******" in shown
