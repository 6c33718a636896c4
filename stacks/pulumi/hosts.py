"""Turns the machines of any cloud into hosts, with their bastions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from ...inventory.hosts import Host, Placement, SshTarget
from ...schemas.catalog import Catalog
from .names import HOST, OFFER, POOL, TOKEN
from .plan import CloudPlan

Keys: TypeAlias = Mapping[str, tuple[str, ...]]
"""Public host keys by the id of their machine."""
_WAYS_IN = {"login": 0, "controller": 1}


class ListedMachine(Protocol):
    """A machine as a cloud lists it."""

    @property
    def id(self) -> str:
        """The cloud's own name for it."""
        ...

    @property
    def host(self) -> str:
        """Its name in the cluster, as it is marked; "" while it is not."""
        ...

    @property
    def token(self) -> str:
        """The burst it belongs to; "" for fixed nodes."""
        ...


MachineT = TypeVar("MachineT", bound=ListedMachine)


class Marked:
    """Tags that gcluster set on machines; "" while they lack one."""

    __slots__ = ()

    def tag(self, key: str) -> str:
        """Return the value of a tag, or label."""
        raise NotImplementedError

    @property
    def host(self) -> str:
        """Name in the cluster."""
        return self.tag(HOST)

    @property
    def pool(self) -> str:
        """Pool, as the cloud spells it."""
        return self.tag(POOL)

    @property
    def token(self) -> str:
        """The burst that it came with; fixed nodes have none."""
        return self.tag(TOKEN)

    @property
    def offer(self) -> str:
        """Key of the offer that it was bought by."""
        return self.tag(OFFER)


def usd_on_demand(catalog: Catalog, machine: str, region: str) -> float | None:
    """Return the most that a machine type costs, in USD an hour; None: it isn't known."""
    known = catalog.machines.get(machine)
    price = None if known is None else known.price(region=region)
    return None if price is None else price.usd_per_hour


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that exists, from its cloud."""

    id: str
    """The cloud's own name for it, which no other machine ever gets."""
    host: str
    """Its name in the cluster; "" while it has none."""
    pool: str
    """As the spec calls it."""
    user: str
    """Login user."""
    address: str
    """Private address."""
    public_address: str = ""
    type: str = ""
    """Machine type; "": its pool's."""
    placement: Placement = Placement()
    image: str | None = None
    tunnel: tuple[str, ...] = ()
    """Program that leads to its SSH, with %p for the port; (): it is reached by an address."""


def to_hosts(
    plan: CloudPlan[Any],
    machines: Iterable[Machine],
    keys: Keys,
    *,
    key_file: str | None,
    via: str | None,
) -> tuple[Host, ...]:
    """Return machines as hosts, in the order of the spec's pools, then by name.

    Args:
        plan: the site.
        machines: all of the site, for the way in is among them; those without a name or of no pool
            of the spec are left out.
        keys: host keys.
        key_file: the private key that logs in.
        via: pool whose first host leads to the others; None: login pools, then controllers.
    """
    named = sorted((machine for machine in machines if machine.host), key=lambda m: m.host)
    entry = _entry(plan, named, via)
    members: defaultdict[str, list[Machine]] = defaultdict(list)
    for machine in named:
        members[machine.pool].append(machine)
    return tuple(
        Host(
            name=machine.host,
            site=plan.site,
            pool=pool.name,
            role=pool.role,
            machine=machine.type or pool.machine,
            address=machine.address,
            public_address=machine.public_address,
            ssh=_target(machine, _through(machine, entry), keys, key_file),
            placement=machine.placement,
            image=machine.image,
        )
        for pool in plan.pools
        for machine in members[pool.name]
    )


def _entry(plan: CloudPlan[Any], named: Iterable[Machine], via: str | None) -> Machine | None:
    """Return the machine through which the others are reached: best one with a public address."""
    roles = {pool.name: pool.role for pool in plan.pools}
    found = (m for m in named if (m.pool == via if via else roles.get(m.pool) in _WAYS_IN))
    return min(
        found,
        key=lambda m: (not m.public_address, _WAYS_IN.get(roles.get(m.pool, ""), 2), m.host),
        default=None,
    )


def _through(machine: Machine, entry: Machine | None) -> Machine | None:
    """Return how a machine is reached: nodes use each other's private addresses.

    A machine with a public address is reached through its own address, and a tunnel leads to one
    machine, which is then its own bastion, too.
    """
    if entry is not None and entry.tunnel:
        return entry
    if machine.public_address:
        return machine
    return None if entry == machine else entry


def _target(
    machine: Machine, through: Machine | None, keys: Keys, key_file: str | None
) -> SshTarget:
    own = SshTarget(user=machine.user, key_file=key_file, host_keys=keys.get(machine.id, ()))
    if through is None:
        return own
    return msgspec.structs.replace(
        own,
        bastion=f"{through.user}@{through.public_address or through.address}",
        bastion_host_keys=keys.get(through.id, ()),
        bastion_proxy=through.tunnel,
    )
