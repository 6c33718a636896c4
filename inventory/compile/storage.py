"""Which pools mount what and which serve it, and the addresses that others must know (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ...schemas.derived.storage import Mounts, mount_point
from ...schemas.spec import ClusterSpec, LustreStorage
from ..hosts import ClusterInventory

if TYPE_CHECKING:
    from .node import NodeFacts


class Server(msgspec.Struct, frozen=True):
    """A host of the spec that serves storage: few, and every node that mounts it finds them."""

    name: str
    address: str
    """"" while the machine is only planned."""


class StorageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The storage of one pool's nodes, by the names that the spec gives it."""

    mounts: tuple[str, ...] = ()
    """What they mount, the outer of two nested mount points first."""
    serves: tuple[str, ...] = ()
    """What they serve."""
    servers: dict[str, tuple[Server, ...]] = {}
    """Storage -> the hosts of the spec that serve it, in the inventory's order."""
    devices: dict[str, str] = {}
    """Storage that a provider made or found -> what is mounted of it."""


def storage_facts(spec: ClusterSpec, inventory: ClusterInventory | None) -> dict[str, StorageFacts]:
    """Return pool -> its storage; what a pool serves may be among what it mounts.

    Args:
        spec: a spec that passed its checks.
        inventory: hosts and what providers made; None: nothing is known of them.
    """
    known = Mounts(spec.storage, spec.pools)
    hosts = () if inventory is None else inventory.hosts
    serving = {
        pool: [Server(h.name, h.address) for h in hosts if h.pool == pool] for pool in known.servers
    }
    servers = {
        name: tuple(serving[pool])
        for name in spec.storage
        if (pool := known.server(name)) is not None
    }
    devices = {} if inventory is None else inventory.storage

    def of(pool: str) -> StorageFacts:
        serves = tuple(sorted(known.servers.get(pool, ())))
        mounted = sorted(known.of(pool), key=lambda name: (mount_point(spec.storage[name]), name))
        named = {*mounted, *serves}
        return StorageFacts(
            mounts=tuple(mounted),
            serves=serves,
            servers={name: found for name, found in servers.items() if name in named},
            devices={name: found for name, found in devices.items() if name in named},
        )

    return {pool: of(pool) for pool in spec.pools}


def uses_lustre(node: NodeFacts) -> bool:
    """Whether a pool's machines mount or serve Lustre, whose modules are built for one kernel."""
    named = {*node.storage.mounts, *node.storage.serves}
    return any(isinstance(node.spec.storage[name], LustreStorage) for name in named)
