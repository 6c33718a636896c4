"""How the network adapters that carry the GPUs' traffic are set: InfiniBand and RoCE."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import Cidr, Identifier, SpecModel, Url, updates

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
    """datagram: packets of the fabric's MTU. connected is refused: adapters since ConnectX-4 don't
    support it."""
    mtu: Annotated[int, Meta(ge=1280, le=65520)] | None = None
    """MTU in bytes; default: 4092."""


class Sharp(SpecModel, frozen=True):
    """NVIDIA's HPC-X, which has SHARP and NCCL's plugin for it."""

    UPDATES: ClassVar = updates(rolling="hpcx checksum")

    hpcx: Annotated[
        Url,
        Meta(
            examples=[
                "https://mirror.example.edu/hpcx-v2.25.1-gcc-doca_ofed-ubuntu24.04-cuda13-x86_64.tbz"
            ]
        ),
    ]
    """Its archive: of the nodes' distribution, CUDA and architecture."""
    checksum: Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]
    """SHA-256 of the archive, which carries no signature."""


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
        rolling="drivers devices rails gbps ipoib sharp managed networks mtu dscp priority "
        "congestion_dscp ring",
    )

    drivers: Literal["auto", "doca", "inbox", "image"] = "auto"
    """DOCA-OFED, the distribution's own, or what the image has; auto: what the image brings, else
    on clouds the distribution's own, elsewhere DOCA-OFED where its version is known (software.ofed)
    and it is made for the distribution."""
    devices: Annotated[
        list[RdmaDevice], Meta(examples=[["mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5"]])
    ] = field(default_factory=list)
    """RDMA devices, one a rail, in the rails' order; default: as the machine type's maker names
    them, else those that a node finds behind a PCIe switch with a GPU, or by kind and rate."""
    rails: Annotated[int, Meta(ge=1, le=64)] | None = None
    """Adapters of a node that carry the GPUs' traffic; default: as many as the machine type has,
    else as many as `devices`."""
    gbps: Annotated[float, Meta(gt=0, examples=[400])] | None = None
    """Speed of each rail in Gb/s; default: the machine type's, else the fabric class's."""
    leaves: list[Annotated[str, Meta(min_length=1, examples=["MF0;su*-leaf1:*"])]] = field(
        default_factory=list
    )
    """For each rail the leaf switch it must hang on, with * and ?: its description (InfiniBand), or
    the system name that it announces by LLDP (RoCE)."""
    subnet_manager: (
        bool | Annotated[list[Identifier], Meta(min_length=1, examples=[["head01", "head02"]])]
    ) = False
    """Hosts of this pool that run OpenSM: one master, one standby; true: all of a pool of one or
    two. Else the fabric has one already."""
    partition_keys: list[PartitionKey] = field(default_factory=list)
    """InfiniBand partitions that every port of the pool must be in."""
    ipoib: Ipoib | None = None
    """IP over InfiniBand; default: none."""
    sharp: Sharp | None = None
    """Let InfiniBand's switches add up AllReduces: NCCL's plugin on nodes with GPUs, the
    aggregation manager on hosts that run OpenSM; default: they don't."""
    managed: bool = True
    """RoCE's adapters are set here: PFC, ECN, DSCP, MTU, rings (NVIDIA's). false: by their maker's
    tools, and only links, rates and GIDs are verified."""
    networks: Annotated[list[Cidr], Meta(examples=[["10.1.0.0/16", "10.2.0.0/16"]])] = field(
        default_factory=list
    )
    """Networks of RoCE's rails, in the rails' order, on hosts of one's own: a node keeps the host
    part of its own address in each; default: the rails have addresses already."""
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
