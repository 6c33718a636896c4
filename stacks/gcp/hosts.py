"""Reads the machines back: names, addresses, published host keys, and topology."""

from __future__ import annotations

import msgspec

from ...inventory.hosts import Placement
from ..pulumi.hosts import Machine, Marked
from . import cloud_init
from .api import Answer, Api, GoogleError
from .plan.layout import SitePlan
from .plan.names import found_by, label_filter

ALIVE = frozenset({"PENDING", "PROVISIONING", "STAGING", "RUNNING", "REPAIRING"})
"""Statuses of a machine that is there or on its way."""


class _AccessConfig(Answer, frozen=True):
    nat_i_p: str = ""


class _Interface(Answer, frozen=True):
    network_i_p: str = ""
    access_configs: tuple[_AccessConfig, ...] = ()


class _Topology(Answer, frozen=True):
    block: str = ""
    subblock: str = ""


class _ResourceStatus(Answer, frozen=True):
    physical_host: str = ""
    physical_host_topology: _Topology = _Topology()


class Instance(Answer, Marked, frozen=True):
    """A machine, from Compute Engine."""

    name: str
    id: str = ""
    status: str = ""
    zone: str = ""
    """Address of the zone."""
    machine_type: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    label_fingerprint: str = ""
    network_interfaces: tuple[_Interface, ...] = ()
    resource_status: _ResourceStatus = _ResourceStatus()

    @property
    def zone_name(self) -> str:
        """The zone."""
        return self.zone.rpartition("/")[2]

    @property
    def address(self) -> str:
        """Private address in the nodes' own network."""
        return next((nic.network_i_p for nic in self.network_interfaces), "")

    @property
    def public_address(self) -> str:
        """Public address, "" without one."""
        configs = (c.nat_i_p for nic in self.network_interfaces for c in nic.access_configs)
        return next((address for address in configs if address), "")

    def tag(self, key: str) -> str:
        """Return the value of a label."""
        return self.labels.get(key, "")


class _Zone(Answer, frozen=True):
    instances: tuple[Instance, ...] = ()


class _Instances(Answer, frozen=True):
    items: dict[str, _Zone] = msgspec.field(default_factory=dict)


class _Item(Answer, frozen=True):
    key: str
    value: str


class _QueryValue(Answer, frozen=True):
    items: tuple[_Item, ...] = ()


class _SerialPort(Answer, frozen=True):
    contents: str = ""


class _GuestAttributes(Answer, frozen=True):
    query_value: _QueryValue = _QueryValue()


def instances(api: Api, plan: SitePlan) -> tuple[Instance, ...]:
    """Return the site's machines of all zones, by name; raises GoogleError."""
    query = {"filter": label_filter(found_by(plan)), "returnPartialSuccess": "true"}
    pages = api.pages(_Instances, f"{api.in_project()}/aggregated/instances", query=query)
    found = (
        machine for page in pages for zone in page.items.values() for machine in zone.instances
    )
    return tuple(sorted(found, key=lambda machine: machine.name))


def host_of(plan: SitePlan, machine: Instance) -> str:
    """Return what a machine is called in the cluster, "" while it is called nothing yet.

    Machines of the stack carry it as a label. Elastic ones are made in bulk, where labels are the
    same for all: theirs follows from their own name.
    """
    return machine.host or plan.hosts_by_name.get(machine.name, "")


def seen(plan: SitePlan, machine: Instance, *, tunnel: bool = False) -> Machine:
    """Return a machine as hosts are made of it; `tunnel`: it is reached through IAP."""
    pool = plan.pools_by_label.get(machine.pool)
    one_domain = pool is not None and pool.placement.domain_nodes is not None
    return Machine(
        id=machine.id,
        host=host_of(plan, machine),
        pool=machine.pool if pool is None else pool.name,
        user=plan.user,
        address=machine.address,
        public_address=machine.public_address,
        type=machine.machine_type.rpartition("/")[2],
        placement=placement(machine, one_domain=one_domain),
        tunnel=_tunnel(plan, machine) if tunnel else (),
    )


def _tunnel(plan: SitePlan, machine: Instance) -> tuple[str, ...]:
    """Return the program that leads to a machine's SSH; ssh puts in the port."""
    return (
        *("gcloud", "compute", "start-iap-tunnel", machine.name, "%p", "--listen-on-stdin"),
        *(f"--project={plan.project}", f"--zone={machine.zone_name}"),
        "--verbosity=warning",
    )


def placement(machine: Instance, *, one_domain: bool) -> Placement:
    """Return a machine's topology: blocks hold sub-blocks; one of A4X is an NVLink domain."""
    status = machine.resource_status
    block, subblock = status.physical_host_topology.block, status.physical_host_topology.subblock
    if not block:
        parts = [part for part in status.physical_host.split("/") if part]
        block, subblock = (parts[0], parts[1]) if len(parts) > 2 else ("", "")  # noqa: PLR2004  # block, sub-block, host
    return Placement(block=(subblock if one_domain else block) or None, leaf=subblock or None)


def guest_keys(api: Api, machine: Instance) -> tuple[str, ...]:
    """Return the host keys that a machine has published; () before that.

    Every process on a machine can write its guest attributes, so they are read once, before others
    log in, and kept.
    """
    path = f"{api.in_zone(machine.zone_name)}/instances/{machine.name}/getGuestAttributes"
    query = {"queryPath": f"{cloud_init.HOST_KEYS}/"}
    found = api.find(_GuestAttributes, path, query=query)
    items = () if found is None else found.query_value.items  # not published yet, or deleted
    return tuple(sorted(f"{item.key} {item.value}" for item in items if item.value))


def serial_port(api: Api, machine: Instance) -> str:
    """Return what a machine's console shows; "" where it can't be read."""
    path = f"{api.in_zone(machine.zone_name)}/instances/{machine.name}/serialPort"
    try:
        return api.call(_SerialPort, path).contents
    except GoogleError:
        return ""
