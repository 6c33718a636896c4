"""SageMaker HyperPod: the JSON of `aws sagemaker create-cluster`, and provisioning_parameters.json.

Keys of the first are CreateCluster's (docs.aws.amazon.com/sagemaker/latest/APIReference); those of
the second, and what is done with them, are of AWS' base configuration
(github.com/aws-samples/awsome-distributed-training, commit 7217859,
1.architectures/5.sagemaker-hyperpod/LifecycleScripts/base-config).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..draft import Adopted, Draft, NothingToAdopt, reasons
from ..source import Kind, Source, filled
from .hyperpod_lifecycle import PARAMETERS, Lifecycle, json_value
from .place import SITE, AwsPlace, Subnet, aws_network, aws_site, aws_tags

_LUSTRE_MOUNT, _ZFS_MOUNT, _ZFS_EXPORT = "/fsx", "/home", "/fsx"
"""Where lifecycle_script.py mounts FSx; mount_fsx_openzfs.sh takes :/fsx of the server."""
_ONE_DISK = (
    "its size is the boot disk's, which has what lies on /opt/sagemaker there: no second disk"
)
_REASONS: tuple[tuple[str, str, Kind], ...] = (
    ("ExecutionRole", "identities with least rights are made: roles of the site", "replaced"),
    ("DeepHealthChecks", "gcluster acceptance tests nodes", "replaced"),
    ("NodeRecovery", "gcluster repair replaces nodes that are broken", "replaced"),
    ("EbsVolumeConfig", "kms_key of the site encrypts disks", "lost"),
    ("TrainingPlanArn", "a training plan is SageMaker's: reserve capacity in EC2", "lost"),
    ("ClusterArn", "gcluster makes a control plane of its own", "replaced"),
    ("ScheduledUpdateConfig", "up and update: of a pool change nodes in waves", "replaced"),
    ("slurm_configurations", "two controllers need storage that they share: state_save", "lost"),
    ("ImageId", "an image of SageMaker's has its agents in it", "replaced"),
)


def adopt_hyperpod(  # what the command was given
    data: Any,
    parameters: Any,
    *,
    name: str,
    origin: str,
    date: str,
    place: AwsPlace,
    lifecycle: Mapping[str, str] | None = None,
) -> Adopted:
    """Draft a spec of a cluster of HyperPod.

    Args:
        data: CreateCluster's JSON, or the list of its instance groups.
        parameters: provisioning_parameters.json; None where there is none.
        name: of the cluster; "": as the file has it.
        origin: where it comes from, in words.
        date: when it was read.
        place: what the files don't say of its location.
        lifecycle: files of its lifecycle scripts' folder by their names; None: not given.

    Raises:
        NothingToAdopt: it has no instance groups, or Slurm's controller isn't said.
    """
    whole = {"InstanceGroups": data} if isinstance(data, list) else data
    source = Source(filled(whole, place.variables))
    if parameters is None and lifecycle and PARAMETERS in lifecycle:
        parameters = json_value(lifecycle[PARAMETERS])
    said = Source(filled(parameters, place.variables))
    groups = list(source.each("InstanceGroups"))
    if not groups:
        raise NothingToAdopt("it has no InstanceGroups: is it CreateCluster's JSON?")
    draft = Draft(name or source.text("ClusterName") or "hyperpod", origin=origin, date=date)
    source.take("ClusterName")
    site = aws_site(draft, place, "")
    kubernetes = source.has("Orchestrator", "Eks")
    if kubernetes:
        draft.scheduler = {"type": "kubernetes", "control_plane": "eks"}
        draft.leave_image("eks")
    elif not said.has("controller_group"):
        raise NothingToAdopt("the controller's group is not specified: --provisioning FILE")
    else:
        draft.tunnel(SITE, "ssm")
    _network(source, groups, site, place)
    roles = {said.text("controller_group"): "controller", said.text("login_group"): "login"}
    pools = {}
    scripts = Lifecycle(lifecycle, draft)
    for group in groups:
        own = group.text("InstanceGroupName")
        pools[own] = _pool(group, own, roles.get(own, "") if own else "", draft)
        scripts.starts(group, pools[own], kubernetes=kubernetes)
    if not kubernetes:
        _slurm(said, pools, draft)
    scripts.rest()
    aws_tags(source, draft)
    draft.settle(source, reasons(_REASONS))
    draft.settle(said, reasons(_REASONS))
    return draft.finished()


def _network(source: Source, groups: list[Source], site: dict[str, Any], place: AwsPlace) -> None:
    parts = [source.part("VpcConfig"), *(group.part("OverrideVpcConfig") for group in groups)]
    aws_network(
        site, place,
        [Subnet(part, ("Subnets",)) for part in parts],
        [Subnet(part, ("SecurityGroupIds",)) for part in parts],
    )  # fmt: skip


def _pool(group: Source, own: str, role: str, draft: Draft) -> str:
    name = draft.fit(own or "nodes", "pool", draft.pools)
    entry: dict[str, Any] = {"site": SITE}
    if role:
        entry["role"] = role
    machine = group.text("InstanceType").removeprefix("ml.")
    if machine:
        entry["machine"] = draft.machine(machine, ["aws"])
    for volume in group.each("InstanceStorageConfigs"):
        size = volume.number("EbsVolumeConfig", "VolumeSizeInGB")
        if size:
            entry["disk"] = f"{size} GiB"
            draft.leave(f"disk of pool {name}", _ONE_DISK, "guess")
    count = group.number("InstanceCount")
    if count is not None and not (role == "controller" and count == 1):
        entry["count"] = count
    threads = group.number("ThreadsPerCore")
    if threads == 1:
        entry["boot"] = {"smt": False}
    draft.pools[name] = entry
    return name


def _slurm(said: Source, pools: dict[str, str], draft: Draft) -> None:
    """Write partitions and file systems of provisioning_parameters.json."""
    said.agrees("workload_manager", value="slurm")
    said.take("version")
    partitions: dict[str, Any] = {}
    for worker in said.each("worker_groups"):
        pool = pools.get(worker.text("instance_group_name"))
        name = worker.text("partition_name")
        if pool is None:
            worker.leave("no instance group is called so", "instance_group_name")
        elif name:
            fitted = draft.fit(name, "partition", [p for p in partitions if p != name])
            partitions.setdefault(fitted, {"pools": []})["pools"].append(pool)
    if partitions:
        draft.scheduler["partitions"] = partitions
    lustre, zfs = said.text("fsx_dns_name"), said.text("fsx_openzfs_dns_name")
    if zfs:
        draft.storage["home"] = {
            "type": "nfs", "mount": _ZFS_MOUNT, "server": zfs, "export": _ZFS_EXPORT, "site": SITE,
        }  # fmt: skip
    if lustre:
        said.take("fsx_mountname")
        draft.storage["fsx"] = {
            "type": "lustre", "mount": _LUSTRE_MOUNT, "site": SITE,
            "existing": lustre.partition(".")[0],
        }  # fmt: skip
    if not zfs:
        draft.leave("/home", "nothing shares it: storage with mount: /home before `up`")
