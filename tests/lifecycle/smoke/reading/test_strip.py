"""What launchers and terminals add is taken away, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.smoke.reading.labels import LinesByRank, strip

LINE = "#  Rank  0 Group  0 Pid    654 on     gpu001 device  0 [0x00] simulated GPU"


@pytest.mark.parametrize(
    "prefix",
    [
        "[1,0]<stdout>:",
        "[prterun-gpu001-4242@1,0]<stdout>: ",
        "[1,0][gpu001:4000]<stdout>: ",
        "[0]<stdout>: ",
        "Tue Nov 24 04:49:26 2026[1,0]<stdout>:",
        "Tue Nov  3 04:49:26 2026<stdout>:",
        "[Tue Nov 24 04:49:26 2026][1,0]<stdout>: ",
        "[0] ",
        "launcher-1  | ",
        "(nccl-test, rank=0, pid=3808) [1,0]<stdout>:",
        "[1,12]<stderr>: ",
        "0: ",
        "  12: ",
        "2026-01-15T02:30:52.123456789Z ",
        "2026-01-15T02:30:52+01:00 ",
        "(head, rank=0, pid=123) ",
        "\x1b[32m",
        "\x1b]0;title\x07",
        "2026-01-15T02:30:52Z 3: ",
    ],
)
def test_what_is_around_a_line_is_taken_away(prefix: str) -> None:
    assert strip(f"{prefix}{LINE}\x1b[0m\r\n") == LINE


def test_the_clock_of_nccl_is_taken_away_before_its_host() -> None:
    assert strip("[2026-01-15 02:30:52] n1:5:6 [0] NCCL INFO x") == "n1:5:6 [0] NCCL INFO x"


@given(st.text())
def test_stripping_twice_changes_nothing_more(text: str) -> None:
    assert strip(strip(text)) == strip(text)


ROW = "     1048576        262144     float     sum      -1     45.8   22.90   42.93       0"


def joined(*lines: str) -> list[str]:
    lines_by_rank = LinesByRank()
    return [lines_by_rank.join(line).strip() for line in lines]


def test_a_line_that_mpirun_cut_and_another_rank_wrote_into_comes_out_whole() -> None:
    first, other, last = ROW[:50], "gpu002:1:2 [3] NCCL INFO x", ROW[50:]
    assert joined(f"[1,0]<stdout>:{first}[1,3]<stdout>:{other}\n", f"[1,0]<stdout>:{last}\n") == [
        other,
        ROW.strip(),
    ]


@given(st.lists(st.integers(0, len(ROW)), max_size=4).map(sorted))
def test_wherever_mpirun_cuts_a_line_it_is_read_as_one(cuts: list[int]) -> None:
    ends = [*cuts, len(ROW)]
    pieces = [ROW[start:end] for start, end in zip([0, *cuts], ends, strict=True)]
    tagged = "".join(f"[1,0]<stdout>:{piece}" for piece in pieces)
    assert joined(f"2026-01-15T02:30:52Z {tagged}")[0].split() == ROW.split()


def test_what_never_ended_is_kept_as_unfinished() -> None:
    lines = LinesByRank()
    lines.join(f"[1,0]<stdout>:{ROW}[1,1]<stdout>:x\n")
    assert lines.unfinished == (ROW[1:],)
