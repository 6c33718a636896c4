"""The report says what it proves and what not, node by node, and its signature can be verified."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.cli.console import Console
from gcluster.cli.render.operate.acceptance import acceptance_text, verify_line, write_files
from gcluster.lifecycle.operations.acceptance import report as reports
from gcluster.lifecycle.operations.acceptance.facts.counters import Counters
from gcluster.lifecycle.operations.acceptance.facts.inventory import NodeParts
from gcluster.lifecycle.operations.acceptance.judge import Finding, Gap, Judged, judge_results
from gcluster.lifecycle.operations.acceptance.reading.result import Figure
from gcluster.lifecycle.operations.acceptance.record import Exclusion, Plan, Record, Result
from gcluster.lifecycle.operations.acceptance.run import Accepted, last_accepted
from gcluster.lifecycle.operations.acceptance.table import acceptance_tests
from gcluster.lifecycle.operations.acceptance.targets import Want
from gcluster.lifecycle.smoke.launch import Launch

NODES = ("gpu001", "gpu002", "gpu003")
MACHINES = dict.fromkeys(NODES, "dgx-h100")
PLAN = Plan(
    number=1, begun="2026-11-25T12:00:00Z", spec_hash="0" * 64, gcluster="0.1.0",
    tests=("node", "pairs"), repetitions=1, soak_s=0, path="", mib=16, account="ada",
)  # fmt: skip
TESTS = [test for test in acceptance_tests() if test.name in PLAN.tests]


def result(test: str, target: str, nodes: str, *figures: Figure) -> Result:
    return Result(
        test=test, target=target, repetition=1, nodes=nodes, ended="2026-11-25T12:01:00Z",
        seconds=5, command="measure", figures=figures,
    )  # fmt: skip


NODE_RESULTS = [
    result("node", name, name, Figure(metric="memory_copy", value=200.0)) for name in NODES
]
MEETINGS = ("gpu001 gpu002", "gpu001 gpu003", "gpu002 gpu003")
PAIRS = result(
    "pairs", "all of main-1", "gpu[001-003]",
    *(Figure(metric="pair_bandwidth", value=48.0, part=pair) for pair in MEETINGS),
)  # fmt: skip
SAME = {"dmi": {"product_serial": "", "bios_version": "1.2"}}


def judged(*results: Result, missing: dict[tuple[str, str], Gap] | None = None) -> Judged:
    return judge_results(TESTS, results, {}, missing or {}, {}, frozenset(), {})


def composed(
    answer: Judged,
    *,
    plan: Plan = PLAN,
    parts: dict[str, NodeParts] | None = None,
    after: dict[str, dict[str, int]] | None = None,
    simulated: dict[str, tuple[str, ...]] | None = None,
) -> reports.Report:
    counts = {name: {"mlx5_0/1 symbol_error": 0, "mlx5_0/1 port_rcv_data": 0} for name in NODES}
    return reports.compose(
        cluster="hall", cluster_id="0123456789abcdef", plan=plan, ended="2026-11-25T13:00:00Z",
        machines=MACHINES, simulated=simulated or {}, judged=answer,
        parts=parts or {name: NodeParts(parts=SAME) for name in NODES},
        counters=(Counters(nodes=counts), Counters(nodes=counts | (after or {}))),
        compared_with=None,
    )  # fmt: skip


def test_all_that_passed_is_a_pass_with_a_certificate_for_each_node() -> None:
    report = composed(judged(*NODE_RESULTS, PAIRS))
    assert report.verdict == "pass"
    assert {c.node: (c.verdict, c.tests) for c in report.certificates} == {
        name: ("pass", {"node": "pass", "pairs": "pass"}) for name in NODES
    }


def test_what_is_missing_makes_it_incomplete_for_the_nodes_it_is_missing_of() -> None:
    gap = {("node", "gpu003"): Gap(nodes="gpu003", why="gpu003 is not idle")}
    report = composed(judged(*NODE_RESULTS[:2], PAIRS, missing=gap))
    assert report.verdict == "incomplete"
    assert [c.verdict for c in report.certificates] == ["pass", "pass", "incomplete"]


def test_a_cluster_of_which_nothing_was_tested_has_no_pass() -> None:
    gaps = {("node", name): Gap(nodes=name, why="measure isn't on it") for name in NODES}
    report = composed(judge_results(TESTS, [], gaps, {}, {}, frozenset(), {}))
    assert report.verdict == "incomplete"
    assert {certificate.verdict for certificate in report.certificates} == {"incomplete"}


def test_a_failure_is_on_the_certificates_of_its_nodes_alone() -> None:
    broken = msgspec.structs.replace(NODE_RESULTS[1], failures=("1 wrong results (data)",))
    report = composed(judged(NODE_RESULTS[0], broken, NODE_RESULTS[2], PAIRS))
    assert report.verdict == "fail"
    assert [c.verdict for c in report.certificates] == ["pass", "fail", "pass"]
    assert "wrong results" in report.certificates[1].findings[0]


def test_an_excluded_node_has_no_verdict_and_its_exclusion_names_who_answers_for_it() -> None:
    out = Exclusion(
        nodes="gpu003", reason="RMA 4711", accepted_by="B. Ops", time="2026-11-25T11:00:00Z"
    )
    plan = msgspec.structs.replace(PLAN, exclusions=(out,))
    report = composed(judged(*NODE_RESULTS[:2], PAIRS), plan=plan)
    assert report.verdict == "pass"
    assert (report.nodes, report.exclusions) == ("gpu[001-002]", (out,))
    assert report.certificates[2].verdict == "excluded"


def test_an_error_counter_that_moved_fails_the_node_and_a_reset_counter_counts_from_0() -> None:
    moved = {"gpu002": {"mlx5_0/1 symbol_error": 3, "mlx5_0/1 port_rcv_data": 10**6}}
    report = composed(judged(*NODE_RESULTS, PAIRS), after=moved)
    assert [f.nodes for f in report.findings if f.level == "fail"] == [("gpu002",), ("gpu002",)]
    assert report.ports["gpu002"].ber == {"mlx5_0/1": 3 / (10**6 * 32)}


def test_other_firmware_than_the_others_have_fails_the_node() -> None:
    parts = {name: NodeParts(parts=SAME) for name in NODES}
    parts["gpu003"] = NodeParts(parts={"dmi": {"bios_version": "1.1"}})
    (finding,) = composed(judged(*NODE_RESULTS, PAIRS), parts=parts).findings
    assert finding == Finding(
        level="fail", test="inventory", nodes=("gpu003",),
        text="dmi bios_version is 1.1 on gpu003, most have 1.2",
    )  # fmt: skip


def test_one_serial_number_on_two_nodes_is_reported() -> None:
    twice = NodeParts(parts={"gpu 0": {"serial": "1654422006536"}})
    parts = {"gpu001": twice, "gpu002": twice, "gpu003": NodeParts()}
    (finding,) = composed(judged(*NODE_RESULTS, PAIRS), parts=parts).findings
    assert finding.text == "gpu serial 1654422006536 is claimed 2 times, on gpu[001-002]"


def test_the_files_hold_the_report_and_its_signature_verifies_until_a_byte_changes(
    sample: SampleCluster, tmp_path: Path
) -> None:
    sample.up()
    cluster = sample.open(running=True)
    simulated = {"GPUs are simulated: sim.h100x8": NODES}
    report = composed(judged(*NODE_RESULTS, PAIRS), simulated=simulated)
    content = reports.encode(report)
    record = Record(cluster.store, 1)
    record.keep_plan(PLAN)
    record.keep_report(content, reports.sign(cluster.vault, content))
    accepted = last_accepted(cluster)
    assert accepted.report == report
    folder = tmp_path / "out"
    write_files(accepted, folder)
    line = verify_line("hall").replace("acceptance@hall", f"acceptance@{cluster.name}")
    assert subprocess.run(["sh", "-c", line], cwd=folder, check=False).returncode == 0
    certificate = msgspec.json.decode((folder / "certificates/gpu002.json").read_bytes())
    assert certificate["report_sha256"] == reports.digest(content)
    html = (folder / "report.html").read_text()
    assert "on simulated hardware" in html
    assert "http" not in html, "the report needs no network"
    (folder / "report.json").write_bytes(content.replace(b"pass", b"past", 1))
    assert subprocess.run(["sh", "-c", line], cwd=folder, check=False).returncode != 0


def test_a_result_over_nodes_of_which_some_were_excluded_since_is_none(
    sample: SampleCluster,
) -> None:
    store = sample.open().store
    sample.open().identify()
    launch = Launch(
        job="j", label="main-1", partition="main", nodes=NODES, min_bytes=8, max_bytes=8,
        iterations=1,
    )  # fmt: skip
    want = Want(test="pairs", target="all of main-1", repetition=1, launch=launch)
    record = Record(store, 1)
    record.keep_begun([want])
    record.keep_results(want, [PAIRS])
    assert list(record.begun()) == [[want]]
    assert record.results([want]) == {want.key: PAIRS}
    fewer = msgspec.structs.replace(want, launch=msgspec.structs.replace(launch, nodes=NODES[:2]))
    assert record.results([fewer]) == {}


def test_the_text_has_before_the_findings_what_was_not_real_and_not_tested() -> None:
    gap = {("pairs", "all of main-1"): Gap(nodes="gpu[001-003]", why="measure isn't on gpu003")}
    answer = judge_results(TESTS, NODE_RESULTS, gap, {}, {}, frozenset(), {})
    report = composed(answer, simulated={"GPUs are simulated: sim.h100x8": NODES})
    accepted = Accepted(report=report, content=b"", signature="", allowed_signers="")
    text = acceptance_text(accepted, (), Console())
    assert "acceptance 1 of hall: pass (simulated)" in text
    assert "not tested: pairs: measure isn't on gpu003 (all of main-1)" in text
