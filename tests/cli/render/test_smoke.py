"""The verdict and its table as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gcluster.cli.render.smoke import smoke_text
from gcluster.lifecycle.smoke.judging.verdict import Verdict
from gcluster.lifecycle.smoke.reading.log import AllReduceLog


def test_a_case_is_rendered_as_its_golden_text(golden: Callable[..., Any], smoke_case: str) -> None:
    surface, values, expected = golden("smoke", smoke_case)
    verdict = msgspec.convert(values["verdict"], Verdict)
    log = msgspec.convert(values["log"], AllReduceLog)
    assert smoke_text(verdict, log, surface) + "\n" == expected
