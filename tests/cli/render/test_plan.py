"""Plans as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gcluster.cli.render.document import document
from gcluster.cli.render.plan import plan_text
from gcluster.lifecycle.planning.changes import Plan


def test_a_case_is_rendered_as_its_golden_text(golden: Callable[..., Any], plan_case: str) -> None:
    surface, values, expected = golden("plan", plan_case)
    plan = msgspec.convert(values["plan"], Plan)
    assert plan_text(plan, surface) + "\n" == expected


def test_the_json_form_is_the_value_itself(golden: Callable[..., Any], plan_case: str) -> None:
    _, values, _ = golden("plan", plan_case)
    plan = msgspec.convert(values["plan"], Plan)
    assert msgspec.json.decode(document(plan), type=Plan) == plan
