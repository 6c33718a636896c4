"""The role gpfs_client: IBM Storage Scale on nodes that join the cluster owning a file system."""

from __future__ import annotations

from ....schemas.derived.storage import mount_point
from ....schemas.spec import GpfsStorage
from ..network.rdma import rdma_kind
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step

SOURCE = "storage-scale"
"""Artefact source of IBM's packages."""


def gpfs_sources(node: NodeFacts) -> tuple[str, ...]:
    """Return the source of IBM's packages; none where the nodes' image has them."""
    versions = (s.variables.get("gpfs_client_version") for s in gpfs_client_steps(node))
    return (SOURCE,) if any(versions) else ()


@role_compiler(
    "gpfs_client",
    sources=("storage-scale",),
    chosen=gpfs_sources,
    storage=("gpfs",),
    after=("nfs",),
)
def gpfs_client_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role gpfs_client; none where a pool mounts no GPFS.

    A node is in one GPFS cluster at most, so the first storage in the order of mounts decides;
    others of the same cluster are mounted as well.
    """
    found = [node.spec.storage[name] for name in node.storage.mounts]
    mounted = [storage for storage in found if isinstance(storage, GpfsStorage)]
    if not node.is_machine or not mounted:
        return []
    first = mounted[0]
    packages: dict[str, Json] = {
        "gpfs_client_version": "" if first.version == "auto" else first.version,
        "gpfs_client_edition": first.edition,
        "gpfs_client_accept_license": first.accept_license,
    }
    cluster: dict[str, Json] = {
        "gpfs_client_cluster": first.cluster,
        "gpfs_client_contacts": first.contact,
        "gpfs_client_accept_license": first.accept_license,
        "gpfs_client_settings": _settings(node, first),
        "gpfs_client_mounts": [
            {
                "filesystem": storage.filesystem,
                "path": mount_point(storage),
                "options": storage.options,
            }
            for storage in mounted
        ],
    }
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("preflight", packages | {"gpfs_client_contacts": first.contact}),
        ("install", packages),
        ("configure", {}),
        ("join", cluster),
        ("verify", cluster),
    )
    return [
        Step(stage=Stage.STORAGE, role="gpfs_client", phase=phase, variables=variables)
        for phase, variables in phases
    ]


def _settings(node: NodeFacts, storage: GpfsStorage) -> dict[str, Json]:
    """Return what `mmchconfig` sets for the node; RDMA where InfiniBand's rails are named."""
    settings: dict[str, Json] = {}
    if storage.pagepool is not None:
        settings["pagepool"] = str(int(storage.pagepool.value))
    devices = node.pool.rdma.devices
    if devices and rdma_kind(node) == "infiniband":
        settings["verbsRdma"] = "enable"
        settings["verbsPorts"] = " ".join(f"{device}/1" for device in devices)
    return settings
