#!/usr/bin/python3
"""Measure a node, its storage, or all pairs of nodes: what `gcluster acceptance` has no tool for.

Each result is a line `@measure {...}` with JSON; units are in the names. Needs Python alone; numpy
for `matmul`, mpi4py for `pairs`, which is started by `srun --mpi=pmix` with one rank a node.

Everything is checked: copies and files byte by byte, products by Freivalds' method (A(Bx) against
(AB)x, with small whole numbers, so that both are exact). `wrong` counts what differed: a node that
computes wrong numbers without an error is found here or by a user.

Exit: 0 ok, 1 it could not be measured, 6 usage, 7 wrong data.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

USAGE, WRONG_DATA = 6, 7  # exit status, as those of the program allreduce
COPY_BYTES = 64 << 20  # beyond the last-level cache of a core's share
MATRIX = 768
PING_BYTES, PINGS = 8, 200
BLOCK = 1 << 20
CONNECT_TRIES, CONNECT_S = 40, 0.25  # a server of perftest listens within 10 s
LISTENS = 18515  # perftest's own default; each rail of a node takes the next
PERFTEST_S = 120


def say(**found: object) -> None:
    """Print one result, whole."""
    sys.stdout.write("@measure " + json.dumps(found) + "\n")
    sys.stdout.flush()


def on_each_cpu(work: Callable[[float], tuple[float, int]], seconds: float) -> tuple[float, int]:
    """Run `work` on every available processor at once; return the sums of the results."""
    pipes = []
    for cpu in sorted(os.sched_getaffinity(0)):
        source, sink = os.pipe()
        if os.fork() == 0:
            os.sched_setaffinity(0, {cpu})
            rate, wrong = work(seconds)
            os.write(sink, f"{rate} {wrong}".encode())
            os._exit(0)
        os.close(sink)
        pipes.append(source)
    total, errors = 0.0, 0
    for source in pipes:
        with os.fdopen(source) as answer:
            rate_text, wrong_text = answer.read().split()
        total, errors = total + float(rate_text), errors + int(wrong_text)
        os.wait()
    return total, errors


def copy_memory(seconds: float) -> tuple[float, int]:
    """Return bytes read and written a second by copies of a block, as STREAM counts Copy."""
    source, target = bytearray(os.urandom(BLOCK) * (COPY_BYTES // BLOCK)), bytearray(COPY_BYTES)
    begin, copies = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        target[:] = source
        copies += 1
    rate = 2 * COPY_BYTES * copies / (time.perf_counter() - begin)
    return rate, int(target != source)


def multiply(seconds: float) -> tuple[float, int]:
    """Return floating-point operations a second of matrix products in float64."""
    import numpy as np  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    random = np.random.default_rng(os.getpid())
    left, right = (random.integers(-9, 9, (MATRIX, MATRIX)).astype("float64") for _ in "ab")
    vector = random.integers(-9, 9, MATRIX).astype("float64")
    wanted = left @ (right @ vector)
    begin, products, wrong = time.perf_counter(), 0, 0
    while time.perf_counter() - begin < seconds:
        wrong += not np.array_equal((left @ right) @ vector, wanted)
        products += 1
    return 2.0 * MATRIX**3 * products / (time.perf_counter() - begin), wrong


def node(options: argparse.Namespace) -> int:
    """Measure memory and processors of this node."""
    copied, torn = on_each_cpu(copy_memory, options.seconds)
    say(memory_copy=copied / 1e9, wrong=torn)
    try:
        import numpy as np  # type: ignore[import-not-found,unused-ignore]  # noqa: F401, PLC0415
    except ImportError:
        say(missing="numpy")
        return WRONG_DATA if torn else 0
    flops, wrong = on_each_cpu(multiply, options.seconds)
    say(matmul=flops / 1e9, cpus=len(os.sched_getaffinity(0)), wrong=wrong)
    return WRONG_DATA if torn or wrong else 0


def storage(options: argparse.Namespace) -> int:
    """Measure a directory: one file in sequence, then many small ones; all are removed."""
    folder = Path(options.path) / f".gcluster-measure-{os.uname().nodename}-{os.getpid()}"
    folder.mkdir(mode=0o700)
    block, count = os.urandom(BLOCK), max(1, options.mib)
    large, wrong = folder / "large", 0
    try:
        begin = time.perf_counter()
        with large.open("wb", buffering=0) as file:
            for _ in range(count):
                file.write(block)
            os.fsync(file.fileno())
            written = time.perf_counter() - begin
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        begin = time.perf_counter()
        with large.open("rb", buffering=0) as file:
            for _ in range(count):
                wrong += file.read(BLOCK) != block
        read = time.perf_counter() - begin
        say(write=count * BLOCK / written / 1e9, read=count * BLOCK / read / 1e9, wrong=wrong)
        say(**small_files(folder, options.files))
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    return WRONG_DATA if wrong else 0


def small_files(folder: Path, count: int) -> dict[str, float]:
    """Return how many empty files per second are created, stat'ed and removed."""
    paths = [folder / f"small-{number}" for number in range(count)]
    found = {}
    for name, act in (("create", Path.touch), ("stat", Path.stat), ("unlink", Path.unlink)):
        begin = time.perf_counter()
        for path in paths:
            act(path)
        found[name] = count / (time.perf_counter() - begin)
    return found


