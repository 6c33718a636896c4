"""`gcluster smoke`: a gate that fails is exit code 4. Running it is a double's work."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.lifecycle.smoke.vendor_logs import cases_of

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
def gate(run: Callable[..., Any], put_doubles: Callable[..., None]) -> Callable[..., Any]:
    """Run the verb on a double that ends with the given verdict."""

    def invoke(verdict: Verdict, *words: str) -> Any:
        put_doubles(
            "cluster.cluster", open_cluster=lambda target, *, running: target if running else None
        )
        put_doubles("smoke.gate", run_gate=lambda *_, **__: SmokeResult(verdict=verdict))
        return run("smoke", "demo", *words)

    return invoke


def test_a_pass_is_exit_code_0(gate: Callable[..., Any]) -> None:
    done = gate(PASSED)
    assert done.exit_code == 0
    assert "AllReduce passed: 4 ranks, 1.5 GB/s busbw at 8 B" in done.stdout


def test_an_empty_log_is_a_failure_with_its_reasons(gate: Callable[..., Any]) -> None:
    done = gate(FAILED)
    assert done.exit_code == 4
    assert "AllReduce failed" in done.stdout
    for reason in FAILED.reasons:
        assert f"{reason.code}: {reason.message}" in done.stdout


def test_json_is_the_verdict_and_the_log(gate: Callable[..., Any]) -> None:
    answer = json.loads(gate(FAILED, "--format", "json").stdout)
    assert answer["verdict"]["verdict"] == "fail"
    assert answer["log"]["rows"] == []


ROCE = ("--fabric", "roce", "--machine", "BM.GPU.H100.8", "--nodes", "2")


def test_a_saved_log_is_judged_without_a_cluster(run: Callable[..., Any], tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    log.write_text(cases_of("roce")["passes"].text)
    done = run("smoke", "--log", str(log), *ROCE, "--format", "json")
    answer = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (answer["verdict"], answer["reasons"], answer["floor"]) == ("pass", [], 280.0)
    assert answer["busbw"] > 0


def test_a_saved_log_that_proves_nothing_is_exit_code_4(run: Callable[..., Any]) -> None:
    log = cases_of("roce")["wrong-transport"].text
    done = run("smoke", "--log", "-", *ROCE, "--format", "json", stdin=log)
    assert done.exit_code == 4
    assert [r["code"] for r in json.loads(done.stdout)["reasons"]] == ["wrong-transport"]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("demo", "--nodes", "2"),
        ("demo", "--log", "x", *ROCE),
        ("--log", "x", "--fabric", "roce"),
        ("--log", "/no/such/log", *ROCE),
        ("--log", "-", "--fabric", "roce", "--machine", "no-such", "--nodes", "2"),
        ("--log", "-", "--fabric", "no-such", "--machine", "dgx-h100", "--nodes", "2"),
    ],
)
def test_a_wrong_command_line_reports_what_is_wrong(
    run: Callable[..., Any], words: tuple[str, ...]
) -> None:
    done = run("smoke", *words)
    assert done.exit_code == 64
    assert re.search(r"error\[GC9\d\d\]", done.stderr)
