"""The AllReduce's floor: a share of what NVLink and the NICs allow for this many nodes."""

from __future__ import annotations

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.catalog import Catalog, Fabric, Machine, Nic, load_catalog
from gcluster.schemas.catalog.model.fabric import Floor
from gcluster.schemas.catalog.model.machine import Cpu, Gpu, Nvlink
from gcluster.schemas.derived.floor import (
    FloorFigure,
    allreduce_floor,
    floor_gbytes_per_s,
    message_sizes,
    nic_ceiling_gbytes_per_s,
)
from gcluster.schemas.derived.rails import machine_in_pool
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec, Pool
from gcluster.schemas.spec.units import BandwidthFloor, ByteSize

CATALOG = load_catalog()
GIB = 2**30
FACTOR = 0.85

gbps = st.floats(min_value=1, max_value=1600)
many = st.integers(min_value=2, max_value=4096)
gpus = st.integers(min_value=2, max_value=16)


def fabric(factor: float | None = FACTOR) -> Fabric:
    floor = (
        None
        if factor is None
        else Floor(factor=factor, reason="r", from_size=ByteSize.parse("1 GiB"))
    )
    return Fabric(
        name="test", description="d", source="s", date="2026-11", nic_kind="infiniband", floor=floor
    )


def machine(speed: float | None = 400, *, busbw: float | None = 480, count: int = 8) -> Machine:
    return Machine(
        name="m",
        sites=["bare-metal"],
        source="s",
        date="2026-11",
        cpu=Cpu(architecture="x86_64"),
        gpu=Gpu(vendor="nvidia", model="H100", memory_gib=80, count=count),
        nvlink=Nvlink(domain_gpus=count, busbw_gbytes_per_s=busbw),
        nics=[
            Nic(kind="infiniband", count=8, gbps=speed),
            Nic(kind="ethernet", count=1, gbps=200, front_end=True),
        ],
    )


def value(of: Machine, nodes: int) -> float:
    figure = floor_gbytes_per_s(of, fabric(), nodes)
    assert figure.gbytes_per_s is not None, figure.reason
    return figure.gbytes_per_s


@given(gbps, gbps, many)
def test_faster_nics_never_lower_the_floor(one: float, other: float, nodes: int) -> None:
    slow, fast = sorted((one, other))
    assert value(machine(slow), nodes) <= value(machine(fast), nodes)


@given(gbps, many, gpus, st.floats(min_value=1, max_value=2000))
def test_the_floor_is_its_share_of_the_smaller_limit_and_never_above_either(
    speed: float, nodes: int, count: int, busbw: float
) -> None:
    of = machine(speed, busbw=busbw, count=count)
    ceiling = nic_ceiling_gbytes_per_s(speed, nodes, count)  # 8 NICs of speed Gb/s: speed GB/s
    assert value(of, nodes) == pytest.approx(FACTOR * min(busbw, ceiling))
    assert value(of, nodes) < min(busbw, ceiling)


@given(gbps, many, gpus)
def test_where_the_nics_are_the_limit_more_nodes_never_raise_the_floor(
    speed: float, nodes: int, count: int
) -> None:
    of = machine(speed, busbw=1e9, count=count)
    assert value(of, nodes + 1) <= value(of, nodes)
    assert value(of, nodes) >= FACTOR * speed


@given(gbps, st.floats(min_value=1, max_value=2000))
def test_on_one_node_only_nvlink_counts(speed: float, busbw: float) -> None:
    assert value(machine(speed, busbw=busbw), 1) == pytest.approx(FACTOR * busbw)


def test_three_nodes_and_more_of_400_gb_s_reach_400_and_two_reach_750() -> None:
    assert nic_ceiling_gbytes_per_s(400, 2, 8) == pytest.approx(750)
    assert {nic_ceiling_gbytes_per_s(400, nodes, 8) for nodes in (3, 4, 64)} == {400}


