"""Logs of all fabric classes, written by hand after the tools' formats.

The lines have the formats of nccl-tests 2.11 to 2.18, rccl-tests, NCCL and its plugins (2026-11);
the numbers are made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from gcluster.lifecycle.smoke.saved import expectation
from gcluster.schemas.catalog import load_catalog

GIB = 1 << 30
ROUGH = 60.0
"""GB/s where no floor is known."""


class Setup(NamedTuple):
    """What one class's logs look like."""

    machine: str
    via: str
    """Channel between nodes, from "via" on."""
    foreign: str
    """What it falls back to."""
    label: Callable[[int, str], str] = lambda _rank, line: line
    version: str = "2.18"
    nodes: int = 2
    logged: tuple[str, ...] = ()
    inside: str = "P2P/CUMEM"
    tail: str = ""
    floor: float | None = None
    """GB/s that the fabric class requires of these nodes."""


def srun(rank: int, line: str) -> str:
    """Label as srun -l does."""
    return f"{rank:2d}: {line}"


def mpirun(rank: int, line: str) -> str:
    """Label as mpirun --tag-output does."""
    return f"[1,{rank}]<stdout>:{line}"


def kubectl(_: int, line: str) -> str:
    """Stamp as kubectl logs --timestamps does, with a terminal's colour and line ends."""
    return f"2026-11-20T08:15:30.123456789Z \x1b[0m{line}\x1b[0m\r"


def hydra(rank: int, line: str) -> str:
    """Label as nccl#1453 shows it."""
    return f"[{rank}] {line}" if " NCCL " in line else line


EFA = (
    "NET/OFI Initializing aws-ofi-nccl 1.13.2-aws",
    "NET/OFI Selected provider is efa, fabric is efa (found 32 nics)",
)  # as printed
IB = ("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>",)
LIBFABRIC = "NET/Libfabric/0/GDRDMA"
SETUPS = {
    "efa-host": Setup(
        "g5.8xlarge", "NET/AWS Libfabric/0", "NET/Socket/0", srun, nodes=4, logged=EFA, floor=0.9375
    ),
    "efa-v1": Setup(
        "p4d.24xlarge",
        "NET/AWS Libfabric/0/GDRDMA",
        "NET/Socket/0",
        mpirun,
        "2.11",
        logged=("NET/OFI Selected Provider is efa (found 4 nics)",),
        floor=46.875,
    ),  # a table
    "efa-v2": Setup(
        "p5.48xlarge",
        "NET/AWS Libfabric/0/GDRDMA/Shared",
        "NET/Socket/0",
        mpirun,
        logged=EFA,
        floor=408.0,
    ),  # a table
    "efa-v3": Setup("p5en.48xlarge", LIBFABRIC, "NET/Socket/0", srun, logged=EFA, floor=380.0),
    "efa-v4": Setup("p6-b200.48xlarge", LIBFABRIC, "NET/Socket/0", logged=EFA, floor=240.0),
    "ethernet": Setup("dgx-h100", "NET/Socket/0", "NET/IB/0", srun),
    "gib": Setup(
        "a3-ultragpu-8g",
        "NET/gIB/0/GDRDMA",
        "NET/IB/0/GDRDMA",
        kubectl,
        logged=("NET/gIB : Initializing gIB v1.1.0",),
        floor=280.0,
    ),  # a table
    "gib-metal": Setup(
        "a4x-maxgpu-4g-metal",
        "NET/gIB/0/GDRDMA",
        "NET/IB/0/GDRDMA",
        kubectl,
        logged=("NET/gIB : Initializing gIB v1.1.0",),
        floor=280.0,
    ),  # a table
    "gpudirect-tcpx": Setup(
        "a3-highgpu-8g", "NET/GPUDirectTCPX_v7/0", "NET/Socket/0", kubectl, floor=50.0
    ),
    "gpudirect-tcpxo": Setup(
        "a3-megagpu-8g",
        "NET/FasTrak/0",
        "NET/FastSocket/0",
        kubectl,
        logged=("NET/FasTrak plugin initialized", "Initializing network FasTrak"),
        floor=281.25,
    ),  # a table
    "infiniband-hdr": Setup(
        "dgx-h100", "NET/IBext_v8/0(3)/GDRDMA", "NET/Socket/0", hydra, "2.13", logged=IB
    ),  # a table
    "infiniband-ndr": Setup(
        "Standard_ND96isr_H100_v5",
        "NET/IB/0/GDRDMA",
        "NET/Socket/0",
        srun,
        nodes=4,
        logged=IB,
        floor=320.0,
    ),  # a table
    "infiniband-xdr": Setup("hgx-b200-8", "NET/IB/0/GDRDMA", "NET/Socket/0", logged=IB),
    "nvlink": Setup("gb200-nvl72", "P2P/MNNVL", "NET/IB/0/GDRDMA", srun, nodes=4),
    "roce": Setup(
        "BM.GPU.H100.8",
        "NET/IB/0/GDRDMA",
        "NET/Socket/0",
        logged=("NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",),
        floor=280.0,
    ),  # a table
    "infiniband-ndr-rccl": Setup(
        "Standard_ND96isr_MI300X_v5",
        "NET/IB/0/GDRDMA",
        "NET/Socket/0",
        srun,
        "rccl",
        logged=IB,
        inside="P2P/IPC",
        tail=" comm 0x7f2e1c000b70 nRanks 16",
        floor=251.2,
    ),  # a table
}


