"""What controllers are configured with: node lines, partitions, time limits, device files."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gcluster.inventory.compile.slurm.daemons import slurm_cluster_variables
from gcluster.inventory.compile.slurm.nodes import gpu_files, node_shape
from gcluster.inventory.hosts import Host, SshTarget
from gcluster.schemas.catalog import Catalog, Cpu, Gpu, Machine
from gcluster.schemas.spec import (
    BareMetalSite,
    Boot,
    ClusterSpec,
    Partition,
    Pool,
    SlurmScheduler,
    Ssh,
)
from gcluster.schemas.spec.scheduler import SlurmSettings
from gcluster.schemas.spec.units import ByteSize, Duration

FULL = Machine(
    name="full",
    sites=["bare-metal"],
    source="test",
    date="2026-11",
    gpu=Gpu(vendor="nvidia", model="H100", memory_gib=80, count=8),
    cpu=Cpu(architecture="x86_64", sockets=2, cores=56, threads_per_core=2),
    memory_gib=1000,
)
BARE = Machine(
    name="bare",
    sites=["bare-metal"],
    source="test",
    date="2026-11",
    cpu=Cpu(architecture="x86_64"),
)
CLOUD = msgspec.structs.replace(FULL, name="cloud", cpu=Cpu(architecture="x86_64", vcpus=192))
CATALOG = Catalog(machines={"full": FULL, "bare": BARE, "cloud": CLOUD})


def answer(
    partitions: dict[str, Partition] | None = None,
    machine: str | None = "full",
    *,
    smt: bool = True,
    settings: SlurmSettings | None = None,
) -> dict[str, Any]:
    """Return the variables of a cluster with two pools of one host each."""
    boot = Boot(smt=smt)
    pools = {
        name: Pool(site="s", machine=machine, hosts=f"{name}1", boot=boot) for name in ("b", "a")
    }
    spec = ClusterSpec(
        api_version="gcluster/v1",
        name="demo",
        sites={"s": BareMetalSite(ssh=Ssh(user="ops"))},
        pools=pools,
        scheduler=SlurmScheduler(partitions=partitions or {}, settings=settings or SlurmSettings()),
    )
    hosts = {
        name: (
            Host(
                name=f"{name}1",
                site="s",
                pool=name,
                role="compute",
                machine=machine,
                ssh=SshTarget(user="ops"),
            ),
        )
        for name in pools
    }
    return slurm_cluster_variables(spec, hosts, CATALOG)


def test_jobs_get_95_percent_of_the_nominal_memory() -> None:
    assert answer()["slurm_nodes"][0]["memory_mib"] == 1000 * 1024 * 95 // 100


def test_what_the_catalog_doesn_t_have_is_0_and_no_gpu_has_no_files() -> None:
    line = answer(machine="bare")["slurm_nodes"][0]
    assert (line["sockets"], line["memory_mib"], line["gpu_count"], line["gpu_files"]) == (
        0,
        0,
        0,
        "",
    )


def test_a_host_without_an_address_is_reached_by_its_name() -> None:
    assert answer()["slurm_nodes"][0]["addresses"] == "a1"


def test_real_machines_are_reported_nothing_of_simulation() -> None:
    variables = answer()
    assert variables["slurm_simulated"] is False
    assert "slurm_node_timeout" not in variables


def test_without_partitions_one_holds_every_compute_pool() -> None:
    (main,) = answer()["slurm_partitions"]
    assert (main["name"], main["nodes"], main["default"]) == ("main", "a1,b1", True)


def test_a_job_without_requirements_gets_its_share_of_the_node() -> None:
    (main,) = answer()["slurm_partitions"]
    assert main["cpus_per_gpu"] == 224 // 8
    assert main["mem_per_cpu_mib"] == 1000 * 1024 * 95 // 100 // 224


def test_no_share_is_claimed_of_what_the_catalog_doesn_t_have() -> None:
    (main,) = answer(machine="bare")["slurm_partitions"]
    assert (main["cpus_per_gpu"], main["mem_per_cpu_mib"]) == (0, 0)


def test_a_partition_sets_the_defaults_of_its_jobs() -> None:
    """By CPU, by GPU or by node: Slurm takes one of the three (slurm.conf(5))."""
    size = ByteSize.parse("200 GiB")
    by_gpu = answer({"only": Partition(pools=["a"], memory_per_gpu=size)})["slurm_partitions"][0]
    assert (by_gpu["mem_per_gpu_mib"], by_gpu["mem_per_cpu_mib"]) == (204_800, 0)
    by_cpu = answer({"only": Partition(pools=["a"], memory_per_cpu=size)})["slurm_partitions"][0]
    assert by_cpu["mem_per_cpu_mib"] == 204_800


def test_what_is_reported_for_all_partitions_is_not_hidden_by_the_share() -> None:
    settings = SlurmSettings(slurm={"DefMemPerGPU": 65_536})
    (main,) = answer(settings=settings)["slurm_partitions"]
    assert main["mem_per_cpu_mib"] == 0


def test_without_smt_jobs_count_cores() -> None:
    line = answer(smt=False)["slurm_nodes"][0]
    assert (line["sockets"], line["cores"], line["threads"]) == (2, 56, 1)
    (main,) = answer(smt=False)["slurm_partitions"]
    assert main["cpus_per_gpu"] == 112 // 8
    assert answer(machine="cloud", smt=False)["slurm_nodes"][0]["cpus"] == 192 // 2


def test_a_lone_partition_is_the_default_one() -> None:
    assert answer({"only": Partition(pools=["a"])})["slurm_partitions"][0]["default"] is True


def test_of_several_partitions_none_is_the_default_unless_set() -> None:
    several = {"x": Partition(pools=["a"]), "y": Partition(pools=["b"])}
    assert [p["default"] for p in answer(several)["slurm_partitions"]] == [False, False]


@pytest.mark.parametrize(
    ("written", "minutes"), [("30s", 1), ("60s", 1), ("90s", 2), ("7d", 10080), ("0s", 1)]
)
def test_run_times_are_whole_minutes_rounded_up(written: str, minutes: int) -> None:
    partition = Partition(pools=["a"], max_time=Duration.parse(written))
    assert answer({"p": partition})["slurm_partitions"][0]["max_time_minutes"] == minutes


def test_device_files_are_named_as_the_vendor_s_driver_does() -> None:
    assert gpu_files("nvidia", 8) == "/dev/nvidia[0-7]"
    assert gpu_files("nvidia", 1) == "/dev/nvidia0"
    assert gpu_files("amd", 8) == "/dev/gcluster/amd-gpu[0-7]"


def test_a_vendor_s_gpus_set_that_vendor_s_variables_alone() -> None:
    amd = msgspec.structs.replace(
        FULL, gpu=Gpu(vendor="amd", model="MI300X", memory_gib=192, count=8)
    )
    assert node_shape(amd, "gpu", Pool(site="here"), 0)["gpu_flags"] == "amd_gpu_env"
    assert node_shape(FULL, "gpu", Pool(site="here"), 0)["gpu_flags"] == "nvidia_gpu_env"


def test_a_compute_pool_without_a_machine_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="names no machine"):
        answer(machine=None)
