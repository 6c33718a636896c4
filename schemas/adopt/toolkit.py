"""A blueprint of Google's Cluster Toolkit: nodesets become pools, partitions stay partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .draft import Adopted, Draft, NothingToAdopt, Source, words

SITE = "gcp"
_VARIABLE = re.compile(r"\$\(vars\.([\w.]+)\)|\(\(\s*var\.([\w.]+)\s*\)\)")
_VERSION = re.compile(r"-v\d+-")
_STATIC, _DYNAMIC = "node_count_static", "node_count_dynamic_max"
_HEAD = "n2-standard-16"
"""A machine for a controller or login whose type the blueprint leaves to its module."""
_NO_PARTS = frozenset(
    {
        "startup-script",
        "custom-image",
        "private-service-access",
        "service-account",
        "firewall-rules",
        "dashboard",
        "service-enablement",
        "multivpc",
    }
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
        NothingToAdopt: it has no Slurm, or its project or region is not said.
    """
    if not isinstance(data, dict) or not isinstance(data.get("deployment_groups"), list):
        raise NothingToAdopt("no deployment_groups stand in it: is it a blueprint?")
    variables = {**(data.get("vars") or {}), **given}
    filled = _filled(data, variables)
    source = Source(filled)
    modules = {
        module.text("id"): module
        for group in source.each("deployment_groups")
        for module in group.each("modules")
    }
    draft = Draft(
        name or str(variables.get("deployment_name") or source.text("blueprint_name") or "cluster"),
        origin=origin, date=date,
    )  # fmt: skip
    draft.sites[SITE] = _site(variables)
    draft.tunnel(SITE, "iap")
    kinds = {key: _kind(module.text("source")) for key, module in modules.items()}
    pools = {
        key: _nodeset(modules[key], key, draft)
        for key, kind in kinds.items()
        if kind == "schedmd-slurm-gcp-nodeset"
    }
    for key, kind in kinds.items():
        if kind == "schedmd-slurm-gcp-partition":
            _partition(modules[key], pools, draft)
        elif kind in {"schedmd-slurm-gcp-controller", "schedmd-slurm-gcp-login"}:
            _service(modules[key], kind.rpartition("-")[2], draft)
        elif kind != "schedmd-slurm-gcp-nodeset":
            _other(modules[key], kind, key, draft)
    _leave_rest(source, modules, kinds, draft)
    if not pools:
        raise NothingToAdopt("no nodeset of Slurm stands in it")
    return draft.finished()


