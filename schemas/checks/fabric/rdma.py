"""How a pool's RDMA adapters are to be set: what they don't do, and who manages their subnet."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import pairwise

from ...catalog import Fabric
from ...diagnostics import PathTuple, listing
from ...spec import Pool, Rdma
from ...structure.fix.edits import Remove, Replace
from ..context import CheckContext
from ..network.cidrs import parsed
from ..registry import Finding, check

MANAGERS = 2
"""One subnet manager is master, one is standby. InfiniBand has no use for more, and each handover
between them can disturb the fabric."""
_LOSSLESS = ("mtu", "dscp", "priority", "congestion_dscp", "ring")
"""How RoCE's adapters are set where they are set here."""
_OF_KIND = {
    "infiniband": ("subnet_manager", "partition_keys", "ipoib"),
    "roce": _LOSSLESS,
}
"""Kind of adapters -> the settings that are for no other."""
OTHER_MAKERS = {"bnxt_re": "Broadcom", "ionic": "AMD Pensando", "irdma": "Intel", "qedr": "Marvell"}
"""How the kernel names RDMA devices of others (linux, drivers/infiniband/hw; read 2026-11)."""


def _path(pool: str, *keys: str | int) -> PathTuple:
    return ("pools", pool, "rdma", *keys)


@check("GC221", summary="IP over InfiniBand in connected mode.")
def ipoib_connected(context: CheckContext) -> Iterator[Finding]:
    """Adapters since ConnectX-4 offload IPoIB and then support datagram mode only.

    "Connected mode is not supported on these devices" (Red Hat Enterprise Linux 9, Configuring
    InfiniBand and RDMA networks, chapter 3): the interface would stay in datagram mode with an MTU
    that it doesn't have.
    """
    for name, pool in context.pools.items():
        if pool.rdma.ipoib is not None and pool.rdma.ipoib.mode == "connected":
            path = _path(name, "ipoib", "mode")
            yield Finding(
                summary=f'pool "{name}": adapters since ConnectX-4 don\'t speak connected mode',
                path=path,
                hint="write mode: datagram, or leave it out",
                relies_on=(path,),
                fix=Replace(path, "datagram"),
            )


@check("GC222", summary="Subnet managers on too many hosts, or on hosts the pool doesn't have.")
def subnet_managers(context: CheckContext) -> Iterator[Finding]:
    """One OpenSM is a fabric's master and one is standby; which, is decided by priority and GUID.

    `subnet_manager: true` means every host of a pool, so it is for pools of one or two. Elsewhere
    name the two hosts, best in different racks.
    """
    for name, pool in context.pools.items():
        named, path = pool.rdma.subnet_manager, _path(name, "subnet_manager")
        hosts = {
            h for group in context.host_groups if group.pool == name for h in group.names or ()
        }
        relies_on = (path, ("pools", name, "hosts"))
        if isinstance(named, list):
            missing = [host for host in named if hosts and host not in hosts]
            if missing:
                yield Finding(
                    summary=f'pool "{name}" has no host {listing(missing)} to run OpenSM',
                    path=path,
                    hint=f"it has {len(hosts)}, the first is {min(hosts)}",
                    relies_on=relies_on,
                )
            elif len(named) > MANAGERS:
                yield Finding(
                    summary=f"{len(named)} subnet managers: one is active and one on standby",
                    path=path,
                    hint=f"name two, such as [{named[0]}, {named[1]}]",
                    relies_on=relies_on,
                )
        elif named and len(hosts) > MANAGERS:
            first = sorted(hosts)
            yield Finding(
                summary=f'OpenSM would run on all {len(hosts)} hosts of pool "{name}"',
                path=path,
                hint=f"name two hosts: subnet_manager: [{first[0]}, {first[-1]}]",
                relies_on=relies_on,
            )


