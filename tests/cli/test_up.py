"""`gcluster up`: the prompt, the messages, and the exit code. Bringing up is a double's work."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gcluster.lifecycle.cluster.outcome import Exit, failure
from gcluster.lifecycle.cluster.progress import StageFinished, StageStarted
from gcluster.lifecycle.planning.changes import Plan
from gcluster.schemas.diagnostics import Diagnostic, Severity

PLAN = Plan(
    cluster="demo",
    spec_hash="0",
    sites=(),
    steps=(),
    unreachable=("gpu001: off",),
    usd_per_hour=0.0,
    worst_usd_per_hour=0.0,
    observed_age_s=0.1,
)


class UpResult(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of lifecycle.up.up.UpResult."""

    cluster: str = "demo"
    changed: bool = True
    failed_hosts: dict[str, str] = {}
    verdict: dict[str, object] | None = msgspec.field(default_factory=lambda: {"verdict": "pass"})
    certificate_path: str | None = "/x/certificate.json"
    exit_code: Exit = Exit.OK
    diagnostics: tuple[Diagnostic, ...] = ()
    left_out: str = ""
    out_of_service: dict[str, str] = {}
    next_sites: dict[str, str] = {}


@pytest.fixture
def bringing(run: Callable[..., Any], put_doubles: Callable[..., None]) -> Callable[..., Any]:
    """Run the verb on a double that prompts about a plan, reports a stage and ends as given."""

    def invoke(result: UpResult, *words: str) -> Any:
        def up(
            _cluster: str, report: Callable[[object], None], *, confirm: Any, **_: Any
        ) -> UpResult:
            if not confirm(PLAN):
                raise failure("GC909", "nothing was changed", exit_code=Exit.REFUSED)
            report(StageStarted(name="nodes", total=5))
            report(StageFinished(name="nodes", ok=True, summary="5/5 up", seconds=6.2))
            return result

        put_doubles("cluster.cluster", open_cluster=lambda target, **_: target)
        put_doubles("up.up", up=up)
        return run("up", "demo.yaml", *words)

    return invoke


def test_up_shows_its_stages_and_what_to_do_next(bringing: Callable[..., Any]) -> None:
    done = bringing(UpResult(), "--yes")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("✔ spec      0 errors")
    assert any(line.startswith("✔ nodes     5/5 up") for line in lines)
    assert "✔ certificate /x/certificate.json" in lines
    assert lines[-1] == (
        "demo is ready.   gcluster ssh demo · gcluster status demo · gcluster down demo"
    )


def test_without_yes_and_without_a_terminal_nothing_is_changed(
    bringing: Callable[..., Any],
) -> None:
    done = bringing(UpResult())
    assert done.exit_code == 4
    assert "gpu001: off" in done.stdout  # the plan was shown
    assert "pass --yes" in done.stderr
    assert "5/5" not in done.stdout


@pytest.mark.parametrize(
    ("typed", "code"), [("y\n", 0), ("YES\n", 0), ("n\n", 4), ("\n", 4), ("", 4)]
)
def test_a_user_is_prompted_and_only_a_yes_is_a_yes(
    bringing: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    monkeypatch.setattr("gcluster.cli.console.can_ask", lambda: True)
    monkeypatch.setattr("typer.testing.CliRunner.invoke", _typing(typed))
    assert bringing(UpResult()).exit_code == code


def _typing(text: str) -> Callable[..., Any]:
    from typer.testing import CliRunner  # noqa: PLC0415  # its method is being replaced

    original = CliRunner.invoke

    def invoke(self: CliRunner, app: Any, words: list[str], **rest: Any) -> Any:
        return original(self, app, words, **{**rest, "input": text})

    return invoke


def test_json_is_one_document_and_progress_goes_to_stderr(bringing: Callable[..., Any]) -> None:
    done = bringing(UpResult(), "--yes", "--format", "json")
    assert json.loads(done.stdout)["cluster"] == "demo"
    kinds = [json.loads(line)["type"] for line in done.stderr.splitlines()]
    assert kinds == ["StageFinished", "StageStarted", "StageFinished"]


def test_a_failed_gate_is_exit_code_4_and_reports_how_to_continue(
    bringing: Callable[..., Any],
) -> None:
    done = bringing(UpResult(exit_code=Exit.REFUSED), "--yes")
    assert done.exit_code == 4
    assert "✘ certificate" in done.stdout
    assert "demo failed its AllReduce." in done.stdout
    assert "gcluster up demo.yaml" in done.stdout


def test_a_node_left_behind_is_named_once_with_its_reason(bringing: Callable[..., Any]) -> None:
    answer = Diagnostic(
        code="GC921",
        severity=Severity.ERROR,
        summary="gpu003 can't be reached: timed out",
        hint="fix it",
    )
    failed = {"gpu003": "timed out", "gpu004": "disk full"}
    done = bringing(UpResult(failed_hosts=failed, diagnostics=(answer,)), "--yes")
    assert done.exit_code == 0
    assert done.stdout.count("gpu003") == 1
    assert "✘ gpu004 was left behind: disk full" in done.stdout
    assert "demo is ready without 2 nodes." in done.stdout


def test_a_node_that_took_no_part_is_not_called_ready(bringing: Callable[..., Any]) -> None:
    done = bringing(UpResult(left_out="gpu002"), "--yes")
    assert "demo is ready, but not proven on gpu002: drained, busy or not fit for jobs." in (
        done.stdout
    )


def test_a_cluster_whose_nodes_are_busy_is_up_and_unproven(bringing: Callable[..., Any]) -> None:
    busy = Diagnostic(code="GC1173", severity=Severity.WARNING, summary="1 of 2 nodes is idle")
    done = bringing(UpResult(exit_code=Exit.PENDING, diagnostics=(busy,)), "--yes")
    assert "demo is up, and nothing proves it yet." in done.stdout
    assert "gcluster smoke demo" in done.stdout
    assert "not up" not in done.stdout


def test_a_cluster_with_a_drained_node_is_ready_without_it(bringing: Callable[..., Any]) -> None:
    out = {"gpu002": "bad fan", "gpu003": ""}
    done = bringing(UpResult(changed=False, out_of_service=out), "--yes")
    assert "! gpu002 is out of service: bad fan" in done.stdout
    assert "! gpu003 is out of service: no reason" in done.stdout
    assert "demo is ready without gpu[002-003]." in done.stdout


def test_nothing_is_called_ready_that_no_allreduce_has_proven(bringing: Callable[..., Any]) -> None:
    done = bringing(UpResult(verdict=None, certificate_path=None), "--yes")
    assert "demo is up, and no AllReduce could be run." in done.stdout
    assert "ready" not in done.stdout
