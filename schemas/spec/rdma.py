"""How the network adapters that carry the GPUs' traffic are set: InfiniBand and RoCE."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import Cidr, SpecModel, updates

RdmaDevice: TypeAlias = Annotated[
    str, Meta(pattern=r"^[a-z][a-z0-9_]{0,30}$(?!\n)", examples=["mlx5_0"])
]
PartitionKey: TypeAlias = Annotated[
    str, Meta(pattern=r"^0x[0-9a-f]{4}$(?!\n)", examples=["0x8001"])
]
Dscp: TypeAlias = Annotated[int, Meta(ge=0, le=63)]
Priority: TypeAlias = Annotated[int, Meta(ge=0, le=7)]


class Ipoib(SpecModel, frozen=True):
    """IP over InfiniBand, on the first rail."""

    UPDATES: ClassVar = updates(rolling="network mode mtu")

    network: Cidr
    """Its network; a node keeps the host part of its own address in it."""
    mode: Literal["datagram", "connected"] = "datagram"
    """datagram: packets of the fabric's MTU. connected: of 65520 bytes, which adapters since
    ConnectX-4 don't speak with the distribution's drivers."""
    mtu: Annotated[int, Meta(ge=1280, le=65520)] | None = None
    """MTU in bytes; default: 4092, in connected mode 65520."""


class PodRails(SpecModel, frozen=True):
    """RoCE's rails as pods see them (Kubernetes): whole interfaces, with addresses of their own."""

    UPDATES: ClassVar = updates(in_place="network interfaces")

    network: Annotated[Cidr, Meta(examples=["10.56.0.0/16"])]
    """Addresses of pods on the rails: cut into one network a rail."""
    interfaces: Annotated[
        list[Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,14}$(?!\n)")]],
        Meta(min_length=1, examples=[["ens1f0np0", "ens2f0np0"]]),
    ]
    """Interfaces of the nodes, one a rail, in the rails' order."""


class Rdma(SpecModel, frozen=True):
    """InfiniBand and RoCE adapters of a pool. Of a cloud's network only what the nodes decide."""

    UPDATES: ClassVar = updates(
        in_place="leaves subnet_manager partition_keys pods",
        rolling="drivers devices ipoib mtu dscp priority congestion_dscp ring",
    )

    drivers: Literal["auto", "doca", "inbox", "image"] = "auto"
    """DOCA-OFED, the distribution's own, or what the image has; auto: what the image brings, else
    on clouds the distribution's own, elsewhere DOCA-OFED where its version is known (software.ofed)
    and it is made for the distribution."""
    devices: Annotated[
        list[RdmaDevice], Meta(examples=[["mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5"]])
    ] = field(default_factory=list)
    """RDMA devices, one a rail, in the rails' order; default: all of the fabric's kind."""
    leaves: list[Annotated[str, Meta(min_length=1, examples=["MF0;su*-leaf1:*"])]] = field(
        default_factory=list
    )
    """For each rail the description of the leaf switch it must hang on (InfiniBand), with * and
    ?."""
    subnet_manager: bool = False
    """This pool's hosts run OpenSM; else the fabric has one already."""
    partition_keys: list[PartitionKey] = field(default_factory=list)
    """InfiniBand partitions that every port of the pool must be in."""
    ipoib: Ipoib | None = None
    """IP over InfiniBand; default: none."""
    mtu: Annotated[int, Meta(ge=1280, le=9978)] = 9000
    """MTU of RoCE's interfaces in bytes."""
    dscp: Dscp = 26
    """DSCP that marks RoCE's packets."""
    priority: Priority = 3
    """Priority of that DSCP, kept lossless (PFC) and with ECN."""
    congestion_dscp: Dscp = 48
    """DSCP of congestion notifications (CNP), on priority 6."""
    ring: Annotated[int, Meta(ge=128, le=8192)] = 8192
    """Entries of RoCE interfaces' rings."""
    pods: PodRails | None = None
    """RoCE's interfaces for pods (Kubernetes); default: pods that need them run on the nodes' own
    network."""