@check("GC223", summary="RoCE settings for adapters that are not NVIDIA's.")
def adapters_of_others(context: CheckContext) -> Iterator[Finding]:
    """PFC, ECN and DSCP are set with NVIDIA's tools, which other makers' adapters don't answer to.

    Broadcom's and AMD Pensando's (Pollara) are set by their makers' installers and tools, in the
    image or by hand; `managed: false` says so, and gcluster verifies links, rates and GIDs. Their
    modules are the distribution's or the image's, never DOCA-OFED.
    """
    for name, pool in context.pools.items():
        others = [d for d in pool.rdma.devices if _maker(d)]
        if not others:
            continue
        makers = listing(sorted({_maker(device) for device in others}))
        if pool.rdma.managed:
            yield Finding(
                summary=f'pool "{name}": {listing(others)} of {makers} can\'t be set by gcluster',
                path=_path(name, "devices"),
                hint="set them by their maker's tools, and write managed: false under rdma",
                relies_on=(_path(name, "devices"), _path(name, "managed")),
            )
        elif pool.rdma.drivers == "doca":
            yield Finding(
                summary=f'pool "{name}": DOCA-OFED doesn\'t drive {listing(others)} of {makers}',
                path=_path(name, "drivers"),
                hint="write drivers: image, or inbox",
                relies_on=(_path(name, "devices"), _path(name, "drivers")),
            )


@check("GC226", summary="SHARP where it can't work.")
def sharp_impossible(context: CheckContext) -> Iterator[Finding]:
    """SHARP is InfiniBand's, and its manager runs next to OpenSM on a host that runs no jobs.

    "This dedicated server cannot serve as a compute node" (NVIDIA, Setting up NVIDIA SHARP
    Environment; read 2026-11). OpenSM of DOCA-OFED switches it on, the distribution's can't. In a
    cloud the subnet manager is the cloud's.
    """
    for name, pool in context.pools.items():
        if pool.rdma.sharp is None:
            continue
        fabric, path = context.fabric(pool), _path(name, "sharp")
        runs_opensm, why = bool(pool.rdma.subnet_manager), None
        if fabric is None or fabric.nic_kind != "infiniband" or context.cloud(pool):
            why = "SHARP is for InfiniBand of one's own", "remove sharp"
        elif runs_opensm and pool.is_compute:
            why = "the hosts that run OpenSM run jobs too", "run OpenSM on hosts of another pool"
        elif runs_opensm and pool.rdma.drivers != "doca":
            why = "only DOCA-OFED's OpenSM switches SHARP on", "write drivers: doca"
        if why is not None:
            keys = ("subnet_manager", "drivers")
            yield Finding(
                summary=f'pool "{name}": {why[0]}',
                path=path,
                at_key=True,
                hint=why[1],
                relies_on=(
                    path,
                    *(_path(name, key) for key in keys),
                    *(("pools", name, key) for key in ("role", "fabric", "machine", "site")),
                ),
            )


def _maker(device: str) -> str:
    return next((made for start, made in OTHER_MAKERS.items() if device.startswith(start)), "")


@check("GC224", summary="Networks of rails that don't fit the pool's rails.")
def rail_networks(context: CheckContext) -> Iterator[Finding]:
    """`networks` gives each RoCE rail a network of its own, in the rails' order.

    Two rails in one network answer for each other's addresses, and packets leave by the wrong one.
    InfiniBand needs none, and a cloud gives its machines their addresses itself.
    """
    for name, pool in context.pools.items():
        if pool.rdma.networks:
            yield from _networks_of(context, name, pool)


