"""What launchers and terminals add is taken away, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.smoke.reading.parse import strip

LINE = "#  Rank  0 Group  0 Pid    654 on     gpu001 device  0 [0x00] simulated GPU"


@pytest.mark.parametrize(
    "prefix",
    [
        "[1,0]<stdout>:",
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
def test_what_stands_around_a_line_is_taken_away(prefix: str) -> None:
    assert strip(f"{prefix}{LINE}\x1b[0m\r\n") == LINE


def test_the_clock_of_nccl_is_taken_away_before_its_host() -> None:
    assert strip("[2026-01-15 02:30:52] n1:5:6 [0] NCCL INFO x") == "n1:5:6 [0] NCCL INFO x"


@given(st.text())
def test_stripping_twice_changes_nothing_more(text: str) -> None:
    assert strip(strip(text)) == strip(text)
