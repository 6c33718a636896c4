"""Fabric classes of pools, and the floor that the AllReduce has to reach on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...catalog import Fabric, Machine
from ...derived.floor import floor_gbytes_per_s, nic_ceiling_gbytes_per_s
from ...derived.rails import EITHER
from ...diagnostics import PathTuple, Severity, listing
from ...spec import Pool
from ...spec.units import ByteSize
from ...structure.fix.edits import Replace
from ..context import CheckContext
from ..registry import Finding, check

_TCP = "ethernet"
"""The class that every machine has: TCP over the nodes' own network."""


def _requested(context: CheckContext) -> Iterator[tuple[str, Pool, Machine, Fabric]]:
    """Yield pools that name a class, where machine and class are known and real."""
    for name, pool in context.pools.items():
        machine = context.machine_in_pool(pool)
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
def fabric_not_offered_by_provider(context: CheckContext) -> Iterator[Finding]:
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
            suggestion=_own(context.machine(pool), context.catalog_name(pool)),
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
def fabric_not_on_machine(context: CheckContext) -> Iterator[Finding]:
    """`fabric` names what the machine's cards are: InfiniBand needs InfiniBand cards.

    Machine types of clouds come with one class. On bare metal the kind of the cards counts, where
    the catalog knows them; cards that do InfiniBand are taken to do RoCE too, and the other way
    round. `nvlink` carries traffic between nodes only where an NVLink domain spans nodes. Every
    machine has `ethernet`.
    """
    for name, pool, machine, fabric in _requested(context):
        if not _is_of_provider(context, pool, fabric) or _fits(context, pool, machine, fabric):
            continue
        yield Finding(
            summary=f'pool "{name}": {machine.name} has no {fabric.name}',
            path=("pools", name, "fabric"),
            hint=f"{_instead(machine)}; write that, or ethernet for plain TCP"
            if machine.fabric
            else f"its cards are {_kinds(machine)}",
            suggestion=machine.fabric,
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
    kinds = (fabric.nic_kind, *(EITHER if fabric.nic_kind in EITHER else ()))
    return machine.nics is None or any(_gpu_nics(machine, kind) for kind in kinds)


def impossible_pools(context: CheckContext) -> frozenset[str]:
    """Return the pools whose class can't be theirs: what they have instead is not known."""
    return frozenset(
        name
        for name, pool, machine, fabric in _requested(context)
        if not _is_of_provider(context, pool, fabric) or not _fits(context, pool, machine, fabric)
    )


@check("GC203", summary="A fabric class of another speed than the machine type's NICs.")
def fabric_speed_mismatch(context: CheckContext) -> Iterator[Finding]:
    """A class names the speed of its links: infiniband-ndr is 400 Gb/s.

    Cards that are slower can't be of that class. Faster cards on slower switches work, at the speed
    of the switches: that is a warning, because the floor of the smoke test is computed from it.
    """
    for name, pool, machine, fabric in _requested(context):
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
            suggestion=machine.fabric if slower else None,
            relies_on=_relies_on(name),
        )


_ALLREDUCE = ("smoke", "allreduce")
_FLOOR = (*_ALLREDUCE, "floor")
_SIZES = (*_ALLREDUCE, "sizes")

_SLACK = 1.05
"""Two nodes measured up to 1.02 of what the catalog has for one (calibrations of efa-v2 and
infiniband-ndr): a floor that little above the ceiling may pass."""


def _real_pools(context: CheckContext) -> Iterator[tuple[str, Machine, Fabric | None]]:
    """Yield compute pools with real GPUs, and their fabric class where it is known.

    GPUs that are cut into MIG slices are none: the AllReduce of their nodes has no floor.
    """
    for name, pool in context.pools.items():
        machine = context.machine_in_pool(pool)
        if not pool.is_compute or pool.is_sliced:
            continue
        if machine is not None and not machine.simulated and machine.gpu:
            yield name, machine, context.fabric(pool)


