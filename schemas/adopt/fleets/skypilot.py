"""A task of SkyPilot: its resources become a pool, its buckets storage.

Keys are those of docs.skypilot.co/en/latest/reference/yaml-spec.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..draft import Adopted, Draft, NothingToAdopt, reasons
from ..scripts import Scripts
from ..source import Kind, Source, filled
from .machines import PROVIDERS, bucket_storage, cloud_site, machine_by_gpu

_REASONS: tuple[tuple[str, str, Kind], ...] = (
    (".setup", "a variable in it has no value: --var NAME=VALUE", "unfinished"),
    (".run", "a job is no part of a cluster: sbatch", "replaced"),
    (".envs", "a job's environment is no part of a cluster", "replaced"),
    (".secrets", "a job's secrets are no part of a cluster", "replaced"),
    (".workdir", "files of this machine are not copied: storage", "lost"),
    (".ports", "no port is opened to the outside", "lost"),
    (".image_id", "image: of the pool", "lost"),
    (".any_of", "a pool has one machine type; options of one: market", "lost"),
    (".ordered", "a pool has one machine type; options of one: market", "lost"),
    (".job_recovery", "qos with preemptible: requeue", "lost"),
    (".autostop", "budget: {idle_shutdown}", "lost"),
    (".cpus", "part of the machine type", "replaced"),
    (".memory", "part of the machine type", "replaced"),
    (".disk_tier", "gcluster chooses the disk's type", "replaced"),
)


def adopt_skypilot(
    data: Any, *, name: str, origin: str, date: str, given: Mapping[str, str]
) -> Adopted:
    """Draft a spec of a task's resources.

    Args:
        data: the task.
        name: of the cluster; "": the task's.
        origin: where it comes from, in words.
        date: when it was read.
        given: values of its variables; `provider` and `region` where the task says none.

    Raises:
        NothingToAdopt: it has no resources, or runs on a Kubernetes that exists.
    """
    source = Source(filled(data, given))
    if not source.has("resources") or not isinstance(data, dict):
        raise NothingToAdopt("it has no resources: is it a task of SkyPilot?")
    resources = source.part("resources")
    infra = [part for part in resources.text("infra").split("/") if part not in {"", "*"}]
    cloud = (infra[0] if infra else resources.text("cloud")).lower() or given.get("provider", "")
    if cloud and cloud not in PROVIDERS:
        raise NothingToAdopt(f"it runs on {cloud}, for which gcluster has no provider")
    region = infra[1] if len(infra) > 1 else resources.text("region") or given.get("region", "")
    zone = infra[2] if len(infra) > 2 else resources.text("zone")  # noqa: PLR2004  # cloud/region/zone
    draft = Draft(name or source.text("name") or "sky", origin=origin, date=date)
    source.take("name")
    site = cloud_site(draft, cloud, region, zone)
    entry: dict[str, Any] = {"site": site}
    machine = _machine(resources, cloud, draft)
    if machine:
        entry["machine"] = machine
    entry["count"] = source.number("num_nodes") or 1
    if resources.take("use_spot") is True:
        entry["market"] = ["spot"]
    size = resources.number("disk_size")
    if size:
        entry["disk"] = f"{size} GB"
    if resources.agrees("network_tier", value="best"):
        pass  # the fabric of a machine type is used where it has one
    labels = resources.pairs("labels")
    if labels:
        entry["tags"] = labels
    idle = resources.number("autostop", "idle_minutes")
    if idle:
        draft.more["budget"] = {"idle_shutdown": f"{idle}m"}
    draft.pools["nodes"] = entry
    setup = source.text("setup")
    if setup:
        Scripts(draft, "skypilot").shell("setup", _setup(setup), ["nodes"])
    bucket_storage(source.part("file_mounts"), site, draft)
    draft.settle(source, reasons(_REASONS))
    return draft.finished()


def _setup(commands: str) -> str:
    """Return setup commands as a program: SkyPilot runs them in bash as the login user."""
    return f"#!/bin/bash\n{commands}"


def _machine(resources: Source, cloud: str, draft: Draft) -> str:
    said = resources.text("instance_type")
    if said:
        return draft.machine(said, [cloud or "aws"])
    wanted = resources.take("accelerators")
    if isinstance(wanted, dict) and len(wanted) == 1:
        wanted = ":".join(str(part) for part in next(iter(wanted.items())))
    found = machine_by_gpu(str(wanted or ""), cloud)
    if found:
        return found
    why = "no machine type of the catalog has these in that cloud: machine of pool nodes"
    draft.leave(f"resources.accelerators: {wanted}", why, "unfinished")
    return ""
