"""Saved logs of every fabric class, and the law that a pass has every fact it rests on."""

from __future__ import annotations

import io
import re
from typing import IO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lifecycle.smoke.vendor_logs import SETUPS, cases_of

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.smoke.judging.verdict import Verdict
from gcluster.lifecycle.smoke.saved import LONGEST_LINE, SavedResult, judge_saved
from gcluster.schemas.catalog import load_catalog

CATALOG = load_catalog()
CASES = [(name, case) for name in SETUPS for case in cases_of(name)]


def judged(text: str, name: str, *, nodes: int | None = None, fabric: str = "") -> SavedResult:
    setup = SETUPS[name]
    return judge_saved(
        io.StringIO(text),
        fabric=fabric or name.removesuffix("-rccl"),
        machine=setup.machine,
        nodes=nodes or setup.nodes,
        catalog=CATALOG,
    )


def log(name: str, case: str = "passes") -> str:
    return cases_of(name)[case].text


def codes(verdict: Verdict) -> list[str]:
    return list(dict.fromkeys(reason.code for reason in verdict.reasons))


@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_golden_log_gets_its_verdict(name: str, case: str) -> None:
    verdict = judged(log(name, case), name).verdict
    wanted = cases_of(name)[case]
    assert (verdict.verdict, codes(verdict)) == (wanted.verdict, wanted.codes)
    assert verdict.floor == pytest.approx(SETUPS[name].floor)


def test_every_fabric_class_has_a_log_that_passes_and_logs_that_fail() -> None:
    assert {name.removesuffix("-rccl") for name in SETUPS} == set(CATALOG.fabrics)
    assert all({"pass", "fail"} == {c.verdict for c in cases_of(n).values()} for n in SETUPS)


@pytest.mark.parametrize("name", SETUPS)
def test_a_log_is_no_proof_of_another_number_of_nodes(name: str) -> None:
    assert "missing-rank" in codes(judged(log(name), name, nodes=3).verdict)


@pytest.mark.parametrize("other", ["ethernet", "gib", "efa-v2", "gpudirect-tcpx", "nvlink", "roce"])
def test_infiniband_is_no_proof_of_another_fabric(other: str) -> None:
    verdict = judged(log("infiniband-ndr"), "infiniband-ndr", fabric=other).verdict
    assert "wrong-transport" in codes(verdict)


def test_roce_ports_are_no_infiniband() -> None:
    verdict = judged(log("roce"), "roce", fabric="infiniband-hdr").verdict
    assert codes(verdict) == ["wrong-transport"]


def test_libfabric_over_tcp_is_no_efa() -> None:
    text = log("efa-v2").replace("Selected provider is efa", "Selected provider is tcp")
    assert codes(judged(text, "efa-v2").verdict) == ["wrong-transport"]


def test_one_group_per_node_is_no_ring_over_all() -> None:
    text = log("infiniband-ndr").replace("nNodes 4", "nNodes 1")
    assert codes(judged(text, "infiniband-ndr").verdict) == ["missing-rank"]
    text = log("infiniband-ndr").replace("nRanks 32", "nRanks 8")
    assert codes(judged(text, "infiniband-ndr").verdict) == ["missing-rank"]


def test_split_groups_are_no_ring_over_all() -> None:
    text = re.sub(r"(Rank +(?:[89]|1\d) Group +)0", r"\g<1>1", log("roce"))
    assert codes(judged(text, "roce").verdict) == ["missing-rank"]


def test_checks_that_are_off_are_no_pass() -> None:
    text = log("roce").replace("validation: 1", "validation: 0")
    assert codes(judged(text, "roce").verdict) == ["unchecked"]
    text = re.sub(r"(?m)(\d\.\d\d) +0$", r"\1    N/A", log("roce"))
    assert codes(judged(text, "roce").verdict) == ["unchecked"]


def test_another_collective_is_no_all_reduce() -> None:
    text = log("roce").replace("all_reduce_perf", "all_gather_perf")
    assert codes(judged(text, "roce").verdict) == ["unreadable"]


def test_a_sweep_that_ends_before_the_floor_s_size_is_too_small() -> None:
    short = log("infiniband-ndr").replace("maxBytes 8589934592", "maxBytes 134217728")
    kept = [
        line
        for line in short.splitlines(keepends=True)
        if not (match := re.match(r" *0: +(\d+) +\d+ +float", line)) or int(match[1]) <= 1 << 27
    ]
    found = codes(judged("".join(kept), "infiniband-ndr").verdict)
    assert "too-small-sweep" in found
    assert "below-floor" not in found


def test_what_slows_a_fabric_with_rdma_down_is_a_fault() -> None:
    text = log("infiniband-ndr").replace("NET/IB/0/GDRDMA", "NET/IB/0", 2)
    text += "gpu001:4000:5000 [0] NCCL INFO NVLS multicast support is not available on dev 0\n"
    verdict = judged(text, "infiniband-ndr").verdict
    assert codes(verdict) == ["no-gpudirect", "no-nvls"]


