"""A blueprint of Google's Cluster Toolkit with Slurm: nodesets become pools.

What a module does that says nothing is what its variables.tf says
(github.com/GoogleCloudPlatform/cluster-toolkit, commit 1047080, 2026-06-25).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...catalog import load_catalog
from ..draft import Adopted, Draft, NothingToAdopt, reasons
from ..slurm.partition import partition_words
from ..slurm.settings import carry_named
from ..source import Kind, Source
from .blueprint import SITE, Blueprint, Module, read_blueprint, site_of
from .file_systems import networks_and_storage
from .gke import adopt_gke, is_gke
from .runners import carry_scripts
from .settling import settle_modules

_NODESET, _PARTITION = "schedmd-slurm-gcp-nodeset", "schedmd-slurm-gcp-partition"
_CONTROLLER, _LOGIN = "schedmd-slurm-gcp-controller", "schedmd-slurm-gcp-login"
_SERVICE_MACHINE, _NODE_MACHINE = "c2-standard-4", "c2-standard-60"
_DYNAMIC_NODES = 10
_SYSTEMS = (
    (r"ubuntu.*24-?04", "ubuntu-24.04"), (r"ubuntu.*22-?04", "ubuntu-22.04"),
    (r"(rocky|rhel|almalinux).*9", "el-9"),
)  # fmt: skip
_CLOUD = {
    "slurmd_timeout": "SlurmdTimeout", "unkillable_step_timeout": "UnkillableStepTimeout",
    "tree_width": "TreeWidth", "resume_rate": "ResumeRate", "suspend_rate": "SuspendRate",
    "suspend_timeout": "SuspendTimeout", "topology_plugin": "TopologyPlugin",
    "topology_param": "TopologyParam",
}  # fmt: skip
"""Parameters of the controller -> what they are called in slurm.conf."""
_REASONS: tuple[tuple[str, str, Kind], ...] = (
    ("startup_script", "the module's scripts are listed one by one", "replaced"),
    ("prolog", "prologs and epilogs are hooks of the spec", "replaced"),
    ("slurm_conf_tpl", "settings of slurm.conf: scheduler: {settings}", "lost"),
    ("instance_image", "images of the Toolkit have its Slurm in them; gcluster bakes", "replaced"),
    ("additional_networks", "gcluster makes the networks of the fabric", "replaced"),
    ("docker", "containers: pyxis runs images of jobs", "replaced"),
    ("public_ips", "one logs in through a tunnel: public_address and admin_cidrs", "replaced"),
    ("disk_type", "gcluster chooses the disk's type", "replaced"),
    ("service_account", "an identity with least rights is made: roles: {node}", "replaced"),
    ("labels", "tags of the pool or spec", "lost"),
    ("cloudsql", "accounting: {database, password}", "lost"),
    ("network_storage", "storage of the spec", "lost"),
    ("login_nodes", "pools of role login", "replaced"),
    ("install_ansible", "gcluster brings Ansible itself", "replaced"),
    ("bandwidth_tier", "machines have the network that their type has", "lost"),
    ("metadata", "machines get gcluster's own metadata", "lost"),
    ("name_prefix", "hosts are called as their pool", "replaced"),
    ("cleanup", "down removes what up made", "replaced"),
    ("gpu_network_wait_online", "nodes join when their fabric is up", "replaced"),
    ("ssh_host_patterns", "host keys are known to the nodes", "replaced"),
    ("tls", "Slurm's own traffic is signed by MUNGE", "lost"),
)


def adopt_toolkit(
    data: Any, *, given: Mapping[str, Any], name: str, origin: str, date: str
) -> Adopted:
    """Draft a spec of a blueprint.

    Args:
        data: the blueprint.
        given: variables of a deployment file, over those of the blueprint.
        name: of the cluster; "": the deployment's.
        origin: where it comes from, in words.
        date: when it was read.

    Raises:
        NothingToAdopt: it has neither Slurm nor GKE, or its project or region is not specified.
    """
    blueprint = read_blueprint(data, given)
    draft = Draft(name or blueprint.name, origin=origin, date=date)
    if is_gke(blueprint):
        return adopt_gke(blueprint, draft)
    site_of(blueprint, draft)
    draft.tunnel(SITE, "iap")
    pools = {module.key: _nodeset(module, draft) for module in blueprint.of(_NODESET)}
    if not pools:
        raise NothingToAdopt("it has no nodeset of Slurm and no node pool of GKE")
    for module in blueprint.of(_PARTITION):
        _partition(module, pools, draft)
    places = {m.key: _service(m, draft) for m in blueprint.of(_LOGIN, _CONTROLLER)} | pools
    read = networks_and_storage(blueprint, pools, draft)
    for module in blueprint.of("custom-image"):
        _distribution(module, draft)
    _home(blueprint, draft)
    carry_scripts(blueprint, places, draft)
    kinds = {_NODESET, _PARTITION, _CONTROLLER, _LOGIN}
    read |= {module.key for module in blueprint.modules if module.kind in kinds}
    settle_modules(blueprint, read, draft, reasons(_REASONS))
    return draft.finished()


def _nodeset(module: Module, draft: Draft) -> str:
    settings = module.settings
    own = settings.text("name") or module.key.removesuffix("_nodeset")
    name = draft.fit(own, "pool", draft.pools)
    static = settings.number("node_count_static")
    dynamic = settings.number("node_count_dynamic_max")
    entry: dict[str, Any] = {"site": SITE}
    machine = settings.text("machine_type")
    if machine or not settings.has("machine_type"):
        machine = machine or _NODE_MACHINE
        entry["machine"] = draft.machine(machine, ["gcp"])
    if static is not None or not settings.has("node_count_static"):
        if dynamic is None:
            dynamic = _DYNAMIC_NODES
        least, most = static or 0, (static or 0) + dynamic
        entry["count"] = most if least == most else {"min": least, "max": most}
    _bought(settings, entry)
    size = settings.number("disk_size_gb")
    if size:
        entry["disk"] = f"{size} GB"
    if settings.take("enable_placement") is False:
        entry["placement"] = "none"
    zones = [*settings.texts("zones"), *settings.texts("zone")]
    if zones and zones != [draft.sites[SITE].get("zone")]:
        entry["zones"] = zones
    _processors(settings.part("node_conf"), machine, entry)
    known = load_catalog().machines.get(machine)
    settings.agrees("enable_public_ips", value=False)
    settings.agrees("bandwidth_tier", value="gvnic_enabled")
    if known is not None and known.gpu is not None:
        settings.agrees("on_host_maintenance", value="TERMINATE")
    labels = settings.pairs("labels")
    if labels:
        entry["tags"] = labels
    draft.pools[name] = entry
    return name


def _processors(conf: Source, machine: str, entry: dict[str, Any]) -> None:
    """Write cores and threads of a nodeset, where the catalog says how many CPUs they make."""
    known = load_catalog().machines.get(machine)
    keys = ("CoresPerSocket", "ThreadsPerCore", "Sockets", "SocketsPerBoard")
    said = {key: conf.number(key) for key in keys}
    cores, threads = said["CoresPerSocket"], said["ThreadsPerCore"] or 1
    sockets = said["Sockets"] or said["SocketsPerBoard"]
    if cores and not sockets and known is not None and known.cpu.threads % (cores * threads) == 0:
        sockets = known.cpu.threads // (cores * threads)
    if cores and sockets:
        entry["cpu"] = {"sockets": sockets, "cores": cores, "threads_per_core": threads}
    else:
        for key in said:
            conf.leave("cpu of the pool: sockets, cores and threads together", key)


def _bought(settings: Source, entry: dict[str, Any]) -> None:
    reservation = settings.text("reservation_name")
    spot, flex = settings.take("enable_spot_vm"), settings.take("dws_flex", "enabled")
    if reservation:
        entry["market"] = [{"reservation": reservation}]
    elif spot is True:
        entry["market"] = ["spot"]
    elif flex is True:
        longest = settings.number("dws_flex", "max_run_duration")
        entry["market"] = [{"flex_start": f"{longest}s"} if longest else "flex-start"]


def _partition(module: Module, pools: Mapping[str, str], draft: Draft) -> None:
    settings = module.settings
    used = [pools[key] for key in module.uses if key in pools]
    partitions = draft.scheduler.setdefault("partitions", {})
    name = draft.fit(settings.text("partition_name") or "main", "partition", partitions)
    if not used:
        draft.leave(f"partition {name}", "it uses no nodeset")
        return
    entry: dict[str, Any] = {"pools": used}
    conf = settings.part("partition_conf")
    if settings.take("is_default") is True or conf.text("Default").upper() == "YES":
        entry["default"] = True
    if settings.take("exclusive") is not False:  # the module's default
        entry["exclusive"] = True
    resume = conf.number("ResumeTimeout")
    if resume:
        draft.scheduler["resume_timeout"] = f"{resume}s"
    said, left = partition_words({key: conf.text(key) for key in conf.names()})
    for key, why in left.items():
        if key != "ResumeTimeout":
            conf.leave(why, key, kind="replaced" if key == "SuspendTimeout" else "lost")
    idle = settings.number("suspend_time")
    if idle and idle > 0:
        draft.scheduler["suspend_after"] = f"{idle}s"
    elif idle:
        settings.leave("count: of a pool that always runs", "suspend_time")
    partitions[name] = entry | said


def _service(module: Module, draft: Draft) -> str:
    settings = module.settings
    role = "controller" if module.kind == _CONTROLLER else "login"
    pool = "head" if role == "controller" else draft.fit("login", "pool", draft.pools)
    entry: dict[str, Any] = {"site": SITE, "role": role}
    machine = settings.text("machine_type")
    if machine or not settings.has("machine_type"):
        entry["machine"] = draft.machine(machine or _SERVICE_MACHINE, ["gcp"])
    if role == "login":
        entry["count"] = settings.number("num_static_instances") or settings.number("replicas") or 1
    size = settings.number("disk_size_gb")
    if size:
        entry["disk"] = f"{size} GB"
    for key in ("enable_login_public_ips", "enable_controller_public_ips"):
        settings.agrees(key, value=False)
    _cloud_parameters(settings.part("cloud_parameters"), draft)
    first = {pool: entry} if role == "controller" else {}
    draft.pools = {**first, **draft.pools, pool: entry}
    return pool


def _cloud_parameters(part: Source, draft: Draft) -> None:
    timeout = part.number("resume_timeout")
    if timeout:
        draft.scheduler.setdefault("resume_timeout", f"{timeout}s")
    parameters = part.texts("scheduler_parameters")
    if parameters:
        carry_named("SchedulerParameters", ",".join(parameters), draft)
    for key, name in _CLOUD.items():
        if part.has(key):
            why = carry_named(name, part.text(key), draft)
            if why:
                part.leave(why, key, kind="replaced")


def _distribution(module: Module, draft: Draft) -> None:
    """Take the distribution from the image that the blueprint builds upon."""
    key = "source_image" if module.settings.has("source_image") else "source_image_family"
    image = module.settings.text(key)
    for pattern, system in _SYSTEMS:
        if re.search(pattern, image):
            draft.more["software"] = {"distribution": system}
            return
    module.settings.leave("software: {distribution} in the spec", key)


def _home(blueprint: Blueprint, draft: Draft) -> None:
    """Have the head serve /home where nothing else does: the controller's own default."""
    mounted = any(storage["mount"] == "/home" for storage in draft.storage.values())
    own = [m.settings.take("enable_default_mounts") for m in blueprint.of(_CONTROLLER)]
    if not mounted and False not in own:
        name = draft.fit("home", "storage", draft.storage)
        draft.storage[name] = {"type": "nfs", "mount": "/home", "server": "head"}
