"""Fabric domains: hosts whose GPUs reach each other over one fabric, and are tested together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...inventory.hosts import Host
from ...schemas.checks.capacity.placement import is_fabric_domain
from ...schemas.spec import ClusterSpec

if TYPE_CHECKING:
    from ...schemas.catalog import Catalog, Fabric, Machine


def fabric_domains(
    spec: ClusterSpec, catalog: Catalog, hosts: Iterable[Host]
) -> tuple[tuple[Host, ...], ...]:
    """Return the hosts in groups that one fabric joins, in the order of their first hosts.

    Hosts of another fabric class or site are another domain. A zone ends EFA and Google's fabrics,
    and one placement Azure's, so there each pool is one; NVLink ends at its block.
    """
    groups: defaultdict[tuple[str, ...], list[Host]] = defaultdict(list)
    for host in hosts:
        groups[_domain(spec, catalog, host)].append(host)
    return tuple(tuple(group) for group in groups.values())


def machine_of(catalog: Catalog, host: Host) -> Machine | None:
    """Return a host's machine type; None: it has none, or one that the catalog doesn't know."""
    return catalog.machines.get(host.machine or "")


def fabric_of(spec: ClusterSpec, catalog: Catalog, host: Host) -> Fabric | None:
    """Return the fabric class that carries a host's traffic to others; None: it isn't known."""
    machine = machine_of(catalog, host)
    name = spec.pools[host.pool].fabric or (machine.fabric if machine else None)
    return catalog.fabrics.get(name or "")


def blocks_of(hosts: Iterable[Host]) -> tuple[tuple[str, ...], ...]:
    """Return the hosts' names by block, or by leaf switch where no block is known."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for host in hosts:
        groups[host.placement.block or host.placement.leaf or ""].append(host.name)
    return tuple(tuple(group) for group in groups.values())


def _domain(spec: ClusterSpec, catalog: Catalog, host: Host) -> tuple[str, ...]:
    fabric, machine = fabric_of(spec, catalog, host), machine_of(catalog, host)
    key = (host.site, fabric.name if fabric else "")
    if machine is not None and machine.simulated:
        return key
    if fabric is not None and "P2P/MNNVL" in fabric.channels:
        return *key, host.pool, host.placement.block or ""
    ends = (machine is not None and is_fabric_domain(machine)) or (
        fabric is not None and fabric.reach in {"zone", "placement"}
    )
    return (*key, host.pool) if ends else key