def _networks_of(context: CheckContext, name: str, pool: Pool) -> Iterator[Finding]:
    networks, path = pool.rdma.networks, _path(name, "networks")
    fabric = context.fabric(pool)
    needs = tuple(("pools", name, key) for key in ("fabric", "machine", "site"))
    if (fabric is not None and fabric.nic_kind != "roce") or context.cloud(pool) is not None:
        yield Finding(
            summary=f"pool \"{name}\": networks are for RoCE's rails on hosts of one's own",
            path=path,
            at_key=True,
            hint="remove networks",
            relies_on=(path, *needs),
        )
        return
    machine = context.machine_in_pool(pool)
    nics = [nic for nic in (machine.nics if machine else None) or () if nic.kind == "roce"]
    rails = len(pool.rdma.devices) or sum(nic.count for nic in nics if not nic.front_end)
    if rails and len(networks) != rails:
        yield Finding(
            summary=f'pool "{name}" has {rails} rails and {len(networks)} networks for them',
            path=path,
            hint=f"write {rails} networks, in the rails' order",
            relies_on=(path, _path(name, "devices"), *needs),
        )
    known = [n for n in map(parsed, networks) if isinstance(n, IPv4Network)]
    for one, other in pairwise(sorted(known)):
        if one.overlaps(other):
            yield Finding(
                summary=f'pool "{name}": {one} and {other} of two rails overlap',
                path=path,
                hint="give each rail a network of its own",
                relies_on=(path,),
            )


@check("GC229", summary="RDMA settings for adapters that a pool doesn't have, or isn't let set.")
def rdma_settings_unused(context: CheckContext) -> Iterator[Finding]:
    """`rdma` sets InfiniBand and RoCE adapters, by the pool's fabric class.

    A controller that runs OpenSM, a login on IPoIB: its pool has to name its fabric class too, or
    nothing of it is set up. EFA, TCPX, gIB and plain Ethernet have none of these settings. Of a
    cloud's network its cloud decides: who manages the subnet, which priority is lossless; and so do
    their maker's tools under `managed: false`.
    """
    for name, pool in context.pools.items():
        site = context.sites.get(pool.site)
        fabric = context.fabric(pool)
        elsewhere = ["sharp"] if fabric is None else ["sharp", "pods", "networks"]
        elsewhere += [] if context.kubernetes is not None else ["pods"]
        written = [key for key in Rdma.__struct_fields__ if _is_written(pool, key)]
        written = [key for key in written if key not in elsewhere]  # each has a check of its own
        if site is None or site.is_made_here or not written:
            continue
        named = pool.fabric is not None or pool.machine is not None
        if fabric is None and named and not _is_known(context, pool):
            continue
        for key in written:
            why = _why_unused(pool, key, fabric, in_cloud=site.is_cloud)
            if why is not None:
                path = _path(name, key)
                yield Finding(
                    summary=f'pool "{name}": {key} would set nothing: {why[0]}',
                    path=path,
                    at_key=True,
                    hint=why[1] or f"remove {key}",
                    fix=None if why[1] else Remove(path),
                    relies_on=(
                        path,
                        _path(name, "managed"),
                        *(("pools", name, of) for of in ("fabric", "machine", "site")),
                    ),
                )


def _is_written(pool: Pool, key: str) -> bool:
    return bool(getattr(pool.rdma, key) != getattr(Rdma(), key))


def _is_known(context: CheckContext, pool: Pool) -> bool:
    """Whether the words that decide a pool's fabric are in the catalog."""
    fabric_known = pool.fabric is None or pool.fabric in context.fabrics
    return fabric_known and (pool.machine is None or context.machine(pool) is not None)


def _why_unused(
    pool: Pool, key: str, fabric: Fabric | None, *, in_cloud: bool
) -> tuple[str, str] | None:
    """Return why a setting does nothing, and what to write instead ("": nothing); None: it does."""
    if fabric is None:
        return "the pool names no fabric class", "write fabric: infiniband-ndr, or the one it has"
    if fabric.plugin != "ofed":
        return f"{fabric.name} has no such adapters", ""
    kind = "infiniband" if fabric.nic_kind == "infiniband" else "roce"
    for other, keys in _OF_KIND.items():
        if key in keys and other != kind:
            return f"it is for {'InfiniBand' if other == 'infiniband' else 'RoCE'}", ""
    if in_cloud and key in ("subnet_manager", "managed", *_LOSSLESS):
        return "the cloud sets its network itself", ""
    if key in _LOSSLESS and not pool.rdma.managed:
        return "the adapters are set by their maker's tools (managed: false)", ""
    return None