def _filled(value: Any, variables: Mapping[str, Any]) -> Any:
    """Put the variables' values in, as deep as they refer to each other; unknown ones stay."""
    if isinstance(value, dict):
        return {key: _filled(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    if not isinstance(value, str):
        return value
    for _ in range(8):
        whole = _VARIABLE.fullmatch(value)
        if whole is not None:
            found = _looked_up(variables, whole[1] or whole[2])
            if found is None or not isinstance(found, str):
                return value if found is None else _filled(found, variables)
            value = found
            continue
        written = _VARIABLE.sub(lambda m: str(_looked_up(variables, m[1] or m[2]) or m[0]), value)
        if written == value:
            break
        value = written
    return value


def _looked_up(variables: Mapping[str, Any], path: str) -> Any:
    found: Any = variables
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _kind(source: str) -> str:
    """Return a module's name without its path, revision and generation."""
    return _VERSION.sub("-", f"{source.partition('?')[0].rstrip('/').rpartition('/')[2]}-").rstrip(
        "-"
    )


def _site(variables: Mapping[str, Any]) -> dict[str, Any]:
    missing = [key for key in ("project_id", "region") if not variables.get(key)]
    if missing:
        raise NothingToAdopt(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not said: give the "
            "deployment file too, or --var KEY=VALUE"
        )
    site: dict[str, Any] = {
        "provider": "gcp", "project": str(variables["project_id"]), "region": variables["region"],
    }  # fmt: skip
    if variables.get("zone"):
        site["zone"] = variables["zone"]
    return site


def _nodeset(module: Source, key: str, draft: Draft) -> str:
    settings = module.part("settings")
    name = draft.fit(settings.text("name") or key.removesuffix("_nodeset"), "pool", draft.pools)
    static = settings.number(_STATIC) or 0
    dynamic = settings.number(_DYNAMIC)
    if dynamic is None:
        dynamic = 0 if static else 10  # the module's own default
    machine = settings.text("machine_type") or "c2-standard-60"  # as above
    least, most = static, static + dynamic
    entry: dict[str, Any] = {
        "site": SITE, "machine": draft.machine(machine, ["gcp"]),
        "count": most if least == most else {"min": least, "max": most},
    }  # fmt: skip
    _bought(settings, entry)
    size = settings.number("disk_size_gb")
    if size:
        entry["disk"] = f"{size} GB"
    if settings.take("enable_placement") is False:
        entry["placement"] = "none"
    zones = settings.take("zones")
    if isinstance(zones, list) and zones:
        entry["zones"] = [str(zone) for zone in zones]
    draft.pools[name] = entry
    return name


def _bought(settings: Source, entry: dict[str, Any]) -> None:
    reservation = settings.text("reservation_name")
    if reservation:
        entry["market"] = [{"reservation": reservation}]
    elif settings.take("enable_spot_vm") is True:
        entry["market"] = ["spot"]
    elif settings.take("dws_flex", "enabled") is True:
        entry["market"] = ["flex-start"]


def _partition(module: Source, pools: Mapping[str, str], draft: Draft) -> None:
    settings = module.part("settings")
    used = [pools[key] for key in _uses(module) if key in pools]
    partitions = draft.scheduler.setdefault("partitions", {})
    name = draft.fit(settings.text("partition_name") or "main", "partition", partitions)
    if not used:
        draft.leave(f"partition {name}", "it uses no nodeset")
        return
    entry: dict[str, Any] = {"pools": used}
    if settings.take("is_default") is True:
        entry["default"] = True
    partitions[name] = entry


def _uses(module: Source) -> list[str]:
    found = module.take("use")
    return [str(key) for key in found] if isinstance(found, list) else []


def _service(module: Source, role: str, draft: Draft) -> None:
    settings = module.part("settings")
    _uses(module)
    pool = "head" if role == "controller" else draft.fit("login", "pool", draft.pools)
    machine = settings.text("machine_type") or _HEAD
    entry: dict[str, Any] = {
        "site": SITE, "role": role, "machine": draft.machine(machine, ["gcp"]),
    }  # fmt: skip
    if role == "login":
        entry["count"] = settings.number("num_static_instances") or settings.number("replicas") or 1
    draft.pools = (
        {pool: entry, **draft.pools} if role == "controller" else draft.pools | {pool: entry}
    )


def _other(module: Source, kind: str, key: str, draft: Draft) -> None:
    settings = module.part("settings")
    mount = settings.text("local_mount") if kind != "vpc" else ""
    if kind == "pre-existing-network-storage":
        _existing(settings, mount, key, draft)
    elif kind == "cloud-storage-bucket":
        draft.leave(f"module {key}", "its bucket has a name of its own: storage of type object")
    elif kind == "filestore":
        draft.leave(
            f"module {key} on {mount}", "gcluster makes no Filestore: an nfs of its address"
        )
    elif kind in {"vpc", "pre-existing-vpc"}:
        network = settings.text("network_name")
        if kind == "pre-existing-vpc" and network:
            site = draft.sites[SITE]
            site["network"] = {"vpc": network}
            subnet = settings.text("subnetwork_name")
            if subnet:
                site["network"]["subnet"] = subnet
        elif network or settings.names():
            draft.leave(f"module {key}", "gcluster makes a network of its own: network of the site")
    elif kind in _NO_PARTS:
        draft.leave(
            f"module {key} ({kind})", "gcluster's roles set nodes up; your scripts don't run"
        )
    else:
        draft.leave(f"module {key} ({kind})", "the spec has no word for it")


def _existing(settings: Source, mount: str, key: str, draft: Draft) -> None:
    kind, server = settings.text("fs_type") or "nfs", settings.text("server_ip")
    remote = settings.text("remote_mount")
    name = draft.fit(mount.strip("/") or key, "storage", draft.storage)
    if kind == "nfs" and server:
        draft.storage[name] = {"type": "nfs", "mount": mount, "server": server, "site": SITE}
        if remote and remote != mount:
            draft.storage[name]["export"] = remote
    elif kind == "gcsfuse" and remote:
        bucket = remote.removeprefix("gs://")
        draft.storage[name] = {"type": "object", "mount": mount, "bucket": f"gs://{bucket}"}
    elif kind == "lustre" and server:
        draft.storage[name] = {
            "type": "lustre", "mount": mount, "site": SITE, "mgs": f"{server}@tcp",
            "fsname": remote.strip("/"),
        }  # fmt: skip
    else:
        draft.leave(f"module {key} ({kind})", "gcluster mounts NFS, Lustre and buckets that exist")


def _leave_rest(
    source: Source, modules: Mapping[str, Source], kinds: Mapping[str, str], draft: Draft
) -> None:
    """List the settings of modules that were carried, and that nobody read."""
    for key, module in modules.items():
        if kinds[key].startswith("schedmd-slurm"):
            for path, value in module.part("settings").rest():
                shown = value if isinstance(value, str | int) and len(str(value)) < 60 else "..."  # noqa: PLR2004  # a line
                where = words(path[path.index("settings") + 1 :])
                draft.leave(f"module {key}: {where}: {shown}", "the spec has no word for it")
    for key in ("terraform_backend_defaults", "toolkit_modules_url"):
        if source.take(key) is not None:
            draft.leave(key, "state of the spec says where state is kept")


def named(items: Iterable[str]) -> dict[str, str]:
    """Read KEY=VALUE. Raises ValueError: one has no =."""
    return dict(item.split("=", 1) for item in items)
