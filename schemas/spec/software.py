"""Software of a pool or the whole cluster, firmware, boot settings and hardening."""

from typing import Annotated, ClassVar, Literal

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

    distribution: Annotated[
        Literal["auto", "debian-12", "debian-13", "ubuntu-22.04", "ubuntu-24.04", "el-9"],
        Meta(description="Operating system of the nodes; auto: what the hosts or the image have."),
    ] = "auto"
    kernel: Annotated[Version, Meta(description="Linux kernel, held at this version.")] = "auto"
    driver: Annotated[
        OwnVersion, Meta(description="NVIDIA driver: a branch or a version; or preinstalled.")
    ] = "auto"
    fabric_manager: Annotated[
        Version, Meta(description="NVIDIA Fabric Manager; must equal the driver on NVSwitch.")
    ] = "auto"
    cuda: Annotated[OwnVersion, Meta(description="CUDA toolkit; or preinstalled.")] = "auto"
    nccl: Annotated[OwnVersion, Meta(description="NCCL (NVIDIA); or preinstalled.")] = "auto"
    rocm: Annotated[
        OwnVersion, Meta(description="ROCm (AMD) with its driver; or preinstalled.")
    ] = "auto"
    rccl: Annotated[Version, Meta(description="RCCL (AMD).")] = "auto"
    efa: Annotated[OwnVersion, Meta(description="EFA installer (AWS); or preinstalled.")] = "auto"
    tcpxo: Annotated[
        OwnVersion, Meta(description="GPUDirect-TCPXO daemon (GCP); or preinstalled.")
    ] = "auto"
    gib: Annotated[OwnVersion, Meta(description="nccl-gib (GCP); or preinstalled.")] = "auto"
    ofed: Annotated[Version, Meta(description="DOCA-OFED (InfiniBand and RoCE).")] = "auto"
    mpi: Annotated[Version, Meta(description="Open MPI.")] = "auto"
    lustre: Annotated[Version, Meta(description="Lustre, of clients and of servers.")] = "auto"
    slurm: Annotated[
        SlurmVersion,
        Meta(
            description="Slurm, or how its version begins: the distribution's own package where it "
            "is that, else built from SchedMD's source. distribution: whatever that has."
        ),
    ] = "auto"
    kubernetes: Annotated[Version, Meta(description="Kubernetes.")] = "auto"
    containers: Annotated[
        Literal["auto", "pyxis", "none"],
        Meta(description="Job containers under Slurm: enroot with pyxis, or none."),
    ] = "auto"


class SourceRedirect(SpecModel, frozen=True):
    """Where an artefact source is taken from instead of its vendor, and the key to trust there."""

    UPDATES: ClassVar = updates(in_place="url key_fingerprint key_url key checksums")

    url: Annotated[
        Url | None,
        Meta(
            description="Root of a mirror or bundle that has the vendor's paths below it; "
            "default: the vendor's.",
            examples=["https://mirror.example.edu/nvidia-cuda", "file:///srv/bundle/nvidia-cuda"],
        ),
    ] = None
    key_fingerprint: Annotated[
        Fingerprint | None, Meta(description="Fingerprint of the signing key that nodes trust.")
    ] = None
    key_url: Annotated[
        Url | None, Meta(description="Where the signing key is; default: below the URL.")
    ] = None
    key: Annotated[
        Annotated[str, Meta(pattern=r"^-----BEGIN PGP PUBLIC KEY BLOCK-----")] | None,
        Meta(description="The signing key itself, as text; nothing is then fetched."),
    ] = None
    checksums: Annotated[
        dict[str, Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]],
        Meta(description="SHA-256 of files that carry no signature, by their path below the URL."),
    ] = field(default_factory=dict)


class ClusterSoftware(Software, frozen=True):
    """The cluster's software, and where it comes from."""

    UPDATES: ClassVar = updates(in_place="sources")

    sources: Annotated[
        dict[str, SourceRedirect],
        Meta(
            description="Artefact sources taken from elsewhere, by the catalog's name.",
            examples=[{"nvidia-cuda": {"url": "https://mirror.example.edu/nvidia-cuda"}}],
        ),
    ] = field(default_factory=dict)


Target = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)", examples=["NIC_0"])]
"""Id in the BMC's firmware inventory (Redfish UpdateService/FirmwareInventory)."""


