"""How long `gcluster smoke --log` takes for a log of 64 MB, and how much memory."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .timing import Result, arguments, cpu_seconds, fitted_exponent, report, with_bytecode

MEGABYTES = 64
FEWER = 16
SECONDS = 10.0
MEBIBYTES = 100.0
NODES, GPUS = 128, 8


def write_log(path: Path, megabytes: int) -> None:
    """Write a synthetic log of nccl-tests with NCCL_DEBUG=INFO, most of it channel lines."""
    ranks = NODES * GPUS
    with path.open("w", encoding="utf-8") as log:
        log.write(
            "# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 2147483648 step: 2(factor)\n#\n"
        )
        for rank in range(ranks):
            who = f"Pid {4000 + rank:6d} on gpu{rank // GPUS:03d} device {rank % GPUS:2d}"
            log.write(f"#  Rank {rank:2d} Group  0 {who} [0x1b] NVIDIA H100 80GB HBM3\n")
        log.write(
            "#       size         count      type   redop    root     time   algbw   busbw #wrong"
            "     time   algbw   busbw #wrong\n"
        )
        channel = 0
        while log.tell() < megabytes * 1e6:
            for rank in range(ranks):
                before = (
                    f"{rank}: gpu{rank // GPUS:03d}:{4000 + rank}:{9000 + rank} [{rank % GPUS}]"
                )
                peer = (rank + 1) % ranks
                inside = rank // GPUS == peer // GPUS
                how = "via P2P/CUMEM" if inside else "[send] via NET/IB/0/GDRDMA"
                ends = f"{rank}[{rank % GPUS}] -> {peer}[{peer % GPUS}]"
                log.write(f"{before} NCCL INFO Channel {channel % 16:02d}/0 : {ends} {how}\n")
            channel += 1
        factor = 2 * (ranks - 1) / ranks
        busbws = []
        for power in (30, 31):
            size, algbw = 1 << power, 200.0
            busbws.append(algbw * factor)
            half = f"{size / algbw / 1e3:9.1f}  {algbw:6.2f}  {algbw * factor:6.2f}      0"
            log.write(f"{size:12d} {size // 4:12d}     float     sum      -1 {half} {half}\n")
        log.write("# Out of bounds values : 0 OK\n")
        log.write(f"# Avg bus bandwidth    : {sum(busbws) / len(busbws):g}\n#\n")


def main() -> int:
    """Write the log and measure; the verdict must be a pass."""
    options = arguments(__doc__ or "").parse_args()
    gcluster = shutil.which("gcluster", path=str(Path(sys.executable).parent))
    if gcluster is None:
        sys.exit("gcluster is not installed for this Python: run make setup")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "allreduce.log")
        write_log(log, MEGABYTES)
        command = [gcluster, "smoke", "--log", str(log), "--fabric", "infiniband-ndr"]
        command += ["--machine", "dgx-h100", "--nodes", str(NODES), "--format", "json"]
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=with_bytecode())
        seconds = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        on_core = {MEGABYTES: used.ru_utime + used.ru_stime}
        lines = sum(1 for _ in log.open("rb"))
        name = f"{log.stat().st_size / 1e6:.0f} MB, {lines:,} lines, {NODES * GPUS} ranks"
        write_log(log, FEWER)
        on_core[FEWER] = cpu_seconds(command)
    results = [
        Result(name=name, value=seconds, unit="s"),
        Result(name="of that on a core", value=on_core[MEGABYTES], unit="s", limit=SECONDS),
        Result(name="peak memory", value=used.ru_maxrss / 1024, unit="MiB", limit=MEBIBYTES),
        Result(name="exponent over bytes", value=fitted_exponent(on_core), unit="", limit=1.15),
    ]
    return report("judging a saved log", results, as_json=options.json, ratios=options.ratios)


if __name__ == "__main__":
    sys.exit(main())
