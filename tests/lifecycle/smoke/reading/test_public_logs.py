"""Logs rebuilt from public ones are read row by row, rank by rank, channel by channel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.lifecycle.smoke.judging.judge import judge
from gcluster.lifecycle.smoke.judging.verdict import Expectation
from gcluster.lifecycle.smoke.reading.log import Half
from gcluster.lifecycle.smoke.reading.parse import parse_log

CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[3] / "cases/public_logs.yaml").read_text()
)


def half(read: Half) -> list[float | None]:
    return [read.time_us, read.algbw, read.busbw, read.wrong]


@pytest.mark.parametrize("name", CASES)
def test_everything_in_a_public_log_is_read_as_it_is(name: str) -> None:
    case = CASES[name]
    assert case["source"]
    log = parse_log(case["log"].splitlines())
    assert log.damaged == ()
    ranks = [[rank.rank, rank.host, rank.device, rank.what] for rank in log.ranks]
    assert [rank for rank in case.get("ranks", []) if rank not in ranks] == []
    rows = [[row.size, *half(row.out_of_place), *half(row.in_place)] for row in log.rows]
    assert rows == case.get("rows", [])
    paths = [[path.via, path.gdr, [list(pair) for pair in path.pairs]] for path in log.nccl.paths]
    assert paths == case.get("paths", [])


SIZES = [row[0] for row in CASES["oci-h100"]["rows"]]


def passes(lines: list[str]) -> bool:
    """Say whether a log of these 16 ranks proves what it was to prove."""
    wanted = Expectation(ranks=16, min_bytes=SIZES[0], max_bytes=SIZES[-1], gpu="H100")
    return judge(parse_log(lines), wanted).passed


@pytest.mark.parametrize("size", SIZES)
def test_a_public_table_passes_whole_and_is_refused_without_any_one_of_its_rows(size: int) -> None:
    lines = CASES["oci-h100"]["log"].splitlines()
    left = [line for line in lines if not line.lstrip().startswith(f"{size} ")]
    assert len(left) == len(lines) - 1
    assert passes(lines)
    assert not passes(left)
