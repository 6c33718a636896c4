"""RDMA over NVIDIA's adapters: roles ofed, infiniband and roce."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ....schemas.stack.resolved import INBOX
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step

SOURCE = "doca"
"""Artefact source of DOCA-OFED."""

RdmaKind: TypeAlias = Literal["infiniband", "roce"]
Drivers: TypeAlias = Literal["doca", "inbox", "image"]


def rdma_kind(node: NodeFacts) -> RdmaKind | None:
    """Return the link layer of a pool's adapters; None: nothing for these roles."""
    fabric = node.fabric
    if not node.is_machine or fabric is None or fabric.plugin != "ofed":
        return None
    return "infiniband" if fabric.nic_kind == "infiniband" else "roce"


def drivers_of(node: NodeFacts) -> Drivers:
    """Return whose drivers the nodes run, by the table of their software.

    Nodes without GPUs have no row of it: clouds' run what their image has, others what their
    distribution has.
    """
    if node.comes_with("ofed"):
        return "image"
    version = node.installs("ofed")
    if version is not None:
        return "inbox" if version == INBOX else "doca"
    drivers = node.pool.rdma.drivers
    if drivers != "auto":
        return drivers
    return "image" if node.spec.sites[node.pool.site].is_cloud else "inbox"


def rail_devices(node: NodeFacts) -> list[str]:
    """Return the RDMA devices of the rails in order; none where nodes must detect them.

    From the spec, else from the machine type's vendor. The distribution's drivers name devices
    after their place (rdma-core's 60-rdma-persistent-naming.rules), so that there only the node has
    them.
    """
    kind = rdma_kind(node)
    named = node.pool.rdma.devices
    if kind is None or named or node.machine is None or drivers_of(node) == "inbox":
        return named
    own = [nic for nic in node.machine.nics or () if nic.kind == kind and not nic.front_end]
    return [device for nic in own for device in nic.devices]


def rails(node: NodeFacts) -> dict[str, Json]:
    """Return what a node's rails must be: how many, how fast, which devices (0, "": not known)."""
    fabric = node.fabric
    own = () if node.machine is None else node.machine.nics or ()
    kind = None if fabric is None else fabric.nic_kind
    nics = [nic for nic in own if nic.kind == kind and not nic.front_end]
    speeds = [nic.gbps for nic in nics if nic.gbps is not None]
    class_speed = None if fabric is None else fabric.nic_gbps
    devices = rail_devices(node)
    return {
        "count": len(devices) or sum(nic.count for nic in nics),
        "gbps": node.pool.rdma.gbps or class_speed or max(speeds, default=0),
        "devices": devices,
    }


def ofed_sources(node: NodeFacts) -> tuple[str, ...]:
    """Return the source of DOCA-OFED where the nodes take their drivers from it."""
    return (SOURCE,) if drivers_of(node) == "doca" else ()


@role_compiler(
    "ofed",
    sources=("doca",),
    chosen=ofed_sources,
    components=("ofed",),
    plugins=("ofed",),
)
def ofed_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role ofed: on machines whose fabric is InfiniBand or RoCE.

    In the stage of the GPUs' driver and before it, whose peer memory builds on these modules.
    """
    if rdma_kind(node) is None:
        return []
    drivers: dict[str, Json] = {
        "ofed_drivers": drivers_of(node),
        "ofed_version": (node.installs("ofed") or "") if drivers_of(node) == "doca" else "",
    }
    kind: dict[str, Json] = {
        "ofed_fabric": rdma_kind(node),
        "ofed_nvidia": node.pool.rdma.managed,
    }
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("preflight", drivers | kind),
        ("install", drivers),
        ("configure", drivers | kind),
        ("join", drivers | kind),
        ("verify", drivers | kind),
    )
    return [
        Step(stage=Stage.DRIVERS, role="ofed", phase=phase, variables=variables)
        for phase, variables in phases
    ]


_DATAGRAM_MTU = 4092
"""Most that IPoIB carries in a packet: the fabric's 4096 less 4 bytes (RFC 4391)."""


