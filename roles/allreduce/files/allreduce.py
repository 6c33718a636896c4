#!/usr/bin/python3
"""Prove that every rank reaches every other: a real MPI AllReduce whose numbers are all checked.

Started by `srun --mpi=pmix` or mpirun, one rank per simulated GPU. It prints nccl-tests' table, for
one parser, and two lines with its own identity and the transport used. Needs only mpi4py.
`--collective` runs another one: all_gather, reduce_scatter, alltoall, sendrecv, as checked as this.

The data. Element i of rank r is (i mod 1021) + r + 1. The sum over n ranks is therefore n * (i mod
1021) + n * (n + 1) / 2 for every i. All partial sums are whole numbers below 2**24, which float32
holds exactly, so the result doesn't depend on the order of the additions and is compared bit by
bit. 1021 is a prime: blocks that land in the wrong place show. No value is 0: a buffer that was
never written shows. Each rank adds something else: one rank twice for another shows.

Exit: 0 ok, 1 MPI failed or ranks are missing, 6 usage, 7 wrong numbers (as nccl-tests).

Test hook: GCLUSTER_ALLREDUCE_CORRUPT=RANK makes that rank contribute one wrong element to each
checked run, so that a test can prove that the check fails: #wrong is then the number of ranks.
"""

from __future__ import annotations

import argparse
import operator
import os
import re
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

PERIOD, FLOAT = 1021, 4  # FLOAT: bytes of a float32
EXACT = 2**24  # float32 holds every whole number up to here
USAGE, WRONG_NUMBERS = 6, 7  # exit status
BTL_LINE = re.compile(r"mca: bml: Using (\S+) btl for send to \S+ on node (\S+)")
TABLE_HEAD = """#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         """  # noqa: E501, W291
CONNECT_BYTES = 1 << 20  # large enough for Open MPI to use its ring as well as its tree


def contribution(rank: int, count: int) -> array[float]:
    """Return the `count` elements that one rank contributes."""
    return repeated((index + rank + 1 for index in range(PERIOD)), count)


def expected_sum(ranks: int, count: int) -> array[float]:
    """Return the `count` elements that every rank must hold after the sum over `ranks`."""
    base = ranks * (ranks + 1) // 2
    return repeated((ranks * index + base for index in range(PERIOD)), count)


def repeated(period: Iterable[float], count: int) -> array[float]:
    """Return the first `count` elements of a period that repeats for ever."""
    one = array("f", period)
    whole, rest = divmod(count, len(one))
    return one * whole + one[:rest]


def is_exact(ranks: int) -> bool:
    """Return whether float32 holds the largest sum over this many ranks exactly."""
    return ranks * (PERIOD - 1) + ranks * (ranks + 1) // 2 <= EXACT


def wrong_elements(result: array[float], expected: array[float]) -> int:
    """Return how many elements differ in any bit."""
    if memoryview(result).cast("B") == memoryview(expected).cast("B"):
        return 0
    return sum(map(operator.ne, result, expected))


def message_sizes(min_bytes: int, max_bytes: int, factor: int) -> Iterator[int]:
    """Yield the message sizes in bytes: the first, then times `factor` up to the last."""
    size = min_bytes
    while size <= max_bytes:
        yield size
        size *= factor


COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
SUMS = ("all_reduce", "reduce_scatter")
WHOLE = ("all_reduce", "sendrecv")  # each rank sends the whole message; else a part to each rank


def bus_factor(ranks: int, collective: str = "all_reduce") -> float:
    """Return busbw / algbw of a collective. Source: nccl-tests, doc/PERFORMANCE.md."""
    if collective == "sendrecv":
        return 1.0
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks


class Data(NamedTuple):
    """What a rank gives, what it must then hold, and its buffer before an in-place run."""

    source: array[float]
    expected: array[float]
    in_place: array[float]


def data_of(collective: str, rank: int, ranks: int, count: int) -> Data:
    """Return the data of one rank for a message of `count` elements, a multiple of the ranks.

    The size of a message is that of nccl-tests: of all parts together.
    """
    part = count // ranks
    if collective == "sendrecv":
        source = contribution(rank, count)
        return Data(source, contribution((rank - 1) % ranks, count), source[:])
    if collective == "all_gather":
        source, gathered = contribution(rank, part), array("f")
        for other in range(ranks):
            gathered += contribution(other, part)
        own = array("f", bytes(count * FLOAT))
        own[rank * part : (rank + 1) * part] = source
        return Data(source, gathered, own)
    source, mine = contribution(rank, count), slice(rank * part, (rank + 1) * part)
    if collective == "alltoall":
        received = array("f")
        for other in range(ranks):
            received += contribution(other, count)[mine]
        return Data(source, received, source[:])
    summed = expected_sum(ranks, count)
    return Data(source, summed[mine] if collective == "reduce_scatter" else summed, source[:])


def transport_of(lines: Iterable[str]) -> set[str]:
    """Return the transports (BTL) that Open MPI names between ranks; it names none for UCX."""
    chosen = {match[1] for match in map(BTL_LINE.search, lines) if match}
    return chosen - {"self"}


