"""A cluster's life through the command line with no doubles: on nodes that are simulated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_a_cluster_is_planned_brought_up_checked_and_taken_down(
    run: Callable[..., Any], spec: Path
) -> None:
    path = str(spec)
    assert run("plan", path, "--detailed-exitcode").exit_code == 3

    done = run("up", path, "--yes")
    assert done.exit_code == 0, done.output
    assert "5/5 up" in done.stdout
    assert run("plan", path, "--detailed-exitcode").exit_code == 0

    status = json.loads(run("status", "demo", "--format", "json").stdout)
    assert len(status["nodes"]) == 5
    assert {c["name"]: c["status"] for c in status["conditions"]}["NodesReady"] == "true"

    done = run("up", "demo", "--yes", "--format", "json")
    assert json.loads(done.stdout)["changed"] is False

    done = run("smoke", "demo")
    assert (done.exit_code, "simulated nodes run no jobs" in done.stderr) == (1, True)

    done = run("down", "demo", "--yes")
    assert (done.exit_code, "demo: removed 5 nodes" in done.stdout) == (0, True)
    done = run("down", path, "--yes")
    assert (done.exit_code, "there is nothing to remove" in done.stdout) == (0, True)


def test_without_a_yes_nothing_is_made(run: Callable[..., Any], spec: Path) -> None:
    assert run("up", str(spec)).exit_code == 4
    assert run("plan", str(spec), "--detailed-exitcode").exit_code == 3


def test_a_name_that_is_unknown_is_a_usage_error(run: Callable[..., Any]) -> None:
    done = run("status", "demo")
    assert done.exit_code == 64
    assert 'no cluster "demo"' in done.stderr


def test_a_wrong_spec_is_shown_with_its_place_by_every_verb_that_reads_it(
    run: Callable[..., Any], spec: Path
) -> None:
    spec.write_text(spec.read_text().replace("machine", "machin"), encoding="utf-8")
    out = str(spec.parent / "out")
    for words in (["plan"], ["up", "--yes"], ["compile", "--out", out], ["status"]):
        done = run(*words, str(spec))
        assert done.exit_code == 2, words
        assert f"--> {spec}:6:20" in done.stderr
        assert "^^^^^^" in done.stderr


def test_a_spec_is_compiled_to_the_same_bytes_each_time(
    run: Callable[..., Any], spec: Path
) -> None:
    out = spec.parent / "out"
    done = run("compile", str(spec), "--out", str(out))
    assert done.exit_code == 0, done.output
    written = [Path(line) for line in done.stdout.splitlines()]
    before = {path: path.read_bytes() for path in written}
    assert out / "site.yml" in before
    run("compile", str(spec), "--out", str(out))
    assert {path: path.read_bytes() for path in written} == before


def test_a_folder_with_other_files_is_not_compiled_into(
    run: Callable[..., Any], spec: Path
) -> None:
    done = run("compile", str(spec), "--out", str(spec.parent))
    assert done.exit_code == 64
    assert spec.exists()
