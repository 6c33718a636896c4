"""`gcluster smoke`: a gate that fails is exit code 4. Running it is a double's work."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gcluster.lifecycle.smoke.judging.judge import judge
from gcluster.lifecycle.smoke.judging.verdict import Expectation, Verdict
from gcluster.lifecycle.smoke.reading.log import AllReduceLog

PASSED = Verdict(
    verdict="pass",
    reasons=(),
    ranks=4,
    wrong=0,
    largest=8,
    busbw=1.5,
    floor=None,
    transport="ethernet btl=tcp",
    simulated=True,
)
EMPTY = AllReduceLog()
FAILED = judge(EMPTY, Expectation(ranks=4, min_bytes=8, max_bytes=8))


class SmokeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of lifecycle.smoke.run.SmokeResult that the verb reads."""

    verdict: Verdict
    log: AllReduceLog = EMPTY
    located: dict[str, Any] = {}

    @property
    def passed(self) -> bool:
        """Whether the gate passed."""
        return self.verdict.passed


@pytest.fixture
def gate(run: Callable[..., Any], stand_in: Callable[..., None]) -> Callable[..., Any]:
    """Run the verb on a double that ends with the given verdict."""

    def invoke(verdict: Verdict, *words: str) -> Any:
        stand_in("cluster", open_cluster=lambda target, *, running: target if running else None)
        stand_in("gate", run_gate=lambda *_, **__: SmokeResult(verdict=verdict))
        return run("smoke", "demo", *words)

    return invoke


def test_a_pass_is_exit_code_0(gate: Callable[..., Any]) -> None:
    done = gate(PASSED)
    assert done.exit_code == 0
    assert "AllReduce passed: 4 ranks, 1.5 GB/s busbw at 8 B" in done.stdout


def test_a_log_that_says_nothing_is_a_failure_with_its_reasons(gate: Callable[..., Any]) -> None:
    done = gate(FAILED)
    assert done.exit_code == 4
    assert "AllReduce failed" in done.stdout
    for reason in FAILED.reasons:
        assert f"{reason.code}: {reason.message}" in done.stdout


def test_json_is_the_verdict_and_the_log(gate: Callable[..., Any]) -> None:
    told = json.loads(gate(FAILED, "--format", "json").stdout)
    assert told["verdict"]["verdict"] == "fail"
    assert told["log"]["rows"] == []
