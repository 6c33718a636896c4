"""What jobs that spill find at the other site: their data, and the folders they know."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..mounts import mount_point
from .context import CheckContext
from .registry import Finding, check
from .spill_targets import spill_path, spills

_WHERE: tuple[PathTuple, ...] = (("storage",), ("pools", "*", "site"))


@check("GC708", summary="Data that a spilled job needs is not where it goes.")
def data_not_at_target(context: CheckContext) -> Iterator[Finding]:
    """Storage named in `only.data` is mounted by the target, or a copy of it is.

    Keep a copy at the target's site: a storage there with `copy_of`, and `stage_within` where data
    may be fetched before the job.
    """
    for name, _partition, spill, target in spills(context):
        if not spill.only.data or not context.mounts.are_certain:
            continue
        there = {context.mounts.origin(word) for word in context.mounts.of(spill.to)}
        for index, word in enumerate(spill.only.data):
            if word not in context.storage or context.mounts.origin(word) in there:
                continue
            path = spill_path(name, "only", "data", index)
            yield Finding(
                summary=f'jobs that spill from "{name}" need "{word}", which pool "{spill.to}" at '
                f'site "{target.site}" does not have',
                path=path,
                hint=f'add a storage at site "{target.site}" with copy_of: {word}',
                relies_on=(path, spill_path(name, "to"), *_WHERE),
            )


@check("GC709", summary="Folders of a partition's nodes are missing where its jobs spill to.")
def folders_not_at_target(context: CheckContext) -> Iterator[Finding]:
    """A job finds the folders it knows on the nodes it moves to: above all its /home.

    Something is mounted at the same place there, this storage over a link or a copy. Where
    `only.data` says which data jobs need, only /home is looked at.
    """
    for name, partition, spill, _target in spills(context):
        there = {mount_point(context.storage[word]) for word in context.mounts.of(spill.to)}
        missing: dict[str, str] = {}
        for pool in partition.pools:
            for word in context.mounts.of(pool) if pool in context.pools else ():
                mount = mount_point(context.storage[word])
                if mount not in there and (not spill.only.data or _is_home(mount)):
                    missing.setdefault(mount, word)
        if missing and context.mounts.are_certain:
            folders = ", ".join(missing)
            yield Finding(
                summary=f'jobs that spill from "{name}" to pool "{spill.to}" find no {folders}',
                path=spill_path(name, "to"),
                severity=Severity.WARNING,
                hint=f"mount a storage at {folders} there too, or say which data jobs need with "
                "only: {data: [...]}",
                relies_on=(
                    spill_path(name, "to"),
                    spill_path(name, "only"),
                    ("scheduler", "partitions", name, "pools"),
                    *_WHERE,
                ),
            )


def _is_home(mount: str) -> bool:
    return mount == "/home" or mount.startswith("/home/")
