"""SARIF: valid against the official schema, and what code scanning services read of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schemas.validate_cases import Case, all_cases

from gcluster.cli.render.document import document
from gcluster.cli.render.spec.ci import FINGERPRINT, sarif_log
from gcluster.schemas.diagnostics import Diagnostic, Patch, Severity, Span
from gcluster.schemas.fleet.checked import CheckedSpec, Report, check, gather
from gcluster.schemas.load import Loaded, load_text

CASES = Path(__file__).parents[3] / "cases"
SCHEMA = json.loads((CASES / "sarif" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft7Validator(
    SCHEMA, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER
)
WRONG = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machin: sim.h100x8, count: 4}
scheduler: {type: slurm}
"""


def _log(*found: Diagnostic, notes: tuple[Diagnostic, ...] = ()) -> Any:
    loaded = Loaded(spec=None, diagnostics=found, text="", file="specs/a.yaml", document=None)
    return _checked(Report(specs=(CheckedSpec(loaded=loaded),), notes=notes))


def _log_of(text: str, file: str = "specs/a.yaml") -> Any:
    return _checked(Report(specs=(CheckedSpec(loaded=load_text(text, file=file)),)))


def _checked(report: Report) -> Any:
    """Return the log as a reader gets it, checked against the schema."""
    log = json.loads(document(sarif_log(report)))
    VALIDATOR.validate(log)
    return log


def _finding(summary: str = "x", **more: Any) -> Diagnostic:
    base: dict[str, Any] = {"code": "GC001", "severity": Severity.ERROR, "file": "specs/a.yaml"}
    return Diagnostic(**base | {"summary": summary} | more)


def test_a_finding_is_a_result_of_a_rule_at_its_place() -> None:
    run = _log_of(WRONG)["runs"][0]
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    location = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], rule["id"], result["level"]) == ("GC001", "GC001", "error")
    assert rule["shortDescription"]["text"] == "A key that the spec does not have."
    assert rule["defaultConfiguration"]["level"] == "error"
    assert location["artifactLocation"] == {"uri": "specs/a.yaml", "uriBaseId": "%SRCROOT%"}
    assert location["region"] == {
        "startLine": 6, "startColumn": 21, "endLine": 6, "endColumn": 27,
    }  # fmt: skip


def test_a_patch_is_a_fix_that_a_tool_can_apply() -> None:
    (result,) = _log_of(WRONG)["runs"][0]["results"]
    ((change,),) = [fix["artifactChanges"] for fix in result["fixes"]]
    (replacement,) = change["replacements"]
    region = replacement["deletedRegion"]
    lines = WRONG.split("\n")
    line = lines[region["startLine"] - 1]
    lines[region["startLine"] - 1] = (
        line[: region["startColumn"] - 1]
        + replacement["insertedContent"]["text"]
        + line[region["endColumn"] - 1 :]
    )
    assert not any(found.is_error for found in load_text("\n".join(lines)).diagnostics)


def test_columns_count_characters_and_report_it() -> None:
    run = _log_of(WRONG.replace("name: demo", 'name: "😀😀", nam: 1'))["runs"][0]
    assert run["columnKind"] == "unicodeCodePoints"


def test_a_fingerprint_survives_moved_lines_and_distinguishes_equal_findings() -> None:
    def marks(text: str, file: str = "specs/a.yaml") -> list[str]:
        results = _log_of(text, file)["runs"][0]["results"]
        return [result["partialFingerprints"][FINGERPRINT] for result in results]

    twice = WRONG.replace("count: 4", "cuont: 4")
    assert marks(f"# moved\n\n{twice}") == marks(twice)
    assert len(set(marks(twice))) == 2
    assert not set(marks(twice)) & set(marks(twice, "specs/b.yaml"))
    alike = _log(_finding(path=("a",)), _finding(path=("a",)))["runs"][0]["results"]
    assert len({result["partialFingerprints"][FINGERPRINT] for result in alike}) == 2


def test_the_key_that_the_upload_computes_itself_is_left_to_it() -> None:
    (result,) = _log(_finding())["runs"][0]["results"]
    assert list(result["partialFingerprints"]) == [FINGERPRINT]


def test_each_rule_is_once_with_the_heaviest_level_it_was_found_at() -> None:
    run = _log(_finding(severity=Severity.WARNING), _finding(), _finding(severity=Severity.NOTE))[
        "runs"
    ][0]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["defaultConfiguration"]["level"] == "error"
    assert [result["level"] for result in run["results"]] == ["warning", "error", "note"]


def test_files_left_out_are_notifications_and_no_alerts() -> None:
    left_out = _finding("left out", code="GC856", severity=Severity.NOTE, file="k8s.yaml")
    run = _log(notes=(left_out,))["runs"][0]
    assert run["results"] == []
    (answer,) = run["invocations"][0]["toolExecutionNotifications"]
    assert answer["message"]["text"] == "left out"


def test_braces_are_doubled_and_control_characters_shown() -> None:
    (result,) = _log(_finding("write {min: 0}\x1b[31m", hint="{0}"))["runs"][0]["results"]
    assert result["message"]["text"] == "write {{min: 0}}\\x1b[31m\nhelp: {{0}}"


def test_a_file_elsewhere_has_a_whole_uri(tmp_path: Path) -> None:
    file = tmp_path / "ü b#1.yaml"
    (result,) = _log_of(WRONG, str(file))["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert unquote(location["uri"]) == f"file://{file}"
    assert "uriBaseId" not in location


@pytest.mark.parametrize("case", [c for c in all_cases() if c.name == "fails"], ids=str)
def test_every_failing_case_gives_a_valid_log(case: Case) -> None:
    with case.folder() as folder:
        log = _checked(check(gather([str(folder / "spec.yaml")], lambda: b"")))
    driver = log["runs"][0]["tool"]["driver"]
    assert all(len(rule["help"]["text"]) > len("Say.") for rule in driver["rules"])


@given(text=st.text(), file=st.text(min_size=1), line=st.integers(1, 9), wide=st.integers(0, 9))
def test_whatever_is_found_gives_a_valid_log(text: str, file: str, line: int, wide: int) -> None:
    span = Span(line=line, column=1, end_line=line, end_column=1 + wide)
    found = _finding(
        text, detail=text, hint=text, path=(text, 1), span=span,
        file=file.replace("\0", "").strip() or "a.yaml", patch=Patch(span=span, replacement=text),
    )  # fmt: skip
    log = _log(found)
    assert len(log["runs"][0]["results"]) == 1
