"""A fabric class: what carries the GPUs' traffic between nodes, and how fast it must be."""

from typing import Annotated, Literal

from msgspec import Meta, field

from ...spec.model import SpecModel
from ...spec.units import ByteSize
from .machine import Citation, Date, NicKind, Source


class ExtraNetworks(SpecModel, frozen=True):
    """Networks the fabric needs in addition to the nodes' own."""

    count: Annotated[int, Meta(ge=1)]
    """Networks, one for each NIC of the fabric."""
    mtu: Annotated[int, Meta(ge=1280)] | None = None
    """Bytes."""
    metal: bool = False
    """The machines are bare metal: all RDMA interfaces share one subnet, which Google makes."""


class Calibration(SpecModel, frozen=True):
    """A measured AllReduce that the floor's factor comes from."""

    machine: str
    """Machine type it was measured on."""
    nodes: Annotated[int, Meta(ge=1)]
    """Nodes of the AllReduce."""
    busbw_gbytes_per_s: Annotated[float, Meta(gt=0)]
    """Out of place, at the largest size measured, in GB/s."""
    size: str
    """Message size: 8 GiB."""
    source: Source
    date: Date


class Floor(SpecModel, frozen=True, kw_only=True):
    """What share of the ceiling a healthy cluster reaches; see `schemas/derived/floor.py`."""

    factor: Annotated[float, Meta(gt=0, le=1)]
    """Dimensionless: floor = factor x ceiling."""
    basis: Literal["measured", "links"] = "measured"
    """links: no AllReduce of it is published, so the ceiling is what a ring over the links' line
    rate reaches, and nothing that some algorithms gain on two nodes; the verdict says so."""
    reason: Annotated[str, Meta(min_length=1)]
    """How the factor follows from the calibration."""
    calibrated_by: list[Calibration] = field(default_factory=list)
    """The measurements; none where it is not measured."""
    from_size: ByteSize
    """Smallest message the floor holds for: below it latency counts, and a healthy fabric fails."""


class Fabric(SpecModel, frozen=True):
    """A fabric class of the catalog."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]*$(?!\n)")]
    """As `fabric:` of a pool."""
    description: Annotated[str, Meta(min_length=1)]
    """What it is, in a line."""
    source: Source
    date: Date
    sources: dict[str, Citation] = field(default_factory=dict)
    """Fields whose number comes from elsewhere, by dotted path."""
    unverified: list[str] = field(default_factory=list)
    """Fields, by dotted path, that are not confirmed."""
    note: str | None = None
    """What is not known or not certain."""
    nic_kind: NicKind | None = None
    """Kind of NIC it runs on; None: none (nvlink)."""
    nic_gbps: Annotated[float, Meta(gt=0)] | None = None
    """Speed of one NIC in Gb/s where the class fixes it."""
    rdma: bool = False
    """The NICs read and write GPU memory themselves."""
    providers: list[str] = field(default_factory=list)
    """Providers that have it; empty: any."""
    mtu: Annotated[int, Meta(ge=1280)] | None = None
    """MTU the class requires of its network, in bytes."""
    extra_networks: ExtraNetworks | None = None
    reach: Literal["zone", "placement", "fabric"] | None = None
    """How far it goes: one zone (EFA), one placement (Azure InfiniBand), or all that is cabled."""
    plugin: Literal["efa", "gib", "gib-metal", "ofed", "tcpx", "tcpxo"] | None = None
    """What drives it, by the key of the software set (stack.lock.yaml): each has a role."""
    channels: list[Annotated[str, Meta(pattern=r"^(NET|P2P|COLLNET)/[^/]+$(?!\n)")]] = field(
        default_factory=list
    )
    """How NCCL's channel lines name what carries the traffic between nodes: NET/IB, NET/IBext_v*.
    Source: NCCL's src/transport/{net,p2p,coll_net}.cc and the plugins' logs. Empty: a log can't
    prove the class, and the smoke test fails."""
    environment: dict[str, str] = field(default_factory=dict)
    """What jobs on it are given where they don't say it themselves: settings of NCCL and of what
    drives it; the value of NAME+ goes before what NAME has."""
    floor: Floor | None = None
    """None: no floor is known; `floor: auto` then requires none and says so."""
