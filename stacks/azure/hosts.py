"""Reads the machines back: names, addresses, and host keys through run-command.

Run-command goes through Azure's own agent, authenticated by the login and by nothing on the
network: so the first SSH connection already has the host key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec
from azure.core.exceptions import HttpResponseError
from azure.mgmt.compute.models import RunCommandInput

from ...inventory.hosts import Placement
from ..pulumi.hosts import Machine
from ..pulumi.names import CLUSTER, HOST, POOL, SITE
from .api import Answer, Api, refusals
from .plan.identifiers import parse
from .plan.types import PoolPlan, SitePlan
from .scale_sets import ScaleSets, settle

_INTERFACES = "2018-10-01"
"""API version of the interfaces of scale sets, which Microsoft.Network answers."""
_NETWORK = "2024-05-01"
_COMPUTE = "2024-07-01"
_ANSWER_S = 120.0
"""Longest wait for one answer: a command may otherwise stay under way for 90 minutes."""
_CONFLICT = 409
_AGENT = ("VMAgent", "VMExtension")
"""Prefixes of Azure's codes for an agent that doesn't report or can't be used (learn.microsoft.com,
"Run scripts in your Linux VM by using action Run Commands")."""
_SCRIPT = ("cat /etc/ssh/ssh_host_*_key.pub",)
_MACHINE = "microsoft.compute/virtualmachines"


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that exists."""

    host: str
    pool: str
    id: str
    """Of the machine."""
    vm_id: str
    """Unique for ever: what is recorded of a machine is recorded by it."""
    address: str
    public_address: str = ""
    part: str = ""
    """Scale set, by its name in the plan; "" for a named machine."""


class _Public(Answer, frozen=True):
    id: str = ""


class _IpProperties(Answer, frozen=True):
    private_ip_address: str = msgspec.field(name="privateIPAddress", default="")
    public_ip_address: _Public | None = msgspec.field(name="publicIPAddress", default=None)


class _IpConfiguration(Answer, frozen=True):
    properties: _IpProperties = _IpProperties()


class _Of(Answer, frozen=True):
    id: str


class _InterfaceProperties(Answer, frozen=True):
    virtual_machine: _Of | None = None
    ip_configurations: tuple[_IpConfiguration, ...] = ()


class _Interface(Answer, frozen=True):
    properties: _InterfaceProperties


class _MachineProfile(Answer, frozen=True):
    network_interfaces: tuple[_Of, ...] = ()


class _MachineProperties(Answer, frozen=True):
    vm_id: str = ""
    network_profile: _MachineProfile = _MachineProfile()


class _NamedMachine(Answer, frozen=True):
    properties: _MachineProperties


class _AddressProperties(Answer, frozen=True):
    ip_address: str = ""


class _Address(Answer, frozen=True):
    properties: _AddressProperties = _AddressProperties()


def nodes(api: Api, sets: ScaleSets, plan: SitePlan) -> tuple[Node, ...]:
    """Return the machines that exist and have a name, in spec order; elastic ones last.

    Raises:
        ProviderError: Azure can't be queried.
    """
    found: dict[str, Node] = {}
    for pool in plan.pools:
        for part in pool.sets:
            if part.name in sets.parts:
                found |= {n.host: n for n in _of_set(api, sets, pool, part.name)}
    found |= {node.host: node for node in _named(api, plan)}
    order = [name for pool in plan.pools for name in pool.nodes]
    order += sorted(found.keys() - set(order))
    return tuple(found[name] for name in order if name in found)


