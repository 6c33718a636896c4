"""InfiniBand and RoCE: which machines get which role, whose drivers, which rails are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.inventory.compile import golden

from gcluster.inventory.compile.node import node_facts
from gcluster.inventory.compile.roles import node_steps
from gcluster.inventory.compile.steps import Step
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load, load_text

CATALOG = load_catalog()
EXAMPLES = Path(__file__).parents[3] / "examples"


def steps_of(
    pool: dict[str, Any],
    software: dict[str, Any] | None = None,
    others: dict[str, Any] | None = None,
    of: str = "gpu",
) -> dict[str, Step]:
    """Return key -> step of a pool's nodes."""
    document = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {"here": {"provider": "bare-metal", "ssh": {"user": "ops"}}},
        "pools": {
            "head": {"site": "here", "role": "controller", "hosts": "head01"},
            "gpu": {"site": "here", **pool},
            **(others or {}),
        },
        "scheduler": {"type": "slurm"},
        "software": software or {},
    }
    loaded = load_text(yaml.safe_dump(document))
    assert loaded.spec is not None, loaded.diagnostics
    return {step.key: step for step in node_steps(node_facts(loaded.spec, CATALOG)[of])}


HOSTS_HAVE = dict.fromkeys(("driver", "cuda", "nccl"), "preinstalled")


def dgx(**rdma: Any) -> dict[str, Any]:
    """Return a pool of DGX H100."""
    return {"machine": "dgx-h100", "hosts": "gpu[01-02]", "rdma": rdma}


def sources_of(steps: dict[str, Step]) -> set[str]:
    step = steps.get("package_sources.install")
    answer = [] if step is None else step.variables["package_sources_repositories"]
    return {repository["name"] for repository in answer}


def test_a_dgx_gets_doca_ofed_and_its_eight_rails_are_queried_at_their_rate() -> None:
    steps = steps_of(dgx(drivers="doca"), {"ofed": "3.2.0", "distribution": "ubuntu-24.04"})

    assert steps["ofed.install"].variables == {"ofed_drivers": "doca", "ofed_version": "3.2.0"}
    assert "doca" in sources_of(steps)
    verify = steps["infiniband.verify"].variables
    assert (verify["infiniband_rails"], verify["infiniband_gbps"]) == (8, 400)
    assert verify["infiniband_subnet_manager"] is False
    assert not [key for key in steps if key.startswith("roce")]


def test_a_distribution_without_doca_ofed_gets_its_own_drivers_and_no_repository() -> None:
    steps = steps_of(dgx(), {"ofed": "3.2.0", "distribution": "debian-13", **HOSTS_HAVE})
    assert steps["ofed.install"].variables == {"ofed_drivers": "inbox", "ofed_version": ""}
    assert "doca" not in sources_of(steps)


def test_named_rails_are_those_that_count_with_their_leaves_and_partitions() -> None:
    steps = steps_of(
        dgx(
            devices=["mlx5_0", "mlx5_3"],
            leaves=["*leaf1*", "*leaf2*"],
            partition_keys=["0x8001"],
            ipoib={"network": "10.100.0.0/16"},
            subnet_manager=True,
        )
    )
    verify = steps["infiniband.verify"].variables
    assert verify["infiniband_rails"] == 2
    assert verify["infiniband_leaves"] == ["*leaf1*", "*leaf2*"]
    assert verify["infiniband_partition_keys"] == ["0x8001"]
    assert verify["infiniband_ipoib"]["mtu"] == 4092
    assert steps["infiniband.configure"].variables["infiniband_subnet_manager"] is True


SHARP = {"hpcx": "https://example.org/v2/hpcx-v2.tbz", "checksum": f"sha256:{0:064}"}


def test_sharp_installs_hpcx_its_manager_with_opensm_and_the_setting_of_nccl() -> None:
    opensm = {"drivers": "doca", "subnet_manager": ["sm02"], "sharp": SHARP}
    two = {"site": "here", "role": "login", "fabric": "infiniband-ndr", "hosts": "sm[01-02]"}
    versions = {"ofed": "3.2.0", "distribution": "ubuntu-24.04", "containers": "pyxis"}
    manager = steps_of(dgx(), versions, {"sm": {**two, "rdma": opensm}}, of="sm")
    assert manager["infiniband.configure"].variables["infiniband_sharp"] is True
    assert manager["hpcx.configure"].variables["hpcx_manager_hosts"] == ["sm02"]

    nodes = steps_of(dgx(drivers="doca", sharp=SHARP), versions)
    assert nodes["hpcx.install"].variables["hpcx_checksum"] == SHARP["checksum"]
    assert nodes["hpcx.configure"].variables["hpcx_manager"] is False
    assert "infiniband_sharp" not in nodes["infiniband.configure"].variables
    given = nodes["nccl.configure"].variables["nccl_environment"]
    assert given["NCCL_COLLNET_ENABLE"] == "1"
    assert given["LD_LIBRARY_PATH+"].startswith("/opt/hpcx/nccl_rdma_sharp_plugin/lib")
    assert nodes["enroot_pyxis.configure"].variables["enroot_pyxis_libraries"] == ["/opt/hpcx"]
    assert "hpcx.install" not in steps_of(dgx(drivers="doca"), versions)