@pytest.mark.parametrize(
    ("of", "on", "nodes", "floor", "reason"),
    [
        ("a3-ultragpu-8g", "gib", 2, 280, "0.7 of 400 GB/s (NICs, derived from links"),
        ("BM.GPU.H100.8", "roce", 2, 280, "0.7 of 400 GB/s (NICs, derived from links"),
        ("BM.GPU4.8", "roce", 64, 140, "0.7 of 200 GB/s (NICs, derived from links"),
        ("g5.8xlarge", "ethernet", 2, 0.9375, "0.3 of 3.125 GB/s (one NIC, derived from links"),
        ("a3-ultragpu-8g", "ethernet", 4, 7.5, "0.3 of 25 GB/s (one NIC, derived from links"),
    ],
)
def test_where_no_all_reduce_is_published_the_links_give_the_floor_and_it_is_reported(
    of: str, on: str, nodes: int, floor: float, reason: str
) -> None:
    figure = floor_gbytes_per_s(CATALOG.machines[of], CATALOG.fabrics[on], nodes)
    assert figure.gbytes_per_s == pytest.approx(floor)
    assert figure.reason.startswith(reason)


@pytest.mark.parametrize("on", ["roce", "ethernet"])
def test_machines_of_one_s_own_have_a_floor_by_the_nics_that_their_entry_gives(on: str) -> None:
    own = machine()
    nics = [
        Nic(kind="roce", count=8, gbps=100),
        Nic(kind="ethernet", count=2, gbps=25, front_end=True),
    ]  # one list
    figure = floor_gbytes_per_s(msgspec.structs.replace(own, nics=nics), CATALOG.fabrics[on], 4)
    assert figure.gbytes_per_s == pytest.approx({"roce": 70, "ethernet": 0.9375}[on])


@given(gbps, many)
def test_one_gpu_a_node_is_limited_by_its_nics_alone(speed: float, nodes: int) -> None:
    assert value(machine(speed, busbw=None, count=1), nodes) == pytest.approx(FACTOR * speed)


@pytest.mark.parametrize(
    ("of", "on", "nodes", "reason"),
    [
        (machine(), fabric(None), 2, "no AllReduce is published that a floor of test could"),
        (machine(busbw=None), fabric(), 1, "no AllReduce inside one m is published"),
        (machine(None), fabric(), 2, "the speed of m's NICs is not known"),
        (machine(count=1), fabric(), 1, "one GPU alone sends nothing"),
        (CATALOG.machines["sim.h100x8"], fabric(), 2, "sim.h100x8 is simulated"),
        (CATALOG.machines["n2-standard-8"], fabric(), 2, "n2-standard-8 has no GPU"),
        (CATALOG.machines["p5.48xlarge"], fabric(), 2, "no NICs of p5.48xlarge for test"),
        (machine(), CATALOG.fabrics["nvlink"], 2, "16 GPUs are more than one NVLink domain of m"),
    ],
)
def test_without_a_figure_there_is_no_floor_and_it_reports_why(
    of: Machine, on: Fabric, nodes: int, reason: str
) -> None:
    figure = floor_gbytes_per_s(of, on, nodes)

    assert figure.gbytes_per_s is None
    assert figure.reason.startswith(f"no floor: {reason}")


def test_nics_of_the_front_end_are_not_counted() -> None:
    of = machine()
    slow = [nic for nic in of.nics or () if not nic.front_end]
    front = Nic(kind="infiniband", count=1, gbps=None, front_end=True)
    other = Machine(
        name="m", sites=["aws"], source="s", date="2026-11", gpu=of.gpu, nvlink=of.nvlink,
        cpu=of.cpu, nics=[*slow, front],
    )  # fmt: skip

    assert value(other, 64) == value(of, 64)