def _relies_on_floor(*paths: PathTuple) -> tuple[PathTuple, ...]:
    keys = ("machine", "fabric", "count", "hosts", "quorum", "role")
    rdma = (("pools", "*", "rdma", key) for key in ("rails", "gbps", "devices"))
    return *paths, *(("pools", "*", key) for key in keys), *rdma


@check("GC216", summary="The AllReduce stops below the sizes at which a floor can be judged.")
def allreduce_sizes_too_small(context: CheckContext) -> Iterator[Finding]:
    """Small messages measure latency, not bandwidth.

    On 2 p5.48xlarge the same fabric gives 343 GB/s at 256 MB, 437 at 1 GB and 479 at 8 GB. So the
    floor of a class holds from a size on, and `floor: auto` requires nothing when `sizes` ends
    below it. Without `sizes` real GPUs get messages that are large enough.
    """
    requested = context.smoke.allreduce
    if requested.sizes is None or not (requested.floor is None or requested.floor.is_auto):
        return
    low, _, high = requested.sizes.rpartition("..")
    largest = ByteSize.parse(high)
    if low and ByteSize.parse(low).value > largest.value:
        return  # GC201 says so
    missed: dict[str, float] = {}
    for name, machine, fabric in _real_pools(context):
        nodes = context.size(name)
        if fabric is None or fabric.floor is None or not nodes:
            continue
        from_size = fabric.floor.from_size.value
        known = floor_gbytes_per_s(machine, fabric, nodes).gbytes_per_s is not None
        if known and largest.value < from_size:
            missed[fabric.name] = from_size
    if missed:
        yield Finding(
            summary=f"the largest message is {largest}, the floor of {listing(missed)} holds from "
            f"{ByteSize(max(missed.values()))} on",
            path=_SIZES,
            severity=Severity.WARNING,
            hint=f"write sizes: {low}..8GiB, or leave sizes out",
            fix=Replace(_SIZES, f"{low}..8GiB"),
            relies_on=_relies_on_floor(_SIZES, _FLOOR),
        )


@check("GC217", summary="No floor is known for a pool that is to be held to its fabric class's.")
def floor_unknown(context: CheckContext) -> Iterator[Finding]:
    """`floor: auto`, the default for GPUs, takes the fabric class's floor for so many nodes.

    It follows from the NICs, from an AllReduce inside one node, and from one that was published for
    the class. Where one of them is missing nothing judges the speed, and a slow cluster passes. An
    HGX board's NICs are its server's: say how many there are (`rails` under the pool's `rdma`), or
    name them in a catalog file of your own. Or write the floor as a number, or none.
    """
    floor = context.smoke.allreduce.floor
    if floor is not None and not floor.is_auto:
        return
    without: dict[str, list[str]] = {}
    for name, machine, fabric in _real_pools(context):
        nodes = context.size(name)
        if not nodes or (floor is None and not _lacks_rails(context.pools[name], machine, fabric)):
            continue
        if fabric is None:
            why = f"the fabric class of {machine.name} is not known"
        else:
            figure = floor_gbytes_per_s(machine, fabric, nodes)
            why = "" if figure.gbytes_per_s is not None else figure.reason
        if why:
            without.setdefault(why.removeprefix("no floor: "), []).append(name)
    for why, pools in without.items():
        first = pools[0]
        at_pool = ("pools", first, "fabric" if context.pools[first].fabric else "machine")
        yield Finding(
            summary=f"no floor is known for {listing(pools)}: {why}",
            path=at_pool if floor is None else _FLOOR,
            severity=Severity.WARNING,
            hint="name the pool's fabric and its rails (rdma: {rails: 8, gbps: 400}), or write "
            "smoke: {allreduce: {floor: 300 GB/s}}, or floor: none",
            relies_on=_relies_on_floor(_FLOOR),
        )


