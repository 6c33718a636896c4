"""The roles that make a machine ready for jobs, in the order they run: one line each.

`base`, `munge`, `slurm`, `mpi` and `allreduce` need more than a node's facts and are called by
`cluster.py` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gcluster.inventory.compile.amd_gpu import amd_gpu_steps
from gcluster.inventory.compile.cuda import cuda_steps
from gcluster.inventory.compile.dcgm import dcgm_steps
from gcluster.inventory.compile.firmware import firmware_steps
from gcluster.inventory.compile.gdrcopy import gdrcopy_steps
from gcluster.inventory.compile.hardening import hardening_steps
from gcluster.inventory.compile.kernel import kernel_steps
from gcluster.inventory.compile.lustre_client import lustre_client_steps, lustre_sources
from gcluster.inventory.compile.lustre_server import lustre_server_steps
from gcluster.inventory.compile.nccl import nccl_steps
from gcluster.inventory.compile.node_health import node_health_steps
from gcluster.inventory.compile.nvidia_driver import nvidia_driver_steps
from gcluster.inventory.compile.object_mount import object_mount_steps, object_sources
from gcluster.inventory.compile.package_sources import package_sources_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from gcluster.inventory.compile.node import NodeFacts
    from gcluster.inventory.compile.steps import Step


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


NODE_ROLES: tuple[NodeRole, ...] = (
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
    NodeRole(node_health_steps),
    NodeRole(firmware_steps),
    NodeRole(hardening_steps),
)
"""Within a stage they run in this order."""


ACTED_ON = frozenset(key for role in NODE_ROLES for key in role.components)
"""Keys of the spec's `software` that some role acts on."""
STORAGE_ACTED_ON = frozenset(kind for role in NODE_ROLES for kind in role.storage)
"""Kinds of storage that some role mounts."""


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