class FirmwareWanted(SpecModel, frozen=True):
    """What one part must have, and where its image is."""

    UPDATES: ClassVar = updates(none="power_state", rolling="version image sha256")

    version: Annotated[str, Meta(min_length=1, description="As the BMC writes it.")]
    image: Annotated[
        str | None,
        Meta(description="Image: a file here, or a URL that the BMC reaches. Needed for updates."),
    ] = None
    sha256: Annotated[
        Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")] | None,
        Meta(description="Checksum of the image file; a file without it is refused."),
    ] = None
    power_state: Annotated[
        Literal["On", "Off", "any"], Meta(description="State the machine must be in for it.")
    ] = "On"


class Firmware(SpecModel, frozen=True):
    """Firmware through the BMC's Redfish service. Nothing is ever reset."""

    UPDATES: ClassVar = updates(none="bmc credentials certificates update", rolling="wanted")

    bmc: Annotated[
        str,
        Meta(
            pattern=r"^https://[^\s]+$(?!\n)",
            description="Redfish service of a node; {host} stands for the node's name.",
            examples=["https://{host}-bmc.example.edu"],
        ),
    ]
    credentials: Annotated[
        FilePath,
        Meta(description="File here with the BMC's user and password, on a line each."),
    ]
    certificates: Annotated[
        FilePath | None, Meta(description="File that vouches for the BMCs; default: the system's.")
    ] = None
    wanted: Annotated[
        dict[Target, FirmwareWanted], Meta(description="What parts must have; others are reported.")
    ] = field(default_factory=dict)
    update: Annotated[
        list[Target],
        Meta(description="Parts that `up` may update now, on drained nodes; default: none, ever."),
    ] = field(default_factory=list)


class Boot(SpecModel, frozen=True):
    """The kernel's parameters. They hold from the next start on, and nothing restarts unasked."""

    UPDATES: ClassVar = updates(none="reboot", rolling="parameters hugepages")

    parameters: Annotated[
        list[Annotated[str, Meta(pattern=r"^[^\s\"'\\$`]+$(?!\n)", examples=["pci=realloc=off"])]],
        Meta(description="Kernel parameters in addition to the distribution's and the GPUs' own."),
    ] = field(default_factory=list)
    hugepages: Annotated[
        ByteSize | None,
        Meta(description="Memory of a node kept in pages of 1 GiB; default: none."),
    ] = None
    reboot: Annotated[
        Literal["never", "when-drained"],
        Meta(
            description="Whether `up` may restart a node, without jobs, whose kernel or parameters "
            "are not the running ones. Otherwise it says so and stops there."
        ),
    ] = "never"


class GpuSettings(SpecModel, frozen=True):
    """How NVIDIA's GPUs of a pool are set, and how their driver is built."""

    UPDATES: ClassVar = updates(rolling="mig ecc modules peer_memory")

    mig: Annotated[
        Literal["unmanaged", "enabled", "disabled"], Meta(description="MIG mode of all GPUs.")
    ] = "unmanaged"
    ecc: Annotated[
        Literal["unmanaged", "enabled", "disabled"], Meta(description="ECC of the GPUs' memory.")
    ] = "unmanaged"
    modules: Annotated[
        Literal["dkms", "precompiled"],
        Meta(description="Open kernel modules: built on the node, or by the distribution."),
    ] = "dkms"
    peer_memory: Annotated[
        Literal["dma-buf", "nvidia-peermem"],
        Meta(description="How network adapters reach the GPUs' memory."),
    ] = "dma-buf"


class Hardening(SpecModel, frozen=True):
    """Hardening of every node. Rules stay only if gcluster can still log in with them."""

    UPDATES: ClassVar = updates(in_place="management nodes fabric storage audit")

    management: Annotated[
        list[Cidr],
        Meta(
            description="Networks that people and gcluster log in from. With them the nodes get a "
            "firewall that drops whatever no plane allows; without, none.",
            examples=[["192.0.2.0/24"]],
        ),
    ] = field(default_factory=list)
    nodes: Annotated[
        list[Cidr],
        Meta(description="Networks of the nodes: Slurm, MPI, NCCL; default: those of the sites."),
    ] = field(default_factory=list)
    fabric: Annotated[
        list[Cidr], Meta(description="Networks of the fabric; everything may come in from them.")
    ] = field(default_factory=list)
    storage: Annotated[
        list[Cidr], Meta(description="Networks of the storage servers: Lustre, NFS.")
    ] = field(default_factory=list)
    audit: Annotated[
        bool, Meta(description="Run auditd with rules for accounts, keys, modules and mounts.")
    ] = True
