"""The software of the nodes: versions, or auto for the tested set of the software lock."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from .noun import Noun, updates
from .words import Fingerprint, Url, Version


class Software(Noun, frozen=True):
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
    driver: Annotated[Version, Meta(description="NVIDIA driver: a branch or a version.")] = "auto"
    fabric_manager: Annotated[
        Version, Meta(description="NVIDIA Fabric Manager; must equal the driver on NVSwitch.")
    ] = "auto"
    cuda: Annotated[Version, Meta(description="CUDA toolkit.")] = "auto"
    nccl: Annotated[Version, Meta(description="NCCL (NVIDIA).")] = "auto"
    rocm: Annotated[Version, Meta(description="ROCm (AMD).")] = "auto"
    rccl: Annotated[Version, Meta(description="RCCL (AMD).")] = "auto"
    efa: Annotated[Version, Meta(description="EFA installer (AWS).")] = "auto"
    tcpxo: Annotated[Version, Meta(description="GPUDirect-TCPXO daemon (GCP).")] = "auto"
    gib: Annotated[Version, Meta(description="nccl-gib (GCP).")] = "auto"
    ofed: Annotated[Version, Meta(description="DOCA-OFED (InfiniBand and RoCE).")] = "auto"
    mpi: Annotated[Version, Meta(description="Open MPI.")] = "auto"
    lustre: Annotated[Version, Meta(description="Lustre, of clients and of servers.")] = "auto"
    slurm: Annotated[Version, Meta(description="Slurm.")] = "auto"
    kubernetes: Annotated[Version, Meta(description="Kubernetes.")] = "auto"
    containers: Annotated[
        Literal["auto", "pyxis", "none"],
        Meta(description="Job containers under Slurm: enroot with pyxis, or none."),
    ] = "auto"


class SourceRedirect(Noun, frozen=True):
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