def spec(
    machine: str, *, floor: str = "auto", sizes: str = "8B..8GiB", more: str = ""
) -> ClusterSpec:
    text = f"""apiVersion: gcluster/v1
name: demo
sites: {{room: {{provider: simulated}}}}
pools:
  head: {{site: room, role: controller}}
  a: {{site: room, machine: {machine}, count: 2{more}}}
  b: {{site: room, machine: dgx-h100, count: 2}}
scheduler: {{type: slurm}}
smoke: {{allreduce: {{sizes: {sizes}, floor: {floor}}}}}
"""
    loaded = load_text(text, file="demo.yaml", check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


@pytest.mark.parametrize(
    ("written", "pools", "floor", "reason"),
    [
        (spec("dgx-h100"), {"a": 2}, 384, "0.8 of 480 GB/s (NVLink), infiniband-ndr, 2 nodes"),
        (spec("dgx-h100"), {"a": 2, "b": 62}, 320, "0.8 of 400 GB/s (NICs), infiniband-ndr"),
        (spec("dgx-h100", floor="100 GB/s"), {"a": 2}, 100, ""),
        (spec("sim.h100x8", floor="2 GB/s"), {"a": 2}, 2, ""),
    ],
)
def test_an_automatic_floor_is_the_class_s_for_all_nodes_that_take_part(
    written: ClusterSpec, pools: dict[str, int], floor: float, reason: str
) -> None:
    figure = allreduce_floor(written, CATALOG, pools)

    assert figure.gbytes_per_s == pytest.approx(floor, abs=0.05)
    assert figure.reason.startswith(reason)
    assert bool(figure.reason) == bool(reason)


@pytest.mark.parametrize(
    ("written", "pools", "reason"),
    [
        (spec("sim.h100x8"), {"a": 2}, "sim.h100x8 is simulated"),
        (spec("sim.h100x8"), {"a": 2, "b": 2}, "sim.h100x8 is simulated"),
        (spec("hgx-h200-8"), {"a": 2, "b": 2}, "pools a, b are not of one machine type"),
        (spec("no-such"), {"a": 2}, "pools a are not of one machine type that is known"),
        (
            spec("dgx-h100", more=", fabric: ethernet"),
            {"a": 2, "b": 2},
            "pools a, b are of several",
        ),
        (
            spec("dgx-h100", sizes="8B..16MiB"),
            {"a": 2},
            "it holds for messages from 1 GiB, and the largest is 16 MiB",
        ),
    ],
)
def test_an_unknown_automatic_floor_is_none_with_a_reason(
    written: ClusterSpec, pools: dict[str, int], reason: str
) -> None:
    figure = allreduce_floor(written, CATALOG, pools)

    assert figure.gbytes_per_s is None
    assert figure.reason.startswith(f"no floor: {reason}")


def test_a_machine_without_a_fabric_class_uses_the_pool_for_one() -> None:
    bare = Catalog(machines={"dgx-h100": machine()}, fabrics=CATALOG.fabrics)

    figure = allreduce_floor(spec("dgx-h100"), bare, {"b": 2})
    assert figure.reason == "no floor: the fabric class of m is not known; a pool can name it"
    named = spec("dgx-h100", more=", fabric: infiniband-ndr")
    assert allreduce_floor(named, bare, {"a": 2}).gbytes_per_s == pytest.approx(384)


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("dgx-h100", 16 * GIB),  # 80 GiB
        ("g4dn.8xlarge", 4 * GIB),  # T4 of 16 GiB
        ("sim.h100x8", GIB // 64),
    ],
)
def test_a_default_sweep_ends_where_bandwidth_is_judged_and_memory_suffices(
    name: str, largest: int
) -> None:
    assert message_sizes(None, [CATALOG.machines[name]]) == (8, largest)


def test_of_several_machines_the_smallest_memory_counts_and_what_is_written_holds() -> None:
    machines = [CATALOG.machines[name] for name in ("dgx-h100", "g4dn.8xlarge")]
    assert message_sizes(None, machines)[1] == 4 * GIB
    assert message_sizes(None, [*machines, None])[1] == GIB // 64
    assert message_sizes("1KiB..1GiB", machines) == (1024, GIB)


