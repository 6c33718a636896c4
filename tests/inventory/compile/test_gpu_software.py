"""Which machines get toolkit, collectives, their settings and AMD's stack, in which versions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gcluster.inventory.compile.steps import Step
from gcluster.schemas.catalog import load_catalog

sys.path.insert(0, str(Path(__file__).parent))
from test_node_roles import steps_of

sys.path.pop(0)

OURS = ("amd_gpu", "cuda", "gdrcopy", "nccl", "dcgm")
KNOWN = {"nccl": "2.30.4-1", "cuda": "13.0.2"}
AMD_TESTS = {
    "url": "https://mirror.example.edu/rccl-tests",
    "checksums": {"rocm-6.4.4.tar.gz": "sha256:" + "a" * 64},
}


def roles_of(steps: dict[str, Step]) -> set[str]:
    return {key.split(".")[0] for key in steps} & set(OURS)


def test_each_vendor_s_gpus_get_its_own_software() -> None:
    assert roles_of(steps_of("hgx-h100-8")) == {"cuda", "dcgm", "gdrcopy", "nccl"}
    assert roles_of(steps_of("mi300x-8")) == {"amd_gpu", "nccl"}


def test_the_toolkit_has_the_lock_s_version_or_the_spec_s() -> None:
    assert steps_of("hgx-h100-8")["cuda.install"].variables == {
        "cuda_version": "13.0.2",
        "cuda_rollback": False,
    }
    requested = steps_of("hgx-h100-8", cuda="12.8.1")["cuda.install"].variables
    assert requested == {"cuda_version": "12.8.1", "cuda_rollback": True}


def test_the_tests_are_built_for_the_machine_s_gpus() -> None:
    nvidia = steps_of("hgx-b200-8")["nccl.install"].variables
    amd = steps_of("mi300x-8")["nccl.install"].variables
    assert (nvidia["nccl_architecture"], amd["nccl_architecture"]) == ("10.0", "gfx942")


def test_tests_without_a_known_checksum_are_built_from_the_newest_with_one() -> None:
    variables = steps_of("hgx-h100-8")["nccl.install"].variables
    assert variables["nccl_tests_version"] == "2.17.6"
    assert variables["nccl_tests_checksum"].startswith("sha256:38974e70")


def test_a_checksum_of_the_spec_lets_the_lock_s_version_be_built() -> None:
    answer = {"checksums": {"v2.18.3.tar.gz": "sha256:" + "b" * 64}}
    variables = steps_of("hgx-h100-8", sources={"nccl-tests": answer})["nccl.install"].variables
    assert variables["nccl_tests_version"] == "2.18.3"
    assert variables["nccl_tests_checksum"] == "sha256:" + "b" * 64


def test_amd_s_tests_come_from_a_mirror_with_the_spec_s_checksum() -> None:
    variables = steps_of("mi300x-8", sources={"rccl-tests": AMD_TESTS})["nccl.preflight"].variables
    assert variables["nccl_tests_url"] == "https://mirror.example.edu/rccl-tests/rocm-6.4.4.tar.gz"
    assert variables["nccl_tests_checksum"] == "sha256:" + "a" * 64
    assert steps_of("mi300x-8")["nccl.preflight"].variables["nccl_tests_checksum"] == ""


def test_amd_s_driver_has_a_number_of_its_own_from_rocm_7_on() -> None:
    steps = steps_of("mi300x-8", rocm="7.1.1", rccl="2.27.7")
    install = steps["amd_gpu.install"].variables
    assert install == {
        "amd_gpu_rocm": "7.1.1",
        "amd_gpu_driver": "30.20.1",
        "amd_gpu_rccl": "2.27.7",
    }
    repositories = steps["package_sources.install"].variables["package_sources_repositories"]
    urls = {entry["url"] for entry in repositories}
    assert "https://repo.radeon.com/amdgpu/30.20.1/ubuntu" in urls
    assert "https://repo.radeon.com/rocm/apt/7.1.1" in urls


def test_mi300x_machines_start_their_kernel_as_amd_queries() -> None:
    amd = steps_of("mi300x-8")["kernel.configure"].variables["kernel_boot_parameters"]
    nvidia = steps_of("hgx-h100-8")["kernel.configure"].variables["kernel_boot_parameters"]
    assert {"pci=realloc=off", "numa_balancing=disable"} <= set(amd) - set(nvidia)


def test_jobs_get_their_fabric_class_s_settings_and_the_machine_s_over_them() -> None:
    given = steps_of("dgx-h100", driver="595.58.03")["nccl.configure"].variables
    interfaces = given["nccl_environment"]["NCCL_SOCKET_IFNAME"]
    assert interfaces == "@interface ^docker,lo,veth,virbr,br-,cni,usb,enx,bmc,ib"
    catalog = load_catalog()
    a4 = catalog.machines["a4-highgpu-8g"]
    assert a4.fabric == "gib"
    assert "a4" in a4.environment["NCCL_TUNER_CONFIG_PATH"]


@pytest.mark.parametrize(
    "name", [n for n, f in load_catalog().fabrics.items() if f.plugin is not None]
)
def test_every_class_between_nodes_reports_what_jobs_need_and_where_that_is_from(name: str) -> None:
    fabric = load_catalog().fabrics[name]
    assert fabric.environment
    assert "environment" in fabric.sources


def test_no_class_sets_what_its_vendor_has_to_leave_alone() -> None:
    efa = [f.environment for n, f in load_catalog().fabrics.items() if n.startswith("efa")]
    assert {"FI_PROVIDER", "NCCL_PROTO"} & {name for given in efa for name in given} == set()
