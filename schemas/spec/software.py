"""Software of a pool or the whole cluster, firmware, boot settings and hardening."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .model import (
    Cidr,
    FilePath,
    Fingerprint,
    OwnVersion,
    SlurmVersion,
    SpecModel,
    Url,
    Version,
    updates,
)
from .units import ByteSize


class Software(SpecModel, frozen=True):
    """Versions by component. `auto` resolves to the lock's tested set that fits all the others."""

    UPDATES: ClassVar = updates(
        in_place="containers",
        rolling="kernel driver fabric_manager cuda nccl rocm rccl efa tcpxo gib ofed mpi lustre "
        "slurm kubernetes",
        replace="distribution",
    )

    distribution: Literal[
        "auto", "debian-12", "debian-13", "ubuntu-22.04", "ubuntu-24.04", "el-9"
    ] = "auto"
    """Operating system of the nodes; auto: what the hosts or the image have."""
    kernel: Version = "auto"
    """Linux kernel, held at this version."""
    driver: OwnVersion = "auto"
    """NVIDIA driver: a branch or a version; or preinstalled."""
    fabric_manager: Version = "auto"
    """NVIDIA Fabric Manager; must equal the driver on NVSwitch."""
    cuda: OwnVersion = "auto"
    """CUDA toolkit; or preinstalled."""
    nccl: OwnVersion = "auto"
    """NCCL (NVIDIA); or preinstalled."""
    rocm: OwnVersion = "auto"
    """ROCm (AMD) with its driver; or preinstalled."""
    rccl: Version = "auto"
    """RCCL (AMD)."""
    efa: OwnVersion = "auto"
    """EFA installer (AWS); or preinstalled."""
    tcpxo: OwnVersion = "auto"
    """GPUDirect-TCPXO daemon (GCP); or preinstalled."""
    gib: OwnVersion = "auto"
    """nccl-gib (GCP); or preinstalled."""
    ofed: Version = "auto"
    """DOCA-OFED (InfiniBand and RoCE)."""
    mpi: Version = "auto"
    """Open MPI."""
    lustre: Version = "auto"
    """Lustre, of clients and of servers."""
    slurm: SlurmVersion = "auto"
    """Slurm, or how its version begins: the distribution's own package where it is that, else built
    from SchedMD's source. distribution: whatever that has."""
    kubernetes: Version = "auto"
    """Kubernetes."""
    containers: Literal["auto", "pyxis", "none"] = "auto"
    """Job containers under Slurm: enroot with pyxis, or none."""


class SourceRedirect(SpecModel, frozen=True):
    """Where an artefact source is taken from instead of its vendor, and the key to trust there."""

    UPDATES: ClassVar = updates(in_place="url key_fingerprint key_url key checksums")

    url: Annotated[
        Url | None,
        Meta(examples=["https://mirror.example.edu/nvidia-cuda", "file:///srv/bundle/nvidia-cuda"]),
    ] = None
    """Root of a mirror or bundle that has the vendor's paths below it; default: the vendor's."""
    key_fingerprint: Fingerprint | None = None
    """Fingerprint of the signing key that nodes trust."""
    key_url: Url | None = None
    """Where the signing key is; default: below the URL."""
    key: Annotated[str, Meta(pattern=r"^-----BEGIN PGP PUBLIC KEY BLOCK-----")] | None = None
    """The signing key itself, as text; nothing is then fetched."""
    checksums: dict[str, Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]] = field(
        default_factory=dict
    )
    """SHA-256 of files that carry no signature, by their path below the URL."""


class ClusterSoftware(Software, frozen=True):
    """The cluster's software, and where it comes from."""

    UPDATES: ClassVar = updates(in_place="sources")

    sources: Annotated[
        dict[str, SourceRedirect],
        Meta(examples=[{"nvidia-cuda": {"url": "https://mirror.example.edu/nvidia-cuda"}}]),
    ] = field(default_factory=dict)
    """Artefact sources taken from elsewhere, by the catalog's name."""


Target = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)", examples=["NIC_0"])]
"""Id in the BMC's firmware inventory (Redfish UpdateService/FirmwareInventory)."""


class FirmwareWanted(SpecModel, frozen=True):
    """What one part must have, and where its image is."""

    UPDATES: ClassVar = updates(none="power_state", rolling="version image sha256")

    version: Annotated[str, Meta(min_length=1)]
    """As the BMC writes it."""
    image: str | None = None
    """Image: a file here, or a URL that the BMC reaches. Needed for updates."""
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")] | None = None
    """Checksum of the image file; a file without it is refused."""
    power_state: Literal["On", "Off", "any"] = "On"
    """State the machine must be in for it."""


