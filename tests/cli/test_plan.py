"""`gcluster plan`: text, JSON and the detailed exit code. The plan comes from a double."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gcluster.lifecycle.changes import Plan, SitePlan
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
def planning(run: Callable[..., Any], stand_in: Callable[..., None]) -> Callable[..., Any]:
    """Run the verb on a double that plans the given changes."""

    def invoke(plan: Plan, *words: str) -> Any:
        stand_in("cluster", open_cluster=lambda target, *, planning: target if planning else None)
        stand_in("plan", make_plan=lambda _cluster: plan)
        return run("plan", "demo", *words)

    return invoke


def test_a_plan_with_changes_ends_well(planning: Callable[..., Any]) -> None:
    done = planning(_plan(NODE))
    assert done.exit_code == 0
    assert "+ node gpu001" in done.stdout
    assert "price unknown" in done.stdout


def test_pending_changes_are_exit_code_3_for_those_who_ask(planning: Callable[..., Any]) -> None:
    assert planning(_plan(NODE), "--detailed-exitcode").exit_code == 3
    assert planning(_plan(), "--detailed-exitcode").exit_code == 0


def test_json_is_the_plan(planning: Callable[..., Any]) -> None:
    told = json.loads(planning(_plan(NODE), "--format", "json").stdout)
    assert told["sites"][0]["changes"][0]["resource"]["name"] == "gpu001"
    assert told["usd_per_hour"] is None