def transport_line(btls: set[str], ranks: int) -> str:
    """Return the line with the transport that carried the messages."""
    if ranks == 1:
        return "# gcluster transport: none btl=self"
    kind = "ethernet" if "tcp" in btls else "memory" if btls == {"sm"} else "unknown"
    return f"# gcluster transport: {kind} (simulated) btl={','.join(sorted(btls)) or 'unknown'}"


def number(value: float, width: int) -> str:
    """Return a number as nccl-tests prints times (width 7) and bandwidths (width 6)."""
    places = max(0, min(2, width - 1 - len(str(int(value)))))
    return f"{value:{width}.{places}f}"


class StderrFilter:
    """Collects Open MPI's lines about transports on stderr; all else passes through at once.

    A forked child reads the other end: what Open MPI prints while it ends isn't lost with us.
    """

    def __init__(self) -> None:
        """Put the filter between this process and its stderr. Call before MPI starts."""
        self._stderr = os.dup(2)
        source, sink = os.pipe()
        self._result, result = os.pipe()
        if os.fork() == 0:
            os.close(sink)
            os.close(self._result)
            self._forward(source, result)
        os.dup2(sink, 2)
        for descriptor in (source, sink, result):
            os.close(descriptor)

    def _forward(self, source: int, result: int) -> NoReturn:
        with os.fdopen(source, "rb") as lines, os.fdopen(result, "wb") as collected:
            for line in lines:
                if BTL_LINE.search(line.decode(errors="replace")):
                    collected.write(line)
                else:
                    os.write(self._stderr, line)
        os._exit(0)

    def stop(self) -> list[str]:
        """Give stderr back and return the lines collected."""
        os.dup2(self._stderr, 2)
        os.close(self._stderr)
        with os.fdopen(self._result, encoding="utf-8", errors="replace") as collected:
            return collected.readlines()


class Half(NamedTuple):
    """One half of a row: out of place or in place."""

    seconds: float
    algbw: float
    busbw: float
    wrong: int

    def __str__(self) -> str:
        """Return time (us), algbw, busbw (GB/s) and #wrong in the widths of nccl-tests."""
        cells = number(self.seconds * 1e6, 7), number(self.algbw, 6), number(self.busbw, 6)
        return f"  {'  '.join(cells)}  {self.wrong:6g}"


