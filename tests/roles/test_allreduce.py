"""The payload is exact, prints the table of nccl-tests, and claims only what Open MPI says."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import chain
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ranks_and_counts = given(ranks=st.integers(1, 16), count=st.integers(1, 3000))


@ranks_and_counts
@settings(max_examples=40)
def test_the_closed_form_is_the_sum_of_what_the_ranks_contribute(
    payload: ModuleType, ranks: int, count: int
) -> None:
    summed = array("f", bytes(4 * count))
    for rank in reversed(range(ranks)):
        mine = payload.contribution(rank, count)
        summed = array("f", map(float.__add__, summed, mine))
    assert summed == payload.expected_sum(ranks, count)
    assert payload.wrong_elements(summed, payload.expected_sum(ranks, count)) == 0


@given(ranks=st.integers(1, 10_000))
def test_a_sum_is_called_exact_only_if_float32_holds_it(payload: ModuleType, ranks: int) -> None:
    largest = ranks * 1020 + ranks * (ranks + 1) // 2
    held = array("f", [largest, largest - 1]).tolist() == [largest, largest - 1]
    assert held or not payload.is_exact(ranks)


def test_thousands_of_ranks_are_still_exact(payload: ModuleType) -> None:
    assert payload.is_exact(4096)
    assert not payload.is_exact(5000)


@given(ranks=st.integers(2, 16), count=st.integers(1, 3000), data=st.data())
def test_every_wrong_element_is_counted(
    payload: ModuleType, ranks: int, count: int, data: st.DataObject
) -> None:
    result = payload.expected_sum(ranks, count)
    broken = data.draw(st.sets(st.integers(0, count - 1), max_size=9))
    for index in broken:
        result[index] += 1
    assert payload.wrong_elements(result, payload.expected_sum(ranks, count)) == len(broken)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda parts: parts[:-1], id="a rank is missing"),
        pytest.param(lambda parts: [parts[0], *parts[:-1]], id="a rank counts twice for another"),
        pytest.param(lambda parts: [[0.0] * 64 for _ in parts], id="nothing was sent"),
        pytest.param(lambda parts: [p[16:] + p[:16] for p in parts], id="blocks changed places"),
    ],
)
def test_a_faulty_collective_has_no_right_element(
    payload: ModuleType, fault: Callable[[list[list[float]]], list[list[float]]]
) -> None:
    parts = [payload.contribution(rank, 64).tolist() for rank in range(4)]
    summed = array("f", map(sum, zip(*fault(parts), strict=True)))
    assert payload.wrong_elements(summed, payload.expected_sum(4, 64)) == 64


def test_sizes_go_up_by_the_factor_and_never_past_the_last(payload: ModuleType) -> None:
    assert list(payload.message_sizes(8, 4096, 8)) == [8, 64, 512, 4096]
    assert list(payload.message_sizes(8, 4095, 8)) == [8, 64, 512]


@pytest.mark.parametrize(("ranks", "factor"), [(1, 0), (2, 1), (4, 1.5), (8, 1.75)])
def test_busbw_is_what_each_link_of_a_ring_carries(
    payload: ModuleType, ranks: int, factor: float
) -> None:
    assert payload.bus_factor(ranks) == factor


@pytest.mark.parametrize(
    ("value", "width", "printed"),
    [
        (0, 6, "  0.00"),
        (6.98, 7, "   6.98"),
        (1234.56, 7, "1234.56"),
        (12345.6, 7, "12345.6"),
        (123456.7, 7, " 123457"),
        (222.884, 6, "222.88"),
        (2228.84, 6, "2228.8"),
    ],
)
def test_numbers_are_as_wide_and_exact_as_those_of_nccl_tests(
    payload: ModuleType, value: float, width: int, printed: str
) -> None:
    assert payload.number(value, width) == printed


def test_a_half_of_a_row_has_the_columns_of_nccl_tests(payload: ModuleType) -> None:
    half = payload.Half(339.61e-6, 3.09, 4.63, 0)
    assert str(half) == "   339.61    3.09    4.63       0"


def btl_log(btl: str, node: str) -> str:
    return f"[gpu001:00161] mca: bml: Using {btl} btl for send to [[21379,1],1] on node {node}\n"


def test_the_transports_are_those_open_mpi_names_between_ranks(payload: ModuleType) -> None:
    lines = [
        btl_log("self", "gpu001"),
        "noise\n",
        btl_log("tcp", "gpu002"),
        btl_log("sm", "gpu001"),
    ]
    assert payload.transport_of(lines) == {"sm", "tcp"}
    assert payload.transport_of(["mca: bml: Not using tcp btl for send to x on node y\n"]) == set()


@pytest.mark.parametrize(
    ("btls", "ranks", "line"),
    [
        ({"tcp"}, 4, "# gcluster transport: ethernet (simulated) btl=tcp"),
        ({"tcp", "sm"}, 4, "# gcluster transport: ethernet (simulated) btl=sm,tcp"),
        ({"sm"}, 2, "# gcluster transport: memory (simulated) btl=sm"),
        ({"uct"}, 2, "# gcluster transport: unknown (simulated) btl=uct"),
        (set(), 2, "# gcluster transport: unknown (simulated) btl=unknown"),
        (set(), 1, "# gcluster transport: none btl=self"),
    ],
)
def test_a_transport_that_was_not_named_is_called_unknown(
    payload: ModuleType, btls: set[str], ranks: int, line: str
) -> None:
    assert payload.transport_line(btls, ranks) == line


@pytest.mark.parametrize(
    "arguments",
    [["--factor", "1"], ["--min-bytes", "2"], ["--max-bytes", "4"], ["--iterations", "0"], ["-x"]],
)
def test_wrong_usage_exits_as_nccl_tests_does(payload: ModuleType, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        payload.parse(arguments)
    assert stopped.value.code == 6


@pytest.mark.parametrize("environment", [{}, {"SLURM_STEP_NUM_TASKS": "4"}])
def test_all_ranks_that_slurm_started_are_no_problem(
    payload: ModuleType, environment: dict[str, str]
) -> None:
    assert payload.problem_with(4, environment) is None


def test_ranks_that_slurm_started_but_mpi_lacks_are_named(payload: ModuleType) -> None:
    assert "4 of the 8 ranks" in payload.problem_with(4, {"SLURM_STEP_NUM_TASKS": "8"})


def test_more_ranks_than_float32_sums_exactly_are_refused(payload: ModuleType) -> None:
    assert "5000 ranks" in payload.problem_with(5000, {})


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "alltoall", "sendrecv"])
@given(ranks=st.integers(2, 9), part=st.integers(1, 300))
@settings(max_examples=20)
def test_what_a_rank_expects_of_a_collective_is_what_the_others_send_it(
    payload: ModuleType, collective: str, ranks: int, part: int
) -> None:
    """The collective is played by hand, from the sources alone."""
    every = [payload.data_of(collective, rank, ranks, ranks * part) for rank in range(ranks)]
    sources = [data.source.tolist() for data in every]
    for rank, data in enumerate(every):
        mine = slice(rank * part, (rank + 1) * part)
        received = {
            "all_gather": list(chain.from_iterable(sources)),
            "reduce_scatter": [sum(parts) for parts in zip(*(s[mine] for s in sources))],  # noqa: B905
            "alltoall": list(chain.from_iterable(source[mine] for source in sources)),
            "sendrecv": sources[rank - 1],
        }
        assert data.expected.tolist() == received[collective]