def _of_set(api: Api, sets: ScaleSets, pool: PoolPlan, part: str) -> Iterator[Node]:
    seen = sets.observe(part)
    name_table = settle(seen.name_table, seen.numbers, pool.part_names(part))
    where = sets.where(part)
    answers = api.pages(_Interface, f"{where}/networkInterfaces", _INTERFACES)
    addresses = {
        answer.properties.virtual_machine.id.rpartition("/")[2]: _private(answer)
        for answer in answers
        if answer.properties.virtual_machine is not None
    }
    machines = {machine.number: machine for machine in seen.machines}
    for host, number in name_table.ids.items():
        yield Node(
            host=host,
            pool=pool.name,
            id=f"{where}/virtualMachines/{number}",
            vm_id=machines[number].vm_id,
            address=addresses.get(number, ""),
            part=part,
        )


def _named(api: Api, plan: SitePlan) -> Iterator[Node]:
    for found in api.tagged(CLUSTER, plan.cluster):
        if found.type.casefold() != _MACHINE or found.tags.get(SITE) != plan.site:
            continue
        machine = api.get(_NamedMachine, found.id, _COMPUTE).properties
        ids = [interface.id for interface in machine.network_profile.network_interfaces]
        interface = api.get(_Interface, ids[0], _NETWORK)
        yield Node(
            host=found.tags.get(HOST, found.name),
            pool=found.tags.get(POOL, ""),
            id=found.id,
            vm_id=machine.vm_id,
            address=_private(interface),
            public_address=_public(api, interface),
        )


def _private(interface: _Interface) -> str:
    first = next(iter(interface.properties.ip_configurations), None)
    return "" if first is None else first.properties.private_ip_address


def _public(api: Api, interface: _Interface) -> str:
    for part in interface.properties.ip_configurations:
        if part.properties.public_ip_address is not None:
            found = api.get(_Address, part.properties.public_ip_address.id, _NETWORK)
            return found.properties.ip_address
    return ""


def host_keys(api: Api, node: Node) -> tuple[str, ...]:
    """Return the public host keys of a machine, () where there are none.

    Then it has not booted yet, or its agent doesn't respond: Azure refuses a command that the agent
    can't run.

    Raises:
        ProviderError: Azure can't be queried.
    """
    where = parse(node.id)
    if where is None:
        return ()
    command = RunCommandInput(command_id="RunShellScript", script=list(_SCRIPT))
    with refusals(node.host), suppress(_AgentNotReadyError), _agent():
        poller = (
            api.compute.virtual_machine_scale_set_vms.begin_run_command(
                where.group, where.names[0], where.name, command
            )
            if len(where.names) > 1
            else api.compute.virtual_machines.begin_run_command(where.group, where.name, command)
        )
        poller.wait(_ANSWER_S)
        if poller.done():
            messages = [status.message or "" for status in poller.result().value or ()]
            return read_keys("\n".join(messages))
    return ()


class _AgentNotReadyError(Exception):
    """The agent in a machine takes no command yet, or is at work on one."""


@contextmanager
def _agent() -> Iterator[None]:
    try:
        yield
    except HttpResponseError as error:
        code = "" if error.error is None else error.error.code or ""
        if error.status_code == _CONFLICT or code.startswith(_AGENT):
            raise _AgentNotReadyError from error
        raise


def read_keys(message: str) -> tuple[str, ...]:
    """Return the public keys in what run-command answers; its own decoration is left out."""
    printed = message.partition("[stdout]")[2].partition("[stderr]")[0] or message
    keys = re.findall(
        r"^((?:ssh-ed25519|ssh-rsa|ecdsa-sha2-\S+) [A-Za-z0-9+/=]+)", printed, re.MULTILINE
    )
    return tuple(sorted(keys))


def seen(plan: SitePlan, node: Node) -> Machine:
    """Return a machine in the form that hosts are created from.

    A scale set is one InfiniBand fabric, so it is the host's block; Azure doesn't return the
    switch.
    """
    pool = plan.pools_by_name.get(node.pool)
    together = pool is not None and pool.single_placement
    return Machine(
        id=node.vm_id,
        host=node.host,
        pool=node.pool,
        user=plan.user,
        address=node.address,
        public_address=node.public_address,
        placement=Placement(block=node.part if together else None),
    )
