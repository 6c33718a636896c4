"""Fabric classes: of the pool's provider, of its machine's cards, at their speed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..diagnostics import PathTuple, Severity
from ..spec import Pool
from ..suggest import listing
from .context import CheckContext
from .registry import Finding, check

if TYPE_CHECKING:
    from ..catalog import Fabric, Machine

_TCP = "ethernet"
"""The class that every machine has: TCP over the nodes' own network."""
_EITHER = ("infiniband", "roce")
"""Kinds that one card can be set to."""


def _asked(context: CheckContext) -> Iterator[tuple[str, Pool, Machine, Fabric]]:
    """Yield pools that ask for a class by name, where machine and class are known and real."""
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        fabric = context.fabric(pool) if pool.fabric not in (None, _TCP) else None
        if machine is None or fabric is None or machine.simulated:
            continue
        if context.catalog_name(pool) not in machine.sites:
            continue
        yield name, pool, machine, fabric


def _is_of_provider(context: CheckContext, pool: Pool, fabric: Fabric) -> bool:
    return not fabric.providers or context.provider(pool) in (*fabric.providers, "simulated")


def _gpu_nics(machine: Machine, kind: str) -> list[float | None]:
    """Return the speeds in Gb/s of the cards of a kind that carry the GPUs' traffic."""
    return [nic.gbps for nic in machine.nics or () if not nic.front_end and nic.kind == kind]


def _relies_on(name: str) -> tuple[PathTuple, ...]:
    return tuple(("pools", name, key) for key in ("fabric", "machine", "site"))


@check("GC206", summary="A fabric class that the pool's provider does not have.")
def not_of_provider(context: CheckContext) -> Iterator[Finding]:
    """EFA is AWS's; GPUDirect-TCPX, GPUDirect-TCPXO and gIB are Google's.

    Leave `fabric` out and the machine type's own class is taken.
    """
    for name, pool in context.pools.items():
        fabric = None if pool.fabric is None else context.fabric(pool)
        provider = context.provider(pool)
        if fabric is None or provider is None or _is_of_provider(context, pool, fabric):
            continue
        yield Finding(
            summary=f'pool "{name}": {fabric.name} is of {listing(fabric.providers)}, '
            f'site "{pool.site}" is {provider}',
            path=("pools", name, "fabric"),
            hint=_instead(context.machine(pool)),
            meant=_own(context.machine(pool), context.catalog_name(pool)),
            relies_on=(("pools", name, "fabric"), ("pools", name, "site")),
        )


def _own(machine: Machine | None, provider: str | None) -> str | None:
    """Return the one class a machine type of a provider has."""
    return machine.fabric if machine is not None and provider in machine.sites else None


def _instead(machine: Machine | None) -> str:
    if machine is None or machine.fabric is None:
        return "remove fabric, or name the class that its NICs are of"
    return f"{machine.name} has {machine.fabric}"


@check("GC202", summary="A fabric class that the machine type's NICs are not of.")
def not_of_machine(context: CheckContext) -> Iterator[Finding]:
    """`fabric` names what the machine's cards are: InfiniBand needs InfiniBand cards.

    Machine types of clouds come with one class. On bare metal the kind of the cards counts, where
    the catalog knows them; cards that do InfiniBand are taken to do RoCE too, and the other way
    round. `nvlink` carries traffic between nodes only where an NVLink domain spans nodes. Every
    machine has `ethernet`.
    """
    for name, pool, machine, fabric in _asked(context):
        if not _is_of_provider(context, pool, fabric) or _fits(context, pool, machine, fabric):
            continue
        yield Finding(
            summary=f'pool "{name}": {machine.name} has no {fabric.name}',
            path=("pools", name, "fabric"),
            hint=f"{_instead(machine)}; write that, or ethernet for plain TCP"
            if machine.fabric
            else f"its cards are {_kinds(machine)}",
            meant=machine.fabric,
            relies_on=_relies_on(name),
        )


def _kinds(machine: Machine) -> str:
    """Return the kinds of cards that carry the GPUs' traffic, in words."""
    kinds = {nic.kind for nic in machine.nics or () if not nic.front_end}
    return listing(kinds) if kinds else "its GPUs' own links inside the node"


def _fits(context: CheckContext, pool: Pool, machine: Machine, fabric: Fabric) -> bool:
    """Say whether a machine can have a class, as far as the catalog knows."""
    if fabric.name == machine.fabric:
        return True
    if fabric.nic_kind is None:
        gpus, domain = machine.gpu, machine.nvlink
        return gpus is None or (domain is not None and domain.domain_gpus > gpus.count)
    if context.cloud(pool) is not None and machine.fabric is not None:
        return False
    kinds = (fabric.nic_kind, *(_EITHER if fabric.nic_kind in _EITHER else ()))
    return machine.nics is None or any(_gpu_nics(machine, kind) for kind in kinds)


def impossible_pools(context: CheckContext) -> frozenset[str]:
    """Return the pools whose class can't be theirs: what they have instead is not known."""
    return frozenset(
        name
        for name, pool, machine, fabric in _asked(context)
        if not _is_of_provider(context, pool, fabric) or not _fits(context, pool, machine, fabric)
    )


@check("GC203", summary="A fabric class of another speed than the machine type's NICs.")
def other_speed(context: CheckContext) -> Iterator[Finding]:
    """A class names the speed of its links: infiniband-ndr is 400 Gb/s.

    Cards that are slower can't be of that class. Faster cards on slower switches work, at the speed
    of the switches: that is a warning, because the floor of the smoke test is computed from it.
    """
    for name, pool, machine, fabric in _asked(context):
        if fabric.nic_gbps is None or fabric.nic_kind is None:
            continue
        if not _is_of_provider(context, pool, fabric) or not _fits(context, pool, machine, fabric):
            continue
        speeds = _gpu_nics(machine, fabric.nic_kind)
        known = [speed for speed in speeds if speed is not None]
        if not known or len(known) < len(speeds) or set(known) == {fabric.nic_gbps}:
            continue
        slower = min(known) < fabric.nic_gbps
        yield Finding(
            summary=f'pool "{name}": {fabric.name} has {fabric.nic_gbps:g} Gb/s links, the NICs of '
            f"{machine.name} {'only ' if slower else ''}have {min(known):g} Gb/s",
            path=("pools", name, "fabric"),
            severity=Severity.ERROR if slower else Severity.WARNING,
            hint=_instead(machine),
            meant=machine.fabric if slower else None,
            relies_on=_relies_on(name),
        )