def partner(player: int, players: int, number: int) -> int | None:
    """Return a player's partner in a round of the circle method; None: none in this round.

    In the rounds 0 to n-2 of an even n, or 0 to n-1 of an odd one, each meets each other once.
    """
    even = players + players % 2
    last = even - 1
    if player == last:
        other = next(one for one in range(last) if 2 * one % last == number % last)
    else:
        other = (number - player) % last
        if other == player:
            other = last
    return other if other < players else None


def pairs(options: argparse.Namespace) -> int:
    """Have every node meet others, round by round, and print what each pair reached."""
    from mpi4py import MPI  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    comm = MPI.COMM_WORLD
    rank, ranks = int(comm.rank), int(comm.size)
    me = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    names, wrong = comm.allgather(me), 0
    meet = meet_by_tool if options.tool else meet_by_mpi
    for number in rounds_of(options.rounds, ranks):
        other = partner(rank, ranks, number)
        found = None if other is None else meet(comm, rank, other, options)
        for one in comm.gather(found, root=0) or ():
            for answer in one or ():
                answer["pair"] = [names[each] for each in answer["pair"]]
                wrong += answer.get("wrong", 0)
                say(**answer)
    return WRONG_DATA if comm.bcast(wrong, root=0) else 0


def rounds_of(text: str, ranks: int) -> Iterator[int]:
    """Yield the numbers of the rounds: "all", or every so-and-so-many-th: "every:7"."""
    step = int(text.partition(":")[2] or 1)
    yield from range(0, ranks - 1 + ranks % 2, step)


