"""`gcluster burst`: replays and dry-runs as text and JSON, and mistakes with their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.golden_files import read_cases
from tests.lifecycle.burst.cases import case_files

Run = Callable[..., Any]

CASES = Path(__file__).parents[1] / "cases" / "burst"
_JOB = '{"id": "1", "eligible_since": 0, "nodes": 1}'
DAY = ("simulate", "spec.yaml", "day.swf", "--account", "1=nlp", "--stage", "10m")


@pytest.fixture
def day(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `gcluster burst` in the folder of the hand-made day."""
    monkeypatch.chdir(CASES / "simulate")
    return lambda *words: run("burst", *words)


def test_a_replay_is_reported_with_waits_costs_and_reasons(day: Run) -> None:
    done = day(*DAY, "--account", "*=vision")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == (CASES / "simulate" / "expected.txt").read_text("utf-8")


def test_a_replay_as_json_holds_what_the_text_is_made_from(day: Run) -> None:
    done = day(*DAY, "--account", "*=vision", "--format", "json")
    answer = json.loads(done.stdout)
    assert answer["cloud"]["usd"] == pytest.approx(55.04 * (4.25 + 1.0))  # jobs; booting and idling
    assert answer["cloud"]["stayed"] == {"alone": 1, "account": 1}
    assert answer["refused"] == {"size": 1}
    assert answer["left_out"] == {"never ran": 1}
    assert answer["home"]["utilisation"] == 0.875
    assert answer["waits_without"]["max"] == 26400


def test_a_partition_whose_jobs_stay_is_replayed_too(day: Run, tmp_path: Path) -> None:
    text = (CASES / "simulate" / "spec.yaml").read_text("utf-8")
    kept = [line for line in text.splitlines() if not line.lstrip().startswith("spill:")]
    spec = tmp_path / "cluster.yaml"
    spec.write_text("\n".join(kept) + "\n", encoding="utf-8")
    done = day("simulate", str(spec), "day.swf", "--partition", "train")
    assert done.exit_code == 0, done.stderr
    assert "cloud: jobs of this partition don't spill" in done.stdout
    assert "larger than home" in done.stdout


def test_a_bad_trace_is_reported_with_file_and_line(day: Run, tmp_path: Path) -> None:
    trace = tmp_path / "trace.swf"
    trace.write_text(read_cases(CASES / "bad_traces.yaml")["below_minus_one"]["trace"])
    done = day("simulate", "spec.yaml", str(trace))
    assert done.exit_code == 2
    assert done.stderr.splitlines()[0] == 'error[GC957]: run time is "-7": no count, and not -1'
    assert f"{trace}:2:1" in done.stderr


def test_a_bad_spec_is_reported_with_its_line(day: Run, tmp_path: Path) -> None:
    spec = tmp_path / "cluster.yaml"
    spec.write_text("apiVersion: gcluster/v1\nname: x\nsites: {}\n", encoding="utf-8")
    done = day("simulate", str(spec), "day.swf")
    assert done.exit_code == 2
    assert f"{spec}:3" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--partition", "trian"], 'did you mean "train"?'),
        (["--account", "nlp"], '--account "nlp" is not NUMBER=NAME or *=NAME'),
        (["--qos", "1=a", "--qos", "1=b"], "--qos has 1 twice"),
        (["--boot", "5"], '--boot "5": expected a quantity with its unit'),
    ],
)
def test_a_wrong_option_is_a_mistake_of_usage(day: Run, words: list[str], message: str) -> None:
    done = day("simulate", "spec.yaml", "day.swf", *words)
    assert done.exit_code == 64
    assert message in done.stderr


def test_which_partition_is_queried_where_none_spills(run: Run, spec: Path) -> None:
    done = run("burst", "dry-run", str(spec), "-", stdin='{"now": 0, "jobs": []}')
    assert done.exit_code == 64
    assert "no partition's jobs spill: say which partition is meant" in done.stderr


def test_a_dry_run_shows_each_job_with_every_reason(run: Run, tmp_path: Path) -> None:
    spec, queue = case_files("a_big_job_is_promised_room", tmp_path)
    done = run("burst", "dry-run", str(spec), str(queue))
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "1 stays"
    assert lines[1] == "  has its room at the latest at 2026-01-02T01:00Z"
    assert "  ✘ nodes     it needs 3 nodes, pool burst has room for 2 now" in lines
    assert "3 spills to burst: 1 new node for $55.04/h at most, bought as on-demand" in lines
    assert "  staged first: warm" in lines
    assert lines[-1] == "1 of 3 jobs of train would spill to burst"


def test_a_dry_run_as_json_has_the_estimate_for_the_next_round(run: Run, tmp_path: Path) -> None:
    files = map(str, case_files("a_big_job_is_promised_room", tmp_path))
    answer = json.loads(run("burst", "dry-run", *files, "--format", "json").stdout)
    assert answer["promise"]["job"] == "1"
    assert [decision["spills"] for decision in answer["decisions"]] == [False, False, True]


@pytest.mark.parametrize(
    ("queue", "message"),
    [
        ('{"now": 0, "jobs": [{"id": 1}]}', "$.jobs[0].id"),
        ('{"now": 0,\n"jobs": [}', "JSON is malformed"),
        ('{"now": 0}', "jobs"),
        ('{"now": 0, "jobs": [], "jbos": []}', "jbos"),
        ("", "truncated"),
        (
            f'{{"now": 0, "jobs": [{_JOB}, {_JOB}]}}',
            "job 1 is there twice",
        ),
    ],
)
def test_a_wrong_queue_is_reported_with_its_key(run: Run, queue: str, message: str) -> None:
    spec = CASES / "simulate" / "spec.yaml"
    done = run("burst", "dry-run", str(spec), "-", stdin=queue)
    assert done.exit_code == 2
    assert "GC958" in done.stderr
    assert message in done.stderr


def test_an_unknown_name_gets_a_suggestion(run: Run) -> None:
    done = run("burst", "simulat")
    assert done.exit_code == 64
    assert 'did you mean "simulate"?' in done.stderr


@pytest.mark.parametrize("words", [("agent",), ("explain",)])
def test_a_cluster_that_is_not_up_has_nothing_to_burst(words: tuple[str, ...], day: Run) -> None:
    more = ("1",) if words == ("explain",) else ()
    done = day(*words, "spec.yaml", *more)

    assert done.exit_code == 1
    assert "has no nodes" in done.stderr


def test_a_unit_is_printed_and_nothing_else_is_done(day: Run) -> None:
    done = day("agent", "spec.yaml", "--unit", "--interval", "5s")

    assert done.exit_code == 0
    assert "burst agent" in done.stdout
    assert "--interval 5s" in done.stdout


def test_an_interval_that_is_none_is_a_mistake_of_use(day: Run) -> None:
    done = day("agent", "spec.yaml", "--interval", "soon")

    assert done.exit_code == 64
    assert '--interval "soon"' in done.stderr
