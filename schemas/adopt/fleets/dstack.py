"""A fleet of dstack: of a cloud, or of one's own hosts over SSH.

Keys are those of its reference (github.com/dstackai/dstack, commit 511c318,
mkdocs/docs/reference/dstack.yml/fleet.md and src/dstack/_internal/core/models/fleets.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..draft import Adopted, Draft, NothingToAdopt, reasons
from ..source import Kind, Source, filled
from .machines import PROVIDERS, cloud_site, machine_by_gpu

_RANGE = re.compile(r"^(\d+)\.\.(\d*)$")
_SPOT = {"spot": ["spot"], "auto": ["spot", "on-demand"], "on-demand": []}
_REASONS: tuple[tuple[str, str, Kind], ...] = (
    ("blocks", "jobs request GPUs of a node: Slurm shares it", "replaced"),
    ("env", "a job's environment is no part of a cluster", "replaced"),
    ("resources.cpu", "part of the machine type", "replaced"),
    ("resources.memory", "part of the machine type", "replaced"),
    ("resources.shm_size", "a job's /dev/shm is half of its node's memory", "replaced"),
    ("idle_duration", "suspend_after, for pools that grow and shrink", "lost"),
    ("backends", "a pool is at one site: make a second pool", "lost"),
    ("regions", "a pool is at one site: make a second pool", "lost"),
    ("availability_zones", "zones of the pool, by id", "lost"),
    ("instance_types", "a pool has one machine type: make a second pool", "lost"),
    ("max_price", "market: [{spot_max_usd_per_hour}], or budget", "lost"),
    ("network", "network: {cidr} of the site", "lost"),
)


def adopt_dstack(
    data: Any, *, name: str, origin: str, date: str, given: Mapping[str, str]
) -> Adopted:
    """Draft a spec of a fleet.

    Args:
        data: the fleet.
        name: of the cluster; "": the fleet's.
        origin: where it comes from, in words.
        date: when it was read.
        given: values of its variables; `provider` and `region` where the fleet says none.

    Raises:
        NothingToAdopt: it is no fleet, or of a cloud that gcluster has no provider for.
    """
    source = Source(filled(data, given))
    if source.text("type") != "fleet":
        raise NothingToAdopt("its type is not fleet: dstack apply knows other types too")
    draft = Draft(name or source.text("name") or "fleet", origin=origin, date=date)
    source.take("name")
    if source.has("ssh_config"):
        _ssh_fleet(source.part("ssh_config"), draft)
        source.agrees("placement", value="cluster")
    else:
        _cloud_fleet(source, given, draft)
    tags = source.pairs("tags")
    if tags:
        draft.more["tags"] = tags
    draft.settle(source, reasons(_REASONS))
    return draft.finished()


def _ssh_fleet(config: Source, draft: Draft) -> None:
    ssh: dict[str, Any] = {}
    user, key, port = config.text("user"), config.text("identity_file"), config.number("port")
    if user:
        ssh["user"] = user
    else:
        draft.leave("the login user", "not specified: ssh: {user} of the site", "unfinished")
    if key:
        ssh["key"] = key
    if port and port != 22:  # noqa: PLR2004  # sshd's own
        ssh["port"] = port
    jump = config.part("proxy_jump")
    if jump.text("hostname"):
        ssh["bastion"] = "".join(
            [
                f"{jump.text('user')}@" if jump.text("user") else "", jump.text("hostname"),
                f":{jump.number('port')}" if jump.number("port") else "",
            ]
        )  # fmt: skip
        bastion_key = jump.text("identity_file")
        if bastion_key:
            ssh["bastion_key"] = bastion_key
    draft.sites["here"] = {"provider": "bare-metal", "ssh": ssh}
    draft.scheduler = {"type": "none"}
    hosts = [_host(index, each, draft.name) for index, each in enumerate(_hosts(config))]
    draft.pools["nodes"] = {
        "site": "here", "machine": draft.machine(f"{draft.name}-nodes", ["bare-metal"]),
        "hosts": hosts,
    }  # fmt: skip


def _hosts(config: Source) -> list[Source]:
    """Return the hosts, of which those that are an address alone are mappings too."""
    mappings = list(config.each("hosts"))
    if mappings:
        return mappings
    return [Source({"hostname": address}) for address in config.texts("hosts")]


def _host(index: int, host: Source, fleet: str) -> dict[str, Any]:
    """Return one host; dstack calls instances as the fleet and their number."""
    entry: dict[str, Any] = {"name": f"{fleet}-{index}", "address": host.text("hostname")}
    user, port = host.text("user"), host.number("port")
    if user:
        entry["user"] = user
    if port:
        entry["port"] = port
    return entry


def _cloud_fleet(source: Source, given: Mapping[str, str], draft: Draft) -> None:
    backends = source.texts("backends")
    provider = backends[0] if backends else given.get("provider", "")
    if provider and provider not in PROVIDERS:
        raise NothingToAdopt(f"it runs on {provider}, for which gcluster has no provider")
    regions, zones = source.texts("regions"), source.texts("availability_zones")
    for key, found in (("backends", backends), ("regions", regions)):
        if len(found) > 1:
            source.leave(f"a pool is at one site, {found[0]}: make a second pool", key)
    region = regions[0] if regions else given.get("region", "")
    site = cloud_site(draft, provider, region, zones[0] if provider == "gcp" and zones else "")
    if zones and (provider != "gcp" or len(zones) > 1):
        source.leave("zones are written by id: zone_id of the site", "availability_zones")
    entry: dict[str, Any] = {"site": site, **_machine(source, provider, draft)}
    entry |= _size(source, draft)
    placement = source.text("placement")
    if placement in {"cluster", "any"}:
        entry["placement"] = "cluster" if placement == "cluster" else "none"
    market = _market(source)
    if market:
        entry["market"] = market
    disk = source.text("resources", "disk") or source.text("resources", "disk", "size")
    if re.fullmatch(r"\d+GB", disk):
        entry["disk"] = f"{disk.removesuffix('GB')} GB"
    elif disk:
        source.leave("disk: of the pool is one size", "resources", "disk")
    draft.pools["nodes"] = entry


def _machine(source: Source, provider: str, draft: Draft) -> dict[str, str]:
    """Return the machine type: named, or by its GPUs."""
    kinds = source.texts("instance_types")
    if len(kinds) > 1:
        source.leave(f"a pool has one machine type, {kinds[0]}", "instance_types")
    machine = draft.machine(kinds[0], [provider or "aws"]) if kinds else ""
    wanted = _gpu(source.part("resources"))
    machine = machine or machine_by_gpu(wanted, provider)
    if machine:
        return {"machine": machine}
    why = "no machine type of the catalog has these in that cloud: machine of pool nodes"
    draft.leave(f"resources.gpu: {wanted or 'not specified'}", why, "unfinished")
    return {}


def _gpu(resources: Source) -> str:
    """Return the GPUs as name:count; "" where they aren't one kind of one number."""
    text = resources.text("gpu")
    if text:
        return text
    gpu = resources.part("gpu")
    name, count = gpu.texts("name"), gpu.text("count") or "1"
    return f"{name[0]}:{count}" if len(name) == 1 else ""


def _size(source: Source, draft: Draft) -> dict[str, Any]:
    nodes = source.part("nodes")
    least, most = nodes.number("min"), nodes.number("max")
    text = source.text("nodes")
    found = _RANGE.match(text)
    if found is not None:
        least, most = int(found[1]), int(found[2]) if found[2] else None
    elif text.isdecimal():
        return {"count": int(text)}
    nodes.leave("a pool starts with its least; more come with jobs", "target")
    if most is None:
        draft.leave("nodes", "the maximum is not specified: count of the pool", "unfinished")
        return {}
    idle = source.text("idle_duration")
    if re.fullmatch(r"\d+[smhd]", idle) and least != most:
        draft.scheduler["suspend_after"] = idle
    elif idle:
        source.leave("suspend_after, for pools that grow and shrink", "idle_duration")
    return {"count": most if least == most else {"min": least or 0, "max": most}}


def _market(source: Source) -> list[Any]:
    reservation, policy = source.text("reservation"), source.text("spot_policy")
    if reservation:
        return [{"reservation": reservation}]
    return list(_SPOT.get(policy, []))
