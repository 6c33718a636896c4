"""What is run where: by block and whole, sampled when large, never by a way that is not there."""

from __future__ import annotations

import re

import msgspec
import pytest

from gcluster.inventory.hosts import Host, Placement, SshTarget
from gcluster.lifecycle.operations.acceptance.facts.probe import NodeHas, choose_way
from gcluster.lifecycle.operations.acceptance.reading.output import READERS
from gcluster.lifecycle.operations.acceptance.table import (
    AcceptanceTest,
    Way,
    acceptance_tests,
    peak_tflops,
)
from gcluster.lifecycle.operations.acceptance.targets import (
    blocks,
    fillings,
    named,
    nic_floor,
    rounds_of,
    sizes_of,
    wanted,
)
from gcluster.lifecycle.smoke.launch import Launch
from gcluster.schemas.catalog import load_catalog

CATALOG = load_catalog()
BY_NAME = {test.name: test for test in acceptance_tests()}
HOSTS = [
    Host(
        name=f"gpu{number:03d}", site="hall", pool="gpu", role="compute", machine="dgx-h100",
        ssh=SshTarget(user="ops"), placement=Placement(block="a" if number <= 2 else "b"),
    )
    for number in range(1, 5)
]  # fmt: skip
LAUNCH = Launch(
    job="acceptance-main-1", label="main-1", partition="main", nodes=tuple(h.name for h in HOSTS),
    min_bytes=8, max_bytes=2**34, iterations=20, gpus=8,
)  # fmt: skip


def ways(name: str) -> list[Way]:
    return [named(way, BY_NAME[name], "/scratch") for way in BY_NAME[name].ways]


def has(*programs: str, gpu: str = "nvidia", rdma: tuple[str, ...] = ()) -> dict[str, NodeHas]:
    node = NodeHas(gpu=gpu, programs=frozenset(programs), rdma=rdma)
    return {host.name: node for host in HOSTS}


def test_collectives_run_in_each_block_and_over_the_whole_and_the_soak_over_the_whole() -> None:
    tests = [BY_NAME["all_gather"], BY_NAME["soak"], BY_NAME["node"], BY_NAME["pairs"]]
    found: dict[str, list[str]] = {}
    for want in wanted(tests, [LAUNCH], HOSTS, 1):
        found.setdefault(want.test, []).append(want.target)
    assert found == {
        "all_gather": ["block a", "block b", "all of main-1"],
        "node": ["gpu001", "gpu002", "gpu003", "gpu004"],
        "pairs": ["all of main-1"],
        "soak": ["all of main-1"],
    }
    assert blocks(["gpu003"], HOSTS) == {"b": ["gpu003"]}


def test_drills_are_for_the_nodes_that_were_named_one_by_one_and_for_no_other() -> None:
    tests = [BY_NAME["drill_service"], BY_NAME["node"]]
    wants = list(wanted(tests, [LAUNCH], HOSTS, 1, ["gpu002"]))
    assert [w.launch.nodes for w in wants if w.test == "drill_service"] == [("gpu002",)]
    assert len(wants) == 5
    unasked = choose_way(ways("drill_service"), ["gpu001"], has(), ())
    assert unasked == "no node was named for it (--drill)"


def test_what_is_run_once_is_not_repeated() -> None:
    wants = list(wanted([BY_NAME["dcgm_diag"], BY_NAME["node"]], [LAUNCH], HOSTS, 3))
    assert len([want for want in wants if want.test == "node"]) == 12
    assert len([want for want in wants if want.test == "dcgm_diag"]) == 4


def test_one_node_has_no_pair_and_no_collective() -> None:
    alone = msgspec.structs.replace(LAUNCH, nodes=("gpu001",))
    assert {w.test for w in wanted(acceptance_tests(), [alone], HOSTS, 1)} == {
        test.name for test in acceptance_tests() if test.scope in {"node", "fabric", "drill"}
    }


def test_large_clusters_play_a_sample_of_the_rounds() -> None:
    assert rounds_of(283) == "all"
    assert rounds_of(284) == "every:1"
    assert rounds_of(1_000) == "every:12"
    assert rounds_of(10_000) == "every:1250"


def test_each_rank_gets_a_part_of_each_message_of_parts() -> None:
    large = msgspec.structs.replace(LAUNCH, nodes=tuple(f"n{i}" for i in range(1000)))
    least, most = sizes_of(BY_NAME["alltoall"], large)
    assert least // large.ranks >= 16
    assert most == 2**34


@pytest.mark.parametrize("test", acceptance_tests(), ids=lambda test: test.name)
def test_every_command_and_program_is_filled_in_and_has_a_reader(test: AcceptanceTest) -> None:
    machine = CATALOG.machines["dgx-h100"]
    given = fillings(test, LAUNCH, path="/scratch", mib=64, dcgm_level=3, machine=machine)
    for way in test.ways:
        line = way.command.format(**given)
        assert not re.search(r"\{\w*\}", line)
        assert way.reader in {*READERS, "collective"}
        assert not any("{" in program for program in named(way, test, "/scratch").needs.programs)


def test_a_tool_that_is_missing_is_the_reason_and_not_the_other_vendor() -> None:
    why = choose_way(ways("all_reduce"), LAUNCH.nodes, has(), ())
    assert why == "all_reduce_perf isn't on gpu[001-004]"
    why = choose_way(ways("nvbandwidth"), LAUNCH.nodes, has(gpu="none"), ())
    assert why == "no GPUs of nvidia on gpu[001-004]"


def test_ibdiagnet_is_for_infiniband_alone() -> None:
    roce = has("ibdiagnet", rdma=("Ethernet",))
    why = choose_way(ways("ibdiagnet"), ["gpu001"], roce, ())
    assert why == "no InfiniBand RDMA device on gpu001"
    way = choose_way(ways("ibdiagnet"), ["gpu001"], has("ibdiagnet", rdma=("InfiniBand",)), ())
    assert isinstance(way, Way)


def test_processors_replace_gpus_only_where_none_are_real_and_it_is_reported() -> None:
    payload = "/usr/libexec/gcluster/allreduce"
    way = choose_way(ways("alltoall"), LAUNCH.nodes, has(payload, gpu="none"), ())
    assert isinstance(way, Way)
    assert way.stands_in
    real = choose_way(ways("alltoall"), LAUNCH.nodes, has(payload), ())
    assert real == "alltoall_perf isn't on gpu[001-004]"


@pytest.mark.parametrize(
    ("machine", "tflops"), [("dgx-h100", 989.4), ("a3-highgpu-1g", 0), ("g5.8xlarge", 0)]
)
def test_mfu_is_counted_against_a_module_s_peak_and_not_against_a_guess(
    machine: str, tflops: float
) -> None:
    assert peak_tflops(CATALOG.machines[machine]) == tflops
    assert peak_tflops(None) == 0


def test_a_rail_must_reach_its_share_of_the_nics_speed() -> None:
    machine = CATALOG.machines["dgx-h100"]
    fabric = CATALOG.fabrics["infiniband-ndr"]
    floor = BY_NAME["ib_write_bw"].floor
    assert floor is not None
    figure = nic_floor(floor.share, machine, fabric)
    assert figure.gbytes_per_s == pytest.approx(380)
    assert figure.reason == "0.95 of 400 Gb/s (NIC)"
    assert nic_floor(floor.share, None, fabric).gbytes_per_s is None
