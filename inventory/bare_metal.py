"""Hosts that exist already: what the spec's pools name, with the site's SSH settings filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.inventory.hosts import Host, Placement, SshTarget
from gcluster.schemas.hostlist import HostlistError, expand
from gcluster.schemas.spec import BareMetalSite, ClusterSpec, HostEntry, Pool, Ssh

if TYPE_CHECKING:
    from collections.abc import Iterator


def bare_metal_hosts(spec: ClusterSpec, site: str) -> tuple[Host, ...]:
    """Return the hosts that the pools of one bare-metal site name, in the order they are written.

    Where an entry says nothing, the site's `ssh` holds; a host without an address is reached by
    its name. Paths are handed on as written (`~` belongs to the machine that opens them).

    Args:
        spec: a spec that passed its checks.
        site: name of a site whose provider is bare-metal.

    Raises:
        HostlistError: a range can't be read, or the addresses of an entry don't fit its names.
            The checks report both with their place in the file.
    """
    described = spec.sites[site]
    if not isinstance(described, BareMetalSite):
        raise TypeError(f"site {site!r} is not bare metal")
    return tuple(
        host
        for name, pool in spec.pools.items()
        if pool.site == site
        for entry in _entries(pool)
        for host in _hosts(name, pool, entry, described.ssh)
    )


def _entries(pool: Pool) -> Iterator[HostEntry]:
    """Yield what the pool names as entries, whichever of the three forms it uses."""
    written = pool.hosts or []
    for item in [written] if isinstance(written, str) else written:
        yield HostEntry(name=item) if isinstance(item, str) else item


def _hosts(pool_name: str, pool: Pool, entry: HostEntry, ssh: Ssh) -> Iterator[Host]:
    """Yield the hosts of one entry; they share one SshTarget and one Placement."""
    names = expand(entry.name)
    addresses = names if entry.address is None else expand(entry.address)
    if len(addresses) != len(names):
        raise HostlistError(
            f"{entry.name} names {len(names)} hosts, but {entry.address} {len(addresses)} addresses"
        )
    target = SshTarget(
        user=entry.user or ssh.user,
        port=entry.port or ssh.port,
        key_file=ssh.key,
        bastion=entry.bastion or ssh.bastion,
        host_keys=(entry.host_key,) if entry.host_key else (),
        known_hosts_file=ssh.known_hosts,
    )
    placement = Placement(block=entry.block, leaf=entry.leaf)
    for name, address in zip(names, addresses, strict=True):
        yield Host(
            name=name,
            site=pool.site,
            pool=pool_name,
            role=pool.role,
            machine=pool.machine,
            address=address,
            ssh=target,
            placement=placement,
        )
