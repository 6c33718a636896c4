"""The floor of the smoke test's AllReduce: known, judged at a size that counts, within reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..diagnostics import PathTuple, Severity
from ..floor import floor_gbytes_per_s, nic_ceiling_gbytes_per_s
from ..mend.fix import Replace
from ..spec import AllReduce
from ..spec.units import ByteSize
from ..suggest import listing
from .context import CheckContext
from .registry import Finding, check

if TYPE_CHECKING:
    from ..catalog import Fabric, Machine

_ALLREDUCE = ("smoke", "allreduce")
_FLOOR = (*_ALLREDUCE, "floor")
_SIZES = (*_ALLREDUCE, "sizes")

_SLACK = 1.05
"""Two nodes measured up to 1.02 of what the catalog has for one (calibrations of efa-v2 and
infiniband-ndr): a floor that little above the ceiling may pass."""


def _real_pools(context: CheckContext) -> Iterator[tuple[str, Machine, Fabric | None]]:
    """Yield compute pools with real GPUs, and their fabric class where it is known."""
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if pool.role == "compute" and machine is not None and not machine.simulated and machine.gpu:
            yield name, machine, context.fabric(pool)


def _relies_on(*paths: PathTuple) -> tuple[PathTuple, ...]:
    keys = ("machine", "fabric", "count", "hosts", "quorum", "role")
    return *paths, *(("pools", "*", key) for key in keys)


@check("GC216", summary="The AllReduce stops below the sizes at which a floor can be judged.")
def sweep_too_small(context: CheckContext) -> Iterator[Finding]:
    """Small messages measure latency, not bandwidth.

    On 2 p5.48xlarge the same fabric gives 343 GB/s at 256 MB, 437 at 1 GB and 479 at 8 GB. So the
    floor of a class holds from a size on, and `floor: auto` asks for nothing when `sizes` ends
    below it. The default ends at 16 MiB, which fits the nodes of a trial.
    """
    asked = context.smoke.allreduce
    if asked.floor is None or not asked.floor.is_auto:
        return
    largest = ByteSize.parse(asked.sizes.rpartition("..")[2])
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
        low = asked.sizes.partition("..")[0]
        yield Finding(
            summary=f"the largest message is {largest}, the floor of {listing(missed)} holds from "
            f"{ByteSize(max(missed.values()))} on",
            path=_SIZES,
            severity=Severity.WARNING,
            hint=f"write sizes: {low}..8GiB",
            fix=None if asked.sizes == AllReduce().sizes else Replace(_SIZES, f"{low}..8GiB"),
            relies_on=_relies_on(_SIZES, _FLOOR),
        )


@check("GC217", summary="No floor is known for a pool that asks for the class's own.")
def no_floor_known(context: CheckContext) -> Iterator[Finding]:
    """`floor: auto` takes the floor of the fabric class for so many nodes, where it is known.

    It follows from the NICs, from an AllReduce inside one node, and from one that was published for
    the class. Where one of them is missing nothing is asked, and a slow cluster passes. Name the
    NICs in a catalog file of your own, or write the floor as a number.
    """
    floor = context.smoke.allreduce.floor
    if floor is None or not floor.is_auto:
        return
    without: dict[str, list[str]] = {}
    for name, machine, fabric in _real_pools(context):
        nodes = context.size(name)
        if not nodes:
            continue
        if fabric is None:
            why = f"the fabric class of {machine.name} is not known"
        else:
            figure = floor_gbytes_per_s(machine, fabric, nodes)
            why = "" if figure.gbytes_per_s is not None else figure.reason
        if why:
            without.setdefault(why.removeprefix("no floor: "), []).append(name)
    for why, pools in without.items():
        yield Finding(
            summary=f"no floor is known for {listing(pools)}: {why}",
            path=_FLOOR,
            severity=Severity.WARNING,
            hint="write a number, such as floor: 300 GB/s, or name the pool's fabric and its NICs",
            relies_on=_relies_on(_FLOOR),
        )


@check("GC218", summary="A floor that the hardware can't reach.")
def floor_out_of_reach(context: CheckContext) -> Iterator[Finding]:
    """An AllReduce is never faster than NVLink inside a node, nor than the nodes' NICs allow.

    With N nodes and NICs of B GB/s a node that is B x N/(N-1) x (n-1)/n for n GPUs: a figure from
    two nodes is out of reach for 64. On InfiniBand it is a warning, because switches that reduce on
    the way (SHARP) can go beyond.
    """
    floor = context.smoke.allreduce.floor
    if floor is None or floor.is_auto:
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
            relies_on=_relies_on(_FLOOR),
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