def _lacks_rails(pool: Pool, machine: Machine, fabric: Fabric | None) -> bool:
    """Say whether a pool of hosts that are there already has rails of which too little is known."""
    if pool.hosts is None or fabric is None or fabric.nic_kind not in EITHER:
        return False
    speeds = _gpu_nics(machine, fabric.nic_kind)
    return not speeds or None in speeds


@check("GC218", summary="A floor that the hardware can't reach.")
def floor_above_hardware(context: CheckContext) -> Iterator[Finding]:
    """An AllReduce is never faster than NVLink inside a node, nor than the nodes' NICs allow.

    With NICs of B GB/s a node that is B on three nodes and more, and up to B x 2(n-1)/n for n GPUs
    on two: a figure from two nodes is out of reach for 64. On InfiniBand it is a warning, because
    switches that reduce on the way (SHARP) can go beyond.
    """
    floor = context.smoke.allreduce.floor
    if floor is None or floor.is_auto or floor.is_none:
        return
    missed = [
        (term.may_be_passed, term.gbytes_per_s, term.limit, name)
        for name, machine, fabric in _real_pools(context)
        for term in _ceilings(context, name, machine, fabric)
        if floor.value / 1e9 > term.gbytes_per_s * _SLACK
    ]
    if missed:
        may_be_passed, most, limit, name = min(missed)
        yield Finding(
            summary=f"a floor of {floor} can't be reached: {most:.4g} GB/s is the most of "
            f'pool "{name}" ({limit})',
            path=_FLOOR,
            severity=Severity.WARNING if may_be_passed else Severity.ERROR,
            hint="write floor: auto, or a number below that",
            relies_on=_relies_on_floor(_FLOOR),
        )


class _Ceiling(NamedTuple):
    """The most that a part of the hardware allows."""

    gbytes_per_s: float
    limit: str
    may_be_passed: bool = False


def _ceilings(
    context: CheckContext, name: str, machine: Machine, fabric: Fabric | None
) -> Iterator[_Ceiling]:
    """Yield what the hardware of a pool allows its AllReduce, on the fewest nodes it runs on."""
    pool = context.pools[name]
    size = context.size(name) if pool.hosts is not None else pool.least
    nodes = min(pool.quorum or size, size) if size else 0
    if machine.nvlink is not None and machine.nvlink.busbw_gbytes_per_s is not None and nodes:
        yield _Ceiling(machine.nvlink.busbw_gbytes_per_s, "NVLink inside a node")
    bandwidth = machine.fabric_gbytes_per_s
    if bandwidth is None or machine.gpu is None or nodes <= 1 or pool.fabric == "nvlink":
        return
    reduces = fabric is None or fabric.nic_kind == "infiniband"
    yield _Ceiling(
        nic_ceiling_gbytes_per_s(bandwidth, nodes, machine.gpu.count),
        f"NICs of {nodes} nodes",
        reduces,
    )


_PATH = ("smoke", "allreduce", "sizes")


@check("GC201", summary="The smallest AllReduce size is above the largest.")
def allreduce_sizes_reversed(context: CheckContext) -> Iterator[Finding]:
    """`sizes` goes from the smallest message to the largest: 8B..16MiB.

    The floor is compared at the largest size, so an empty range would test nothing. The smallest
    size holds at least one double (8 B).
    """
    if context.smoke.allreduce.sizes is None:
        return
    low, high = context.smoke.allreduce.sizes.split("..")
    smallest, largest = ByteSize.parse(low), ByteSize.parse(high)
    if smallest.value > largest.value:
        yield Finding(
            summary=f"the smallest size {low} is above the largest {high}",
            path=_PATH,
            hint=f"write {high}..{low}",
            suggestion=f"{high}..{low}",
        )
    elif smallest.value < 1:
        yield Finding(summary="an AllReduce of 0 B moves nothing", path=_PATH, hint="start at 8B")
