"""Every error becomes a message and an exit code; none becomes a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gcluster.lifecycle.cluster.outcome import Exit, failure
from gcluster.stacks.provider import provider_error


def _raises(error: BaseException) -> Any:
    def call(*_arguments: Any, **_options: Any) -> Any:
        raise error

    return call


@pytest.fixture
def failing(run: Callable[..., Any], put_doubles: Callable[..., None]) -> Any:
    """Run `plan demo` on a double that raises the given error."""

    def invoke(error: BaseException, *words: Any) -> Any:
        put_doubles("cluster.cluster", open_cluster=_raises(error))
        put_doubles("planning.plan", make_plan=None)
        return run("plan", "demo", *words)

    return invoke


@pytest.mark.parametrize(
    "code", [Exit.FAILED, Exit.SPEC, Exit.REFUSED, Exit.LEFTOVERS, Exit.LOCKED]
)
def test_a_lifecycle_error_keeps_its_exit_code(failing: Callable[..., Any], code: Exit) -> None:
    done = failing(failure("GC901", "held by someone", hint="wait", exit_code=code))
    assert done.exit_code == code
    assert done.stderr == "error[GC901]: held by someone\n  help: wait\n"
    assert done.stdout == ""


def test_a_provider_error_is_exit_code_1(failing: Callable[..., Any]) -> None:
    done = failing(provider_error("GC910", "no engine", hint="install one"))
    assert done.exit_code == 1
    assert "no engine" in done.stderr


def test_an_unexpected_error_is_one_honest_line(failing: Callable[..., Any]) -> None:
    done = failing(RuntimeError("boom\nbang"))
    assert done.exit_code == 1
    assert "internal error: RuntimeError: boom bang; please report it" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_traceback_is_there_on_request(
    failing: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCLUSTER_DEBUG", "1")
    assert "Traceback" in failing(RuntimeError("boom")).stderr


def test_what_the_operating_system_refuses_is_reported_with_its_message(
    failing: Callable[..., Any],
) -> None:
    done = failing(PermissionError(13, "Permission denied", "/etc/shadow"))
    assert done.exit_code == 1
    assert "Permission denied: /etc/shadow" in done.stderr
    assert "internal" not in done.stderr


def test_in_json_an_error_is_the_one_document_on_stdout(failing: Callable[..., Any]) -> None:
    done = failing(failure("GC901", "held", exit_code=Exit.LOCKED), "--format", "json")
    answer = json.loads(done.stdout)
    assert done.exit_code == answer["exit_code"] == 6
    assert [d["summary"] for d in answer["diagnostics"]] == ["held"]
    assert done.stderr == ""


def test_an_interrupted_command_reports_how_to_continue(
    run: Callable[..., Any], put_doubles: Callable[..., None]
) -> None:
    put_doubles("cluster.cluster", open_cluster=_raises(KeyboardInterrupt()))
    put_doubles("up.up", up=None)
    done = run("up", "my cluster.yaml", "--yes")
    assert done.exit_code == 130
    assert "resume with: gcluster up 'my cluster.yaml' --yes" in done.stderr


def test_an_interrupted_check_shows_how_to_repeat_it(failing: Callable[..., Any]) -> None:
    done = failing(KeyboardInterrupt())
    assert done.exit_code == 130
    assert done.stderr == "error[GC940]: interrupted\n  help: run it again: gcluster plan demo\n"