class Firmware(SpecModel, frozen=True):
    """Firmware through the BMC's Redfish service. Nothing is ever reset."""

    UPDATES: ClassVar = updates(none="bmc credentials certificates update", rolling="wanted")

    bmc: Annotated[
        str, Meta(pattern=r"^https://[^\s]+$(?!\n)", examples=["https://{host}-bmc.example.edu"])
    ]
    """Redfish service of a node; {host} is replaced by the node's name."""
    credentials: FilePath
    """File here with the BMC's user and password, on a line each."""
    certificates: FilePath | None = None
    """File that vouches for the BMCs; default: the system's."""
    wanted: dict[Target, FirmwareWanted] = field(default_factory=dict)
    """What parts must have; others are reported."""
    update: list[Target] = field(default_factory=list)
    """Parts that `up` may update now, on drained nodes; default: none, ever."""


class Boot(SpecModel, frozen=True):
    """The kernel's parameters, from the next start on; nothing in service restarts unasked."""

    UPDATES: ClassVar = updates(none="reboot", rolling="parameters hugepages smt")

    parameters: list[
        Annotated[str, Meta(pattern=r"^[^\s\"'\\$`]+$(?!\n)", examples=["pci=realloc=off"])]
    ] = field(default_factory=list)
    """Kernel parameters in addition to the distribution's and the GPUs' own."""
    hugepages: ByteSize | None = None
    """Memory of a node kept in pages of 1 GiB; default: none."""
    smt: bool = True
    """Every thread of a core works; false: one of each (nosmt), and jobs count cores."""
    reboot: Literal["auto", "never", "when-drained"] = "auto"
    """Whether `up` may restart a node whose kernel, parameters, driver or GPU modes need it. auto:
    one on which no scheduler and nothing on a GPU runs yet; when-drained: also one in service,
    without jobs. Otherwise it says so and stops there."""


class Tuning(SpecModel, frozen=True):
    """How a machine is tuned; auto: where it has GPUs and the hardware is one's own."""

    UPDATES: ClassVar = updates(
        in_place="processors pcie numa_balancing transparent_hugepages",
    )

    processors: Literal["auto", "performance", "unmanaged"] = "auto"
    """performance: governor performance, and no idle state that takes over 10 µs to leave."""
    pcie: Literal["auto", "direct", "unmanaged"] = "auto"
    """direct: access control services (ACS) of bridges off, so that GPUs and adapters reach each
    other; adapters read 4096 bytes at once, in relaxed order. Machines that hand devices to virtual
    machines want unmanaged."""
    numa_balancing: Literal["auto", "off", "unmanaged"] = "auto"
    """off: the kernel moves no pages between NUMA nodes by itself."""
    transparent_hugepages: Literal["always", "madvise", "never", "unmanaged"] = "unmanaged"
    """When memory comes in huge pages unasked."""


MigProfile: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[1-7]g\.[0-9]{1,3}gb$(?!\n)",
        description="Share of a GPU and its memory, as NVIDIA calls it: 1g.10gb.",
    ),
]
"""A MIG profile with its whole compute capacity and no media extensions (+me)."""


class GpuSettings(SpecModel, frozen=True):
    """How NVIDIA's GPUs of a pool are set, and how their driver is built."""

    UPDATES: ClassVar = updates(rolling="mig mig_slices ecc modules peer_memory")

    mig: Literal["unmanaged", "enabled", "disabled"] = "unmanaged"
    """MIG mode of all GPUs."""
    mig_slices: Annotated[
        dict[MigProfile, Annotated[int, Meta(ge=1, le=7)]],
        Meta(examples=[{"1g.10gb": 7}, {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}]),
    ] = field(default_factory=dict)
    """Slices that each GPU is cut into under Slurm, by profile (MIG mode is then enabled). Jobs
    request them as GPUs of a type: --gres=gpu:1g.10gb:1. Under Kubernetes: `scheduler.gpu.mig`."""
    ecc: Literal["unmanaged", "enabled", "disabled"] = "unmanaged"
    """ECC of the GPUs' memory."""
    modules: Literal["dkms", "precompiled"] = "dkms"
    """Open kernel modules: built on the node, or by the distribution."""
    peer_memory: Literal["dma-buf", "nvidia-peermem"] = "dma-buf"
    """How network adapters reach the GPUs' memory."""


class Hardening(SpecModel, frozen=True):
    """Hardening of every node. Rules stay only if gcluster can still log in with them."""

    UPDATES: ClassVar = updates(in_place="management nodes fabric storage audit")

    management: Annotated[list[Cidr], Meta(examples=[["192.0.2.0/24"]])] = field(
        default_factory=list
    )
    """Networks that people and gcluster log in from. With them the nodes get a firewall that drops
    whatever no plane allows; without, none."""
    nodes: list[Cidr] = field(default_factory=list)
    """Networks of the nodes: Slurm, MPI, NCCL; default: those of the sites."""
    fabric: list[Cidr] = field(default_factory=list)
    """Networks of the fabric; everything may come in from them."""
    storage: list[Cidr] = field(default_factory=list)
    """Networks of the storage servers: Lustre, NFS."""
    audit: bool = True
    """Run auditd with rules for accounts, keys, modules and mounts."""
