"""Reads the nodes back: addresses, host keys from their consoles, and topology."""

from __future__ import annotations

from collections.abc import Iterable

from ...inventory.hosts import Placement
from ..pulumi.hosts import Machine, Marked
from .api import Answer, Api, AwsError, filters, tagged
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


class Instance(Answer, Marked, frozen=True):
    """A machine, from DescribeInstances."""

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
    """Return the existing machines of a site that also have these tags, by name."""
    wanted = [*tagged({**plan.labels.found_by(), **tags}), *filters(instance_state_name=ALIVE)]
    pages = api.pages(_Reservations, "ec2", "describe_instances", Filters=wanted)
    found = (
        i for page in pages for reservation in page.reservations for i in reservation.instances
    )
    return tuple(sorted(found, key=lambda i: (i.host, i.instance_id)))


def console(api: Api, instance: str) -> str:
    """Return what a console shows; "" also where it can't be read yet."""
    try:
        answer = api.call(_Console, "ec2", "get_console_output", InstanceId=instance, Latest=True)
    except AwsError as error:
        if error.code in {"InvalidInstanceID.NotFound", "UnsupportedOperation"}:
            return ""
        raise
    return answer.output


def places(api: Api, machines: Iterable[Instance]) -> dict[str, Placement]:
    """Return machines' topology: the closest switch, and the UltraServer that they are part of.

    {} where AWS doesn't return it: for other machine types, and without the permission.
    """
    ids = [machine.instance_id for machine in machines]
    found: dict[str, Placement] = {}
    try:
        for start in range(0, len(ids), _TOPOLOGY_BATCH):
            batch = ids[start : start + _TOPOLOGY_BATCH]
            answer = api.call(_Places, "ec2", "describe_instance_topology", InstanceIds=batch)
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


def seen(
    plan: SitePlan, machine: Instance, place: Placement | None = None, *, tunnel: str | None = None
) -> Machine:
    """Return a machine in the form that hosts are created from.

    Args:
        plan: the site.
        machine: one of its machines.
        place: its topology; None: unknown.
        tunnel: as the site names it.
    """
    pool = plan.pools_by_name.get(machine.pool)
    return Machine(
        id=machine.id,
        host=machine.host,
        pool=machine.pool,
        user="" if pool is None else pool.image.user,
        address=machine.private_ip_address,
        public_address=machine.public_ip_address,
        type=machine.instance_type,
        placement=place or Placement(),
        image=machine.image_id or None,
        tunnel=_tunnel(tunnel, plan.region, machine.id) if tunnel else (),
    )


def _tunnel(kind: str, region: str, instance: str) -> tuple[str, ...]:
    """Return the program that leads to a machine's SSH; ssh puts in the port."""
    where = ("--region", region)
    if kind == "ssm":
        words = ("--document-name", "AWS-StartSSHSession", "--parameters", "portNumber=%p")
        return ("aws", "ssm", "start-session", *where, "--target", instance, *words)
    return (
        *("aws", "ec2-instance-connect", "open-tunnel", *where),
        *("--instance-id", instance, "--remote-port", "%p"),
    )
