"""Names of machines that sites make, against each other and against hosts that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ..hostlist import fold
from .context import CheckContext
from .hosts import name_path
from .registry import Finding, check

_NUMBERED = re.compile(r"(.*[^0-9])([0-9]{3,9})", re.ASCII | re.DOTALL)


class _Made(msgspec.Struct, frozen=True):
    """Names that sites give, by rule: `inventory.hosts.pool_host_names` gives them."""

    numbered: dict[str, tuple[str, int, int]]
    """Pool, first and last number by the word before the number."""
    plain: dict[str, str]
    """Pools whose first machine is called as the pool is, by that name."""

    def pool_of(self, name: str) -> str | None:
        """Return the pool that has a machine of this name."""
        if name in self.plain:
            return self.plain[name]
        match = _NUMBERED.fullmatch(name)
        pool, first, last = self.numbered.get(match[1], ("", 1, 0)) if match else ("", 1, 0)
        number = int(match[2]) if match else 0
        same = match is not None and match[2] == f"{number:03d}"
        return pool if same and first <= number <= last else None


@check("GC119", summary="Two machines of the cluster get the same name.")
def same_name(context: CheckContext) -> Iterator[Finding]:
    """A name belongs to one machine of the cluster.

    Sites that make machines name them after the pool: pool gpu has gpu001, gpu002 and so on, and
    the first controller or login of a pool is called as the pool is. Hosts of a bare-metal pool
    that have such a name, or a login pool called gpu001, would be two machines of one name.
    """
    made = _made(context)
    if not made.numbered and not made.plain:
        return
    for group in context.host_groups:
        theirs: dict[str, list[str]] = {}
        for host in group.names or ():
            pool = made.pool_of(host)
            if pool is not None:
                theirs.setdefault(pool, []).append(host)
        for pool, names in theirs.items():
            yield _finding(context, pool, names, name_path(group), f'pool "{group.pool}"')
    for name in made.plain:
        match = _NUMBERED.fullmatch(name)
        pool, first, last = made.numbered.get(match[1], ("", 1, 0)) if match else ("", 1, 0)
        if match and match[2] == f"{int(match[2]):03d}" and first <= int(match[2]) <= last:
            yield _finding(context, pool, [name], ("pools", name), f'pool "{name}"')


def _finding(
    context: CheckContext, pool: str, names: list[str], path: tuple[str | int, ...], who: str
) -> Finding:
    line = context.line_of(("pools", pool))
    return Finding(
        summary=f"{who}: {fold(names)} {'is' if len(names) == 1 else 'are'} also what "
        f'pool "{pool}" calls its machines, line {line}',
        path=path,
        at_key=len(path) == len(("pools", "NAME")),
        hint=f'call pool "{pool}" something else',
        relies_on=(
            path,
            ("pools", pool, "count"),
            ("pools", pool, "role"),
            ("pools", pool, "site"),
        ),
    )


def _made(context: CheckContext) -> _Made:
    """Return the names that sites give to the machines of all pools."""
    made = _Made(numbered={}, plain={})
    for name, pool in context.pools.items():
        size = context.size(name) if pool.hosts is None and context.makes_machines(pool) else None
        if not size:
            continue
        stem = f"{name}-" if name[-1].isdigit() else name
        first = 1
        if pool.role != "compute":
            made.plain[name] = name
            first = 2
        made.numbered[stem] = (name, first, size)
    return made
