"""The role ofed: drivers and tools of InfiniBand and RoCE adapters, DOCA-OFED or others."""

from __future__ import annotations

from typing import Literal, TypeAlias

from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

SOURCE = "doca"
"""Artefact source of DOCA-OFED."""

RdmaKind: TypeAlias = Literal["infiniband", "roce"]
Drivers: TypeAlias = Literal["doca", "inbox", "image"]


def rdma_kind(node: NodeFacts) -> RdmaKind | None:
    """Return what the adapters of a pool's machines speak; None: nothing of these roles."""
    fabric = node.fabric
    if not node.is_machine or fabric is None or fabric.plugin != "ofed":
        return None
    return "infiniband" if fabric.nic_kind == "infiniband" else "roce"


def drivers_of(node: NodeFacts) -> Drivers:
    """Return whose drivers the nodes run.

    Cloud images carry drivers that fit their adapters. DOCA-OFED comes from a repository for each
    distribution: where there is none, or no version is known, the distribution's own are taken.
    """
    said = node.pool.rdma.drivers
    if said != "auto":
        return said
    if node.spec.sites[node.pool.site].is_cloud:
        return "image"
    made_for = {r.distribution for r in node.catalog.sources[SOURCE].repositories}
    distribution = node.software.distribution
    fits = distribution is None or distribution in made_for
    return "doca" if fits and node.version("ofed") is not None else "inbox"


def rails(node: NodeFacts) -> dict[str, Json]:
    """Return what a node's rails must be: how many, how fast, which devices (0, "": not known)."""
    fabric = node.fabric
    own = () if node.machine is None else node.machine.nics or ()
    kind = None if fabric is None else fabric.nic_kind
    nics = [nic for nic in own if nic.kind == kind and not nic.front_end]
    speeds = [nic.gbps for nic in nics if nic.gbps is not None]
    class_speed = None if fabric is None else fabric.nic_gbps
    devices = node.pool.rdma.devices
    return {
        "count": len(devices) or sum(nic.count for nic in nics),
        "gbps": class_speed or max(speeds, default=0),
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
    after=("dcgm",),
)
def ofed_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role ofed: on machines whose fabric is InfiniBand or RoCE."""
    if rdma_kind(node) is None:
        return []
    drivers: dict[str, Json] = {
        "ofed_drivers": drivers_of(node),
        "ofed_version": (node.version("ofed") or "") if drivers_of(node) == "doca" else "",
    }
    kind: dict[str, Json] = {"ofed_fabric": rdma_kind(node)}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("preflight", drivers | kind),
        ("install", drivers),
        ("configure", drivers | kind),
        ("join", drivers | kind),
        ("verify", drivers | kind),
    )
    return [
        Step(stage=Stage.FABRIC, role="ofed", phase=phase, variables=variables)
        for phase, variables in phases
    ]
