"""Judges a saved log with no cluster: the fabric class, machine type and nodes are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, TypeVar

import msgspec

from ...schemas.catalog import Catalog, Fabric, Machine
from ...schemas.derived.floor import FloorFigure, fabric_nics, floor_gbytes_per_s
from ...schemas.derived.hostlist import fold
from ...schemas.diagnostics import Diagnostic, Severity, closest
from ..cluster.outcome import Exit, failure
from .bisect import Fault
from .judging.judge import judge
from .judging.verdict import Expectation, Rails, Verdict, Wire
from .launch import Launch
from .reading.log import AllReduceLog
from .reading.parse import LogParser
from .search import Located

REACH_BYTES = 512 * 2**20
"""Size a sweep must reach where no floor, and so no size for it, is known: the largest that Google
publishes for A3 High (GoogleCloudPlatform/cluster-toolkit, November 2026)."""

LONGEST_LINE = 64 * 1024
"""Characters that are read as one line: what has no line ends must not fill the memory."""

_Entry = TypeVar("_Entry")


class SavedResult(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a saved log, and the log's content."""

    verdict: Verdict
    log: AllReduceLog

    @property
    def passed(self) -> bool:
        """Whether it is a pass."""
        return self.verdict.passed


def judge_saved(
    stream: IO[str], *, fabric: str, machine: str, nodes: int, catalog: Catalog
) -> SavedResult:
    """Read a log line by line and judge it.

    Args:
        stream: the log; undecodable bytes replaced.
        fabric: a fabric class of the catalog.
        machine: a machine type of the catalog, that of all nodes.
        nodes: how many took part, 1 or more.
        catalog: the classes and types there are.

    Raises:
        LifecycleError: a class or type is unknown, or `nodes` is below 1 (exit code 64).
    """
    if nodes < 1:
        raise failure("GC941", f"--nodes {nodes}: it is 1 or more", exit_code=Exit.USAGE)
    expected = expectation(
        _known_logs("machine type", machine, catalog.machines, "gcluster machines"),
        _known_logs("fabric class", fabric, catalog.fabrics, "docs/fabrics.md"),
        nodes,
    )
    parser = LogParser()
    while line := stream.readline(LONGEST_LINE):
        parser.feed(line)
    log = parser.result()
    return SavedResult(verdict=judge(log, expected), log=log)


def expectation(machine: Machine, fabric: Fabric, nodes: int) -> Expectation:
    """Return what an AllReduce over all GPUs of `nodes` machines that are alike must prove."""
    simulated = machine.simulated or machine.gpu is None
    # Our payload has one rank a node, whatever is simulated; nccl-tests one a GPU.
    ranks = nodes * (machine.gpu.count if machine.gpu and not machine.simulated else 1)
    figure = floor_gbytes_per_s(machine, fabric, nodes)
    return Expectation(
        ranks=ranks,
        reach_bytes=0 if simulated else _reach(fabric, figure),
        node_count=nodes,
        gpu=machine.gpu.model if machine.gpu else "",
        wire=wire_of(fabric, machine, simulated=simulated),
        rails=rails_wanted(fabric, machine, nodes, simulated=simulated),
        floor=figure.gbytes_per_s,
        floor_reason=figure.reason,
    )


NVLINK_4_GBYTES_PER_S = 900
"""Of one GPU, both directions: from this NVLink on, the switch can reduce (NVLink SHARP: "third-
generation NVSwitch systems (NVLink4) with Hopper and later", NCCL's NCCL_NVLS_ENABLE, 2026-11)."""


def wire_of(fabric: Fabric, machine: Machine | None, *, simulated: bool) -> Wire:
    """Return what must be seen to carry the messages on a fabric class."""
    link, gpu = (machine.nvlink, machine.gpu) if machine else (None, None)
    spans = link is not None and gpu is not None and link.domain_gpus > gpu.count
    return Wire(
        domain_ranks=link.domain_gpus if link and spans else 0,
        fabric=fabric.name,
        channels=tuple(fabric.channels),
        nic_kind=fabric.nic_kind,
        rdma=fabric.rdma,
        nvls=bool(
            link
            and gpu
            and gpu.vendor == "nvidia"
            and (link.gbytes_per_s or 0) >= NVLINK_4_GBYTES_PER_S
        ),
        simulated=simulated,
    )


