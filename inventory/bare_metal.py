"""Hosts that exist already: what the spec's pools name, with the site's SSH settings filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ..schemas.derived.hostlist import HostlistError, expand
from ..schemas.spec import BareMetalSite, ClusterSpec, HostEntry, Pool, Ssh
from ..schemas.spec.sites import ListedHost
from .hosts import Host, Placement, SshTarget, in_block


def bare_metal_hosts(spec: ClusterSpec, site: str) -> tuple[Host, ...]:
    """Return the hosts that the pools of one site name, in the order they are written.

    Where an entry has no value, the site's list counts, if it has one, and then its `ssh`; a host
    without an address is reached by its name. Paths are passed on as written (`~` belongs to the
    machine that opens them).

    Args:
        spec: a spec that passed its checks.
        site: name of a site whose machines exist: bare-metal, ssh-fleet.

    Raises:
        HostlistError: a range can't be read, or the addresses of an entry don't fit its names.
            The checks report both with their place in the file.
    """
    described = spec.sites[site]
    if not isinstance(described, BareMetalSite):
        raise TypeError(f"site {site!r} is not bare metal")
    pools = [(name, pool) for name, pool in spec.pools.items() if pool.site == site]
    placed = described.placed(
        host
        for _, pool in pools
        for entry in _entries(pool)
        if entry.address is None
        for host in expand(entry.name)
    )
    return tuple(
        in_block(host, pool.block_of(name, index))
        for name, pool in pools
        for index, host in enumerate(
            host
            for entry in _entries(pool)
            for host in _hosts(name, pool, entry, described.ssh, placed)
        )
    )


def _entries(pool: Pool) -> Iterator[HostEntry]:
    """Yield what the pool names as entries, whichever of the three forms it uses."""
    written = pool.hosts or []
    for item in [written] if isinstance(written, str) else written:
        yield HostEntry(name=item) if isinstance(item, str) else item


def _hosts(
    pool_name: str, pool: Pool, entry: HostEntry, ssh: Ssh, placed: Mapping[str, ListedHost]
) -> Iterator[Host]:
    """Yield the hosts of one entry; they share one Placement, and mostly one SshTarget."""
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
        bastion_key_file=ssh.bastion_key,
        bastion_host_keys=_bastion_keys(entry, ssh),
        host_keys=(entry.host_key,) if entry.host_key else (),
        known_hosts_file=ssh.known_hosts,
    )
    placement = Placement(block=entry.block, leaf=entry.leaf)
    for name, address in zip(names, addresses, strict=True):
        listed = placed.get(name) if entry.address is None else None
        yield Host(
            name=name,
            site=pool.site,
            pool=pool_name,
            role=pool.role,
            compute=pool.compute,
            machine=pool.machine,
            address=address if listed is None else listed.address,
            ssh=target if listed is None else _overridden(target, entry, listed),
            placement=placement,
        )


def _bastion_keys(entry: HostEntry, ssh: Ssh) -> tuple[str, ...]:
    """Return the keys of the site's bastion; a host's own bastion is another machine."""
    is_sites = entry.bastion in {None, ssh.bastion}
    return (ssh.bastion_host_key,) if is_sites and ssh.bastion_host_key else ()


def _overridden(target: SshTarget, entry: HostEntry, listed: ListedHost) -> SshTarget:
    """Return how to reach a host of a list: the pool's settings override the list's."""
    if listed.user is None and listed.port is None and listed.host_key is None:
        return target
    own = (listed.host_key,) if listed.host_key else ()
    return msgspec.structs.replace(
        target,
        user=entry.user or listed.user or target.user,
        port=entry.port or listed.port or target.port,
        host_keys=target.host_keys or own,
    )
