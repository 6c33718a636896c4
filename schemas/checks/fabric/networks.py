"""What a fabric needs of the site's network: security groups, networks of its own, an MTU."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import Fabric
from ...diagnostics import PathTuple, Severity, listing
from ...spec import AwsSite, CloudSite, GcpSite
from ...structure.fix.edits import Remove, Replace
from ..context import CheckContext
from ..registry import Finding, check


def _fabrics(context: CheckContext, site: str) -> dict[str, tuple[Fabric, list[str]]]:
    """Return the fabric classes of a site's pools, each with its pools."""
    found: dict[str, tuple[Fabric, list[str]]] = {}
    for name in context.pools_of_site.get(site, ()):
        fabric = context.fabric(context.pools[name])
        if fabric is not None:
            found.setdefault(fabric.name, (fabric, []))[1].append(name)
    return found


def _relies_on(site: str, *keys: str) -> tuple[PathTuple, ...]:
    of_pools = tuple(("pools", "*", key) for key in ("fabric", "machine", "site"))
    return *(("sites", site, "network", key) for key in keys), *of_pools


@check("GC211", summary="Whether EFA can pass existing security groups can't be seen here.")
def efa_security_groups(context: CheckContext) -> Iterator[Finding]:
    """EFA traffic passes a security group that lets in and lets out all traffic of itself.

    Both rules are needed, for all protocols, with the group itself as the source and as the
    destination. Groups that exist are left as they are, and only AWS knows their rules; without
    `security_groups` one is made that has them.
    """
    for name, site in context.sites.items():
        if not isinstance(site, AwsSite) or not site.network.security_groups:
            continue
        for fabric, pools in _fabrics(context, name).values():
            if fabric.nic_kind == "efa":
                path = ("sites", name, "network", "security_groups")
                yield Finding(
                    summary=f"{fabric.name} of {listing(pools)} needs one of these groups to let "
                    "in and out all traffic of itself",
                    path=path,
                    severity=Severity.NOTE,
                    hint="see that one has both rules, or leave security_groups out: one is made",
                    relies_on=_relies_on(name, "security_groups"),
                )
                break


@check(
    "GC212", summary="The number of existing fabric networks is not what the fabric class needs."
)
def fabric_network_count(context: CheckContext) -> Iterator[Finding]:
    """Google's fabrics use networks of their own: TCPX 4, TCPXO 8, one for each GPU NIC.

    Those that exist are named in `fabric_networks`, in the order of the NICs.
    """
    for name, site in context.sites.items():
        if not isinstance(site, GcpSite) or not site.network.fabric_networks:
            continue
        given = len(site.network.fabric_networks)
        for fabric, pools in _fabrics(context, name).values():
            if fabric.extra_networks is None or fabric.extra_networks.count == given:
                continue
            needed = fabric.extra_networks.count
            yield Finding(
                summary=f"{fabric.name} of {listing(pools)} needs {needed} networks, "
                f"fabric_networks names {given}",
                path=("sites", name, "network", "fabric_networks"),
                hint=f"name {needed} networks, in the order of the NICs",
                relies_on=_relies_on(name, "fabric_networks"),
            )


@check("GC213", summary="Networks for the fabric are made next to a VPC that exists.")
def fabric_networks_created(context: CheckContext) -> Iterator[Finding]:
    """A named `vpc` is the nodes' own network; the GPUs' NICs need others.

    Without `fabric_networks` they are made in the project, next to the VPC. Who names a VPC mostly
    may not make any: name those that exist too.
    """
    for name, site in context.sites.items():
        if not isinstance(site, GcpSite) or site.network.vpc is None:
            continue
        if site.network.fabric_networks:
            continue
        for fabric, pools in _fabrics(context, name).values():
            if fabric.extra_networks is not None:
                yield Finding(
                    summary=f"{fabric.extra_networks.count} networks are made next to this VPC for "
                    f"{fabric.name} of {listing(pools)}",
                    path=("sites", name, "network", "vpc"),
                    severity=Severity.WARNING,
                    hint="name those that exist in fabric_networks, in the order of the NICs",
                    relies_on=_relies_on(name, "vpc", "fabric_networks"),
                )


@check("GC214", summary="Fabric networks are named that no pool uses.")
def fabric_networks_unused(context: CheckContext) -> Iterator[Finding]:
    """`fabric_networks` is for fabrics with networks of their own: TCPX, TCPXO and gIB.

    No pool of the site has such a fabric, so nothing would be attached to them.
    """
    for name, site in context.sites.items():
        if not isinstance(site, GcpSite) or not site.network.fabric_networks:
            continue
        pools = [context.pools[pool] for pool in context.pools_of_site.get(name, ())]
        machines = [context.machine(pool) for pool in pools if pool.machine is not None]
        fabrics = _fabrics(context, name).values()
        if any(machine is None or (machine.fabric is None and machine.gpu) for machine in machines):
            continue
        if not any(fabric.extra_networks is not None for fabric, _ in fabrics):
            path = ("sites", name, "network", "fabric_networks")
            yield Finding(
                summary=f'no pool of site "{name}" has a fabric with networks of its own',
                path=path,
                at_key=True,
                severity=Severity.WARNING,
                hint="remove fabric_networks",
                fix=Remove(path),
                relies_on=_relies_on(name, "fabric_networks"),
            )


@check("GC215", summary="An MTU that the fabric class does not work with.")
def mtu_unsupported(context: CheckContext) -> Iterator[Finding]:
    """Some fabrics need an MTU of the nodes' network: GPUDirect-TCPXO for 8244 bytes.

    Below it the fabric's packets don't fit. Above it they fit, but this is untested. Without `mtu`
    the class's own is taken.
    """
    for name, site in context.sites.items():
        if not isinstance(site, CloudSite) or site.network.mtu is None:
            continue
        path = ("sites", name, "network", "mtu")
        fabrics = _fabrics(context, name).values()
        wanted = {fabric.mtu for fabric, _ in fabrics if fabric.mtu is not None}
        for fabric, pools in fabrics:
            if fabric.mtu is None or site.network.mtu == fabric.mtu:
                continue
            below = site.network.mtu < fabric.mtu
            yield Finding(
                summary=f"mtu {site.network.mtu} is {'below' if below else 'above'} the "
                f"{fabric.mtu} of {fabric.name} ({listing(pools)})",
                path=path,
                severity=Severity.ERROR if below else Severity.WARNING,
                hint=f"write mtu: {fabric.mtu}, or leave it out",
                fix=Replace(path, str(fabric.mtu)) if wanted == {fabric.mtu} else None,
                relies_on=_relies_on(name, "mtu"),
            )


@check("GC230", summary="An MTU for a network whose cloud takes none.")
def mtu_not_set(context: CheckContext) -> Iterator[Finding]:
    """Google's networks are made with an MTU; AWS, Azure and OCI give theirs one of their own.

    There `mtu` limits only the packets of a tunnel between sites (WireGuard).
    """
    tunnelled = {end for link in context.links if link.via == "wireguard" for end in link.between}
    for name, site in context.sites.items():
        if not isinstance(site, CloudSite) or site.sets_mtu or site.network.mtu is None:
            continue
        if name not in tunnelled:
            path = ("sites", name, "network", "mtu")
            yield Finding(
                summary=f'site "{name}": {site.provider} makes networks with one MTU of its own',
                path=path,
                at_key=True,
                hint="remove mtu",
                fix=Remove(path),
                relies_on=(*_relies_on(name, "mtu"), ("links",)),
            )
