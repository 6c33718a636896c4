"""Copies of data at another site."""

from __future__ import annotations

from collections.abc import Iterator

from ..cycles import cycles
from ..diagnostics import PathTuple
from ..mend.fix import Remove
from ..spec import LustreStorage
from .context import CheckContext
from .registry import Finding, check


@check("GC436", summary="Storages are copies of each other in a circle.")
def copies_in_a_circle(context: CheckContext) -> Iterator[Finding]:
    """`copy_of` leads to the storage that holds the data first.

    In a circle none would: each waits for another's data.
    """
    edges = {
        name: [storage.copy_of] for name, storage in context.storage.items() if storage.copy_of
    }
    for circle in cycles(edges):
        paths: list[PathTuple] = [("storage", name, "copy_of") for name in circle]
        if len(circle) == 1:
            summary = f'storage "{circle[0]}" is a copy of itself'
        else:
            summary = f"storage is a copy in a circle: {' of '.join([*circle, circle[0]])}"
        yield Finding(
            summary=summary,
            path=paths[0],
            hint="leave copy_of out where the data is made",
            relies_on=tuple(paths),
        )


@check("GC437", summary="Data is to be staged, but from nowhere.")
def staged_from_nowhere(context: CheckContext) -> Iterator[Finding]:
    """`stage_within` says how long copying from `copy_of` may take, so it needs `copy_of`."""
    for name, storage in context.storage.items():
        if storage.stage_within is not None and storage.copy_of is None:
            path: PathTuple = ("storage", name, "stage_within")
            yield Finding(
                summary=f'storage "{name}" is to be staged, but is no copy of another',
                path=path,
                at_key=True,
                hint="add copy_of: the storage that has the data, or remove stage_within",
                relies_on=(path, ("storage", name, "copy_of")),
                fix=Remove(path) if len(context.storage) == 1 else None,
            )


@check("GC438", summary="Data is to be staged by nodes that don't see where it comes from.")
def staged_from_afar(context: CheckContext) -> Iterator[Finding]:
    """The nodes of a job copy what it needs: they mount the storage, and what it is a copy of.

    Where the origin is at another site, keep a copy in a bucket that both sites mount, and stage
    from that. A Lustre with `import` fetches from its bucket by itself.
    """
    for name, storage in context.storage.items():
        source = storage.copy_of
        if storage.stage_within is None or source not in context.storage:
            continue
        fetches = isinstance(storage, LustreStorage) and storage.import_from is not None
        if fetches or not context.mounts.are_certain:
            continue
        seen_by = frozenset(context.mounts.mounted_by(source))
        blind = [pool for pool in context.mounts.mounted_by(name) if pool not in seen_by]
        if not blind:
            continue
        path: PathTuple = ("storage", name, "copy_of")
        pools = ", ".join(f'"{pool}"' for pool in blind)
        yield Finding(
            summary=f'storage "{name}" is staged from "{source}", which pool {pools} does not mount'
            if len(blind) == 1
            else f'storage "{name}" is staged from "{source}", which pools {pools} do not mount',
            path=path,
            hint=f'let them mount "{source}" too, at a folder of its own, or name one in copy_of '
            "that they mount",
            relies_on=(path, ("storage",), ("pools", "*", "site")),
        )
