"""The software of a spec's pools as the checks look at it: resolved once, and only when asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec import structs

from ..diagnostics import PathTuple
from ..spec import ClusterSoftware
from .context import CheckContext
from .registry import Finding

if TYPE_CHECKING:
    from ..stack.lock import Lock
    from ..stack.pools import PoolStack

_NONE_GIVEN = ClusterSoftware()
_KNOWN: WeakKeyDictionary[CheckContext, Mapping[str, PoolStack]] = WeakKeyDictionary()
_NAMED = 3
"""Most pools that a message names."""


def the_lock() -> Lock:
    """Return the software lock; asked only where the spec says something that needs it."""
    from ..stack.load import load_lock  # noqa: PLC0415  # most specs never read it

    return load_lock()


def stacks(context: CheckContext) -> Mapping[str, PoolStack]:
    """Return the software of every pool; nothing where the spec says nothing about software."""
    pools = context.pools.values()
    if context.software == _NONE_GIVEN and all(pool.software is None for pool in pools):
        return {}
    if context not in _KNOWN:
        from ..stack.pools import pool_stacks  # noqa: PLC0415  # as the_lock

        _KNOWN[context] = pool_stacks(
            context.pools,
            context.software,
            sites=context.sites,
            scheduler=context.scheduler,
            catalog=context.catalog,
            lock=the_lock(),
        )
    return _KNOWN[context]


def relies_on(stack: PoolStack, *keys: str) -> tuple[PathTuple, ...]:
    """Return what a finding about these fields of a pool's software is drawn from."""
    name = stack.name
    pool: list[PathTuple] = [("pools", name, key) for key in ("machine", "fabric", "site")]
    written: list[PathTuple] = [("software", key) for key in keys]
    return (*pool, *written, *(("pools", name, *path) for path in written), ("scheduler", "type"))


def once(found: Iterable[tuple[PoolStack, Finding]]) -> Iterator[Finding]:
    """Yield what is found for several pools at one place once, with the pools' names before it."""
    first: dict[tuple[PathTuple, str], Finding] = {}
    pools: dict[tuple[PathTuple, str], list[str]] = {}
    for stack, finding in found:
        key = (finding.path, finding.summary)
        first.setdefault(key, finding)
        pools.setdefault(key, []).append(stack.name)
    for key, finding in first.items():
        yield structs.replace(finding, summary=f"{_named(pools[key])}: {finding.summary}")


def _named(pools: list[str]) -> str:
    names = ", ".join(f'"{name}"' for name in pools[:_NAMED])
    if len(pools) > _NAMED:
        return f"{len(pools):,} pools ({names} ...)"
    return f"pool {names}" if len(pools) == 1 else f"pools {names}"
