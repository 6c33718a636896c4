"""The nodes' own NVMe disks as scratch space."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple
from ..spec import ScratchStorage
from .context import CheckContext
from .registry import Finding, check


def _scratch(context: CheckContext) -> Iterator[tuple[str, ScratchStorage]]:
    for name, storage in context.storage.items():
        if isinstance(storage, ScratchStorage):
            yield name, storage


@check("GC441", summary="Machines without local disks are to use theirs.")
def machines_without_disks(context: CheckContext) -> Iterator[Finding]:
    """local-nvme needs machines that have NVMe disks beside the one they boot from.

    Without any the folder would lie on the boot disk and fill it. Nothing is said of machine types
    whose disks the catalog doesn't know. Name the pools that have some with `pools`.
    """
    for name, storage in _scratch(context):
        without = [
            pool
            for pool in context.mounts.mounted_by(name)
            if (storage.pools or context.pools[pool].role == "compute")
            and (machine := context.machine(context.pools[pool])) is not None
            and machine.nvme_gb == 0
        ]
        if not without:
            continue
        path: PathTuple = ("storage", name)
        kinds = sorted({context.pools[pool].machine or "" for pool in without})
        yield Finding(
            summary=f'storage "{name}": {", ".join(kinds)} (pool {", ".join(without)}) '
            f"{'has' if len(kinds) == 1 else 'have'} no local disks",
            path=path,
            at_key=True,
            hint="name the pools that have some: pools: [...]",
            relies_on=(path, *((("pools", pool, "machine")) for pool in without)),
        )


@check("GC442", summary="Disks would be formatted without the word that allows it.")
def disks_to_format(context: CheckContext) -> Iterator[Finding]:
    """Nothing is wiped unless the spec says `format: true`.

    The disks become one striped file system, and what they hold now is lost.
    """
    for name, storage in _scratch(context):
        if not storage.format:
            path: PathTuple = ("storage", name)
            yield Finding(
                summary=f'storage "{name}" needs the nodes\' NVMe disks formatted, and the spec '
                "does not allow it",
                path=path,
                at_key=True,
                hint="add format: true when what is on the disks may be lost",
                relies_on=((*path, "format"),),
            )


@check("GC443", summary="Homes lie on disks that are empty after each start.")
def homes_on_local_disks(context: CheckContext) -> Iterator[Finding]:
    """Local disks are scratch: each node has its own, and they are empty after each start.

    So /home there is another one on each node, and gone with the node.
    """
    for name, storage in _scratch(context):
        if storage.mount.rstrip("/") == "/home":
            yield Finding(
                summary=f'storage "{name}" puts /home on local disks: another one on each node, '
                "empty after each start",
                path=("storage", name, "mount"),
                hint="serve /home over NFS or Lustre, and mount the disks at /scratch",
            )
