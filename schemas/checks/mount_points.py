"""Where nodes see storage: one file system a place, and none over what the system needs."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import Severity
from ..mounts import MountTable, mount_point
from ..spec import ScratchStorage
from .context import CheckContext
from .registry import Finding, check

_WHOLE = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
)
"""Folders of the system (Filesystem Hierarchy Standard 3.0): nothing is mounted in them either."""
_ITSELF = frozenset(
    ["/", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/sbin", "/usr/share", "/var",  # noqa: S108  # mount points
     "/var/cache", "/var/lib", "/var/log", "/var/run", "/var/spool", "/var/tmp"]  # noqa: S108  # mount points
)  # fmt: skip
"""Folders of the system in which something may be mounted: /usr/local, /var/spool/slurm."""


@check("GC404", summary="Two storages are mounted at the same place on the same nodes.")
def same_mount_point(context: CheckContext) -> Iterator[Finding]:
    """A node sees one file system at one place.

    Of two the second would hide the first. The same place is fine on different nodes: a job finds
    its data at /lustre at every site. Say which pools mount which with `pools` or `site`.
    """
    table = MountTable(context.pools)
    for name, storage in context.storage.items():
        before = table.other(mount_point(storage), storage)
        table.add(name, storage)
        if before is None:
            continue
        path = ("storage", name, "mount")
        first = ("storage", before, "mount")
        yield Finding(
            summary=f'storage "{name}" is mounted at {storage.mount} like "{before}", '
            f"line {context.line_of(first)}",
            path=path,
            hint="choose another place, or give each its own pools",
            relies_on=(
                path,
                first,
                *(("storage", one, key) for one in (name, before) for key in ("pools", "site")),
                ("pools", "*", "site"),
            ),
        )


@check("GC405", summary="A mount point is a folder that the system needs.")
def system_folder(context: CheckContext) -> Iterator[Finding]:
    """Storage is mounted beside the system, not over it.

    A file system over /usr, /etc or /var hides what the node boots and runs from. /home, /opt,
    /srv, /data and folders of your own are free; so is /tmp for the nodes' own disks.
    """
    for name, storage in context.storage.items():
        mount = mount_point(storage)
        own_disks = mount == "/tmp" and isinstance(storage, ScratchStorage)  # noqa: S108  # a mount point
        if not own_disks and (
            mount in _ITSELF or any(f"{mount}/".startswith(f"{folder}/") for folder in _WHOLE)
        ):
            yield Finding(
                summary=f'storage "{name}" would hide {mount}, which the system needs',
                path=("storage", name, "mount"),
                hint=f"mount it elsewhere, such as /data/{name}",
            )


@check("GC406", summary="A storage is mounted over one that was mounted before it.")
def covered_mount_point(context: CheckContext) -> Iterator[Finding]:
    """Storage is mounted in the order of the file: the outer folder first.

    With /data/raw before /data, the second hides the first until the node starts again.
    """
    later = MountTable(context.pools)
    for name, storage in reversed(context.storage.items()):
        mount = mount_point(storage)
        outer = mount.rpartition("/")[0]
        while outer:
            over = later.other(outer, storage)
            if over is not None:
                yield _covered(context, name, over)
                break
            outer = outer.rpartition("/")[0]
        later.add(name, storage)


def _covered(context: CheckContext, name: str, over: str) -> Finding:
    path = ("storage", name, "mount")
    outer = ("storage", over, "mount")
    storage = context.storage
    return Finding(
        summary=f'storage "{name}" at {storage[name].mount} is hidden by "{over}" at '
        f"{storage[over].mount}, which is mounted after it",
        path=path,
        severity=Severity.WARNING,
        hint=f"move {name} below {over}, line {context.line_of(outer)}",
        relies_on=(
            path,
            outer,
            *(("storage", one, key) for one in (name, over) for key in ("pools", "site")),
            ("pools", "*", "site"),
        ),
    )
