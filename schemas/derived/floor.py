"""The bus bandwidth that a healthy AllReduce reaches on a fabric, for this many nodes.

All figures are bus bandwidths in GB/s (10^9 bytes), as nccl-tests print them (doc/PERFORMANCE.md).

With N nodes, n GPUs in all, and B the bandwidth of a node's NICs in GB/s, one direction, an
AllReduce of S bytes as NCCL does it sends through the NICs of each node

    ring: 2 (n-1)/n S, so its bus bandwidth, S/t * 2 (n-1)/n, is at most B
    double tree: 2 S on three nodes and more, but S on two, so at most B * 2 (n-1)/n there

(NVIDIA/nccl-tests#22, NVIDIA/nccl#209: only on two nodes the bus bandwidth may exceed that of the
NICs), and neither is ever more than what NVLink reaches inside one node, which is measured
(`nvlink.busbw`). The floor is a share of the smaller one:

    floor(N) = factor * min(NVLink busbw, B * 2 (n-1)/n)    N = 2
    floor(N) = factor * min(NVLink busbw, B)                N > 2

On one node no NIC takes part, and the second term is dropped. On two nodes with 8 NICs of 400 Gb/s
(B = 400) it is 750 and NVLink is the limit; on more it is 400. A floor taken from two nodes
would fail a healthy cluster of 64. The factors are with their calibration in
catalog/fabrics/*.yaml; a class without any has no floor. Where no AllReduce of a class is published
(`basis: links`) the ceiling is the ring's on two nodes too, and the reason says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ..catalog import Catalog, Fabric, Machine, Nic
from ..spec import ClusterSpec
from ..spec.units import ByteSize
from .rails import machine_in_pool

_SLICED = "GPUs are cut into MIG slices, and the AllReduce runs on the processors"
_IN_ONE_DOMAIN = "nvlink"
"""The class whose traffic passes no NIC."""


class FloorFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A floor, or why there is none."""

    gbytes_per_s: float | None
    """Least bus bandwidth in GB/s; None: none is required."""
    reason: str
    """What it is made of: "0.85 of 480 GB/s (NVLink), infiniband-ndr, 2 nodes"; or why none."""


def floor_gbytes_per_s(machine: Machine, fabric: Fabric, nodes: int) -> FloorFigure:
    """Return the floor of an AllReduce over all GPUs of `nodes` machines that are alike.

    Args:
        machine: type of the nodes.
        fabric: what carries the traffic between them.
        nodes: N, 1 or more.
    """
    if machine.simulated:
        return _none(f"{machine.name} is simulated")
    if machine.gpu is None:
        return _none(f"{machine.name} has no GPU")
    gpus = nodes * machine.gpu.count
    if gpus == 1:
        return _none("one GPU alone sends nothing")
    if fabric.floor is None:
        return _none(f"no AllReduce is published that a floor of {fabric.name} could follow from")
    derived = fabric.floor.basis == "links"
    terms = [_nvlink_term(machine, gpus, fabric, nodes)] if machine.gpu.count > 1 else []
    if nodes > 1 and fabric.name != _IN_ONE_DOMAIN:
        terms.append(_nic_term(machine, fabric, nodes))
    unknown = [term for term in terms if isinstance(term, str)]
    if unknown:
        return _none("; ".join(unknown))
    ceiling, limit = min(term for term in terms if not isinstance(term, str))
    factor = fabric.floor.factor
    how = ", derived from links, not measured" if derived else ""
    count = "1 node" if nodes == 1 else f"{nodes} nodes"
    return FloorFigure(
        gbytes_per_s=factor * ceiling,
        reason=f"{factor:g} of {ceiling:.4g} GB/s ({limit}{how}), {fabric.name}, {count}",
    )


def nic_ceiling_gbytes_per_s(bandwidth: float, nodes: int, gpus_per_node: int) -> float:
    """Return the most that NICs of `bandwidth` GB/s a node allow on two `nodes` or more."""
    gpus = nodes * gpus_per_node
    return bandwidth * 2 * (gpus - 1) / gpus if nodes == 2 else bandwidth  # noqa: PLR2004  # the tree