def message(rank: int, size: int) -> bytearray:
    """Return the bytes that a rank sends; its period is a prime, so that misplaced blocks show."""
    period = bytes(range(251))
    start = rank % len(period)
    return bytearray((period * (size // len(period) + 2))[start : start + size])


def meet_by_mpi(
    comm: Any, rank: int, other: int, options: argparse.Namespace
) -> list[dict[str, Any]] | None:
    """Send both ways at once, then back and forth; the lower rank of the pair reports."""
    mine, theirs = (message(one, options.bytes) for one in (rank, other))
    got = bytearray(options.bytes)
    comm.Sendrecv(mine, dest=other, recvbuf=got, source=other)
    begin = time.perf_counter()
    for _ in range(options.iterations):
        comm.Sendrecv(mine, dest=other, recvbuf=got, source=other)
    seconds = (time.perf_counter() - begin) / options.iterations
    wrong = int(got != theirs)
    ping = bytearray(PING_BYTES)
    begin = time.perf_counter()
    for _ in range(PINGS):
        if rank < other:
            comm.Send(ping, dest=other)
            comm.Recv(ping, source=other)
        else:
            comm.Recv(ping, source=other)
            comm.Send(ping, dest=other)
    microseconds = (time.perf_counter() - begin) / PINGS / 2 * 1e6
    wrong += int(comm.sendrecv(wrong, dest=other, source=other))
    if rank > other:
        return None
    rate = options.bytes / seconds / 1e9
    answer = {"pair_bandwidth": rate, "pair_latency": microseconds, "wrong": wrong}
    return [{"pair": [rank, other], **answer}]


def meet_by_tool(
    comm: Any, rank: int, other: int, options: argparse.Namespace
) -> list[dict[str, Any]] | None:
    """Run a program of perftest between two nodes, on all rails at once or on the first.

    The lower rank serves. A client's output is passed on unchanged, for one parser elsewhere.
    """
    devices = rails(Path("/sys/class/infiniband"))[: 1 if options.first_rail else None]
    address = os.uname().nodename
    theirs, host = comm.sendrecv((devices, address), dest=other, source=other)
    both = [(mine, peer) for mine, peer in zip(devices, theirs)]  # Python 3.9 of EL 9
    running = [
        client_or_server(options.tool, mine, LISTENS + at, host if rank > other else "")
        for at, (mine, _) in enumerate(both)
    ]
    texts = [ended(process) for process in running]
    there = comm.sendrecv(texts, dest=other, source=other)
    if rank > other:
        return None
    answer = [
        {"pair": [rank, other], "rail": mine, "tool": options.tool, "text": text}
        for (mine, _), text in zip(both, there)
    ]
    return answer or [{"pair": [rank, other], "tool": options.tool, "text": "no rail is active"}]


def rails(root: Path) -> list[str]:
    """Return the RDMA devices of this node: those that NCCL is set to use, else active ones."""
    answer = os.environ.get("NCCL_IB_HCA", "").lstrip("=")
    if answer and not answer.startswith("^"):
        return [device.partition(":")[0] for device in answer.split(",")]
    ports = sorted(root.glob("*/ports/1/state"))
    return [port.parts[-4] for port in ports if "ACTIVE" in port.read_text(encoding="ascii")]


def client_or_server(tool: str, device: str, port: int, host: str) -> subprocess.Popen[str]:
    """Start one side; the client waits until the server listens."""
    words = [tool, "-d", device, "-p", str(port), "-F"]
    words += ["-D", "3", "--report_gbits"] if "_bw" in tool else ["-n", "1000"]
    line = " ".join([*words, host])
    if host:
        line = (
            f"for i in $(seq {CONNECT_TRIES}); do {line} && exit; sleep {CONNECT_S}; done; exit 1"
        )
    return subprocess.Popen(
        ["timeout", str(PERFTEST_S), "sh", "-c", line],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    """Return what a program printed, and how it ended where that was not well."""
    said, _ = process.communicate()
    return said + (f"\nexit {process.returncode}\n" if process.returncode else "")


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors exit as those of the program allreduce."""

    def error(self, message: str) -> NoReturn:  # noqa: D102  # documented in the base class
        self.exit(USAGE, f"{self.prog}: {message}\n")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options; `act` runs the selected measurement."""
    parser = Parser(prog="measure", description="Measure a node, its storage or pairs of nodes")
    commands = parser.add_subparsers(required=True)
    of_node = commands.add_parser("node")
    of_node.add_argument("--seconds", type=float, default=5)
    of_node.set_defaults(act=node)
    of_storage = commands.add_parser("storage")
    of_storage.add_argument("--path", required=True)
    of_storage.add_argument("--mib", type=int, default=1024)
    of_storage.add_argument("--files", type=int, default=1000)
    of_storage.set_defaults(act=storage)
    of_pairs = commands.add_parser("pairs")
    of_pairs.add_argument("--bytes", type=int, default=4 << 20)
    of_pairs.add_argument("--iterations", type=int, default=20)
    of_pairs.add_argument("--rounds", default="all")
    of_pairs.add_argument("--tool", choices=("ib_write_bw", "ib_send_lat"))
    of_pairs.add_argument("--first-rail", action="store_true")
    of_pairs.set_defaults(act=pairs)
    return parser.parse_args(arguments)


def main() -> int:
    """Run the selected measurement; return the exit status."""
    options = parse(sys.argv[1:])
    os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")  # ranks may outnumber the cores
    try:
        return int(options.act(options))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"measure: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
