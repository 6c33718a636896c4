"""What each test is run on: nodes, pairs, blocks and whole fabric domains, and with which sizes."""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import get_args

import msgspec

from ....inventory.hosts import Host
from ....schemas.catalog import Fabric, Machine
from ....schemas.derived.floor import FloorFigure
from ...smoke.launch import Collective, Launch
from .table import AcceptanceTest, Way, peak_tflops

PAIRS = 40_000
"""Pairs that are measured and kept: all of up to 283 nodes. Of more nodes so many rounds are played
as make about that, evenly spread over the order of their names; all nodes are at work in each."""
FEWEST_ROUNDS = 8
"""Rounds, regardless of the number of nodes: with so many partners a node's fault is
identifiable.
"""
_LEAST_PART = 32
"""Bytes that each rank gets at least of a message of parts."""
SECONDS = 5
"""How long each figure of a node is measured."""
BURN_S = 300
"""How long GPUs are burnt in: until they are as warm as they get."""
MIB = 1024
"""Size of the file for measuring storage, unless given."""


class Want(msgspec.Struct, frozen=True, kw_only=True):
    """One result that an acceptance is to have."""

    test: str
    target: str
    """A node; "all of train-1"; "block a" ."""
    repetition: int
    """From 1 on."""
    launch: Launch
    """Partition, QOS, sizes, and the nodes of the target."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Its unique key."""
        return self.test, self.target, self.repetition


def wanted(
    tests: Sequence[AcceptanceTest],
    launches: Sequence[Launch],
    hosts: Sequence[Host],
    repetitions: int,
    drilled: Collection[str] = (),
) -> Iterator[Want]:
    """Yield what is to be run, in its order: one repetition after the other, the soak last.

    Args:
        tests: of the table.
        launches: the fabric domains (`smoke.launch.launches`).
        hosts: the nodes that take part.
        repetitions: how often each test is run that isn't run once.
        drilled: the nodes that were named for drills; without any all are wanted, and untested.
    """
    for repetition in range(1, repetitions + 1):
        for test in tests:
            if not test.soak and (repetition == 1 or not test.once):
                yield from _of_test(test, launches, hosts, repetition, drilled)
    for test in tests:
        if test.soak:
            yield from _of_test(test, launches, hosts, 1, ())


def _of_test(
    test: AcceptanceTest,
    launches: Sequence[Launch],
    hosts: Sequence[Host],
    repetition: int,
    drilled: Collection[str],
) -> Iterator[Want]:
    for launch in launches:
        for target, nodes in _parts(test, launch, hosts):
            if test.scope == "drill" and drilled and target not in drilled:
                continue
            part = msgspec.structs.replace(launch, nodes=tuple(nodes))
            yield Want(test=test.name, target=target, repetition=repetition, launch=part)


def _parts(
    test: AcceptanceTest, launch: Launch, hosts: Sequence[Host]
) -> Iterator[tuple[str, Sequence[str]]]:
    if test.scope in {"node", "drill"}:
        yield from ((name, (name,)) for name in launch.nodes)
        return
    if test.scope == "fabric":
        yield f"fabric of {launch.label}", launch.nodes[:1]
        return
    if len(launch.nodes) < 2:  # noqa: PLR2004  # one node has no peer to send to
        return
    if test.scope == "domain" and not test.soak:
        inside = blocks(launch.nodes, hosts)
        if len(inside) > 1:
            yield from ((f"block {n}", names) for n, names in inside.items() if len(names) > 1)
    yield f"all of {launch.label}", launch.nodes


def blocks(nodes: Iterable[str], hosts: Iterable[Host]) -> dict[str, list[str]]:
    """Return block, or leaf group where no block is known -> its nodes among these."""
    taking_part, found = set(nodes), defaultdict(list)
    for host in hosts:
        name = host.placement.block or host.placement.leaf
        if host.name in taking_part and name:
            found[name].append(host.name)
    return dict(found)


def sizes_of(test: AcceptanceTest, launch: Launch) -> tuple[int, int]:
    """Return the smallest and the largest message in bytes: each rank gets some of each."""
    if test.name in {"all_reduce", "soak", "sendrecv"}:
        return launch.min_bytes, launch.max_bytes
    least = 1 << math.ceil(math.log2(_LEAST_PART * launch.ranks))
    return max(launch.min_bytes, least), max(launch.max_bytes, least)


def collective_of(test: AcceptanceTest) -> Collective:
    """Return the collective that a test runs, as nccl-tests names it."""
    return next((name for name in get_args(Collective) if name == test.name), "all_reduce")


def rounds_of(nodes: int) -> str:
    """Return which rounds of the tournament are played, as the program `measure` takes them."""
    if nodes * (nodes - 1) // 2 <= PAIRS:
        return "all"
    played = max(FEWEST_ROUNDS, 2 * PAIRS // nodes)
    return f"every:{nodes // played}"


def fillings(
    test: AcceptanceTest,
    launch: Launch,
    *,
    path: str,
    mib: int,
    dcgm_level: int,
    machine: Machine | None,
) -> Mapping[str, object]:
    """Return the values of a command's names in braces."""
    gpu_model = machine.gpu.model if machine and machine.gpu else ""
    least, most = sizes_of(test, launch)
    return {
        "test": test.name,
        "collective": collective_of(test),
        "min_bytes": least,
        "max_bytes": most,
        "iterations": launch.iterations,
        "rounds": rounds_of(len(launch.nodes)),
        "seconds": SECONDS,
        "burn_s": BURN_S,
        "dcgm_level": dcgm_level,
        "gpu_model": gpu_model,
        "peak_tflops": peak_tflops(machine),
        "path": shlex.quote(path),
        "mib": mib,
        "node": launch.nodes[0],
        "partition": launch.partition,
    }


def programs_of(test: AcceptanceTest, way: Way, path: str) -> tuple[str, ...]:
    """Return the programs that a way needs; `path` is where the team's own files are."""
    names = {"test": test.name, "collective": collective_of(test), "path": path}
    return tuple(name.format(**names) for name in way.needs.programs)


def named(way: Way, test: AcceptanceTest, path: str) -> Way:
    """Return a way with the names of its programs filled in."""
    needs = msgspec.structs.replace(way.needs, programs=programs_of(test, way, path))
    return msgspec.structs.replace(way, needs=needs)


NO_FLOOR = FloorFigure(gbytes_per_s=None, reason="")


def nic_floor(share: float, machine: Machine | None, fabric: Fabric | None) -> FloorFigure:
    """Return the least that one rail must reach, in Gb/s, or why that is unknown."""
    nics = [nic for nic in (machine.nics or ()) if not nic.front_end] if machine else []
    speeds = [n.gbps for n in nics if fabric is not None and n.kind == fabric.nic_kind and n.gbps]
    if not speeds:
        return FloorFigure(gbytes_per_s=None, reason="no floor: the NICs' speed is not known")
    least = min(speeds)
    return FloorFigure(gbytes_per_s=share * least, reason=f"{share:g} of {least:g} Gb/s (NIC)")