def log_of(name: str, via: str | None, share: float = 1.1, wrong: int = 0) -> list[str]:
    """Return a log's lines; `via` None: without channel lines."""
    setup, catalog = SETUPS[name], load_catalog()
    machine = catalog.machines[setup.machine]
    expected = expectation(machine, catalog.fabrics[name.removesuffix("-rccl")], setup.nodes)
    gpus = expected.ranks // setup.nodes
    busbw = (expected.floor or ROUGH) * share
    head = [*_head(setup, expected.ranks, gpus, machine.gpu.model if machine.gpu else "")]
    rows = [*_rows(setup, expected.ranks, busbw, wrong)]
    facts = [*_facts(setup, expected.ranks, gpus, via)]
    ours = [setup.label(0, line) for line in head]
    return [*ours, *facts, *(setup.label(0, line) for line in rows)]


def _head(setup: Setup, ranks: int, gpus: int, gpu: str) -> Iterator[str]:
    if setup.version == "2.18":
        yield "# nccl-tests version 2.18.3 nccl-headers=23004 nccl-library=23004"
        yield "# Collective test starting: all_reduce_perf"
    yield (
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 1"
        " iters: 20 agg iters: 1 validation: 1 graph: 0"
    )
    yield "#"
    yield "# Using devices"
    group = "" if setup.version == "2.11" else "Group  0 "
    model = f"AMD Instinct {gpu}" if setup.version == "rccl" else f"NVIDIA {gpu}"
    for rank in range(ranks):
        who = f"Pid {4000 + rank:6d} on gpu{rank // gpus + 1:03d} device {rank % gpus:2d}"
        yield f"#  Rank {rank:2d} {group}{who} [0x{16 + rank % gpus:02x}] {model}"
    yield "#"
    last, root = ("error", "") if setup.version == "2.11" else ("#wrong", "    root")
    half = f"     time   algbw   busbw {last}"
    yield f"#       size         count      type   redop{root}{half}{half}"
    yield "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)"


def _rows(setup: Setup, ranks: int, busbw: float, wrong: int) -> Iterator[str]:
    factor, printed = 2 * (ranks - 1) / ranks, []
    for power in range(3, 34):
        size = 1 << power
        seconds = size * factor / busbw / 1e9 + 20e-6
        halves = []
        for slower in (1.0, 1.002):
            algbw = size / (seconds * slower) / 1e9
            printed.append(round(algbw * factor, 2))
            bad = "5e-07" if setup.version == "2.11" else str(wrong if power > 30 else 0)
            microseconds = seconds * slower * 1e6
            time = (
                f"{microseconds:.2f}"[:7].rstrip(".")
                if microseconds < 1e6
                else f"{microseconds:.0f}"
            )
            halves.append(f"{time:>8}  {algbw:6.2f}  {algbw * factor:6.2f}  {bad:>5}")
        root = "" if setup.version == "2.11" else "      -1"
        yield f"{size:12d}  {size // 4:12d}     float     sum{root} {halves[0]}  {halves[1]}"
    total = 6 * wrong
    yield f"# Out of bounds values : {total} {'FAILED' if total else 'OK'}"
    yield f"# Avg bus bandwidth    : {sum(printed) / len(printed):g} "
    yield "#"
    if setup.version == "2.18":
        yield ""
        yield "# Collective test concluded: all_reduce_perf"


def _facts(setup: Setup, ranks: int, gpus: int, via: str | None) -> Iterator[str]:
    seen_nodes = 1 if setup.via == "P2P/MNNVL" else setup.nodes
    for rank in range(ranks):
        before = f"gpu{rank // gpus + 1:03d}:{4000 + rank}:{5000 + rank} [{rank % gpus}] NCCL INFO"
        peer, device = (rank + 1) % ranks, rank % gpus
        lines = [f"Using network {setup.via.split('/')[1]}"]
        lines += setup.logged if device == 0 else ()
        comm = f"comm 0x55d0{rank:08x} rank {rank}"
        lines.append(
            f"{comm} nRanks {ranks} nNodes {seen_nodes} localRanks {gpus} localRank {device}"
        )
        crossing = rank // gpus != peer // gpus
        if via is not None:
            ends = f"{rank}[{device}] -> {peer}[{peer % gpus}]"
            sent = (
                f"{' [send]' if via.startswith('NET') else ''} via {via}"
                if crossing
                else f" via {setup.inside}"
            )  # one line of a log
            lines.append(f"Channel 00/0 : {ends}{sent}{setup.tail}")
        where = f"cudaDev {device} busId {device}000"
        lines.append(f"ncclCommInitRank {comm} nranks {ranks} {where} - Init COMPLETE")
        yield from (setup.label(rank, f"{before} {line}") for line in lines)


class Case(NamedTuple):
    """A log and how it must be judged."""

    verdict: str
    codes: list[str]
    text: str


@cache
def cases_of(name: str) -> dict[str, Case]:
    """Return the logs of a setup: one that passes, and one for each way to fail."""
    setup = SETUPS[name]
    good = log_of(name, setup.via)
    logs = {
        "passes": ([], good),
        "wrong-transport": (["wrong-transport"], log_of(name, setup.foreign)),
        "no-transport": (["no-transport"], log_of(name, None)),
        "missing-rank": (["missing-rank"], [line for line in good if "Rank  3 " not in line]),
        "truncated": (["truncated"], good[: -(4 if setup.version == "2.18" else 2)]),
    }
    if any("#wrong" in line for line in good):
        logs["wrong-result"] = (["wrong-result"], log_of(name, setup.via, wrong=2))
    if setup.floor is not None:
        logs["below-floor"] = (["below-floor"], log_of(name, setup.via, share=0.9))
    return {
        case: Case("fail" if codes else "pass", codes, "".join(f"{line}\n" for line in lines))
        for case, (codes, lines) in logs.items()
    }
