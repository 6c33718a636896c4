"""Elastic pools: raises a scale set's capacity, and removes single machines; without the stack.

Capacity is a set-point without an idempotency token of its own. So the token, the target and the
names are written into the scale set's tags by the very call that raises the capacity: a retry with
the token finds them there and raises nothing twice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ..provider import ProviderError, provider_error
from .plan.types import PoolPlan
from .scale_sets import BROKEN, Intent, NameTable, ScaleSets, Seen, settle

_TRIES = 10
"""Retries of a change because of concurrent changes of the scale set."""
PATIENCE_S = 1800.0
"""Longest wait for Azure to end what another call began: our choice; machines with 8 GPUs take 10
minutes and more."""


def grow(
    sets: ScaleSets, pool: PoolPlan, names: Sequence[str], token: str, *, least: int | None = None
) -> dict[str, str]:
    """Add machines with these names; existing ones are kept.

    Args:
        sets: the site's scale sets.
        pool: an elastic pool.
        names: of all machines that are wanted.
        token: of the ledger's intent; a token is used once.
        least: least number of machines; default: all. With fewer, the new ones are removed.

    Returns:
        Name -> number of the machine, of those that exist now.

    Raises:
        ProviderError: no capacity, no quota, or more than the pool may have.
    """
    part = sets.of_pool(pool.name)
    refusal = _start_machines(sets, pool, part, names, token)
    before = set(sets.observe(part).name_table.ids)
    seen, name_table = _write_names(sets, part, pool.nodes)
    broken = {machine.number for machine in seen.machines if machine.state in BROKEN}
    came = {name: name_table.ids[name] for name in names if name in name_table.ids}
    sound = {name: number for name, number in came.items() if number not in broken}
    enough = len(sound) >= (len(names) if least is None else least)
    gone = {number for name, number in came.items() if number in broken}
    if not enough:
        gone |= {number for name, number in came.items() if name not in before}
    _end(sets, part, gone, pool.nodes, done=token)
    if not enough:
        raise refusal or provider_error(
            "GC960",
            f'pool "{pool.name}": only {len(sound)} of {len(names)} machines came',
            detail="What came has been taken away again.",
            hint="name another zone or market for the pool, or try again later",
        )
    return sound


def is_left(sets: ScaleSets, pool: str, names: Collection[str], token: str) -> bool:
    """Return whether anything of a burst exists: one of its machines, or its raised capacity."""
    name_table = sets.observe(sets.of_pool(pool)).name_table
    return name_table.intent(token) is not None or any(name in name_table.ids for name in names)


def _start_machines(
    sets: ScaleSets, pool: PoolPlan, part: str, names: Sequence[str], token: str
) -> ProviderError | None:
    """Raise the capacity once for a token; return Azure's message where it refused."""
    for _ in range(_TRIES):
        seen = sets.settled(part, patience_s=PATIENCE_S)
        name_table = settle(seen.name_table, seen.numbers, pool.nodes)
        missing = [name for name in names if name not in name_table.ids]
        if not missing or name_table.intent(token) is not None:
            return None
        pending = {n for i in name_table.intents for n in i.names if n not in name_table.ids}
        spare = len(seen.numbers) - len(name_table.ids)  # machines without a name
        new = len([name for name in missing if name not in pending])
        target = seen.capacity + max(0, new - spare)
        if target > pool.most:
            raise provider_error(
                "GC917",
                f'pool "{pool.name}" may have {pool.most} machines, not {target}',
                hint=f"raise count.max of the pool, or request {pool.most - seen.capacity}",
            )
        intent = Intent(token=token, target=target, names=tuple(missing))
        requested = msgspec.structs.replace(name_table, intents=(*name_table.intents, intent))
        try:
            if sets.write(seen, requested, capacity=target):
                return None
        except ProviderError as error:
            return error
    raise _busy(part)


def _write_names(sets: ScaleSets, part: str, planned: Sequence[str]) -> tuple[Seen, NameTable]:
    """Write the names of machines that have none yet; return what was seen and written."""
    for _ in range(_TRIES):
        seen = sets.settled(part, patience_s=PATIENCE_S)
        name_table = settle(seen.name_table, seen.numbers, planned)
        if sets.write(seen, name_table):
            return seen, name_table
    raise _busy(part)


def _end(
    sets: ScaleSets,
    part: str,
    numbers: Collection[str],
    planned: Sequence[str],
    *,
    done: str = "",
) -> None:
    """Delete machines whose names are written, then write the rest; intent `done` is closed.

    Capacity without a machine is lowered: Azure would fill it whenever it can.
    """
    sets.delete(part, numbers)
    for _ in range(_TRIES):
        seen = sets.settled(part, patience_s=PATIENCE_S)
        there = [number for number in seen.numbers if number not in numbers]
        name_table = settle(_without(seen.name_table, done), there, planned)
        capacity = seen.capacity if name_table.intents else len(there)
        if sets.write(seen, name_table, capacity=capacity):
            return
    raise _busy(part)


def _busy(part: str) -> ProviderError:
    return provider_error(
        "GC966",
        f"scale set {part}: others change it all the time",
        hint="run the same command again when the site is quieter",
    )


def _without(name_table: NameTable, token: str) -> NameTable:
    """Return the book without an intent; its machines were settled by it before."""
    return NameTable(
        ids=name_table.ids, intents=tuple(i for i in name_table.intents if i.token != token)
    )


def shrink(sets: ScaleSets, pool: PoolPlan, names: Collection[str]) -> dict[str, str]:
    """End machines by name; those that are gone already are no mistake.

    Returns:
        Name -> number of the machine that was ended.

    Raises:
        ProviderError: GC917, a machine belongs to the spec; or Azure refused.
    """
    kept = sorted(set(names).intersection(pool.nodes))
    if kept:
        raise provider_error("GC917", f"node {kept[0]} belongs to the spec, not elastic")
    part = sets.of_pool(pool.name)
    _, name_table = _write_names(sets, part, pool.nodes)
    gone = {name: name_table.ids[name] for name in names if name in name_table.ids}
    if gone:
        _end(sets, part, set(gone.values()), pool.nodes)
    return gone


def trim(sets: ScaleSets, pool: PoolPlan) -> None:
    """End what a fixed pool has beyond the spec, by name, before Azure would choose itself."""
    for part in pool.sets:
        if pool.elastic or part.name not in sets.parts:
            continue
        seen, name_table = _write_names(sets, part.name, pool.part_names(part.name))
        kept = {number for name, number in name_table.ids.items() if name in pool.nodes}
        beyond = set(seen.numbers) - kept
        if beyond:
            _end(sets, part.name, beyond, pool.part_names(part.name))


def fill(
    sets: ScaleSets, pool: PoolPlan, part: str, without: Collection[str] = frozenset()
) -> None:
    """Name what has no name yet; an elastic pool is raised to what is always there.

    Hosts of `without` are not made: no option of the pool's market had them.

    Raises:
        ProviderError: Azure refused.
    """
    planned = tuple(name for name in pool.part_names(part) if name not in without)
    for _ in range(_TRIES):
        seen, name_table = _write_names(sets, part, planned)
        missing = [name for name in planned if name not in name_table.ids]
        if not missing or not pool.elastic:
            return
        sets.write(sets.observe(part), name_table, capacity=seen.capacity + len(missing))
    raise _busy(part)
