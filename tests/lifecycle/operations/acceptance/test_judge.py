"""What fails, what is only reported, and that nothing untested or missing ever counts as passed."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gcluster.lifecycle.operations.acceptance.judge import Gap, Judged, judge_results
from gcluster.lifecycle.operations.acceptance.reading.result import Figure
from gcluster.lifecycle.operations.acceptance.record import Result
from gcluster.lifecycle.operations.acceptance.table import AcceptanceTest, acceptance_tests

BY_NAME = {test.name: test for test in acceptance_tests()}
NODES = [f"gpu{number:03d}" for number in range(1, 9)]


def of_node(node: str, copied: float, *, repetition: int = 1, **more: object) -> Result:
    fields: dict[str, object] = {
        "test": "node", "target": node, "repetition": repetition, "nodes": node,
        "ended": "2026-11-25T12:00:00Z", "seconds": 9.0, "command": "measure node",
        "figures": (Figure(metric="memory_copy", value=copied),),
    }  # fmt: skip
    return Result(**(fields | more))  # type: ignore[arg-type]  # checked by the judge's answers


def of_pairs(speeds: Mapping[str, float]) -> Result:
    figures = tuple(Figure(metric="pair_bandwidth", value=v, part=p) for p, v in speeds.items())
    return of_node("all of main-1", 0, test="pairs", nodes="gpu[001-008]", figures=figures)


def judged(
    *results: Result,
    test: AcceptanceTest = BY_NAME["node"],
    before: Mapping[tuple[str, str, str, str], float] | None = None,
    shared: frozenset[str] = frozenset(),
    kinds: Mapping[str, str] | None = None,
    missing: Mapping[tuple[str, str], Gap] | None = None,
    not_tested: Mapping[tuple[str, str], Gap] | None = None,
) -> Judged:
    return judge_results(
        [test], results, not_tested or {}, missing or {}, before or {}, shared, kinds or {}
    )


def test_a_node_that_is_slower_than_its_peers_fails_and_is_named() -> None:
    results = [of_node(node, 200.0 + number) for number, node in enumerate(NODES)]
    assert judged(*results).findings == ()
    answer = judged(*results[:-1], of_node("gpu008", 120.0))
    (finding,) = answer.findings
    assert (finding.level, finding.nodes) == ("fail", ("gpu008",))
    assert "-41% from the median 202.5" in finding.text
    assert answer.tests[0].outcome == "fail"


def test_another_machine_type_is_no_peer_and_the_whole_is_none_of_its_blocks() -> None:
    results = [of_node(node, 100.0 if node > "gpu004" else 400.0) for node in NODES]
    kinds = {node: "cpu" if node > "gpu004" else "dgx-h100" for node in NODES}
    assert judged(*results, kinds=kinds).findings == ()
    whole = {f"block {n}": 380.0 for n in range(6)} | {"all of main-1": 300.0}
    busbw = [
        of_node(target, 0, test="all_gather", nodes="gpu[001-008]", target=target,
                figures=(Figure(metric="busbw", value=value),))
        for target, value in whole.items()
    ]  # fmt: skip
    assert judged(*busbw, test=BY_NAME["all_gather"]).findings == ()


def test_nodes_that_share_a_machine_are_reported_and_not_judged() -> None:
    results = [of_node(node, 200.0) for node in NODES[:-1]]
    answer = judged(*results, of_node("gpu008", 120.0), shared=frozenset(NODES))
    assert [finding.level for finding in answer.findings] == ["remark"]
    assert answer.tests[0].outcome == "pass"


def test_wrong_data_fails_wherever_it_was_computed() -> None:
    results = [of_node(node, 200.0, failures=("1 wrong results (data)",)) for node in NODES[:2]]
    answer = judged(*results, shared=frozenset(NODES))
    (finding,) = answer.findings
    assert (finding.level, finding.nodes) == ("fail", ("gpu001", "gpu002"))
    assert finding.text == "gpu[001-002]: 1 wrong results (data)"


def test_a_slow_pair_names_both_of_its_nodes() -> None:
    speeds = {f"{a} {b}": 48.0 for a in NODES for b in NODES if a < b}
    answer = judged(of_pairs(speeds | {"gpu003 gpu007": 24.0}), test=BY_NAME["pairs"])
    assert [finding.nodes for finding in answer.findings] == [("gpu003", "gpu007")]


def test_a_node_that_is_slow_with_all_is_blamed_and_its_partners_are_not() -> None:
    speeds = {
        f"{a} {b}": 24.0 if "gpu005" in {a, b} else 48.0 for a in NODES for b in NODES if a < b
    }
    answer = judged(of_pairs(speeds | {"gpu001 gpu002": 20.0}), test=BY_NAME["pairs"])
    assert [finding.nodes for finding in answer.findings] == [("gpu005",), ("gpu001", "gpu002")]
    assert "bad with 7 of 7 partners" in answer.findings[0].text


def test_the_parts_of_a_node_are_one_finding() -> None:
    parts = tuple(Figure(metric="memory_copy", value=100.0, part=f"GPU {n}") for n in range(8))
    fast = tuple(Figure(metric="memory_copy", value=200.0, part=f"GPU {n}") for n in range(8))
    results = [of_node(node, 0, figures=fast) for node in NODES[:-1]]
    (finding,) = judged(*results, of_node("gpu008", 0, figures=parts)).findings
    assert finding.nodes == ("gpu008",)
    assert finding.text.endswith("and 7 more of its parts")


def test_a_rail_below_the_share_of_its_speed_fails_though_all_rails_are_alike() -> None:
    parts = [f"{a} {b} mlx5_0" for a in NODES for b in NODES if a < b]
    figures = tuple(Figure(metric="pair_rails", value=200.0, part=part) for part in parts)
    result = of_node("all of main-1", 0, test="ib_write_bw", nodes="gpu[001-008]", figures=figures)
    held = msgspec.structs.replace(result, floor=380.0, floor_reason="0.95 of 400 Gb/s (NIC)")
    findings = judged(held, test=BY_NAME["ib_write_bw"]).findings
    assert {node for finding in findings for node in finding.nodes} == set(NODES)
    assert "pair_rails of gpu001 mlx5_0 is bad with 7 of 7 partners" in findings[0].text
    assert "gpu001 and gpu002 mlx5_0 is 200 Gb/s, the floor is 380" in findings[0].text
    assert judged(result, test=BY_NAME["ib_write_bw"]).findings == ()


def test_a_missing_result_is_no_pass() -> None:
    gap = {("node", "gpu008"): Gap(nodes="gpu008", why="gpu008 is not idle")}
    answer = judged(*(of_node(node, 200.0) for node in NODES[:-1]), missing=gap)
    assert answer.tests[0].outcome == "missing"


def test_what_could_not_be_tested_is_no_pass() -> None:
    gap = {("node", node): Gap(nodes=node, why="measure isn't on it") for node in NODES}
    assert judged(not_tested=gap).tests[0].outcome == "not tested"


def test_a_cluster_that_is_slower_as_a_whole_fails_by_its_last_acceptance() -> None:
    results = [of_node(node, 160.0) for node in NODES]
    before = {("node", "memory_copy", node, ""): 200.0 for node in NODES}
    findings = judged(*results, before=before).findings
    assert {finding.level for finding in findings} == {"fail"}
    assert len(findings) == len(NODES)
    assert judged(*(of_node(node, 195.0) for node in NODES), before=before).findings == ()


def test_repetitions_are_one_figure_and_their_spread_is_reported() -> None:
    values = (200.0, 150.0, 202.0)
    results = [
        of_node(node, value, repetition=number)
        for node in NODES
        for number, value in enumerate(values, 1)
    ]
    answer = judged(*results)
    (metric,) = answer.tests[0].metrics
    assert metric.summary.median == 200.0
    assert [finding.level for finding in answer.findings] == ["remark"]
    assert "varies by more than 10%" in answer.findings[0].text