@role_compiler("infiniband", after=("ofed",))
def infiniband_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role infiniband: on machines whose fabric class is InfiniBand.

    A cloud's subnet manager and partitions are its own: only what the nodes see is checked there.
    """
    if rdma_kind(node) != "infiniband":
        return []
    rdma = node.pool.rdma
    own_network = not node.spec.sites[node.pool.site].is_cloud
    ipoib = rdma.ipoib
    requested: dict[str, Json] = {
        "infiniband_subnet_manager": bool(rdma.subnet_manager) and own_network,
        "infiniband_subnet_manager_hosts": (
            rdma.subnet_manager if isinstance(rdma.subnet_manager, list) else []
        ),
        "infiniband_ipoib": {}
        if ipoib is None
        else {
            "network": ipoib.network,
            "mtu": ipoib.mtu or _DATAGRAM_MTU,
        },
        "infiniband_partition_keys": rdma.partition_keys,
        "infiniband_devices": rail_devices(node),
    }
    manager: dict[str, Json] = {"infiniband_drivers": drivers_of(node)}
    if rdma.sharp is not None and rdma.subnet_manager:
        manager["infiniband_sharp"] = True
    found = rails(node)
    expected: dict[str, Json] = {
        "infiniband_rails": found["count"],
        "infiniband_gbps": found["gbps"],
        "infiniband_leaves": rdma.leaves,
    }
    return [
        Step(
            stage=Stage.FABRIC,
            role="infiniband",
            phase="configure",
            variables=requested | manager,
        ),
        Step(
            stage=Stage.FABRIC,
            role="infiniband",
            phase="verify",
            variables=requested | manager | expected,
        ),
    ]


HPCX = "/opt/hpcx"
"""A link to the folder of HPC-X that nodes have."""


@role_compiler("hpcx", removed=True, after=("infiniband",))
def hpcx_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role hpcx: where the spec has SHARP."""
    sharp = node.pool.rdma.sharp
    if sharp is None or rdma_kind(node) != "infiniband":
        return []
    managers = node.pool.rdma.subnet_manager
    archive: dict[str, Json] = {"hpcx_url": sharp.hpcx, "hpcx_checksum": sharp.checksum}
    requested: dict[str, Json] = {
        "hpcx_url": sharp.hpcx,
        "hpcx_manager": bool(managers),
        "hpcx_manager_hosts": managers if isinstance(managers, list) else [],
    }
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("install", archive),
        ("configure", requested),
        ("verify", requested),
    )
    return [
        Step(stage=Stage.FABRIC, role="hpcx", phase=phase, variables=variables)
        for phase, variables in phases
    ]


def sharp_environment(node: NodeFacts) -> dict[str, str]:
    """Return what NCCL needs to reduce in the switches: HPC-X's plugin, and the setting."""
    if node.pool.rdma.sharp is None:
        return {}
    libraries = f"{HPCX}/nccl_rdma_sharp_plugin/lib:{HPCX}/sharp/lib"
    return {"NCCL_COLLNET_ENABLE": "1", "LD_LIBRARY_PATH+": libraries}


@role_compiler("roce", after=("infiniband", "hpcx"))
def roce_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role roce: on machines whose fabric class is RoCE.

    A cloud sets its adapters itself (OCI: its cluster network plugin), so that there only links and
    GIDs are checked.
    """
    if rdma_kind(node) != "roce":
        return []
    rdma = node.pool.rdma
    found = rails(node)
    own_network = not node.spec.sites[node.pool.site].is_cloud
    settings: dict[str, Json] = {
        "roce_managed": own_network and rdma.managed,
        "roce_networks": rdma.networks,
        "roce_devices": rail_devices(node),
        "roce_mtu": rdma.mtu,
        "roce_priority": rdma.priority,
        "roce_dscp": rdma.dscp,
        "roce_congestion_dscp": rdma.congestion_dscp,
        "roce_ring": rdma.ring,
        "roce_gbps": found["gbps"],
    }
    expected: dict[str, Json] = {"roce_rails": found["count"], "roce_leaves": rdma.leaves}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("configure", settings),
        ("join", settings),
        ("verify", settings | expected),
    )
    return [
        Step(stage=Stage.FABRIC, role="roce", phase=phase, variables=variables)
        for phase, variables in phases
        if (own_network and (rdma.managed or rdma.networks)) or phase != "join"
    ]