def test_roce_of_ones_own_is_set_on_the_nodes() -> None:
    pool = {**dgx(priority=4, dscp=34, devices=["mlx5_0"]), "fabric": "roce"}
    steps = steps_of(pool)
    settings = steps["roce.join"].variables
    assert (settings["roce_priority"], settings["roce_dscp"]) == (4, 34)
    assert settings["roce_mtu"] == 9000
    assert steps["ofed.configure"].variables["ofed_fabric"] == "roce"
    assert not [key for key in steps if key.startswith("infiniband")]


def test_named_hosts_alone_run_opensm() -> None:
    steps = steps_of(dgx(subnet_manager=["gpu02"]))
    configure = steps["infiniband.configure"].variables
    assert configure["infiniband_subnet_manager"] is True
    assert configure["infiniband_subnet_manager_hosts"] == ["gpu02"]


def test_adapters_of_another_maker_get_addresses_and_no_drivers_or_settings_of_nvidia() -> None:
    networks = [f"10.{rail}.0.0/16" for rail in (1, 2)]
    rdma = dgx(managed=False, devices=["bnxt_re0", "bnxt_re1"], networks=networks)
    software = {"ofed": "3.2.0", "distribution": "ubuntu-24.04", **HOSTS_HAVE}
    steps = steps_of({**rdma, "fabric": "roce"}, software)
    assert steps["ofed.join"].variables == {
        "ofed_drivers": "inbox", "ofed_version": "", "ofed_fabric": "roce", "ofed_nvidia": False,
    }  # fmt: skip
    assert steps["roce.join"].variables["roce_networks"] == networks
    assert steps["roce.join"].variables["roce_managed"] is False


def test_adapters_of_both_link_types_are_rails_of_the_fabric_s_type() -> None:
    steps = steps_of({**dgx(), "fabric": "roce"})
    assert steps["roce.verify"].variables["roce_rails"] == 8
    assert steps["roce.verify"].variables["roce_gbps"] == 400
    (rails,) = [
        nic
        for nic in steps["node_health.configure"].variables["node_health_nics"]
        if not nic.get("front_end")
    ]
    assert (rails["kind"], rails["count"], rails["gbps"]) == ("roce", 8, 400)


BOARD = {
    "site": "here", "machine": "hgx-h100-8", "hosts": "gpu[001-032]",
    "cpu": {"sockets": 2, "cores": 56}, "memory": "2000 GiB",
}  # fmt: skip


@pytest.mark.parametrize("fabric", ["infiniband-ndr", "roce"])
@pytest.mark.parametrize(
    ("rdma", "expected"),
    [
        ({"rails": 8, "gbps": 400}, {"count": 8, "gbps": 400}),
        ({"rails": 4, "gbps": 400}, {"count": 4, "gbps": 400}),
        (
            {"devices": ["mlx5_0", "mlx5_1"], "gbps": 400},
            {"count": 2, "gbps": 400, "devices": ["mlx5_0", "mlx5_1"]},
        ),
    ],
)
def test_rails_of_a_board_in_one_s_own_server_are_checked_against_the_pool_s_rate(
    fabric: str, rdma: dict[str, Any], expected: dict[str, Any]
) -> None:
    steps = steps_of({**BOARD, "fabric": fabric, "rdma": rdma})
    kind = "roce" if fabric == "roce" else "infiniband"
    nics = steps["node_health.configure"].variables["node_health_nics"]
    assert nics == [{"kind": kind, **expected}]
    verify = steps[f"{kind}.verify"].variables
    assert verify[f"{kind}_rails"] == expected["count"]
    assert verify[f"{kind}_gbps"] == expected["gbps"]


def test_of_fewer_rails_than_the_machine_type_has_the_node_finds_which_they_are() -> None:
    rails = [
        nic
        for nic in steps_of(dgx(rails=4))["node_health.configure"].variables["node_health_nics"]
        if not nic.get("front_end")
    ]
    assert rails == [{"kind": "infiniband", "count": 4, "gbps": 400}]


def test_rails_that_a_node_discovers_are_checked_against_the_pool_s_rate() -> None:
    steps = steps_of({**BOARD, "fabric": "roce", "rdma": {"gbps": 200}})
    assert steps["roce.verify"].variables["roce_gbps"] == 200


