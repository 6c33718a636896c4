"""Networks and storage of a blueprint: what modules of the Cluster Toolkit make or mount."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..draft import Draft
from ..source import Source
from .blueprint import SITE, Blueprint, Module

_NETWORKS = frozenset(
    {"vpc", "pre-existing-vpc", "multivpc", "gpu-rdma-vpc", "private-service-access"}
)
_OWN_OPTIONS = frozenset({"defaults", "rw", "_netdev", "allow_other"})
"""Options of a mounted bucket that gcluster sets itself."""
_SHARED = "/shared"
"""Where a Filestore is mounted that says nothing (modules/file-system/filestore/variables.tf)."""
_CUT_ITSELF = (
    "network_name", "subnetwork_name", "ips_per_nat", "firewall_rules", "subnetworks", "mtu",
    "enable_internal_traffic", "network_address_range", "enable_iap_ssh_ingress",
)  # fmt: skip
_OF_FILESTORE = (
    "reserved_ip_range", "name", "network_id", "connect_mode", "nfs_export_options",
    "filestore_share_name", "description",
)  # fmt: skip
_REPLACED = {"HIGH_SCALE_SSD": "zonal", "ENTERPRISE": "regional"}
"""Former tiers -> what Google sells instead (cloud.google.com/filestore/docs/service-tiers)."""
_FILESTORE_GIB = 2560
"""What the module makes where it is given no size."""
_BUCKET_OF = re.compile(r"\$\(([\w-]+)\.gcs_bucket_name\)")
_MADE = "gcluster names it, and lets in the nodes' network alone"
_KEPT = "down keeps data, and takes it with --delete-data NAME alone"
_FABRIC = "gcluster makes the networks of the fabric"


def networks_and_storage(blueprint: Blueprint, pools: Mapping[str, str], draft: Draft) -> set[str]:
    """Write them; return the keys of the modules that were read.

    Args:
        blueprint: the blueprint.
        pools: key of a nodeset or node pool -> its pool.
        draft: it is written into.
    """
    read = set()
    for module in blueprint.modules:
        settings = module.settings
        mount = settings.text("local_mount") if module.kind not in _NETWORKS else ""
        if module.kind in _NETWORKS:
            _network(module, draft)
        elif module.kind == "filestore":
            _filestore(settings, module.key, mount or _SHARED, draft)
        elif module.kind == "managed-lustre":
            _lustre(settings, module.key, mount, draft)
        elif module.kind == "cloud-storage-bucket":
            _bucket(settings, module.key, mount, blueprint, draft)
        elif module.kind == "pre-existing-network-storage":
            _existing(settings, mount, module.key, blueprint, draft)
        elif module.kind == "startup-script":
            _scratch(settings, [pools[u] for u in blueprint.users(module.key) if u in pools], draft)
        else:
            continue
        read.add(module.key)
    return read


def _network(module: Module, draft: Draft) -> None:
    settings, site = module.settings, draft.sites[SITE]
    if module.kind == "pre-existing-vpc":
        network = settings.text("network_name")
        if network:
            site.setdefault("network", {})["vpc"] = network
            subnet = settings.text("subnetwork_name")
            if subnet:
                site["network"]["subnet"] = subnet
        return
    if module.kind != "vpc":
        for key in settings.names():
            settings.leave(_FABRIC, key, kind="replaced")
        return
    _ranges(settings, draft)
    if "cidr" not in site.get("network", {}):
        cidr, mtu = settings.text("network_address_range"), settings.number("mtu")
        if cidr:
            site.setdefault("network", {})["cidr"] = cidr
        if mtu:
            site.setdefault("network", {})["mtu"] = mtu
    for key in _CUT_ITSELF:
        settings.leave("gcluster names and cuts networks itself", key, kind="replaced")


def _ranges(settings: Source, draft: Draft) -> None:
    """Take the networks of pods and services of GKE."""
    fields = {"pods": "pod_cidr", "services": "service_cidr"}
    for each in settings.each("secondary_ranges_list"):
        each.leave("gcluster names its networks itself", "subnetwork_name", kind="replaced")
        for one in each.each("ranges"):
            field = fields.get(one.text("range_name"))
            if field and draft.scheduler["type"] == "kubernetes":
                draft.scheduler[field] = one.text("ip_cidr_range")


def _filestore(settings: Source, key: str, mount: str, draft: Draft) -> None:
    """Write a Filestore instance.

    modules/file-system/filestore/variables.tf says what is made where a setting is missing:
    BASIC_SSD of 2560 GiB. Filestore's older tiers are made as those that replaced them.
    """
    name = draft.fit(mount.strip("/") or key, "storage", draft.storage)
    tier = settings.text("filestore_tier") or "BASIC_SSD"
    entry: dict[str, Any] = {
        "type": "filestore", "mount": mount, "site": SITE,
        "tier": _REPLACED.get(tier, tier.lower().replace("_", "-")),
        "capacity": f"{settings.number('size_gb') or _FILESTORE_GIB} GiB",
    }  # fmt: skip
    if tier in _REPLACED:
        why = f"{entry['tier']} is written: Google makes it in the stead of {tier}"
        settings.leave(why, "filestore_tier", kind="guess")
    if settings.text("protocol") == "NFS_V4_1":
        entry["protocol"] = "nfs-v4.1"
    options = [each for each in settings.text("mount_options").split(",") if each]
    own = [each for each in options if each not in _OWN_OPTIONS]
    if own:
        entry["options"] = own
    draft.storage[name] = entry
    settings.leave(_KEPT, "deletion_protection", kind="replaced")
    for one in _OF_FILESTORE:
        settings.leave(_MADE, one, kind="replaced")


def _lustre(settings: Source, key: str, mount: str, draft: Draft) -> None:
    name = draft.fit(mount.strip("/") or key, "storage", draft.storage)
    entry: dict[str, Any] = {"type": "lustre", "mount": mount, "site": SITE}
    filesystem = settings.text("remote_mount")
    if filesystem:
        entry["fsname"] = filesystem
    size, rate = settings.number("size_gib"), settings.number("per_unit_storage_throughput")
    if size:
        entry["capacity"] = f"{size} GiB"
    if rate:
        entry["throughput"] = f"{rate} MB/s/TiB"
    draft.storage[name] = entry
    settings.leave("gcluster names it itself", "name", kind="replaced")


def _bucket(settings: Source, key: str, mount: str, blueprint: Blueprint, draft: Draft) -> None:
    if not mount:
        draft.leave(f"module {key}", "a bucket that nothing mounts is not made")
        return
    bucket = _bucket_name(key, settings.text("name_prefix"), blueprint)
    name = draft.fit(mount.strip("/") or key, "storage", draft.storage)
    entry: dict[str, Any] = {
        "type": "object", "mount": mount, "bucket": f"gs://{bucket}", "create": True,
    }  # fmt: skip
    options = [each for each in settings.text("mount_options").split(",") if each]
    own = list(dict.fromkeys(each for each in options if each not in _OWN_OPTIONS))
    if own:
        entry["options"] = own
    if settings.take("enable_hierarchical_namespace") is True:
        entry["hierarchical_namespace"] = True
    draft.storage[name] = entry
    draft.leave(f"module {key}: name of the bucket", f"gs://{bucket} is written", "guess")
    settings.leave("its name is as in the spec", "random_suffix", kind="replaced")
    settings.agrees("force_destroy", value=False)


def _bucket_name(module: str, prefix: str, blueprint: Blueprint) -> str:
    """Return what a bucket that the blueprint makes is called here."""
    return "-".join(part for part in (prefix, blueprint.name, "" if prefix else module) if part)


def _remote(settings: Source, blueprint: Blueprint) -> str:
    """Return the path or bucket of a storage; that of a bucket which the blueprint makes, too."""
    found = _BUCKET_OF.fullmatch(settings.raw("remote_mount"))
    made = [one for one in blueprint.modules if found is not None and one.key == found[1]]
    if not made:
        return settings.text("remote_mount")
    settings.accept("remote_mount")
    return _bucket_name(made[0].key, made[0].settings.raw("name_prefix"), blueprint)


def _existing(settings: Source, mount: str, key: str, blueprint: Blueprint, draft: Draft) -> None:
    kind, server = settings.text("fs_type") or "nfs", settings.text("server_ip")
    remote = _remote(settings, blueprint)
    name = draft.fit(mount.strip("/") or key, "storage", draft.storage)
    if kind == "nfs":
        draft.storage[name] = {"type": "nfs", "mount": mount, "site": SITE}
        if server:
            draft.storage[name]["server"] = server
        if remote and remote != mount:
            draft.storage[name]["export"] = remote
    elif kind == "gcsfuse":
        draft.storage[name] = {"type": "object", "mount": mount}
        if remote:
            draft.storage[name]["bucket"] = f"gs://{remote.removeprefix('gs://')}"
    elif kind == "lustre" and server:
        draft.storage[name] = {
            "type": "lustre", "mount": mount, "site": SITE, "mgs": f"{server}@tcp",
            "fsname": remote.strip("/"),
        }  # fmt: skip
    else:
        for each in settings.names():
            settings.leave(f"gcluster mounts no {kind} that exists", each)
        return
    options = [each for each in settings.text("mount_options").split(",") if each]
    own = [each for each in options if each not in _OWN_OPTIONS]
    if own:
        draft.storage[name]["options"] = own


def _scratch(settings: Source, pools: Sequence[str], draft: Draft) -> None:
    part = settings.part("local_ssd_filesystem")
    mount = part.text("mountpoint")
    if mount and pools:
        name = draft.fit(mount.strip("/").replace("/", "-"), "storage", draft.storage)
        draft.storage[name] = {
            "type": "local-nvme", "mount": mount, "format": True, "pools": list(pools),
        }  # fmt: skip
        part.agrees("permissions", value="1777")
    elif mount:
        part.leave("no nodeset uses it", "mountpoint")
