"""Homes that all nodes share, whole file systems that are exported, and what local nodes lack."""

from __future__ import annotations

from collections.abc import Iterator

from ...derived.storage import mount_point
from ...diagnostics import PathTuple, Severity, listing
from ...spec import FileService, LocalSite, NfsStorage
from ..context import CheckContext
from ..registry import Finding, check


@check("GC458", summary="A host of the spec would export its whole file system.")
def root_exported(context: CheckContext) -> Iterator[Finding]:
    """`export: /` is for a server that exists and shares all it has, such as Amazon's EFS.

    A pool's host would share its system with its keys and passwords. Name the folder to share.
    """
    for name, storage in context.storage.items():
        if not isinstance(storage, NfsStorage) or storage.server not in context.pools:
            continue
        if storage.export is not None and storage.export.strip("/") == "":
            path: PathTuple = ("storage", name, "export")
            yield Finding(
                summary=f'storage "{name}": pool "{storage.server}" would share its whole file '
                "system",
                path=path,
                hint=f"remove export: the folder {storage.mount} is shared then",
                relies_on=(path, ("storage", name, "server")),
            )


@check("GC459", summary="People have another home on each node.")
def home_not_shared(context: CheckContext) -> Iterator[Finding]:
    """Slurm starts a job in the folder that it was submitted from, and that is mostly in /home.

    Where nothing is mounted at /home, each node has one of its own: jobs find neither their scripts
    nor their data, and what they write stays on the node. Any shared file system will do: the
    cloud's file service (efs, filestore), Lustre, a server of NFS that exists, or the controller.
    """
    if context.slurm is None or not (context.users or context.directory):
        return
    if all(site.is_made_here for site in context.sites.values()):
        return
    if any(mount_point(storage) == "/home" for storage in context.storage.values()):
        return
    heads = [name for name, pool in context.pools.items() if pool.role == "controller"]
    server = heads[0] if heads else "ADDRESS"
    yield Finding(
        summary="nothing is mounted at /home: people have another home on each node",
        path=("users",),
        at_key=True,
        severity=Severity.WARNING,
        hint=f"add to storage: home: {{type: nfs, mount: /home, server: {server}}}",
        relies_on=(("users",), ("storage", "*", "mount"), ("pools",), ("sites",)),
    )


@check("GC472", summary="Local nodes don't mount what other nodes would.")
def unmounted_by_local_nodes(context: CheckContext) -> Iterator[Finding]:
    """Nodes of a local site are containers: of the spec's storage they have NFS alone.

    A folder of this machine simulates it. No role mounts buckets, Lustre or GPFS there, and their
    disks are no NVMe of their own, so a job would find an empty folder of its node. Under
    Kubernetes drivers mount for the pods.
    """
    if context.kubernetes is not None:
        return
    for name, storage in context.storage.items():
        if isinstance(storage, NfsStorage | FileService):
            continue
        local = [
            pool
            for pool in context.mounts.mounted_by(name)
            if isinstance(context.sites.get(context.pools[pool].site), LocalSite)
        ]
        if local and context.mounts.is_certain(name):
            tag = storage.__struct_config__.tag
            server = next((n for n, p in context.pools.items() if not p.is_compute), local[0])
            others = [p for p in context.mounts.mounted_by(name) if p not in local]
            yield Finding(
                summary=f'storage "{name}": local nodes of {listing(local)} don\'t mount {tag}',
                path=("storage", name, "type"),
                hint=f"name the pools that mount it: pools: [{', '.join(others)}]"
                if others
                else f"write type: nfs with server: {server}, which a folder simulates there",
                relies_on=(
                    ("storage", name),
                    ("pools", "*", "site"),
                    ("sites", "*", "provider"),
                    ("scheduler", "type"),
                ),
            )
