"""Host names of bare-metal pools: readable and each named once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..diagnostics import PathTuple
from ..hostlist import fold
from ..mend.fix import Remove
from .context import CheckContext, HostGroup
from .registry import Finding, check
from .repeats import repeated

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", re.ASCII)


def name_path(group: HostGroup) -> PathTuple:
    """Return where the names of a group are written."""
    return group.path if group.entry is None else (*group.path, "name")


@check("GC110", summary="A host name or host range can't be read.")
def unreadable_range(context: CheckContext) -> Iterator[Finding]:
    """Host ranges are written as in Slurm: gpu[001-064], rack[1-2]n[01-16,20].

    Host names are letters, digits, hyphens and dots.
    """
    for group in context.host_groups:
        error = group.error or _bad_name(group)
        if error:
            yield Finding(
                summary=f'pool "{group.pool}": {error}',
                path=name_path(group),
                hint='write a Slurm host range, such as "gpu[001-064]"',
            )
        if group.address_error:
            yield Finding(
                summary=f'pool "{group.pool}": {group.address_error}',
                path=(*group.path, "address"),
                hint='write an address or a range of them, such as "10.0.1.[1-64]"',
            )


def _bad_name(group: HostGroup) -> str:
    """Return what is wrong with the first name that is no host name, or ""."""
    for name in group.names or ():
        if not _HOST_NAME.fullmatch(name):
            return f'"{name[:60]}" is not a host name'
    return ""


@check("GC111", summary="A host is named twice.")
def host_named_twice(context: CheckContext) -> Iterator[Finding]:
    """A host belongs to one pool, once.

    A host that is in two pools would be configured twice, by two rules.
    """
    named = ((group, group.names or ()) for group in context.host_groups)
    for group, first, names in repeated(named):
        many = "are" if len(names) > 1 else "is"
        line = context.line_of(name_path(first))
        where = f'pool "{first.pool}"' if first.pool != group.pool else "this pool"
        yield Finding(
            summary=f"{fold(names)} {many} named twice: first in {where}, line {line}",
            path=name_path(group),
            hint="keep one of the two",
            fix=Remove(group.path) if _says_the_same(group, first) else None,
            relies_on=(name_path(group), name_path(first)),
        )


def _says_the_same(group: HostGroup, first: HostGroup) -> bool:
    """Say whether an item of a list only repeats an earlier item of it."""
    same = group.path != first.path and group.path[:-1] == first.path[:-1]
    return same and (group.written, group.entry) == (first.written, first.entry)


@check("GC113", summary="One host key is given for several hosts.")
def one_key_many_hosts(context: CheckContext) -> Iterator[Finding]:
    """`host_key` belongs to one host.

    Each host has a key of its own; one key on many hosts would let any of them pass for the
    others. Write an entry for each host, or name a known_hosts file in the site's ssh settings.
    """
    for group in context.host_groups:
        if group.entry and group.entry.host_key and group.names and len(group.names) > 1:
            yield Finding(
                summary=f"host_key is given for {len(group.names):,} hosts: {group.written}",
                path=(*group.path, "host_key"),
                hint="write one entry a host, or known_hosts: FILE in the site's ssh settings",
                relies_on=((*group.path, "host_key"), name_path(group)),
            )
