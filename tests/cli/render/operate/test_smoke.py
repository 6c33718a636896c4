"""The verdict and its table as text."""

from __future__ import annotations

import msgspec
from tests.cli.render.conftest import Check, Read

from gcluster.cli.console import Console
from gcluster.cli.render.operate.smoke import smoke_text, suspects_text
from gcluster.lifecycle.smoke.bisect import Fault
from gcluster.lifecycle.smoke.judging.judge import judge
from gcluster.lifecycle.smoke.judging.verdict import Expectation, Verdict
from gcluster.lifecycle.smoke.reading.log import AllReduceLog
from gcluster.lifecycle.smoke.run import SmokeResult
from gcluster.lifecycle.smoke.search import Located


def test_a_case_is_rendered_as_its_golden_text(
    read: Read, check_text: Check, smoke_case: str
) -> None:
    console, values = read("smoke", smoke_case)
    verdict = msgspec.convert(values["verdict"], Verdict)
    log = msgspec.convert(values["log"], AllReduceLog)
    check_text("smoke", smoke_case, smoke_text(verdict, log, console) + "\n")


def test_what_the_search_found_is_reported_below_the_verdict() -> None:
    located = Located(
        faults=(Fault(kind="node", nodes=("gpu003",)), Fault(kind="link", nodes=("a", "b"))),
        rails=("mlx5_1 on gpu003, gpu001",),
        rounds=3,
        tests=7,
    )
    verdict = judge(AllReduceLog(), Expectation(ranks=1))
    result = SmokeResult(verdict=verdict, log=AllReduceLog(), runs=(), located={"n[1-4]": located})
    assert suspects_text(result, Console()).splitlines() == [
        "",
        "  ✘ node gpu003 is at fault",
        "  ✘ the link between a and b is at fault",
        "  ✘ rail mlx5_1 on gpu003, gpu001",
    ]
