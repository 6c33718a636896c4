"""GPUs as gres.conf has them: devices, the cores next to them, the links to the others."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.compile.slurm import nodes as slurm_nodes
from gcluster.inventory.compile.slurm.nodes import machine_of
from gcluster.schemas.catalog import Catalog, Cpu, Gpu, Machine, load_catalog
from gcluster.schemas.catalog.model.machine import Nvlink
from gcluster.schemas.load import load_text

_CATALOG = load_catalog()


def machine(
    sockets: list[int] | None = None, *, count: int = 8, links: int | None = None, cores: int = 56
) -> Machine:
    return Machine(
        name="m",
        sites=["bare-metal"],
        source="test",
        date="2026-11",
        gpu=Gpu(vendor="nvidia", model="H100", memory_gib=80, count=count, sockets=sockets),
        cpu=Cpu(architecture="x86_64", sockets=2, cores=cores, threads_per_core=2),
        nvlink=Nvlink(domain_gpus=count, peer_links=links),
    )


def gpu_devices(machine: Machine) -> list[Any]:
    """Return the lines, as plain data."""
    return list(slurm_nodes.gpu_devices(machine))


def test_gpus_of_a_socket_share_a_line_with_its_cores() -> None:
    assert gpu_devices(machine([0, 0, 0, 0, 1, 1, 1, 1])) == [
        {"files": "/dev/nvidia[0-3]", "cores": "0-55"},
        {"files": "/dev/nvidia[4-7]", "cores": "56-111"},
    ]


def test_gpus_with_links_have_a_line_each_with_minus_one_at_their_own_place() -> None:
    lines = gpu_devices(machine([0, 1], count=2, links=18, cores=4))
    assert lines == [
        {"files": "/dev/nvidia0", "cores": "0-3", "links": "-1,18"},
        {"files": "/dev/nvidia1", "cores": "4-7", "links": "18,-1"},
    ]


def test_links_alone_are_reported_too() -> None:
    assert gpu_devices(machine(count=2, links=4)) == [
        {"files": "/dev/nvidia0", "links": "-1,4"},
        {"files": "/dev/nvidia1", "links": "4,-1"},
    ]


def test_nothing_is_reported_that_is_not_known() -> None:
    known = machine([0, 0, 0, 0, 1, 1, 1, 1])
    no_cores = msgspec.structs.replace(known, cpu=Cpu(architecture="x86_64", vcpus=192))
    assert gpu_devices(machine()) == gpu_devices(no_cores) == []
    assert gpu_devices(msgspec.structs.replace(known, gpu=None)) == []


def test_sockets_of_another_number_of_gpus_are_not_accepted() -> None:
    assert gpu_devices(machine([0, 1])) == []


def test_a_gb200_tray_has_two_gpus_at_each_processor() -> None:
    assert gpu_devices(_CATALOG.machines["gb200-nvl72"]) == [
        {"files": "/dev/nvidia[0-1]", "cores": "0-71"},
        {"files": "/dev/nvidia[2-3]", "cores": "72-143"},
    ]


def test_a_pool_s_processors_decide_its_gpus_affinity() -> None:
    loaded = load_text("""\
apiVersion: gcluster/v1
name: demo
sites: {dc: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: dc, role: controller, hosts: head}
  gpu:
    site: dc
    machine: dgx-h100
    hosts: gpu1
    cpu: {sockets: 2, cores: 4, threads_per_core: 1, gpus: [1, 1, 1, 1, 0, 0, 0, 0]}
  other: {site: dc, machine: dgx-h100, hosts: gpu2, cpu: {sockets: 1, cores: 64}}
scheduler: {type: slurm}
""")
    assert loaded.spec is not None, loaded.diagnostics
    lines = gpu_devices(machine_of(loaded.spec, "gpu", _CATALOG))
    assert [line["cores"] for line in lines] == ["4-7"] * 4 + ["0-3"] * 4
    other = gpu_devices(machine_of(loaded.spec, "other", _CATALOG))
    assert all("cores" not in line for line in other)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=16), st.none() | st.integers(1, 18))
def test_every_gpu_is_on_exactly_one_line(sockets: list[int], links: int | None) -> None:
    lines = gpu_devices(machine(sockets, count=len(sockets), links=links))
    text = ",".join(str(line["files"]).removeprefix("/dev/nvidia") for line in lines)
    numbers: list[int] = []
    for part in text.replace("[", "").replace("]", "").split(","):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    assert numbers == list(range(len(sockets)))
    assert all(after == before + 1 for before, after in pairwise(numbers))


def test_the_catalog_has_a_socket_for_each_gpu() -> None:
    catalog: Catalog = _CATALOG
    for known in catalog.machines.values():
        if known.gpu is not None and known.gpu.sockets is not None:
            assert len(known.gpu.sockets) == known.gpu.count, known.name
            assert known.cpu is not None, known.name
            assert max(known.gpu.sockets) < (known.cpu.sockets or 0), known.name
