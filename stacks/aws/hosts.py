"""Reads the nodes back: addresses, the host keys on their consoles, and where they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ...inventory.hosts import Host, Placement, SshTarget
from ..io.ssh import reached_through
from ..pulumi.names import HOST, OFFER, POOL, TOKEN
from .api import Answer, Api, AwsError, filters, tagged

if TYPE_CHECKING:
    from .plan.types import SitePlan

ALIVE = ["pending", "running", "stopping", "stopped"]
"""States of an instance that still exists."""
_TOPOLOGY_BATCH = 100
"""Instances one DescribeInstanceTopology call takes (EC2 API, MaxResults)."""


class Tag(Answer, frozen=True):
    """A tag."""

    key: str
    value: str = ""


class State(Answer, frozen=True):
    """How an instance is."""

    name: str


class Instance(Answer, frozen=True):
    """A machine, as DescribeInstances tells it."""

    instance_id: str
    state: State
    instance_type: str = ""
    private_ip_address: str = ""
    public_ip_address: str = ""
    image_id: str = ""
    tags: tuple[Tag, ...] = ()

    def tag(self, key: str) -> str:
        """Return a tag's value, "" where it has none."""
        return next((tag.value for tag in self.tags if tag.key == key), "")

    @property
    def id(self) -> str:
        """AWS' own name for it."""
        return self.instance_id

    @property
    def host(self) -> str:
        """Its name in the cluster; "" while it has none."""
        return self.tag(HOST)

    @property
    def token(self) -> str:
        """The burst it belongs to; "" for fixed nodes."""
        return self.tag(TOKEN)

    @property
    def offer(self) -> str:
        """Key of the offer it was bought by."""
        return self.tag(OFFER)

    @property
    def pool(self) -> str:
        """Its pool."""
        return self.tag(POOL)


class _Reservation(Answer, frozen=True):
    instances: tuple[Instance, ...] = ()


class _Reservations(Answer, frozen=True):
    reservations: tuple[_Reservation, ...] = ()


class _Console(Answer, frozen=True):
    output: str = ""


class _Place(Answer, frozen=True):
    instance_id: str
    network_nodes: tuple[str, ...] = ()
    capacity_block_id: str | None = None


class _Places(Answer, frozen=True):
    instances: tuple[_Place, ...] = ()


def instances(api: Api, plan: SitePlan, **tags: str) -> tuple[Instance, ...]:
    """Return the machines of a site that exist, with these tags beside the site's, by name."""
    wanted = [*tagged({**plan.labels.found_by(), **tags}), *filters(instance_state_name=ALIVE)]
    pages = api.pages(_Reservations, "ec2", "describe_instances", Filters=wanted)
    found = (
        i for page in pages for reservation in page.reservations for i in reservation.instances
    )
    return tuple(sorted(found, key=lambda i: (i.host, i.instance_id)))


def console(api: Api, instance: str) -> str:
    """Return what a console shows; "" also where it can't be read yet."""
    try:
        answer = api.ask(_Console, "ec2", "get_console_output", InstanceId=instance, Latest=True)
    except AwsError as error:
        if error.code in {"InvalidInstanceID.NotFound", "UnsupportedOperation"}:
            return ""
        raise
    return answer.output


def places(api: Api, machines: Iterable[Instance]) -> dict[str, Placement]:
    """Return where machines stand: their closest switch, and the UltraServer they are part of.

    {} where AWS doesn't say it: for other machine types, and to logins without the right.
    """
    ids = [machine.instance_id for machine in machines]
    found: dict[str, Placement] = {}
    try:
        for start in range(0, len(ids), _TOPOLOGY_BATCH):
            batch = ids[start : start + _TOPOLOGY_BATCH]
            answer = api.ask(_Places, "ec2", "describe_instance_topology", InstanceIds=batch)
            found |= {
                place.instance_id: Placement(
                    block=place.capacity_block_id,
                    leaf=place.network_nodes[-1] if place.network_nodes else None,
                )
                for place in answer.instances
            }
    except AwsError as error:
        if error.code not in _NO_TOPOLOGY:
            raise
    return found


_NO_TOPOLOGY = {"UnsupportedOperation", "UnauthorizedOperation", "InvalidParameterValue",
                "InvalidAction", "NotImplemented"}  # fmt: skip


def to_hosts(
    plan: SitePlan,
    machines: Iterable[Instance],
    *,
    key_file: str | None,
    keys: Mapping[str, tuple[str, ...]],
    placements: Mapping[str, Placement],
    entry_pool: str | None,
    tunnel: Callable[[Instance], tuple[str, ...]] | None = None,
) -> tuple[Host, ...]:
    """Return machines as hosts, in the order of the spec's pools, then by name.

    Args:
        plan: the site.
        machines: as read back; those without a name or of no pool of the spec are left out.
        key_file: the cluster's private key.
        keys: instance -> host keys.
        placements: instance -> where it stands.
        entry_pool: pool whose first host leads to the others; None: login pools, then controllers.
        tunnel: returns the program that leads to the way in; None: it is reached by its address.
    """
    named = [machine for machine in machines if machine.host]
    entry = _entry_machine(plan, named, entry_pool)
    found: list[Host] = []
    for pool in plan.pools:
        for machine in sorted(named, key=lambda m: m.host):
            if machine.pool != pool.name:
                continue
            through = reached_through(
                machine,
                entry,
                is_public=bool(machine.public_ip_address),
                is_tunnel=tunnel is not None,
            )
            found.append(
                Host(
                    name=machine.host,
                    site=plan.labels.site,
                    pool=pool.name,
                    role=pool.role,
                    machine=machine.instance_type or pool.machine,
                    address=machine.private_ip_address,
                    public_address=machine.public_ip_address,
                    ssh=SshTarget(
                        user=pool.image.user,
                        key_file=key_file,
                        host_keys=keys.get(machine.instance_id, ()),
                        bastion=_bastion(plan, through),
                        bastion_host_keys=keys.get(through.instance_id, ()) if through else (),
                        bastion_proxy=tunnel(through) if tunnel and through else (),
                    ),
                    placement=placements.get(machine.instance_id, Placement()),
                    image=machine.image_id or None,
                )
            )
    return tuple(found)


def _entry_machine(
    plan: SitePlan, machines: list[Instance], entry_pool: str | None
) -> Instance | None:
    """Return the machine through which the others are reached."""
    roles = {pool.name: pool.role for pool in plan.pools}
    order = {"login": 0, "controller": 1}
    entries = [
        machine
        for machine in machines
        if (machine.pool == entry_pool if entry_pool else roles.get(machine.pool) in order)
    ]
    return min(
        entries,
        key=lambda m: (not m.public_ip_address, order.get(roles.get(m.pool, ""), 2), m.host),
        default=None,
    )


def _bastion(plan: SitePlan, through: Instance | None) -> str | None:
    """Return the jump through a machine, as ssh -J takes it."""
    if through is None:
        return None
    user = next((pool.image.user for pool in plan.pools if pool.name == through.pool), "")
    return f"{user}@{through.public_ip_address or through.private_ip_address}"
