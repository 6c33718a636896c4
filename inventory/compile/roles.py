"""The roles that make a machine ready for jobs, in the order they run: one line each.

`base`, `munge`, `slurm`, `kubernetes`, `mpi` and `allreduce` need more than a node's facts and are
called by `cluster.py` itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from .amd_gpu import amd_gpu_steps
from .container_toolkit import (
    container_toolkit_sources,
    container_toolkit_steps,
)
from .containerd import containerd_steps, kubernetes_sources
from .cuda import cuda_steps
from .dcgm import dcgm_steps
from .efa import efa_steps
from .enroot_pyxis import enroot_pyxis_steps
from .firmware import firmware_steps
from .gdrcopy import gdrcopy_steps
from .gib import gib_steps
from .gpfs_client import gpfs_client_steps, gpfs_sources
from .gpudirect_tcpx import (
    gpudirect_tcpx_sources,
    gpudirect_tcpx_steps,
)
from .hardening import hardening_steps
from .infiniband import infiniband_steps
from .kernel import kernel_steps
from .lustre_client import lustre_client_steps, lustre_sources
from .lustre_server import lustre_server_steps
from .nccl import nccl_steps
from .nfs import nfs_steps
from .node_health import node_health_steps
from .nvidia_driver import nvidia_driver_steps
from .object_mount import object_mount_steps, object_sources
from .ofed import ofed_sources, ofed_steps
from .package_sources import package_sources_steps
from .pam_slurm_adopt import pam_slurm_adopt_steps
from .roce import roce_steps
from .sssd import sssd_steps
from .staging import staging_steps
from .steps import Step

if TYPE_CHECKING:
    from .node import NodeFacts


class NodeRole(NamedTuple):
    """A role, and the artefact sources of the catalog that its packages come from."""

    steps: Callable[[NodeFacts], list[Step]]
    """Empty: these nodes don't need the role."""
    sources: tuple[str, ...] = ()
    """Names in `schemas/catalog/sources/`; `package_sources` gives their repositories to the nodes
    that run the role."""
    chosen: Callable[[NodeFacts], tuple[str, ...]] | None = None
    """Says which of the sources these nodes take; None: all."""
    components: tuple[str, ...] = ()
    """Versions of the spec's `software` that it acts on; `up` says of the others that they are left
    out."""
    storage: tuple[str, ...] = ()
    """Kinds of storage, as `type:` says them, that it mounts or serves."""
    plugins: tuple[str, ...] = ()
    """Fabrics that it sets up, by the catalog's key of what drives them."""


NODE_ROLES: tuple[NodeRole, ...] = (
    NodeRole(sssd_steps),
    NodeRole(kernel_steps, components=("kernel",)),
    NodeRole(
        nvidia_driver_steps, sources=("nvidia-cuda",), components=("driver", "fabric_manager")
    ),
    NodeRole(amd_gpu_steps, sources=("amdgpu", "rocm"), components=("rocm", "rccl")),
    NodeRole(cuda_steps, sources=("nvidia-cuda",), components=("cuda",)),
    NodeRole(gdrcopy_steps, sources=("nvidia-cuda",)),
    NodeRole(nccl_steps, components=("nccl",)),
    NodeRole(dcgm_steps, sources=("nvidia-cuda",)),
    NodeRole(
        ofed_steps, sources=("doca",), chosen=ofed_sources, components=("ofed",), plugins=("ofed",)
    ),
    NodeRole(
        container_toolkit_steps,
        sources=("nvidia-container-toolkit", "amd-container-toolkit"),
        chosen=container_toolkit_sources,
    ),
    NodeRole(infiniband_steps),
    NodeRole(roce_steps),
    NodeRole(efa_steps, components=("efa",), plugins=("efa",)),
    NodeRole(
        gpudirect_tcpx_steps,
        sources=("google-tcpxo",),
        chosen=gpudirect_tcpx_sources,
        components=("tcpxo",),
        plugins=("tcpx", "tcpxo"),
    ),
    NodeRole(gib_steps, sources=("google-gib",), components=("gib",), plugins=("gib",)),
    NodeRole(enroot_pyxis_steps, components=("containers",)),
    NodeRole(
        lustre_client_steps,
        sources=("fsx-lustre", "gcp-lustre", "amlfs", "lustre", "lustre-server"),
        chosen=lustre_sources,
        components=("lustre",),
        storage=("lustre",),
    ),
    NodeRole(lustre_server_steps),
    NodeRole(
        object_mount_steps,
        sources=("mountpoint-s3", "gcsfuse", "blobfuse2"),
        chosen=object_sources,
        storage=("object",),
    ),
    NodeRole(nfs_steps, storage=("nfs",)),
    NodeRole(gpfs_client_steps, sources=("storage-scale",), chosen=gpfs_sources, storage=("gpfs",)),
    NodeRole(
        containerd_steps,
        sources=("kubernetes", "docker-ce"),
        chosen=kubernetes_sources,
        components=("kubernetes",),
    ),
    NodeRole(staging_steps),
    NodeRole(node_health_steps),
    NodeRole(firmware_steps),
    NodeRole(pam_slurm_adopt_steps),
    NodeRole(hardening_steps),
)
"""Within a stage they run in this order."""


ACTED_ON = frozenset(key for role in NODE_ROLES for key in role.components) | {"slurm"}
"""Keys of the spec's `software` that some role acts on."""
STORAGE_ACTED_ON = frozenset(kind for role in NODE_ROLES for kind in role.storage)
"""Kinds of storage that some role mounts."""
PLUGINS_ACTED_ON = frozenset(key for role in NODE_ROLES for key in role.plugins)
"""Fabrics that some role sets up."""


def node_role_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of all roles that a pool's nodes need, after their package repositories."""
    steps: list[Step] = []
    sources: list[str] = []
    for role in NODE_ROLES:
        own = role.steps(node)
        if own:
            steps += own
            needed = role.sources if role.chosen is None else role.chosen(node)
            sources += [name for name in needed if name not in sources]
    return [*package_sources_steps(node, sources), *steps]