def test_real_gpus_are_judged_unless_the_spec_has_none() -> None:
    text, written = msgspec.structs.replace, spec("dgx-h100")
    allreduce = text(written.smoke.allreduce, floor=None, sizes=None)
    default = text(written, smoke=text(written.smoke, allreduce=allreduce))
    assert allreduce_floor(default, CATALOG, {"a": 2}).gbytes_per_s == pytest.approx(384)
    none = text(allreduce, floor=BandwidthFloor.parse("none"))
    unjudged = text(written, smoke=text(written.smoke, allreduce=none))
    assert allreduce_floor(unjudged, CATALOG, {"a": 2}) == FloorFigure(gbytes_per_s=None, reason="")


def test_every_machine_of_the_catalog_has_a_floor_on_four_nodes() -> None:
    """Derived from links where nothing is published; who is left out lacks the links' figures.

    Of AMD's nodes the links alone say too much, and of GPUs without NVLink no measurement says how
    fast they are over PCI Express inside such a node.
    """
    without_nvlink = {"g2-standard-96", "g5.48xlarge", "g6.48xlarge"}
    unknown = {
        machine.name
        for machine in CATALOG.machines.values()
        if machine.gpu is not None and not machine.simulated and machine.fabric in CATALOG.fabrics
        if floor_gbytes_per_s(machine, CATALOG.fabrics[machine.fabric], 4).gbytes_per_s is None
    }
    assert unknown == {"a3-highgpu-2g", "a3-highgpu-4g"} | without_nvlink


@pytest.mark.parametrize("fabric", ["infiniband-ndr", "roce"])
@pytest.mark.parametrize("board", ["hgx-h100-8", "hgx-h200-8", "hgx-b200-8", "mi300x-8"])
def test_a_board_in_a_server_of_one_s_own_has_a_floor_once_its_rails_are_known(
    board: str, fabric: str
) -> None:
    pool = msgspec.convert({"site": "hall", "rdma": {"rails": 8, "gbps": 400}}, Pool)
    machine = machine_in_pool(CATALOG.machines[board], pool, CATALOG.fabrics[fabric])
    assert machine is not None
    floor = floor_gbytes_per_s(machine, CATALOG.fabrics[fabric], 4).gbytes_per_s
    assert floor is not None
    assert 200 <= floor <= 400


def test_a_pool_s_own_rails_count_in_its_floor_and_pools_of_other_rails_have_none_together() -> (
    None
):
    text = {
        "apiVersion": "gcluster/v1",
        "name": "hall",
        "sites": {"hall": {"provider": "bare-metal", "ssh": {"user": "ops"}}},
        "pools": {
            "head": {"site": "hall", "role": "controller", "hosts": "head01"},
            **{
                name: {
                    "site": "hall", "machine": "hgx-h100-8", "hosts": f"{name}[1-4]",
                    "fabric": "roce", "cpu": {"sockets": 2, "cores": 56}, "memory": "2 TiB",
                    "rdma": {"rails": rails, "gbps": 400},
                }
                for name, rails in {"wide": 8, "narrow": 4}.items()
            },
        },
        "scheduler": {"type": "slurm"},
    }  # fmt: skip
    loaded = load_text(yaml.safe_dump(text)).spec
    assert loaded is not None
    assert allreduce_floor(loaded, CATALOG, {"wide": 4}).gbytes_per_s == pytest.approx(280)
    assert allreduce_floor(loaded, CATALOG, {"narrow": 4}).gbytes_per_s == pytest.approx(140)
    both = allreduce_floor(loaded, CATALOG, {"wide": 4, "narrow": 4})
    assert both.reason == "no floor: pools narrow, wide have different rails"


def test_adapters_that_are_no_rails_of_the_fabric_stay_what_they_are() -> None:
    storage = Nic(kind="roce", count=2, gbps=200)
    dgx = CATALOG.machines["dgx-h100"]
    both = msgspec.structs.replace(dgx, nics=[*(dgx.nics or ()), storage])
    pool = msgspec.convert({"site": "hall", "rdma": {"rails": 8}}, Pool)
    found = machine_in_pool(both, pool, CATALOG.fabrics["infiniband-ndr"])
    assert found is not None
    assert storage in (found.nics or ())
    assert sum(nic.count for nic in found.nics or () if nic.kind == "infiniband") == 8
