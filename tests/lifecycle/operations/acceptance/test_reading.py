"""The vendors' tools are read as they print (tests/cases/acceptance.yaml); what is cut fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.golden_files import CASES, read_cases

from gcluster.lifecycle.operations.acceptance.reading.output import READERS
from gcluster.lifecycle.operations.acceptance.table import acceptance_tests

PUBLISHED = read_cases(CASES / "acceptance.yaml")
FIO = {
    "fio version": "fio-3.39",
    "jobs": [
        {"jobname": "write", "error": 0, "write": {"io_bytes": 8, "bw_bytes": 5 * 10**8}},
        {"jobname": "randread", "error": 0, "read": {"io_bytes": 8, "iops": 2500.0}},
        {"jobname": "read", "error": 5, "read": {"io_bytes": 0}},
    ],
}


def output_of(case: dict[str, Any]) -> str:
    """Return what the job prints; a table of perftest comes inside a line of `measure`."""
    if "perftest" not in case:
        return str(case["output"])
    answer = {"pair": ["gpu001", "gpu002"], "rail": "mlx5_0", "tool": case["perftest"]}
    return f"@measure {json.dumps(answer | {'text': case['output']})}\n"


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_output_is_read(name: str) -> None:
    case = PUBLISHED[name]
    read = READERS[case["reader"]](output_of(case))
    figures = {f"{one.metric} {one.part}".strip(): one.value for one in read.figures}
    assert figures == pytest.approx(case.get("figures", {}))
    assert list(read.failures) == case.get("failures", [])
    assert list(read.remarks) == case.get("remarks", [])


def test_fio_is_read_by_its_jobs_and_an_error_fails() -> None:
    read = READERS["fio"](json.dumps(FIO))
    assert {one.metric: one.value for one in read.figures} == {"write": 0.5, "read_iops": 2500.0}
    assert read.failures == ("read: error 5",)


@pytest.mark.parametrize("reader", READERS)
def test_an_empty_output_proves_nothing(reader: str) -> None:
    assert READERS[reader]("").failures  # type: ignore[index]  # names of the table


def test_every_figure_that_is_read_is_in_the_table() -> None:
    known: dict[str, set[str]] = {}
    for test in acceptance_tests():
        for way in test.ways:
            known.setdefault(way.reader, set()).update(test.metrics)
    for case in PUBLISHED.values():
        metrics = {figure.partition(" ")[0] for figure in case.get("figures", {})}
        assert metrics <= known[case["reader"]]