def allreduce_floor(spec: ClusterSpec, catalog: Catalog, nodes: Mapping[str, int]) -> FloorFigure:
    """Return what `smoke.allreduce.floor` requires of one AllReduce.

    Args:
        spec: a spec that passed its checks.
        catalog: the machine types and fabric classes that it names.
        nodes: pool -> nodes of it that take part, 1 or more: one fabric domain.
    """
    requested = spec.smoke.allreduce.floor
    sliced = any(spec.pools[pool].is_sliced for pool in nodes)
    real = all(map(_has_real_gpus, _machines(spec, catalog, nodes)))
    if sliced or (requested is None and not real):
        return _none(_SLICED) if sliced else FloorFigure(gbytes_per_s=None, reason="")
    if requested is not None and not requested.is_auto:
        none = requested.is_none
        return FloorFigure(gbytes_per_s=None if none else requested.value / 1e9, reason="")
    domain = _domain(spec, catalog, nodes)
    if isinstance(domain, str):
        return _none(domain)
    machine, fabric = domain
    pools = [spec.pools[pool] for pool in nodes]
    machines = [machine_in_pool(machine, pool, fabric) for pool in pools]
    if len({msgspec.json.encode(each) for each in machines}) > 1:
        return _none(f"pools {', '.join(sorted(nodes))} have different rails")
    machine = machines[0] or machine
    largest = ByteSize(message_sizes(spec.smoke.allreduce.sizes, [machine])[1])
    if fabric.floor is not None and largest.value < fabric.floor.from_size.value:
        return _none(
            f"it holds for messages from {fabric.floor.from_size}, and the largest is {largest}"
        )
    return floor_gbytes_per_s(machine, fabric, sum(nodes.values()))


SMALL_BYTES = 16 * 2**20
"""Largest message where no GPU is real: enough to see that all ranks answer, on a trial's nodes."""
LARGE_BYTES = 16 * 2**30
"""Largest message where GPUs are: above the sizes from which floors hold (up to 1 GiB), so that the
bandwidth no longer grows with the message."""
_BUFFERS = 4
"""Parts of a GPU's memory: nccl-tests has three buffers of the largest message when it checks
results (send, receive, expected: src/common.cu), and NCCL and the driver need some."""


def message_sizes(written: str | None, machines: Iterable[Machine | None]) -> tuple[int, int]:
    """Return the smallest and the largest message of an AllReduce in bytes.

    Args:
        written: `smoke.allreduce.sizes`; None: as far as bandwidth is judged.
        machines: types of the nodes that take part; None among them: one that isn't known.

    Raises:
        ValueError: what is written isn't two sizes, or the first is the larger.
    """
    if written is not None:
        return parse_sizes(written)
    known = list(machines)
    memory = [m.gpu.memory_gib for m in known if m is not None and m.gpu and not m.simulated]
    if not memory or len(memory) < len(known):
        return 8, SMALL_BYTES
    fits = 1 << (int(min(memory) * 2**30 / _BUFFERS).bit_length() - 1)
    return 8, min(LARGE_BYTES, fits)


def parse_sizes(text: str) -> tuple[int, int]:
    """Read "8B..16MiB" as (least, most) in bytes.

    Raises:
        ValueError: it isn't two sizes, or the first is the larger.
    """
    first, separator, last = text.partition("..")
    if not separator:
        raise ValueError(f'expected two sizes such as "8B..16MiB", got "{text}"')
    least, most = (int(ByteSize.parse(part.strip()).value) for part in (first, last))
    if not ELEMENT_BYTES <= least <= most:
        raise ValueError(f'"{text}": the first size must be {ELEMENT_BYTES}B or more and not above')
    return least, most


ELEMENT_BYTES = 4
"""A message is whole float32 elements: sizes are rounded down to that."""


