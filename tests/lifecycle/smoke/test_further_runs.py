"""What the gate runs after the AllReduce: rails apart, containers. Launcher, logs are doubles."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.lifecycle.smoke.vendor_logs import SETUPS, log_of

from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.lifecycle.nodes.ssh import SshSession
from gcluster.lifecycle.smoke import run as smoke
from gcluster.lifecycle.smoke.judging.judge import judge
from gcluster.lifecycle.smoke.judging.verdict import Expectation
from gcluster.lifecycle.smoke.launch import GATE_IMAGE, Launch
from gcluster.lifecycle.smoke.launching.launcher import Ended
from gcluster.lifecycle.smoke.launching.slurm import command
from gcluster.lifecycle.smoke.reading.parse import parse_log
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
software: {containers: none}
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
        own, peer = rank // GPUS, 1 - rank // GPUS  # NCCL counts in each communicator
        line = f"{host}:1:1 [{device}] NCCL INFO"
        yield f"{line} comm 0x55d0{rank:08x} rank {rank // GPUS} nRanks 2 nNodes 2 localRanks 1"
        yield f"{line} Channel 00/0 : {own}[{device}] -> {peer}[{device}] [send] via NET/FasTrak/0"
    half = "     time   algbw   busbw #wrong"
    yield f"#       size         count      type   redop    root{half}{half}"
    microseconds = size / busbw / 1e3
    numbers = f"{microseconds:.0f} {busbw:.2f} {busbw:.2f} 0"
    yield f"{size} {size // 4} float sum -1 {numbers} {numbers}"
    yield "# Out of bounds values : 0 OK"
    yield f"# Avg bus bandwidth    : {busbw:g}"


class Double:
    """A double of Slurm: answers with logs."""

    def __init__(self, busbw: float, inside: str = "NET/FasTrak/0") -> None:
        """Say what the slowest rail reaches, and what carries messages inside a container."""
        self.busbw, self.inside = busbw, inside
        self.launches: list[Launch] = []

    @staticmethod
    def idle(compute: tuple[Host, ...]) -> tuple[tuple[Host, ...], tuple[str, ...]]:
        """Return all."""
        return compute, ()

    def run(self, launch: Launch, take: Callable[[str], None], limit_s: float) -> Ended:
        """Hand over a log."""
        del limit_s
        self.launches.append(launch)
        via = self.inside if launch.container else SETUPS["gpudirect-tcpxo"].via
        whole = log_of("gpudirect-tcpxo", via)
        for line in apart(launch, self.busbw) if launch.apart else whole:
            take(f"{line}\n")
        return Ended()

    @staticmethod
    def reaches_nics(launch: Launch) -> bool:
        """Say yes, as Slurm."""
        del launch
        return True


def gate(double: Double, tmp_path: Path, patch: pytest.MonkeyPatch, text: str) -> SmokeResult:
    spec = load_text(text, file="spec.yaml", check=False).spec
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
    patch.setattr(smoke, "launcher_of", lambda *_: double)
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
    result = gate(Double(21.0), tmp_path, monkeypatch, SPEC)
    whole, alone = result.runs
    assert result.passed, [run.verdict.reasons for run in result.runs]
    assert whole.verdict.rails == "not proven: no port counter of gvnic is known"
    assert alone.verdict.rails == "each GPU with its own NICs alone reached 21 GB/s or more"


def test_a_dead_rail_that_nothing_counts_fails_the_run_with_each_gpu_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = gate(Double(12.4), tmp_path, monkeypatch, SPEC)
    assert result.runs[0].verdict.passed
    assert [reason.code for reason in result.runs[1].verdict.reasons] == ["below-floor"]
    assert "the floor is 15.00 GB/s" in result.runs[1].verdict.reasons[0].message
    assert not result.passed


def test_ranks_of_rccl_without_a_group_are_separated_by_their_communicators() -> None:
    launch = Launch(
        job="j",
        label="j",
        partition="p",
        nodes=NODES,
        min_bytes=1 << 30,
        max_bytes=1 << 30,
        iterations=20,
        gpus=GPUS,
        apart=True,
    )
    lines = [re.sub(r"Group +\d+ ", "", line) for line in apart(launch, 21.0)]
    expected = Expectation(ranks=16, groups=8, node_count=2)
    assert judge(parse_log(lines), expected).passed
    whole = [line.replace("nRanks 2", "nRanks 16") for line in lines]
    assert [r.code for r in judge(parse_log(whole), expected).reasons] == ["missing-rank"]


CONTAINERS = SPEC.replace("containers: none", "containers: pyxis")


@pytest.mark.parametrize(
    ("inside", "codes"),
    [("NET/FasTrak/0", []), ("NET/Socket/0", ["wrong-transport"])],
    ids=["with the fabric", "on sockets"],
)
def test_where_jobs_have_containers_the_gate_runs_in_one_too_and_has_a_lost_fabric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str, codes: list[str]
) -> None:
    double = Double(21.0, inside)
    result = gate(double, tmp_path, monkeypatch, CONTAINERS)
    assert [run.container for run in result.runs] == ["", "", GATE_IMAGE]
    assert [reason.code for reason in result.runs[2].verdict.reasons] == codes
    assert result.passed == (not codes)
    words = shlex.split(command(double.launches[2]))
    assert f"--container-image={GATE_IMAGE}" in words
    assert "NVIDIA_VISIBLE_DEVICES=all" in words
    assert "--reuid=65534" in words
