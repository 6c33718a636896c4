"""The benchmarks' arithmetic is right, so that their verdicts mean something."""

from __future__ import annotations

import math

import pytest
from bench import timing
from bench.spec import generate
from hypothesis import given
from hypothesis import strategies as st


@given(
    exponent=st.floats(0.1, 3.0),
    factor=st.floats(1e-6, 1e3),
    sizes=st.lists(st.integers(2, 10**6), min_size=2, max_size=6, unique=True),
)
def test_the_fitted_exponent_is_that_of_the_power_law(
    exponent: float, factor: float, sizes: list[int]
) -> None:
    points = {size: factor * size**exponent for size in sizes}
    assert math.isclose(timing.fitted_exponent(points), exponent, rel_tol=1e-3, abs_tol=1e-3)


def test_a_figure_over_its_limit_fails_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    over = timing.Result(name="up", value=61.0, unit="s", limit=60.0)
    within = timing.Result(name="no-op up", value=3.0, unit="s", limit=3.0)
    shown = timing.Result(name="hello", value=1e9, unit="s")
    assert timing.report("t", [within, shown], as_json=False) == 0
    assert timing.report("t", [within, over], as_json=False) == 1
    assert "OVER" in capsys.readouterr().out


def test_with_ratios_only_no_second_and_no_byte_is_judged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds = timing.Result(name="up", value=61.0, unit="s", limit=60.0)
    memory = timing.Result(name="peak memory", value=900.0, unit="MB", limit=500.0)
    exponent = timing.Result(name="exponent over nodes", value=1.1, unit="", limit=1.15)
    ratio = timing.Result(name="validate / hello", value=2.1, unit="x", limit=2.0)
    assert timing.report("t", [seconds, memory, exponent], as_json=False, ratios=True) == 0
    assert "peak memory" not in capsys.readouterr().out
    assert timing.report("t", [seconds, ratio], as_json=False, ratios=True) == 1


def test_the_json_report_names_the_machine_and_the_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    timing.report("t", [timing.Result(name="x", value=1.0, unit="s", limit=2.0)], as_json=True)
    written = capsys.readouterr().out
    assert '"ok": true' in written
    assert "cores" in written


def test_generated_specs_have_as_many_hosts_and_pools_as_wanted() -> None:
    assert generate.bare_metal_hosts(300).count("name: gpu") == 300
    assert generate.linked_pools(40).count("machine: sim.h100x8") == 40
    assert generate.long_line(40).count("password") == 40
