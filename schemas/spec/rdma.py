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

    network: Annotated[
        Cidr,
        Meta(description="Its network; a node keeps the host part of its own address in it."),
    ]
    mode: Annotated[
        Literal["datagram", "connected"],
        Meta(
            description="datagram: packets of the fabric's MTU. connected: of 65520 bytes, which "
            "adapters since ConnectX-4 don't speak with the distribution's drivers."
        ),
    ] = "datagram"
    mtu: Annotated[
        Annotated[int, Meta(ge=1280, le=65520)] | None,
        Meta(description="MTU in bytes; default: 4092, in connected mode 65520."),
    ] = None


class PodRails(SpecModel, frozen=True):
    """RoCE's rails as pods see them (Kubernetes): whole interfaces, with addresses of their own."""

    UPDATES: ClassVar = updates(in_place="network interfaces")

    network: Annotated[
        Cidr,
        Meta(
            description="Addresses of pods on the rails: cut into one network a rail.",
            examples=["10.56.0.0/16"],
        ),
    ]
    interfaces: Annotated[
        list[Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,14}$(?!\n)")]],
        Meta(
            min_length=1,
            description="Interfaces of the nodes, one a rail, in the rails' order.",
            examples=[["ens1f0np0", "ens2f0np0"]],
        ),
    ]


class Rdma(SpecModel, frozen=True):
    """InfiniBand and RoCE adapters of a pool. Of a cloud's network only what the nodes decide."""

    UPDATES: ClassVar = updates(
        in_place="leaves subnet_manager partition_keys pods",
        rolling="drivers devices ipoib mtu dscp priority congestion_dscp ring",
    )

    drivers: Annotated[
        Literal["auto", "doca", "inbox", "image"],
        Meta(
            description="DOCA-OFED, the distribution's own, or what the image has; auto: what the "
            "image brings, else on clouds the distribution's own, elsewhere DOCA-OFED where its "
            "version is known (software.ofed) and it is made for the distribution."
        ),
    ] = "auto"
    devices: Annotated[
        list[RdmaDevice],
        Meta(
            description="RDMA devices, one a rail, in the rails' order; default: all of the "
            "fabric's kind.",
            examples=[["mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5"]],
        ),
    ] = field(default_factory=list)
    leaves: Annotated[
        list[Annotated[str, Meta(min_length=1, examples=["MF0;su*-leaf1:*"])]],
        Meta(
            description="For each rail the description of the leaf switch it must hang on "
            "(InfiniBand), with * and ?."
        ),
    ] = field(default_factory=list)
    subnet_manager: Annotated[
        bool,
        Meta(description="This pool's hosts run OpenSM; else the fabric has one already."),
    ] = False
    partition_keys: Annotated[
        list[PartitionKey],
        Meta(description="InfiniBand partitions that every port of the pool must be in."),
    ] = field(default_factory=list)
    ipoib: Annotated[Ipoib | None, Meta(description="IP over InfiniBand; default: none.")] = None
    mtu: Annotated[
        int, Meta(ge=1280, le=9978, description="MTU of RoCE's interfaces in bytes.")
    ] = 9000
    dscp: Annotated[Dscp, Meta(description="DSCP that marks RoCE's packets.")] = 26
    priority: Annotated[
        Priority, Meta(description="Priority of that DSCP, kept lossless (PFC) and with ECN.")
    ] = 3
    congestion_dscp: Annotated[
        Dscp, Meta(description="DSCP of congestion notifications (CNP), on priority 6.")
    ] = 48
    ring: Annotated[
        int, Meta(ge=128, le=8192, description="Entries of RoCE interfaces' rings.")
    ] = 8192
    pods: Annotated[
        PodRails | None,
        Meta(
            description="RoCE's interfaces for pods (Kubernetes); default: pods that need them run "
            "on the nodes' own network."
        ),
    ] = None