def _machines(spec: ClusterSpec, catalog: Catalog, pools: Iterable[str]) -> list[Machine | None]:
    return [catalog.machines.get(spec.pools[pool].machine or "") for pool in pools]


def _has_real_gpus(machine: Machine | None) -> bool:
    return machine is not None and machine.gpu is not None and not machine.simulated


def _domain(
    spec: ClusterSpec, catalog: Catalog, nodes: Mapping[str, int]
) -> tuple[Machine, Fabric] | str:
    """Return the machine type and the fabric class that all pools share, or what is missing."""
    named = {spec.pools[pool].machine or "" for pool in nodes}
    machines = [catalog.machines[name] for name in named if name in catalog.machines]
    simulated = sorted(machine.name for machine in machines if machine.simulated)
    if simulated:
        return f"{' and '.join(simulated)} {'is' if len(simulated) == 1 else 'are'} simulated"
    if len(machines) != 1 or len(named) != 1:
        return f"pools {', '.join(sorted(nodes))} are not of one machine type that is known"
    classes = {spec.pools[pool].fabric or machines[0].fabric or "" for pool in nodes}
    fabrics = [catalog.fabrics[name] for name in classes if name in catalog.fabrics]
    if len(classes) != 1:
        return f"pools {', '.join(sorted(nodes))} are of several fabric classes"
    if not fabrics:
        return f"the fabric class of {machines[0].name} is not known; a pool can name it"
    return machines[0], fabrics[0]


def _nvlink_term(
    machine: Machine, gpus: int, fabric: Fabric, nodes: int
) -> tuple[float, str] | str:
    link = machine.nvlink
    derived = fabric.floor is not None and fabric.floor.basis == "links"
    is_amd = machine.gpu is not None and machine.gpu.vendor == "amd"
    # On two nodes NCCL's tree goes beyond the NICs, how far inside such a node was not measured.
    may_derive = nodes > (1 if derived else 2) and fabric.name != _IN_ONE_DOMAIN
    if link is not None and link.busbw_gbytes_per_s is None and may_derive and not is_amd:
        one_way = link.gbytes_per_s and link.gbytes_per_s / 2
        if one_way:
            return one_way, f"NVLink, one direction{'' if derived else ', derived from links'}"
    if link is None or link.busbw_gbytes_per_s is None:
        return f"no AllReduce inside one {machine.name} is published"
    if fabric.name == _IN_ONE_DOMAIN and gpus > link.domain_gpus:
        return f"{gpus} GPUs are more than one NVLink domain of {machine.name} ({link.domain_gpus})"
    return link.busbw_gbytes_per_s, "Infinity Fabric" if is_amd else "NVLink"


def _nic_term(machine: Machine, fabric: Fabric, nodes: int) -> tuple[float, str] | str:
    fitting = fabric_nics(machine, fabric)
    if not fitting or machine.gpu is None:
        return f"no NICs of {machine.name} for {fabric.name} are known"
    if any(nic.gbps is None for nic in fitting):
        return f"the speed of {machine.name}'s NICs is not known"
    if fabric.nic_kind is None:
        return min(nic.gbps or 0 for nic in fitting) / 8, "one NIC"
    bandwidth = sum(nic.count * (nic.gbps or 0) for nic in fitting) / 8
    if fabric.floor is not None and fabric.floor.basis == "links":
        return bandwidth, "NICs"
    return nic_ceiling_gbytes_per_s(bandwidth, nodes, machine.gpu.count), "NICs"


def fabric_nics(machine: Machine, fabric: Fabric) -> list[Nic]:
    """Return the NICs that carry a class: its kind, or, for sockets, those with IP addresses."""
    cards = machine.nics or []
    if fabric.nic_kind is not None:
        return [nic for nic in cards if not nic.front_end and nic.kind == fabric.nic_kind]
    front = [nic for nic in cards if nic.front_end]
    return front or [nic for nic in cards if nic.kind != "infiniband"]


def _none(reason: str) -> FloorFigure:
    return FloorFigure(gbytes_per_s=None, reason=f"no floor: {reason}")