def test_machines_of_ones_own_are_tuned_but_for_what_the_spec_leaves_alone() -> None:
    tuned = steps_of(dgx())["tuning.join"].variables
    assert (tuned["tuning_pcie"], tuned["tuning_processors"]) == (True, True)
    assert tuned["tuning_transparent_hugepages"] == ""
    left = steps_of({**dgx(), "tuning": {"pcie": "unmanaged", "transparent_hugepages": "never"}})
    assert left["tuning.join"].variables["tuning_pcie"] is False
    assert left["tuning.join"].variables["tuning_transparent_hugepages"] == "never"


def racks_of_nvl72(scheduler: dict[str, Any]) -> dict[str, Step]:
    """Return the steps of the nodes of two racks."""
    loaded = load_text(
        yaml.safe_dump(
            {
                "apiVersion": "gcluster/v1",
                "name": "demo",
                "sites": {"here": {"provider": "bare-metal", "ssh": {"user": "ops"}}},
                "pools": {
                    "head": {"site": "here", "role": "controller", "hosts": "head01"},
                    "gpu": {
                        "site": "here",
                        "machine": "gb200-nvl72",
                        "hosts": [{"name": "gb[001-036]", "address": "10.0.0.[1-36]"}],
                        "nodes_per_block": 18,
                    },
                },
                "scheduler": scheduler,
                "software": {"distribution": "ubuntu-24.04", "driver": "580.126.20"},
            }
        )
    )
    assert loaded.spec is not None, loaded.diagnostics
    groups = {group.name: group for group in golden.compiled(loaded.spec).groups}
    return {step.key: step for step in groups["gpu"].steps}


def test_imex_on_a_rack_of_nvl72_finds_its_rack_by_its_blocks() -> None:
    steps = racks_of_nvl72({"type": "slurm"})
    nodes = steps["imex.join"].variables["imex_nodes"]
    assert nodes[17] == {"name": "gb018", "address": "10.0.0.18", "domain": "gpu-1"}
    assert nodes[18] == {"name": "gb019", "address": "10.0.0.19", "domain": "gpu-2"}
    assert steps["nvidia_driver.join"].variables["nvidia_driver_fabric"] == "required"
    assert "nvidia_driver_imex_in_pods" not in steps["nvidia_driver.configure"].variables


def test_imex_under_kubernetes_is_installed_and_left_to_pods() -> None:
    steps = racks_of_nvl72({"type": "kubernetes", "cni": "cilium"})
    assert not {key for key in steps if key.startswith("imex.")}
    assert steps["nvidia_driver.install"].variables["nvidia_driver_imex"] == "580.126.20"
    assert steps["nvidia_driver.configure"].variables["nvidia_driver_imex_in_pods"] is True


def test_rdma_drivers_come_before_the_gpus_and_containers_after_them() -> None:
    software = {"ofed": "3.2.0", "distribution": "ubuntu-24.04", "containers": "pyxis"}
    steps = list(steps_of(dgx(drivers="doca"), software))
    first = {key.split(".")[0]: place for place, key in reversed(list(enumerate(steps)))}
    order = [
        "ofed",
        "nvidia_driver",
        "gdrcopy",
        "dcgm",
        "container_toolkit",
        "infiniband",
        "tuning",
    ]
    assert [role for role in sorted(first, key=first.__getitem__) if role in order] == order


def test_plain_ethernet_gets_none_of_these_roles() -> None:
    steps = steps_of({**dgx(), "fabric": "ethernet"})
    assert not [key for key in steps if key.split(".")[0] in {"ofed", "infiniband", "roce"}]


def test_every_step_that_touches_a_fabric_drains_a_node_that_is_in_service() -> None:
    steps = steps_of(dgx())
    changing = [steps[key] for key in steps if key in {"ofed.install", "ofed.join"}]
    assert all(step.needs_drain for step in changing)
    assert not steps["infiniband.verify"].needs_drain


@pytest.mark.parametrize(
    ("example", "role", "drivers"),
    [("azure-ndv5-slurm", "infiniband", "image"), ("oci-h100-slurm", "roce", "inbox")],
)
def test_a_clouds_image_and_network_are_checked_and_left_as_they_are(
    example: str, role: str, drivers: str
) -> None:
    spec = load(EXAMPLES / f"{example}.yaml").spec
    assert spec is not None
    found = [node_steps(node) for node in node_facts(spec, CATALOG).values()]
    steps = {step.key: step for own in found for step in own}

    assert steps["ofed.install"].variables["ofed_drivers"] == drivers
    assert "doca" not in sources_of(steps)
    assert f"{role}.verify" in steps
    assert "tuning.join" not in steps
    if role == "roce":
        assert steps["roce.verify"].variables["roce_managed"] is False
        assert "roce.join" not in steps
