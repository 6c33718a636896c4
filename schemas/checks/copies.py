"""Copies of data at another site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.schemas.checks.registry import Finding, check
from gcluster.schemas.cycles import cycles
from gcluster.schemas.mend.fix import Remove

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gcluster.schemas.checks.context import CheckContext
    from gcluster.schemas.diagnostics import PathTuple


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