_LAYERS = {"infiniband": "InfiniBand", "roce": "Ethernet", "efa": ""}
"""Kind of NIC -> link layer of those whose ports count what they carry ("": any)."""


def rails_wanted(
    fabric: Fabric,
    machine: Machine | None,
    nodes: int,
    devices: Iterable[str] = (),
    *,
    simulated: bool,
) -> Rails | None:
    """Return which NICs must carry the messages of an AllReduce over identical machines.

    Args:
        fabric: the fabric between them.
        machine: their type; None: not known.
        nodes: N, 1 or more.
        devices: the rails' names where they are known.
        simulated: whether processors replace the GPUs, over sockets.
    """
    if simulated or "NET/Socket" in fabric.channels:
        return Rails(count=1, layer="socket")
    domain_nodes, gpu, link = 1, machine and machine.gpu, machine and machine.nvlink
    if gpu and link and link.domain_gpus > gpu.count:
        domain_nodes = link.domain_gpus // gpu.count
    if nodes <= domain_nodes or fabric.nic_kind is None:
        return None
    if fabric.nic_kind not in _LAYERS:
        return Rails(count=0, uncounted=f"no port counter of {fabric.nic_kind} is known")
    nics = fabric_nics(machine, fabric) if machine else []
    named = tuple(devices)
    # EFA's driver reports EDR for every generation; Google's machines see a part of a NIC.
    speeds = [nic.gbps for nic in nics if nic.gbps] if fabric.plugin == "ofed" else []
    return Rails(
        count=len(named) or sum(nic.count for nic in nics),
        layer=_LAYERS[fabric.nic_kind],
        gbps=min(speeds, default=0),
        devices=named,
        domain_nodes=domain_nodes,
    )


def _reach(fabric: Fabric, figure: FloorFigure) -> int:
    known = fabric.floor is not None and figure.gbytes_per_s is not None
    return int(fabric.floor.from_size.value) if known and fabric.floor else REACH_BYTES


def _known_logs(kind: str, name: str, entries: Mapping[str, _Entry], where: str) -> _Entry:
    if name in entries:
        return entries[name]
    ends = (entry for entry in entries if entry.endswith(f"-{name}"))
    near = next(ends, None) or closest(name, entries)
    hint = f'did you mean "{near}"?' if near else f"{where} lists them all"
    raise failure("GC941", f'no {kind} is called "{name}"', hint=hint, exit_code=Exit.USAGE)


def describe_domains(todo: tuple[Launch, ...]) -> Diagnostic:
    """Describe the AllReduces when one can't hold all nodes."""
    return Diagnostic(
        code="GC932",
        severity=Severity.NOTE,
        summary="no one partition and fabric holds all compute pools: there are several AllReduces",
        detail=", ".join(f"{launch.partition} ({fold(launch.nodes)})" for launch in todo),
        hint="a partition with all pools of a fabric lets one AllReduce test them together",
    )


def left_out(nodes: Iterable[str]) -> Diagnostic:
    """Report which nodes were not tested."""
    return Diagnostic(
        code="GC935",
        severity=Severity.WARNING,
        summary=f"{fold(nodes)} did not take part: busy, or not fit for jobs",
        hint="gcluster smoke tests them when they are idle",
    )


def located_fault(located: Located, nodes: str) -> Diagnostic:
    """Report the fault of a failed AllReduce."""
    found = fault_lines(located)
    return Diagnostic(
        code="GC934",
        severity=Severity.ERROR,
        summary="; ".join(found) or f"every smaller AllReduce over {nodes} passed",
        detail=f"{located.tests} smaller AllReduces in {located.rounds} rounds over {nodes}",
        hint="look at the NICs, cables and GPUs of what is named; drain it to go on without",
    )


def fault_lines(located: Located) -> list[str]:
    """Return each fault as text: "node gpu003", "the link between gpu001 and gpu007"."""
    return [*map(_describe, located.faults), *(f"rail {rail}" for rail in located.rails)]


def _describe(fault: Fault) -> str:
    if fault.kind == "node":
        return f"node {fault.nodes[0]} is at fault"
    if fault.kind == "link":
        return f"the link between {' and '.join(fault.nodes)} is at fault"
    if fault.kind == "blocks":
        return f"what connects the blocks of {' and '.join(fault.nodes)} is at fault"
    return f"the fault is among {fold(fault.nodes)}: smaller parts can't show which"
