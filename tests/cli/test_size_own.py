"""`gcluster size own`: what it shows, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
OWN = ("size", "own", "--machine", "dgx-h100", "--nodes", "32")
RENT = ("--rent", "p5.48xlarge", "--region", "us-east-1")
TRACE = """; UnixStartTime: 0
1 0 0 86400 64 -1 -1 64 -1 -1 1 1 1 -1 1 -1 -1 -1
2 0 3600 3600 64 -1 -1 64 -1 -1 1 1 1 -1 1 -1 -1 -1
"""


def test_owning_and_each_way_to_rent_are_shown_with_what_moves_them(run: Run) -> None:
    done = run(*OWN, *RENT)
    assert done.exit_code == 0, done.stderr
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.strip()}
    assert {"nodes", "electricity", "together", "on-demand", "capacity-block", "use"} <= {*rows}
    assert rows["on-demand"][1] == "55.04"
    assert "no price is known of p5.48xlarge as spot or reservation" in done.stdout
    assert "assumed, no source says them: storage" in done.stdout


def test_inputs_that_are_given_count_and_are_no_longer_assumed(run: Run) -> None:
    words = ("--use", "0.9", "--set", "storage=0", "--set", "spot_lost=0", "--price", "250000")
    done = run(*OWN, *RENT, *words, "--rent-price", "spot=20", "--format", "json")
    found = json.loads(done.stdout)
    assert found["values"]["use"] == 0.9
    assert found["values"]["node_price"] == 250000
    assert found["owned"]["items"]["storage"] == 0
    spot = next(each for each in found["rented"] if each["option"] == "spot")
    assert spot["total"] == pytest.approx(32 * 20 * 5 * 8760 * 0.9)
    assert "node_price" not in {each["name"] for each in found["influences"]}


def test_base_load_is_owned_and_what_is_seldom_busy_is_rented(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "load.swf"
    trace.write_text(TRACE, encoding="utf-8")
    done = run(*OWN, *RENT, "--trace", str(trace), "--format", "json")
    found = json.loads(done.stdout)["mixed"]
    assert (found["owned"], found["peak"]) == (8, 16)
    assert found["total"] < min(found["all_owned"], found["all_rented"])
    assert "own 8 and rent the rest" in " ".join(run(*OWN, *RENT, "--trace", trace).stdout.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--machine", "hgx-b200-8"), "no price is known of hgx-b200-8"),
        (("--machine", "dgx-h1000"), 'did you mean "dgx-h100"'),
        (("--machine", "dgx-h100", "--set", "electrcity=1"), 'did you mean "electricity"'),
        (("--machine", "dgx-h100", "--set", "use=2"), "no share of the time"),
        (("--machine", "dgx-h100", "--set", "years=0"), "more than nothing"),
        (("--machine", "dgx-h100", "--set", "space=much"), "no NAME=VALUE with a number"),
        (("--machine", "dgx-h100", "--rent-price", "spot=3"), "needs --rent"),
        (("--machine", "dgx-h100", "--rent", "p5.48xlarge", "--rent-price", "gift=0"), "no way"),
        (("--machine", "dgx-h100", "--trace", "load.swf"), "needs a price on demand"),
    ],
)
def test_a_wrong_option_is_a_mistake_of_usage(
    run: Run, words: tuple[str, ...], message: str
) -> None:
    done = run("size", "own", *words)
    assert done.exit_code == 64
    assert message in done.stderr


def test_options_that_break_a_constraint_are_named_with_every_reason(
    run: Run, tmp_path: Path
) -> None:
    words = ("--within", "60d", "--only-in", "eu-west-1", "--require", "HIPAA")
    done = run(*OWN, *RENT, *words, "--certified", "rent=hipaa", "--format", "json")
    refused = {each["option"]: each["reason"] for each in json.loads(done.stdout)["refused"]}
    assert "12 weeks after the order, not within 8.57" in refused["own"]
    assert "meets hipaa" in refused["own"]
    assert "in us-east-1, and data may be in eu-west-1 only" in refused["on-demand"]
    assert "hipaa" not in refused["on-demand"]
    assert json.loads(done.stdout)["rented"] == []
    table = tmp_path / "load.swf"
    table.write_text(TRACE, encoding="utf-8")
    text = " ".join(run(*OWN, *RENT, *words, "--trace", str(table)).stdout.split())
    assert "for the load of the trace" not in text
    assert "left out: capacity-block: in us-east-1" in text


def test_constraints_that_are_met_refuse_nothing(run: Run) -> None:
    words = ("--within", "100d", "--only-in", "us-east-1", "--require", "iso27001")
    certified = ("--certified", "own=iso27001", "--certified", "rent=iso27001,hipaa")
    found = json.loads(run(*OWN, *RENT, *words, *certified, "--format", "json").stdout)
    assert found["refused"] == []
    assert {each["option"] for each in found["rented"]} == {"on-demand", "capacity-block"}


def test_a_table_of_sacct_is_a_load_as_one_of_swf_is(run: Run, tmp_path: Path) -> None:
    """The columns and the form of AllocTRES are those of Slurm's pages on sacct and TRES."""
    swf, table = tmp_path / "load.swf", tmp_path / "load.txt"
    swf.write_text(TRACE, encoding="utf-8")
    table.write_text(
        "JobID|State|Start|End|AllocTRES\n"
        "1|COMPLETED|2026-11-01T00:00:00|2026-11-02T00:00:00|billing=64,cpu=64,gres/gpu=64\n"
        "2|FAILED|2026-11-01T01:00:00|2026-11-01T02:00:00|gres/gpu:h100=64,gres/gpu=64,node=8\n"
        "3|RUNNING|2026-11-01T01:00:00|Unknown|gres/gpu=8\n"
        "4|CANCELLED by 0|None|2026-11-01T02:00:00|\n",
        encoding="utf-8",
    )
    by_swf, by_table = (
        json.loads(run(*OWN, *RENT, "--trace", str(path), "--format", "json").stdout)["mixed"]
        for path in (swf, table)
    )
    assert by_table == by_swf


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("1|today|2026-11-02T00:00:00|gres/gpu=8", '"today" is no time'),
        ("1|2026-11-02T00:00:00", "2 columns, not 4"),
        ("1|2026-11-01T00:00:00|2026-11-02T00:00:00|cpu=8", "no job that ended held GPUs"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_its_line(
    run: Run, tmp_path: Path, line: str, why: str
) -> None:
    table = tmp_path / "load.txt"
    table.write_text(f"JobID|Start|End|AllocTRES\n{line}\n", encoding="utf-8")
    done = run(*OWN, *RENT, "--trace", str(table))
    assert done.exit_code == 2
    assert "GC957" in done.stderr
    assert why in done.stderr


def test_the_curves_cross_at_the_break_even_use(run: Run) -> None:
    found = json.loads(run(*OWN, *RENT, "--format", "json").stdout)
    even = next(each for each in found["rented"] if each["option"] == "on-demand")["break_even_use"]
    own, rent = dict(found["over_use"]["own"]), dict(found["over_use"]["on-demand"])
    assert all((own[use] < rent[use]) == (use > even) for use in own)
