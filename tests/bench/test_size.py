"""The step-time model is fitted to published runs, and off by what it says."""

from __future__ import annotations

import math
import statistics
from collections import Counter

import pytest
from bench.size.accuracy import fitting, summary
from bench.size.fit import accuracy, fit
from bench.size.runs import errors, runs
from bench.size.serving_fit import errors as serving_errors
from bench.size.serving_fit import serving_runs

from gcluster.inventory.size.constants import constants
from gcluster.inventory.size.serving import serving_constants

RUNS = runs()
APART = [run for run in RUNS if run.is_apart]


def test_there_are_forty_runs_and_more_each_with_a_source() -> None:
    assert len(RUNS) >= 40
    assert all(run.source for run in RUNS)


def test_half_of_the_runs_is_set_apart_and_no_group_is_in_both_halves() -> None:
    halves = Counter(run.is_apart for run in RUNS)
    assert 0.4 <= halves[True] / len(RUNS) <= 0.6
    groups = {(run.source.split(" ")[0], run.gpu.gpu, run.model.name, run.is_apart) for run in RUNS}
    assert len(groups) == len({group[:3] for group in groups})


@pytest.mark.parametrize("dense", [True, False])
def test_the_stated_error_is_that_of_the_runs_set_apart(dense: bool) -> None:
    stated = constants().dense if dense else constants().experts
    found = [run for run in APART if run.is_dense is dense]
    assert accuracy(found, constants().fitted) == stated


def test_dense_models_on_a100_and_h100_are_within_the_documented_error() -> None:
    found = summary(APART)
    assert float(str(found["median"])) <= 0.15
    assert float(str(found["worst"])) <= 0.30
    assert float(str(found["memory_fits"])) >= 0.95


def test_a_fit_ends_and_is_no_worse_on_its_own_few_runs_than_the_written_numbers() -> None:
    few = [run for run in RUNS if not run.is_apart and run.is_dense][::10]
    few += [run for run in RUNS if not run.is_apart and not run.is_dense]
    found = fit(few, least_step=0.1)
    by_own = sum(math.log1p(error) ** 2 for error, _ in errors(few, found))
    by_written = sum(math.log1p(error) ** 2 for error, _ in errors(few, constants().fitted))
    assert by_own <= by_written * 1.05


def test_runs_whose_source_reports_what_is_recomputed_fit_as_they_did() -> None:
    stated = [run for run in RUNS if run.source.startswith(("Narayanan", "mosaicml"))]
    assert fitting(stated) >= 0.95


def test_the_stated_error_of_serving_is_that_of_the_runs_set_apart() -> None:
    stated = serving_constants()
    off = [abs(each) for each in serving_errors([r for r in serving_runs() if r.is_apart], stated)]
    assert (len(off), round(statistics.median(off), 3), round(max(off), 3)) == (
        stated.runs,
        stated.median,
        stated.worst,
    )
