"""Hosts of sites that have a list of addresses: their names are each cluster's own affair."""

from __future__ import annotations

from collections.abc import Iterator

from ..hostlist import expand
from ..spec import ClusterSpec, Pool
from ..spec.sites.ssh_fleet import SshFleetSite
from .member import Hosts


def listed_hosts(spec: ClusterSpec, sites: set[str]) -> Iterator[Hosts]:
    """Yield the hosts of lists by their addresses, one group a pool and port.

    Args:
        spec: one without errors.
        sites: names of its sites that have a list.
    """
    for site in sorted(sites):
        fleet = spec.sites[site]
        if not isinstance(fleet, SshFleetSite):
            continue
        pools = {name: pool for name, pool in spec.pools.items() if pool.site == site}
        placed = fleet.placed(host for pool in pools.values() for host in _named(pool))
        for name, pool in pools.items():
            by_port: dict[int, list[str]] = {}
            for entry in (placed[host] for host in _named(pool) if host in placed):
                by_port.setdefault(entry.port or fleet.ssh.port, []).append(entry.address)
            bastion = (fleet.ssh.bastion or "").rpartition("@")[2].lower()
            for port, addresses in by_port.items():
                path = ("pools", name, "hosts")
                yield Hosts(name, path, addresses, addresses, port, bastion)


def _named(pool: Pool) -> list[str]:
    """Return the hosts that a pool names and says no address of."""
    written = [pool.hosts] if isinstance(pool.hosts, str) else pool.hosts or []
    names = [item if isinstance(item, str) else item.name for item in written
             if isinstance(item, str) or item.address is None]  # fmt: skip
    return [host for name in names for host in expand(name)]
