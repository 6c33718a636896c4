"""Where nothing counts what a rail carries, each is run by itself; launcher, logs are doubles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.lifecycle.smoke.vendor_logs import SETUPS, log_of

from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.lifecycle.nodes.ssh import SshSession
from gcluster.lifecycle.smoke import run as smoke
from gcluster.lifecycle.smoke.launch import Launch
from gcluster.lifecycle.smoke.launching.launcher import Ended
from gcluster.lifecycle.smoke.run import SmokeResult, run_allreduce
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

GPUS, NODES = 8, ("gpu001", "gpu002")
SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {room: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: room, role: controller, hosts: head01}
  gpu: {site: room, machine: a3-megagpu-8g, hosts: "gpu[001-002]"}
scheduler: {type: slurm}
smoke: {allreduce: {sizes: 8B..8GiB}}
"""


def apart(launch: Launch, busbw: float) -> Iterator[str]:
    """Write the log of a run whose GPUs are apart, as nccl-tests do under a split mask."""
    size = launch.max_bytes
    yield (
        f"# nThread 1 nGpus 1 minBytes {size} maxBytes {size} step: 2(factor) warmup iters: 5"
        " iters: 20 agg iters: 1 validation: 1 graph: 0"
    )
    for rank in range(GPUS * len(NODES)):
        host, device = NODES[rank // GPUS], rank % GPUS
        who = f"Pid {4000 + rank:6d} on {host} device {device:2d}"
        yield f"#  Rank {rank:2d} Group {device:2d} {who} [0x0{device}] NVIDIA H100"
        peer = (rank + GPUS) % (GPUS * len(NODES))
        said = f"{host}:1:1 [{device}] NCCL INFO"
        yield f"{said} comm 0x55d0{rank:08x} rank {rank // GPUS} nRanks 2 nNodes 2 localRanks 1"
        yield f"{said} Channel 00/0 : {rank}[{device}] -> {peer}[{device}] [send] via NET/FasTrak/0"
    half = "     time   algbw   busbw #wrong"
    yield f"#       size         count      type   redop    root{half}{half}"
    microseconds = size / busbw / 1e3
    numbers = f"{microseconds:.0f} {busbw:.2f} {busbw:.2f} 0"
    yield f"{size} {size // 4} float sum -1 {numbers} {numbers}"
    yield "# Out of bounds values : 0 OK"
    yield f"# Avg bus bandwidth    : {busbw:g}"


class Double:
    """Stands in for Slurm: answers with logs."""

    def __init__(self, busbw: float) -> None:
        """Say what the slowest rail reaches."""
        self.busbw = busbw
        self.launches: list[Launch] = []

    @staticmethod
    def idle(compute: tuple[Host, ...]) -> tuple[tuple[Host, ...], tuple[str, ...]]:
        """Return all."""
        return compute, ()

    def run(self, launch: Launch, take: Callable[[str], None], limit_s: float) -> Ended:
        """Hand over a log."""
        del limit_s
        self.launches.append(launch)
        whole = log_of("gpudirect-tcpxo", SETUPS["gpudirect-tcpxo"].via)
        for line in apart(launch, self.busbw) if launch.apart else whole:
            take(f"{line}\n")
        return Ended()

    @staticmethod
    def reaches_nics(launch: Launch) -> bool:
        """Say no: none is asked for."""
        del launch
        return False


def gate(busbw: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmokeResult:
    spec = load_text(SPEC, file="spec.yaml", check=False).spec
    assert spec is not None
    hosts = tuple(
        Host(
            name=name,
            site="room",
            pool="gpu" if name.startswith("gpu") else "head",
            role="compute" if name.startswith("gpu") else "controller",
            machine="a3-megagpu-8g",
            ssh=SshTarget(user="ops"),
        )
        for name in ("head01", *NODES)
    )
    monkeypatch.setattr(smoke, "launcher_of", lambda *_: Double(busbw))
    return run_allreduce(
        spec,
        ClusterInventory(cluster="demo", hosts=hosts),
        cast("SshSession", None),
        tmp_path,
        lambda _: None,
        catalog=load_catalog(),
        bisect=False,
    )


def test_rails_that_nothing_counts_are_proven_by_a_run_with_each_gpu_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = gate(21.0, tmp_path, monkeypatch)
    whole, alone = result.runs
    assert result.passed, [run.verdict.reasons for run in result.runs]
    assert whole.verdict.rails == "not proven: no port counter of gvnic is known"
    assert alone.verdict.rails == "each GPU with its own NICs alone reached 21 GB/s or more"


def test_a_dead_rail_that_nothing_counts_fails_the_run_with_each_gpu_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = gate(12.4, tmp_path, monkeypatch)
    assert result.runs[0].verdict.passed
    assert [reason.code for reason in result.runs[1].verdict.reasons] == ["below-floor"]
    assert "the floor is 15.00 GB/s" in result.runs[1].verdict.reasons[0].message
    assert not result.passed
