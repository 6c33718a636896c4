"""The networks that a fabric needs besides the nodes' own, and a machine's NICs in order (pure).

GPUDirect-TCPX and -TCPXO: one network for each GPU NIC. gIB: one network for each gVNIC after the
first, and one RDMA network, bound to a zone by its profile, with a subnet for each RDMA NIC. gIB on
bare metal: IDPF in place of gVNIC, and in the RDMA network one subnet, which Google creates, for
all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_network
from typing import Literal, TypeAlias

import msgspec

from ....schemas.catalog import Fabric, Machine

NicType: TypeAlias = Literal["GVNIC", "IDPF", "MRDMA"]
NODES = "nodes"
"""Key of the nodes' own network and of its subnet."""
_SLOTS = 4
"""Bits: a fabric range is cut into 16, one for each NIC of a machine."""


class SubnetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A subnet to make."""

    key: str
    cidr: str | None
    """None: made with its network, by the network's profile."""


class FabricNetworkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A network of a fabric, to make or existing."""

    key: str
    """gpudirect-tcpxo-1, gib-1, gib-rdma-us-central1-a."""
    mtu: int | None
    roce_zone: str | None = None
    """Zone of the RoCE profile; None: an ordinary network."""
    metal: bool = False
    """The profile is the one of bare metal."""
    subnets: tuple[SubnetPlan, ...]
    """Of an existing network: only how many there must be, by their keys."""
    existing: str | None = None


class InterfacePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One NIC of a machine."""

    subnet: str
    """Key of a subnet."""
    nic_type: NicType
    ipv6_only: bool = False
    """It has no other address: bare metal's RDMA interfaces."""


def interfaces(machine: Machine | None, fabric: Fabric | None, zone: str) -> list[InterfacePlan]:
    """Return a machine's NICs in Google's order: the nodes' own network first."""
    first = InterfacePlan(subnet=NODES, nic_type=_front_end(machine))
    if machine is None or fabric is None or fabric.extra_networks is None:
        return [first]
    return [first, *(nic for _, nic in _fabric_nics(machine, fabric, zone))]


def fabric_networks(
    machine: Machine,
    fabric: Fabric,
    zones: Sequence[str],
    *,
    base: str,
    existing: Sequence[str] = (),
) -> Iterator[FabricNetworkPlan]:
    """Yield the networks that a machine type's fabric needs in some zones.

    Args:
        machine: whose NICs are connected.
        fabric: its class.
        zones: possible zones of nodes; an RDMA network is created for each.
        base: the range that is cut into addresses for each NIC.
        existing: networks to use instead, in the order of the NICs.
    """
    if fabric.extra_networks is None:
        return
    mtu, slots = fabric.extra_networks.mtu, [str(n) for n in ip_network(base).subnets(_SLOTS)]
    for zone in zones:
        nics = enumerate(_fabric_nics(machine, fabric, zone), start=1)
        subnets: dict[str, dict[str, SubnetPlan]] = {}
        for number, (network, nic) in nics:
            cidr = None if nic.ipv6_only else slots[number]
            subnets.setdefault(network, {})[nic.subnet] = SubnetPlan(key=nic.subnet, cidr=cidr)
        for index, (key, of_network) in enumerate(subnets.items()):
            yield FabricNetworkPlan(
                key=key,
                mtu=mtu,
                roce_zone=zone if key == _rdma(fabric, zone) else None,
                metal=fabric.extra_networks.metal,
                subnets=tuple(of_network.values()),
                existing=existing[index] if index < len(existing) else None,
            )


def fabric_range(candidates: Iterable[str], purchased: Iterable[str]) -> str:
    """Return the first candidate that overlaps nothing; the last one when all do."""
    others = [ip_network(cidr, strict=False) for cidr in purchased]
    found = ""
    for candidate in candidates:
        found = candidate
        network = ip_network(candidate)
        if not any(o.version == network.version and network.overlaps(o) for o in others):
            break
    return found


def _fabric_nics(
    machine: Machine, fabric: Fabric, zone: str
) -> Iterator[tuple[str, InterfacePlan]]:
    """Yield (network key, NIC) of each NIC after the first."""
    nics = machine.nics or []
    front_ends = sum(nic.count for nic in nics if nic.front_end)
    for number in range(1, front_ends):
        key = f"{fabric.name}-{number}"
        yield key, InterfacePlan(subnet=key, nic_type=_front_end(machine))
    metal = fabric.extra_networks is not None and fabric.extra_networks.metal
    of_fabric = sum(nic.count for nic in nics if not nic.front_end)
    for number in range(1, of_fabric + 1):
        if fabric.rdma:
            key = _rdma(fabric, zone)
            subnet = key if metal else f"{key}-{number}"
            yield key, InterfacePlan(subnet=subnet, nic_type="MRDMA", ipv6_only=metal)
        else:
            key = f"{fabric.name}-{number}"
            yield key, InterfacePlan(subnet=key, nic_type="GVNIC")


def _front_end(machine: Machine | None) -> NicType:
    """Return what Google calls the interfaces of a machine's own network."""
    nics = () if machine is None else machine.nics or ()
    return "IDPF" if any(nic.kind == "idpf" for nic in nics) else "GVNIC"


def _rdma(fabric: Fabric, zone: str) -> str:
    return f"{fabric.name}-rdma-{zone}"