def test_gpus_fall_back_to_host_memory_at_no_pass() -> None:
    text = log("infiniband-ndr").replace("via P2P/CUMEM", "via SHM/direct/direct", 3)
    assert codes(judged(text, "infiniband-ndr").verdict) == ["through-host-memory"]


def test_a_class_without_a_floor_reports_it() -> None:
    verdict = judged(log("infiniband-xdr"), "infiniband-xdr").verdict
    assert verdict.passed
    assert verdict.floor is None
    assert "no-floor" in {warned.code for warned in verdict.warnings}


@pytest.mark.parametrize(
    ("fabric", "machine", "nodes"),
    [("infiniband", "dgx-h100", 2), ("roce", "dgx-h1000", 2), ("roce", "dgx-h100", 0)],
)
def test_what_is_not_in_the_catalog_is_a_mistake_of_the_command_line(
    fabric: str, machine: str, nodes: int
) -> None:
    with pytest.raises(LifecycleError) as raised:
        judge_saved(io.StringIO(), fabric=fabric, machine=machine, nodes=nodes, catalog=CATALOG)
    assert raised.value.exit_code == Exit.USAGE


def test_what_has_no_line_ends_is_read_in_pieces() -> None:
    requested: list[int] = []

    class Endless:
        """A stream without line ends."""

        def readline(self, size: int) -> str:
            """Return the next piece."""
            requested.append(size)
            return "x" * size if len(requested) < 5 else ""

    endless = cast("IO[str]", Endless())
    result = judge_saved(endless, fabric="roce", machine="dgx-h100", nodes=2, catalog=CATALOG)
    assert set(requested) == {LONGEST_LINE}
    assert codes(result.verdict) == ["missing-rank", "unreadable", "no-transport"]


LAWFUL = ["efa-v1", "infiniband-ndr", "gpudirect-tcpxo", "nvlink"]
lawful = st.sampled_from(LAWFUL)
TEXTS = {name: log(name) for name in LAWFUL}
WHOLE = {name: judged(TEXTS[name], name) for name in LAWFUL}


@given(lawful, st.data())
def test_a_log_that_is_cut_does_not_pass_unless_every_fact_is_there(
    name: str, data: st.DataObject
) -> None:
    text = TEXTS[name]
    result = judged(text[: data.draw(st.integers(0, len(text)))], name)
    if result.passed:
        assert (result.log.rows, result.log.ranks) == (WHOLE[name].log.rows, WHOLE[name].log.ranks)
        assert result.log.footer == WHOLE[name].log.footer


@given(lawful, st.data())
def test_without_lines_a_pass_has_the_same_ranks_rows_and_footer(
    name: str, data: st.DataObject
) -> None:
    lines = TEXTS[name].splitlines(keepends=True)
    lost = data.draw(st.sets(st.integers(0, len(lines) - 1), min_size=1, max_size=4))
    result = judged("".join(line for at, line in enumerate(lines) if at not in lost), name)
    if result.passed:
        assert (result.log.rows, result.log.ranks) == (WHOLE[name].log.rows, WHOLE[name].log.ranks)
        assert result.log.footer.average == WHOLE[name].log.footer.average


@given(lawful, st.data(), st.integers(0, 10**12))
def test_a_changed_number_passes_only_where_the_proof_still_holds(
    name: str, data: st.DataObject, number: int
) -> None:
    text = TEXTS[name]
    places = [m.span() for m in re.finditer(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", text)]
    start, end = data.draw(st.sampled_from(places))
    verdict = judged(f"{text[:start]}{number}{text[end:]}", name).verdict
    if verdict.passed:
        assert verdict.wrong == 0
        assert verdict.ranks == WHOLE[name].verdict.ranks
        assert verdict.largest == WHOLE[name].verdict.largest
        assert verdict.busbw == pytest.approx(WHOLE[name].verdict.busbw, rel=0.05)


def test_inside_an_nvlink_domain_nvlink_may_carry_messages_in_addition_to_the_fabric() -> None:
    text = log("nvlink")
    only = judged(text, "nvlink", fabric="infiniband-xdr").verdict
    assert "no-transport" in codes(only)
    both = text.replace("via P2P/MNNVL", "[send] via NET/IB/0/GDRDMA", 1)
    found = codes(judged(both, "nvlink", fabric="infiniband-xdr").verdict)
    assert not {"no-transport", "wrong-transport"} & set(found)
    assert codes(judged(both, "nvlink").verdict) == ["wrong-transport"]


def test_a_wrong_number_that_ends_the_launcher_is_no_abort() -> None:
    text = log("roce", "wrong-result")
    text += "srun: error: gpu001: task 0: Exited with exit code 7\n"
    assert codes(judged(text, "roce").verdict) == ["wrong-result"]
    text = log("roce") + "srun: error: gpu001: task 0: Exited with exit code 3\n"
    assert codes(judged(text, "roce").verdict) == ["aborted"]
