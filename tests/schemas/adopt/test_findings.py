"""What adopting once got wrong: each a fact of the source that became another in the spec."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.schemas.adopt.aws.parallelcluster import adopt_parallelcluster
from gcluster.schemas.adopt.aws.place import AwsPlace
from gcluster.schemas.adopt.draft import Adopted, architecture_of
from gcluster.schemas.adopt.gcp.toolkit import adopt_toolkit
from gcluster.schemas.adopt.inventories.ansible import adopt_ansible
from gcluster.schemas.adopt.inventories.kubespray import adopt_kubespray
from gcluster.schemas.adopt.slurm.cluster import adopt_slurm
from gcluster.schemas.adopt.slurm.output import read_slurm

ABOUT = {"origin": "a test", "date": "2026-11-27"}


def pcluster(queue: dict[str, Any], head: str = "m7i.xlarge", **more: Any) -> Adopted:
    data = {
        "HeadNode": {"InstanceType": head},
        "Scheduling": {"Scheduler": "slurm", "SlurmQueues": [{"Name": "q", **queue}]},
        **more,
    }
    return adopt_parallelcluster(data, name="c", place=AwsPlace(), **ABOUT)


def resource(**more: Any) -> dict[str, Any]:
    return {"ComputeResources": [{"Name": "r", "InstanceType": "p5.48xlarge", **more}]}


def slurm(*lines: str, gpu: str = "") -> Adopted:
    output = read_slurm(["\n".join(["ClusterName=c", "SlurmctldHost=head", *lines])])
    return adopt_slurm(output, name="", user="ops", gpu=gpu, **ABOUT)


def inventory(**groups: Any) -> Adopted:
    data = {
        name: found if isinstance(found, dict) else {"hosts": found}
        for name, found in groups.items()
    }
    return adopt_ansible({"_meta": {"hostvars": {}}, **data}, name="c", roles={}, **ABOUT)


def of_kind(found: Adopted, kind: str) -> str:
    return " | ".join(f"{e.where}: {e.why}" for e in found.not_carried if e.kind == kind)


def test_a_cluster_file_without_region_is_read_and_waits_for_it() -> None:
    found = pcluster(resource())
    assert "region" not in found.spec["sites"]["aws"]
    assert "--region" in of_kind(found, "unfinished")


def test_a_reservation_is_bought_alone_for_nothing_else_is_reported() -> None:
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
    assert pcluster(resource(**target)).spec["pools"]["q"]["market"] == [{"reservation": "cr-1"}]


def test_a_resource_groups_reservation_overrides_the_queues() -> None:
    group = "arn:aws:resource-groups:us-east-1:111122223333:group/ml"
    queue = {"CapacityReservationTarget": {"CapacityReservationId": "cr-of-the-queue"}}
    own = {"CapacityReservationTarget": {"CapacityReservationResourceGroupArn": group}}
    found = pcluster({**queue, **resource(**own)})
    assert found.spec["pools"]["q"]["market"] == [{"reservation": group}]


def test_efa_of_a_type_that_the_catalog_lacks_is_written_and_listed() -> None:
    found = pcluster(resource(InstanceType="hpc7a.96xlarge", Efa={"Enabled": True}))
    machine = next(each for each in found.machines if each["name"] == "hpc7a.96xlarge")
    assert machine["nics"] == [{"kind": "efa", "count": 1}]
    assert "hpc7a.96xlarge: EFA" in of_kind(found, "guess")


@pytest.mark.parametrize(
    ("machine", "provider", "architecture"),
    [
        # docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
        ("m7g.xlarge", "aws", "aarch64"), ("c6gn.16xlarge", "aws", "aarch64"),
        ("hpc7g.16xlarge", "aws", "aarch64"), ("g5g.metal", "aws", "aarch64"),
        ("im4gn.large", "aws", "aarch64"), ("a1.large", "aws", "aarch64"),
        ("p6e-gb200.36xlarge", "aws", "aarch64"),
        ("g5.12xlarge", "aws", "x86_64"), ("m7i.xlarge", "aws", "x86_64"),
        ("u7i-12tb.224xlarge", "aws", "x86_64"),
        # cloud.google.com/compute/docs/cpu-platforms
        ("c4a-standard-4", "gcp", "aarch64"), ("t2a-standard-8", "gcp", "aarch64"),
        ("n2-standard-16", "gcp", "x86_64"), ("a4-highgpu-8g", "gcp", "x86_64"),
        # learn.microsoft.com/azure/virtual-machines/vm-naming-conventions
        ("Standard_D4ps_v5", "azure", "aarch64"), ("Standard_D8s_v5", "azure", "x86_64"),
        ("Standard_ND96isr_H100_v5", "azure", "x86_64"),
        ("BM.Standard.A1.160", "oci", "aarch64"), ("VM.Standard.E5.Flex", "oci", "x86_64"),
        ("my-own-box", "bare-metal", ""),
    ],
)  # fmt: skip
def test_a_clouds_name_reports_what_a_machine_is_built_for(
    machine: str, provider: str, architecture: str
) -> None:
    assert architecture_of(machine, provider) == architecture


def test_an_arm_head_stays_arm() -> None:
    found = pcluster(resource(), head="is4gen.2xlarge")
    machine = next(each for each in found.machines if each["name"] == "is4gen.2xlarge")
    assert machine["cpu"]["architecture"] == "aarch64"


def test_home_is_shared_by_the_head_as_the_tool_does_it() -> None:
    # docs.aws.amazon.com/parallelcluster/latest/ug/SharedStorage-v3.html
    home = pcluster(resource()).spec["storage"]["home"]
    assert home == {"type": "nfs", "mount": "/home", "server": "head"}


def test_home_on_efs_is_mounted_from_its_top() -> None:
    efs = {
        "Name": "h", "MountDir": "/home", "StorageType": "Efs",
        "EfsSettings": {"FileSystemId": "fs-0123456789abcdef0"},
    }  # fmt: skip
    home = pcluster(resource(), SharedStorage=[efs], Region="us-east-1").spec["storage"]["h"]
    assert home == {
        "type": "efs", "mount": "/home", "site": "aws", "existing": "fs-0123456789abcdef0",
    }  # fmt: skip


def test_an_efs_that_is_made_is_made_as_in_the_source() -> None:
    settings = {
        "ThroughputMode": "provisioned", "ProvisionedThroughput": 256,
        "PerformanceMode": "maxIO", "KmsKeyId": "alias/data", "EncryptionInTransit": True,
        "DeletionPolicy": "Delete",
    }  # fmt: skip
    efs = {"Name": "h", "MountDir": "/home", "StorageType": "Efs", "EfsSettings": settings}
    found = pcluster(resource(), SharedStorage=[efs], Region="us-east-1")
    home = found.spec["storage"]["h"]
    assert (home["throughput_mode"], home["throughput"]) == ("provisioned", "256 MiB/s")
    assert (home["performance_mode"], home["kms_key"]) == ("max-io", "alias/data")
    kinds = {each.where.partition(":")[0].rpartition(".")[2]: each.kind
             for each in found.not_carried}  # fmt: skip
    assert home["tls"] is True
    assert kinds["DeletionPolicy"] == "replaced"


def test_an_efs_of_which_nothing_is_reported_has_the_tool_s_throughput() -> None:
    efs = {"Name": "h", "MountDir": "/home", "StorageType": "Efs"}
    home = pcluster(resource(), SharedStorage=[efs], Region="us-east-1").spec["storage"]["h"]
    assert home["throughput_mode"] == "bursting"


def test_a_volume_of_openzfs_is_mounted_by_its_id() -> None:
    zfs = {
        "Name": "h", "MountDir": "/home", "StorageType": "FsxOpenZfs",
        "FsxOpenZfsSettings": {"VolumeId": "fsvol-0123456789abcdef0"},
    }  # fmt: skip
    home = pcluster(resource(), SharedStorage=[zfs], Region="us-east-1").spec["storage"]["h"]
    assert home["type"] == "fsx-openzfs"
    assert home["existing"] == "fsvol-0123456789abcdef0"


def test_a_bucket_whose_name_has_an_unresolved_variable_is_no_bucket() -> None:
    data = {
        "vars": {"project_id": "p", "region": "us-central1"},
        "deployment_groups": [
            {
                "modules": [
                    {"id": "n", "source": "x/schedmd-slurm-gcp-v6-nodeset", "settings": {}},
                    {"id": "c", "source": "x/schedmd-slurm-gcp-v6-controller", "settings": {}},
                    {
                        "id": "data", "source": "x/pre-existing-network-storage",
                        "settings": {
                            "fs_type": "gcsfuse", "local_mount": "/data",
                            "remote_mount": "$(vars.bucket)",
                        },
                    },
                ]
            }
        ],
    }  # fmt: skip
    found = adopt_toolkit(data, given={}, name="", **ABOUT)
    assert "bucket" not in found.spec["storage"]["data"]
    assert "remote_mount" in of_kind(found, "unfinished")


def test_power9_nodes_are_left_out_and_reported_it() -> None:
    found = slurm(
        "NodeName=p9[1-2] CPUs=128 Feature=power9 Gres=gpu:v100:4",
        "NodeName=x1 CPUs=8 Feature=amd64",
    )
    assert "ppc64le" in of_kind(found, "lost")
    assert [pool["hosts"] for name, pool in found.spec["pools"].items() if name != "head"] == ["x1"]


def test_grace_nodes_are_aarch64() -> None:
    found = slurm("NodeName=g[1-2] CPUs=72 RealMemory=480000 Gres=gpu:gh200:1")
    machine = found.machines[0]
    assert (machine["cpu"]["architecture"], machine["gpu"]["model"]) == ("aarch64", "GH200")


def test_nothing_reports_what_nodes_are_built_for_is_a_guess_and_listed() -> None:
    assert "architecture" in of_kind(slurm("NodeName=n1 CPUs=8"), "guess")


def test_memory_for_each_gpu_and_array_size_are_carried() -> None:
    found = slurm("MaxArraySize=50001", "DefMemPerGPU=64000", "NodeName=n1 CPUs=8")
    settings = found.spec["scheduler"]["settings"]["slurm"]
    assert settings == {"MaxArraySize": "50001", "DefMemPerGPU": "64000"}


def test_memory_for_each_gpu_is_carried_as_scontrol_prints_it() -> None:
    printed = "JobDefaults = DefCpuPerGPU=12,DefMemPerGPU=64000"
    found = slurm(printed, "NodeName=n1 CPUs=8")
    settings = found.spec["scheduler"]["settings"]["slurm"]
    assert {key.lower(): value for key, value in settings.items()} == {
        "defcpupergpu": "12", "defmempergpu": "64000",
    }  # fmt: skip


def test_every_line_of_a_slurm_conf_is_carried_or_listed() -> None:
    found = slurm("SlurmdLogFile=/var/log/x.log", "SlurmctldPort=7000", "NodeName=n1 CPUs=8")
    assert "SlurmdLogFile=/var/log/x.log" in of_kind(found, "replaced")
    assert "SlurmctldPort=7000" in of_kind(found, "replaced")


def test_gpus_without_a_model_are_kept_and_their_model_is_requested() -> None:
    found = slurm("NodeName=n1 CPUs=8 Gres=gpu:8")
    assert found.machines[0]["gpu"] == {"count": 8}
    assert "--gpu" in of_kind(found, "unfinished")


@pytest.mark.parametrize(
    ("line", "gpu"),
    [("NodeName=n1 CPUs=8 Gres=gpu:8", "h100"), ("NodeName=n1 CPUs=8 Gres=gpu:8 Feature=h100", "")],
)
def test_the_model_of_gpus_comes_from_the_user_or_a_feature(line: str, gpu: str) -> None:
    assert slurm(line, gpu=gpu).spec["pools"]["n"]["machine"] == "hgx-h100-8"


def test_a_server_of_nfs_or_ldap_is_no_compute_node() -> None:
    found = inventory(
        control=["c1"], nodes=["n1", "n2", "nfs1"], nfs_server=["nfs1"], ldap=["dir1"]
    )
    hosts = [host for pool in found.spec["pools"].values() for host in pool["hosts"]]
    assert hosts == ["c1", "n1", "n2"]
    lost = of_kind(found, "lost")
    assert "nfs1: no group marks them as nodes, so they are left out; write storage: NAME:" in lost
    assert "dir1: no group marks them as nodes, so they are left out; write users:" in lost


def test_prometheus_and_the_cluster_s_name_are_those_of_the_inventory() -> None:
    data = {"control": ["c1"], "login": ["l1"], "compute": ["n1"], "prometheus": ["l1"]}
    hostvars = {"n1": {"openhpc_cluster_name": "alpha"}}
    whole = {key: {"hosts": hosts} for key, hosts in data.items()}
    found = adopt_ansible({"_meta": {"hostvars": hostvars}, **whole}, name="", roles={}, **ABOUT)
    assert found.spec["name"] == "alpha"
    assert found.spec["monitoring"] == {"prometheus": True, "pool": "login"}
    assert "prometheus" not in of_kind(found, "lost")


def test_a_host_of_a_group_without_a_role_is_left_out() -> None:
    found = inventory(control=["c1"], compute=["n1"], tape=["t1"])
    assert "t1" in of_kind(found, "lost")
    assert set(found.spec["pools"]) == {"control", "compute"}


def test_login_nodes_by_a_parent_group_are_login_nodes() -> None:
    found = inventory(
        control=["c1"], compute=["n1"], zone_a=["l1"],
        login={"children": ["zone_a"]}, cluster={"children": ["login", "control", "compute"]},
    )  # fmt: skip
    pools = {name: pool.get("role") for name, pool in found.spec["pools"].items()}
    assert sorted(map(str, pools.values())) == ["None", "controller", "login"]


def test_an_inventory_of_kubernetes_becomes_kubernetes() -> None:
    found = inventory(
        kube_control_plane=["m1"], etcd={"children": ["kube_control_plane"]}, kube_node=["n1"],
        k8s_cluster={"children": ["kube_control_plane", "kube_node"]},
    )  # fmt: skip
    assert found.spec["scheduler"]["type"] == "kubernetes"
    assert found.spec["pools"]["control"]["role"] == "controller"


def test_taints_of_kubespray_s_nodes_are_carried_and_others_are_listed() -> None:
    taints = {"n1": ["team=vision:NoSchedule", "gpu:NoExecute"], "n2": ["nonsense"]}
    groups = {"kube_control_plane": ["m1"], "kube_node": ["n1", "n2"]}
    data = {name: {"hosts": hosts} for name, hosts in groups.items()}
    hostvars = {host: {"node_taints": answer} for host, answer in taints.items()}
    found = adopt_kubespray({**data, "_meta": {"hostvars": hostvars}}, name="c", **ABOUT)
    of_pools = [pool.get("kubernetes") for pool in found.spec["pools"].values()]
    assert {
        "taints": [
            {"key": "team", "value": "vision", "effect": "NoSchedule"},
            {"key": "gpu", "effect": "NoExecute"},
        ]
    } in of_pools
    assert "nonsense" in of_kind(found, "lost")


def test_of_kubespray_s_sample_only_what_was_changed_is_listed_by_name(root: Path) -> None:
    table = root / "schemas" / "adopt" / "inventories" / "kubespray.yaml"
    sample = yaml.safe_load(table.read_text(encoding="utf-8"))
    assert len(sample) > 100
    changed = {"metrics_server_enabled": True, "ingress_nginx_enabled": False, "kube_log_level": 4}
    groups = {"kube_control_plane": ["m1"], "kube_node": ["n1"]}
    data = {name: {"hosts": hosts} for name, hosts in groups.items()}
    hostvars = dict.fromkeys(("m1", "n1"), sample | changed)
    found = adopt_kubespray({**data, "_meta": {"hostvars": hostvars}}, name="c", **ABOUT)
    assert found.spec["scheduler"]["addons"] == ["metrics-server"]
    named = re.findall(r"variable (\w+) of", of_kind(found, "lost"))
    assert named == ["kube_log_level"]
    assert "variables: as kubespray's sample has them" in of_kind(found, "replaced")
    assert found.settings.total == len(sample | changed) + 2  # two hosts


def test_policies_and_priorities_of_parallelcluster_are_carried() -> None:
    arn = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
    own = resource(MinCount=1, MaxCount=1, StaticNodePriority=7)
    queue = {"Name": "q", "Iam": {"AdditionalIamPolicies": [{"Policy": arn}]}, **own}
    head = {"InstanceType": "m7i.xlarge", "Iam": {"AdditionalIamPolicies": [{"Policy": arn}]}}
    found = adopt_parallelcluster(
        {"HeadNode": head, "Scheduling": {"Scheduler": "slurm", "SlurmQueues": [queue]}},
        name="c", place=AwsPlace(region="us-east-1"), **ABOUT,
    )  # fmt: skip
    assert found.spec["sites"]["aws"]["policies"] == [arn]
    assert [pool.get("weight") for pool in found.spec["pools"].values()] == [None, 7]


def test_what_the_spec_has_a_word_for_is_carried() -> None:
    data = {
        "SlurmSettings": {"CustomSlurmSettings": [{"MaxArraySize": 5000}]},
        "Networking": {},
    }
    found = adopt_parallelcluster(
        {
            "HeadNode": {
                "InstanceType": "m7i.xlarge",
                "Networking": {"SubnetId": "subnet-pub", "ElasticIp": True,
                               "AdditionalSecurityGroups": ["sg-1"]},
                "Ssh": {"AllowedIps": "192.0.2.0/24"},
            },
            "Scheduling": {
                "Scheduler": "slurm", **data,
                "SlurmQueues": [
                    {
                        "Name": "q", "JobExclusiveAllocation": True,
                        "CustomSlurmSettings": {"MaxTime": "2-00:00:00"},
                        "Networking": {"SubnetIds": ["subnet-priv"]},
                        "ComputeSettings": {
                            "LocalStorage": {"EphemeralVolume": {"MountDir": "/scratch"}}
                        },
                        **resource(),
                    }
                ],
            },
        },
        name="c", place=AwsPlace(region="us-east-1", vpc="vpc-1"), **ABOUT,
    )  # fmt: skip
    site, scheduler = found.spec["sites"]["aws"], found.spec["scheduler"]
    assert site["network"] == {
        "admin_cidrs": ["192.0.2.0/24"], "vpc": "vpc-1", "security_groups": ["sg-1"],
        "subnets": {"compute": "subnet-priv", "public": "subnet-pub"},
    }  # fmt: skip
    assert found.spec["pools"]["head"]["public_address"] is True
    assert scheduler["settings"] == {"slurm": {"MaxArraySize": "5000"}}
    assert scheduler["partitions"]["q"] == {
        "pools": ["q"], "default": True, "exclusive": True, "max_time": "2d",
    }  # fmt: skip
    assert found.spec["storage"]["scratch"]["type"] == "local-nvme"
    assert found.settings.lost == 0


def test_pools_of_gke_keep_taints_bounds_and_the_pool_of_system_pods() -> None:
    """As modules/scheduler/gke-cluster and compute/gke-node-pool say in their variables.tf."""
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    data = {
        "vars": {"project_id": "p", "region": "us-central1", "deployment_name": "d"},
        "deployment_groups": [
            {
                "modules": [
                    {"id": "k", "source": "modules/scheduler/gke-cluster", "settings": {}},
                    {
                        "id": "gpu-pool", "source": "modules/compute/gke-node-pool",
                        "settings": {
                            "machine_type": "a3-megagpu-8g", "autoscaling_total_min_nodes": 1,
                            "autoscaling_total_max_nodes": 4, "taints": [taint],
                        },
                    },
                ]
            }
        ],
    }  # fmt: skip
    pools = adopt_toolkit(data, given={}, name="", **ABOUT).spec["pools"]
    assert pools["gpu"]["count"] == {"min": 1, "max": 4}
    assert pools["gpu"]["kubernetes"]["taints"] == [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    ]
    assert pools["system"] == {
        "site": "gcp", "machine": "e2-standard-4", "count": {"min": 2, "max": 10},
        "kubernetes": {"system": True},
    }  # fmt: skip


def test_memory_of_a_partitions_jobs_and_one_thread_a_core_are_carried() -> None:
    found = slurm("NodeName=n1 CPUs=8", "PartitionName=p Nodes=n1 DefMemPerGPU=64000")
    assert found.spec["scheduler"]["partitions"]["p"]["memory_per_gpu"] == "64000 MiB"
    off = pcluster(resource(DisableSimultaneousMultithreading=True))
    assert off.spec["pools"]["q"]["boot"] == {"smt": False}
