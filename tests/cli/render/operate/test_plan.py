"""Plans as text."""

from __future__ import annotations

import msgspec
from tests.cli.render.conftest import Check, Read

from gcluster.cli.render.document import document
from gcluster.cli.render.operate.plan import plan_text
from gcluster.lifecycle.planning.changes import Plan


def test_a_case_is_rendered_as_its_golden_text(
    read: Read, check_text: Check, plan_case: str
) -> None:
    console, values = read("plan", plan_case)
    plan = msgspec.convert(values["plan"], Plan)
    check_text("plan", plan_case, plan_text(plan, console) + "\n")


def test_the_json_form_is_the_value_itself(read: Read, plan_case: str) -> None:
    _, values = read("plan", plan_case)
    plan = msgspec.convert(values["plan"], Plan)
    assert msgspec.json.decode(document(plan), type=Plan) == plan
