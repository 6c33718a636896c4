"""`gcluster explain`: every code, its example as the program says it, and what is no code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.cli.spec import explain as verb
from gcluster.inventory.alerts import alert_rules
from gcluster.schemas import codes
from gcluster.schemas.checks import CHECKS
from gcluster.schemas.codes import FAMILIES, example_of, explanations
from gcluster.schemas.codes.registered import number_of

KNOWN = explanations()


@pytest.mark.parametrize("code", sorted(KNOWN))
def test_every_code_is_explained(run: Callable[..., Any], code: str) -> None:
    done = run("explain", code.lower())

    assert done.exit_code == 0
    assert done.stdout.startswith(f"{code}   {KNOWN[code].summary}\n")
    assert KNOWN[code].explanation.split()[-1] in done.stdout


@pytest.mark.parametrize("code", sorted(CHECKS))
def test_the_example_of_a_check_fails_before_the_eyes_and_is_corrected(
    run: Callable[..., Any], code: str
) -> None:
    done = run("explain", code)

    assert f"[{code}]: " in done.stdout
    assert "--> cluster.yaml" in done.stdout
    assert "\nCorrected" in done.stdout
    assert "\n\n--- cluster.yaml\n+++ cluster.yaml\n@@" in done.stdout


def test_the_words_of_an_example_are_those_of_validate(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    example = example_of("GC101")
    assert example is not None
    spec = tmp_path / "spec.yaml"
    spec.write_text(example.fails.spec)
    output = run("validate", str(spec)).stdout.splitlines()[0]
    assert output in run("explain", "GC101").stdout.splitlines()


def test_a_file_that_an_example_names_is_shown_by_its_name(run: Callable[..., Any]) -> None:
    found = json.loads(run("explain", "GC027", "--format", "json").stdout)["example"]["diagnostics"]
    assert {each["file"] for each in found} == {"hosts.txt"}


def test_a_code_without_an_example_has_its_text_alone(run: Callable[..., Any]) -> None:
    done = run("explain", "GC920")
    assert "Fix the cause" in done.stdout
    assert "example" not in done.stdout


def test_without_a_code_all_are_listed_by_family(run: Callable[..., Any]) -> None:
    lines = run("explain").stdout.splitlines()
    assert [line[2:8].strip() for line in lines if line.startswith("  GC")] == list(KNOWN)
    titles = [line for line in lines if line.startswith("GC")]
    assert len(titles) == len({number_of(code) // 100 for code in KNOWN})
    assert titles[0].startswith(f"GC0  {FAMILIES[0].title}: ")


def test_json_lists_the_same(run: Callable[..., Any]) -> None:
    answer = json.loads(run("explain", "--format", "json").stdout)
    assert {c["code"]: c["summary"] for c in answer["codes"]} == {
        code: known.summary for code, known in KNOWN.items()
    }


@pytest.mark.parametrize("word", ["GC1", "204", "GC2041", "XX204", "GC799", "x" * 5000])
def test_what_is_no_code_is_a_usage_error(run: Callable[..., Any], word: str) -> None:
    done = run("explain", word)
    assert done.exit_code == 64
    assert done.stdout == ""
    assert "gcluster explain lists all codes" in done.stderr


def test_a_mistyped_code_gets_near_ones(run: Callable[..., Any]) -> None:
    assert "did you mean GC101" in run("explain", "G101").stderr
    assert "did you mean GC5" in run("explain", "GC569").stderr


def test_a_retired_code_is_reported_with_its_meaning(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = codes.Entry(code="GC799", since="0.1.0", retired=True, was="A moon is missing.")
    monkeypatch.setattr(verb, "register", lambda: {"GC799": gone})
    assert "it meant: A moon is missing." in run("explain", "gc799").stderr


def test_json_has_the_same_words_and_the_example(run: Callable[..., Any]) -> None:
    answer = json.loads(run("explain", "GC101", "--format", "json").stdout)
    assert answer["summary"] == CHECKS["GC101"].summary
    assert [d["code"] for d in answer["example"]["diagnostics"]] == ["GC101"]
    assert answer["example"]["fails"] != answer["example"]["passes"]
    assert json.loads(run("explain", "GC949", "--format", "json").stdout)["example"] is None


@pytest.mark.parametrize("name", sorted(alert_rules()))
def test_every_alert_is_explained(run: Callable[..., Any], name: str) -> None:
    done = run("explain", name)

    assert done.exit_code == 0
    assert done.stdout.startswith(f"{name}   {alert_rules()[name].severity}, fires ")
    found = json.loads(run("explain", name, "--format", "json").stdout)
    assert found["do"] == list(alert_rules()[name].do)


def test_an_alert_that_is_misspelt_is_offered(run: Callable[..., Any]) -> None:
    done = run("explain", "NodDown")

    assert done.exit_code == 64
    assert "did you mean NodeDown" in done.output
