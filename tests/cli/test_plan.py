"""`gcluster plan`: text, JSON and the detailed exit code. The plan comes from a double."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gcluster.lifecycle.planning.changes import Plan, SitePlan
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.stacks.provider import Resource, ResourceChange

NODE = ResourceChange(effect="create", resource=Resource(kind="node", name="gpu001", pool="gpu"))


def _plan(*changes: ResourceChange) -> Plan:
    return Plan(
        cluster="demo",
        spec_hash="0",
        sites=(SitePlan(site="lab", provider="simulated", changes=changes),),
        steps=(),
        unreachable=(),
        usd_per_hour=None,
        worst_usd_per_hour=None,
        observed_age_s=0.1,
    )


@pytest.fixture
def planning(run: Callable[..., Any], put_doubles: Callable[..., None]) -> Callable[..., Any]:
    """Run the verb on a double that plans the given changes."""

    def invoke(plan: Plan, *words: str) -> Any:
        put_doubles("cluster.cluster", open_cluster=lambda target: target)
        put_doubles("planning.plan", make_plan=lambda _cluster: plan)
        return run("plan", "demo", *words)

    return invoke


def test_a_plan_with_changes_ends_well(planning: Callable[..., Any]) -> None:
    done = planning(_plan(NODE))
    assert done.exit_code == 0
    assert "+ node gpu001" in done.stdout
    assert "price unknown" in done.stdout


def test_pending_changes_are_exit_code_3_on_request(planning: Callable[..., Any]) -> None:
    assert planning(_plan(NODE), "--detailed-exitcode").exit_code == 3
    assert planning(_plan(), "--detailed-exitcode").exit_code == 0


@pytest.mark.parametrize(("severity", "code"), [(Severity.ERROR, 4), (Severity.WARNING, 0)])
def test_a_plan_that_shows_an_error_ends_as_refused(
    planning: Callable[..., Any], severity: Severity, code: int
) -> None:
    found = Diagnostic(code="GC1061", severity=severity, summary="there is no helm on PATH")
    done = planning(msgspec.structs.replace(_plan(NODE), diagnostics=(found,)))
    assert done.exit_code == code
    assert "there is no helm on PATH" in done.stdout


def test_json_is_the_plan(planning: Callable[..., Any]) -> None:
    answer = json.loads(planning(_plan(NODE), "--format", "json").stdout)
    assert answer["sites"][0]["changes"][0]["resource"]["name"] == "gpu001"
    assert answer["usd_per_hour"] is None


def test_preflight_answers_are_under_the_plan_by_site_with_codes_and_help(
    run: Callable[..., Any], spec: Path
) -> None:
    assert run("plan", str(spec), "--preflight").exit_code == 0
    spec.write_text(spec.read_text().replace("simulated}", "simulated, max_nodes: 3}"))
    done = run("plan", str(spec), "--preflight", "--detailed-exitcode")
    assert done.exit_code == 4, "what would stop up comes before changes that are pending"
    _, answers = done.stdout.split("preflight of lab (simulated): 1 error")
    assert "error[GC918]" in answers
    assert "+ 4 nodes gpu" in done.stdout, "the plan stands all the same"


def test_preflight_answers_are_in_the_json_and_absent_without_the_option(
    run: Callable[..., Any], spec: Path
) -> None:
    assert json.loads(run("plan", str(spec), "--format", "json").stdout)["preflight"] is None
    spec.write_text(spec.read_text().replace("simulated}", "simulated, max_nodes: 3}"))
    done = run("plan", str(spec), "--preflight", "--format", "json")
    [lab] = json.loads(done.stdout)["preflight"]
    assert (lab["site"], lab["provider"]) == ("lab", "simulated")
    assert [diagnostic["code"] for diagnostic in lab["diagnostics"]] == ["GC918"]
    assert done.exit_code == 4
