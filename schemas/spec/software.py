"""The software of the nodes: versions, or auto for the tested set of the software lock."""

from typing import Annotated, Literal

from msgspec import Meta

from gcluster.schemas.spec.noun import Noun
from gcluster.schemas.spec.words import Version


class Software(Noun, frozen=True):
    """Versions by component. `auto` resolves to the lock's tested set that fits all the others."""

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
    slurm: Annotated[Version, Meta(description="Slurm.")] = "auto"
    kubernetes: Annotated[Version, Meta(description="Kubernetes.")] = "auto"
    containers: Annotated[
        Literal["auto", "pyxis", "none"],
        Meta(description="Job containers under Slurm: enroot with pyxis, or none."),
    ] = "auto"