class Benchmark:
    """The AllReduce over all ranks of MPI_COMM_WORLD."""

    def __init__(self, mpi: Any, options: argparse.Namespace) -> None:
        """Take the module mpi4py.MPI, already started."""
        self.mpi = mpi
        self.comm = mpi.COMM_WORLD
        self.rank, self.ranks = int(self.comm.rank), int(self.comm.size)
        self.options = options
        self.corrupt = os.environ.get("GCLUSTER_ALLREDUCE_CORRUPT") == str(self.rank)

    def say(self, line: str) -> None:
        """Print a line, whole, on rank 0 only."""
        if self.rank == 0:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def move(self, source: array[float] | None, target: array[float]) -> None:
        """Run the collective once from `source` to `target`; None: `target` in place."""
        comm, number = self.comm, self.mpi.FLOAT
        given = self.mpi.IN_PLACE if source is None else [source, number]
        taken, collective = [target, number], self.options.collective
        after, before = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        if collective == "all_reduce":
            comm.Allreduce(given, taken, op=self.mpi.SUM)
        elif collective == "reduce_scatter":
            comm.Reduce_scatter_block(given, taken, op=self.mpi.SUM)
        elif collective == "all_gather":
            comm.Allgather(given, taken)
        elif collective == "alltoall":
            comm.Alltoall(given, taken)
        elif source is None:
            comm.Sendrecv_replace(taken, dest=after, source=before)
        else:
            comm.Sendrecv(given, dest=after, recvbuf=taken, source=before)

    def half(self, count: int, *, in_place: bool) -> Half:
        """Time the collective, then run it once more on fresh data and check every element."""
        data = data_of(self.options.collective, self.rank, self.ranks, count)
        target = data.in_place[:] if in_place else array("f", bytes(len(data.expected) * FLOAT))
        given = None if in_place else data.source
        for _ in range(self.options.warmup):
            self.move(given, target)
        self.comm.Barrier()
        start = time.perf_counter()
        for _ in range(self.options.iterations):
            self.move(given, target)
        mine = (time.perf_counter() - start) / self.options.iterations

        if self.corrupt:
            data.source[len(data.source) // 2] += 1
            data.in_place[len(data.in_place) // 2] += 1
        target = data.in_place[:] if in_place else array("f", bytes(len(data.expected) * FLOAT))
        self.move(given, target)
        wrong = wrong_elements(target[: len(data.expected)], data.expected)

        seconds = self.comm.allreduce(mine) / self.ranks
        algbw = count * FLOAT / seconds / 1e9
        factor = bus_factor(self.ranks, self.options.collective)
        return Half(seconds, algbw, algbw * factor, self.comm.allreduce(wrong))

    def connect(self, stderr: StderrFilter) -> set[str]:
        """Open the connections that the collective uses; return the transports chosen."""
        for size in (FLOAT * self.ranks, CONNECT_BYTES):
            count = size // FLOAT // self.ranks * self.ranks
            self.move(None, data_of(self.options.collective, self.rank, self.ranks, count).in_place)
        self.comm.allgather(self.comm.allreduce(0))
        self.comm.Barrier()
        found = transport_of(stderr.stop())
        return set().union(*self.comm.allgather(found))

    def header(self, btls: set[str]) -> None:
        """Print what this is, who takes part, and the head of the table."""
        options = self.options
        carrier = ",".join(sorted(btls)) or ("self" if self.ranks == 1 else "unknown")
        self.say(
            f"# gcluster allreduce payload: simulated GPUs, MPI over {carrier}\n"
            f"{transport_line(btls, self.ranks)}\n"
            f"# Collective test starting: {options.collective}_perf\n"
            f"# nThread 1 nGpus 1 minBytes {options.min_bytes} maxBytes {options.max_bytes}"
            f" step: {options.factor}(factor) warmup iters: {options.warmup}"
            f" iters: {options.iterations} agg iters: 1 validation: 1 graph: 0 unalign: 0\n"
            "#\n# Using devices"
        )
        device = int(os.environ.get("SLURM_LOCALID", "0"))
        me = f"Pid {os.getpid():6d} on {os.uname().nodename:>10} device {device:2d}"
        for rank, who in enumerate(self.comm.allgather(me)):
            self.say(f"#  Rank {rank:2d} Group  0 {who} [0x00] simulated GPU")
        self.say(TABLE_HEAD)

    def run(self) -> int:
        """Print a row for each message size, then the verdict; return the exit status."""
        options, busbws, wrong = self.options, [], 0
        parts = 1 if options.collective in WHOLE else self.ranks
        redop = "sum" if options.collective in SUMS else "none"
        for size in message_sizes(options.min_bytes, options.max_bytes, options.factor):
            count = size // FLOAT // parts * parts
            if not count:
                continue
            halves = [self.half(count, in_place=in_place) for in_place in (False, True)]
            what = f"{count * FLOAT:12d}  {count:12d}  {'float':>8}  {redop:>6}  {-1:6d}"
            self.say(what + "".join(map(str, halves)))
            busbws += [half.busbw for half in halves]
            wrong += sum(half.wrong for half in halves)
        self.say(
            f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n"
            f"# Avg bus bandwidth    : {sum(busbws) / len(busbws):g} \n"
            f"#\n# Collective test concluded: {options.collective}_perf\n#"
        )
        return WRONG_NUMBERS if wrong else 0


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors exit as those of nccl-tests."""

    def error(self, message: str) -> NoReturn:  # noqa: D102  # documented in the base class
        self.exit(USAGE, f"{self.prog}: {message}\n")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options; sizes are in bytes."""
    parser = Parser(prog="allreduce", description="AllReduce whose numbers are all checked")
    defaults = {"min-bytes": 8, "max-bytes": 64 << 20, "factor": 8, "iterations": 5, "warmup": 1}
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--collective", choices=COLLECTIVES, default=COLLECTIVES[0])
    options = parser.parse_args(arguments)
    if not FLOAT <= options.min_bytes <= options.max_bytes:
        parser.error(f"need {FLOAT} <= --min-bytes <= --max-bytes")
    if min(options.factor - 1, options.iterations, options.warmup + 1) < 1:
        parser.error("need --factor >= 2, --iterations >= 1, --warmup >= 0")
    return options


def problem_with(ranks: int, environment: Mapping[str, str]) -> str | None:
    """Return why a run over this many ranks would prove nothing, else None."""
    by_mpirun = environment.get("OMPI_COMM_WORLD_SIZE", ranks)
    started = int(environment.get("SLURM_STEP_NUM_TASKS", by_mpirun))
    if started != ranks:
        return f"MPI has {ranks} of the {started} ranks that were started: is it srun --mpi=pmix?"
    return None if is_exact(ranks) else f"{ranks} ranks are more than float32 can sum exactly"


def main() -> int:
    """Run the benchmark; return the exit status."""
    options = parse(sys.argv[1:])
    os.environ.setdefault("OMPI_MCA_btl_base_verbose", "1")  # makes Open MPI name its transport
    os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")  # ranks may outnumber the cores
    stderr = StderrFilter()
    from mpi4py import MPI  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    try:
        benchmark = Benchmark(MPI, options)
        problem = problem_with(benchmark.ranks, os.environ)
        if problem is None:
            benchmark.header(benchmark.connect(stderr))
            return benchmark.run()
        stderr.stop()
        sys.stderr.write(f"allreduce: {problem}\n")
    except Exception as error:  # noqa: BLE001  one rank's error must end all ranks
        sys.stderr.write(f"allreduce: {type(error).__name__}: {error}\n")
        MPI.COMM_WORLD.Abort(1)
    return 1


if __name__ == "__main__":
    sys.exit(main())
