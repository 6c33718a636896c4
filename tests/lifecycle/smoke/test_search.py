"""The search runs smaller AllReduces and names what they leave. The jobs are a double's work."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from gcluster.inventory.hosts import Host, Placement, SshTarget
from gcluster.lifecycle.cluster.progress import Progress
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession
from gcluster.lifecycle.smoke.bisect import Fault
from gcluster.lifecycle.smoke.domains import bad_rails, blocks_of, rail_environment, rails_of
from gcluster.lifecycle.smoke.judging.verdict import Expectation, Reason, Verdict
from gcluster.lifecycle.smoke.launch import Launch
from gcluster.lifecycle.smoke.launching.job import JobRunner, SmokeRun
from gcluster.lifecycle.smoke.launching.slurm import choose_idle
from gcluster.lifecycle.smoke.reading.log import AllReduceLog
from gcluster.lifecycle.smoke.saved import located_fault
from gcluster.lifecycle.smoke.search import Search
from gcluster.lifecycle.status.slurm import SchedulerView
from gcluster.schemas.catalog import load_catalog

NAMES = tuple(f"gpu{number:03d}" for number in range(1, 9))
FABRICS = load_catalog().fabrics
LAUNCH = Launch(
    job="job",
    label="main-1",
    partition="main",
    nodes=NAMES,
    min_bytes=8,
    max_bytes=64,
    iterations=1,
)


def host(name: str, block: str | None = None) -> Host:
    return Host(
        name=name,
        site="here",
        pool="gpu",
        role="compute",
        machine="dgx-h100",
        ssh=SshTarget(user="root"),
        placement=Placement(block=block),
    )


class Runner:
    """A double of JobRunner: what holds a bad node fails, a bad rail is slow."""

    def __init__(self, bad: set[str], slow_rail: str = "") -> None:
        """Say what is at fault."""
        self.bad, self.slow_rail = bad, slow_rail
        self.launches: list[Launch] = []

    def run(self, launch: Launch, expected: Expectation) -> SmokeRun:
        """Answer at once."""
        self.launches.append(launch)
        failed = bool(self.bad & set(launch.nodes)) and not launch.environment
        slow = bool(self.slow_rail) and any(self.slow_rail in v for _, v in launch.environment)
        verdict = Verdict(
            verdict="fail" if failed else "pass",
            reasons=(Reason(code="wrong-result", message="made up"),) if failed else (),
            ranks=expected.ranks,
            wrong=0,
            largest=64,
            busbw=20 if slow else 40,
            floor=None,
            transport="",
            simulated=False,
        )
        return SmokeRun(
            partition="main", nodes="", verdict=verdict, log=AllReduceLog(), log_file=str(Path())
        )


class Session:
    """A double of SshSession: every host has these NICs."""

    def __init__(self, *nics: str) -> None:
        """Name the NICs."""
        self.nics = "\n".join(nics)

    def run_many(self, hosts: list[Host], _: str, *, timeout_s: float) -> dict[str, SshResult]:
        """Answer for each host."""
        assert timeout_s > 0
        return {h.name: SshResult(returncode=0, stdout=self.nics, stderr="") for h in hosts}


def search(runner: Runner) -> Search:
    failed = runner.run(LAUNCH, Expectation(ranks=8))
    runner.launches.clear()
    return Search(LAUNCH, failed, cast("JobRunner", runner), lambda it: Expectation(ranks=it.ranks))


def silent(_: Progress) -> None:
    """Take what is reported."""


def test_the_bad_nodes_are_named_by_jobs_on_parts_of_the_nodes() -> None:
    runner = Runner({"gpu003", "gpu006"})
    blocks = blocks_of([host(name, "ab"[n > 3]) for n, name in enumerate(NAMES)])
    located = search(runner).locate(blocks, silent, "smoke")
    assert set(located.faults) == {
        Fault(kind="node", nodes=("gpu003",)),
        Fault(kind="node", nodes=("gpu006",)),
    }
    assert [launch.nodes for launch in runner.launches[:2]] == [NAMES[:4], NAMES[4:]]
    assert located.tests == len(runner.launches)
    assert len({launch.label for launch in runner.launches}) == located.tests
    assert "node gpu003 is at fault" in located_fault(located, "gpu[001-008]").summary


def test_a_rail_that_is_half_as_fast_as_the_others_is_named_on_its_nodes() -> None:
    runner = Runner({"gpu003"}, slow_rail="mlx5_1")
    looking = search(runner)
    located = looking.locate([NAMES], silent, "smoke")
    session = cast("SshSession", Session("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"))
    hosts = tuple(map(host, NAMES))
    found = looking.rails(located, hosts, session, FABRICS["infiniband-ndr"])
    assert found.rails == ("mlx5_1 on gpu003",)
    assert runner.launches[-1].environment == (("NCCL_IB_HCA", "=mlx5_3"),)


class Slow(Runner):
    """64 nodes of which one has a dead rail: pairs reach NVLink's speed unless GPUs are apart."""

    def run(self, launch: Launch, expected: Expectation) -> SmokeRun:
        """Answer at once."""
        answer = super().run(launch, expected)
        whole = len(launch.nodes) > 2
        alone = 24 if self.bad & set(launch.nodes) else 48
        busbw = 300 if whole else alone if launch.apart else 480
        reasons = (Reason(code="below-floor", message="made up"),) if whole else ()
        verdict = msgspec.structs.replace(answer.verdict, busbw=busbw, reasons=reasons)
        return msgspec.structs.replace(answer, verdict=verdict)


def test_pairs_are_compared_with_each_gpu_apart_so_that_nvlink_hides_no_slow_node() -> None:
    runner = Slow({"gpu042"})
    nodes = tuple(f"gpu{number:03d}" for number in range(1, 65))
    launch = msgspec.structs.replace(LAUNCH, nodes=nodes, gpus=8, max_bytes=1 << 30)
    failed = runner.run(launch, Expectation(ranks=512))
    runner.launches.clear()
    looking = Search(
        launch, failed, cast("JobRunner", runner), lambda it: Expectation(ranks=it.ranks, floor=384)
    )
    located = looking.locate([nodes], silent, "smoke")
    assert located.faults == (Fault(kind="node", nodes=("gpu042",)),)
    assert (located.rounds, located.tests) == (5, 4 * 32 + 1)
    pair = runner.launches[0]
    assert pair.variables()["NCCL_TESTS_SPLIT_MASK"] == "0x7"
    assert pair.program()[-2:] == ["-a", "3"]
    assert pair.min_bytes == pair.max_bytes


def test_a_node_with_one_nic_has_no_rails_to_distinguish() -> None:
    looking = search(Runner({"gpu003"}))
    located = looking.locate([NAMES], silent, "smoke")
    session = cast("SshSession", Session("eth0"))
    assert looking.rails(located, tuple(map(host, NAMES)), session, None) == located


@pytest.mark.parametrize(
    ("speeds", "bad"),
    [
        ({"a": 40, "b": 41, "c": 20}, ("c",)),
        ({"a": 40, "b": None, "c": 39}, ("b",)),
        ({"a": 40, "b": 39, "c": 41}, ()),
        ({"a": None, "b": None}, ()),
    ],
)
def test_rails_are_compared_with_each_other(
    speeds: dict[str, float | None], bad: tuple[str, ...]
) -> None:
    assert bad_rails(speeds) == bad


def test_rails_are_what_the_node_keeps_and_interfaces_what_reaches_others(tmp_path: Path) -> None:
    for name in ("mlx5_0", "mlx5_1", "mlx5_3"):  # mlx5_1 is for storage
        (tmp_path / "sys/class/infiniband" / name).mkdir(parents=True)
    (tmp_path / "var/lib/gcluster").mkdir(parents=True)
    (tmp_path / "var/lib/gcluster/rails").write_text("mlx5_3\nmlx5_0\n")
    for name, state, device in (
        ("eno1", "up", "pci0000:00/0000:01:00.0"),
        ("eno2", "down", "pci0000:00/0000:01:00.1"),
        ("eno3", "up", "pci0000:00/0000:02:00.0"),
        ("enxb03af2b6059f", "up", "pci0000:00/usb1/1-14"),
        ("virbr0", "up", ""),
    ):
        (tmp_path / "sys/class/net" / name).mkdir(parents=True)
        (tmp_path / "sys/class/net" / name / "operstate").write_text(f"{state}\n")
        if device:
            (tmp_path / "sys/devices" / device).mkdir(parents=True)
            (tmp_path / "sys/class/net" / name / "device").symlink_to(f"../../../devices/{device}")
    (tmp_path / "sys/class/net/bond0").mkdir()
    (tmp_path / "sys/class/net/eno3/master").symlink_to("../bond0")

    class Here(Session):
        """Runs the command in a shell, on a folder in place of the node's root."""

        def run_many(self, hosts: list[Host], command: str, *, timeout_s: float) -> Any:
            """Answer for each host."""
            there = re.sub(r"/(sys|var)/", rf"{tmp_path}/\1/", command)
            self.nics = subprocess.check_output(["sh", "-c", there], text=True, timeout=timeout_s)
            return super().run_many(hosts, command, timeout_s=timeout_s)

    here = cast("SshSession", Here())
    pair = [host("gpu001"), host("gpu002")]
    assert rails_of(here, pair, FABRICS["infiniband-ndr"]) == ("mlx5_3", "mlx5_0")
    assert rails_of(here, pair, FABRICS["ethernet"]) == ("eno1",)


@pytest.mark.parametrize("name", ["efa-v2", "gib", "gpudirect-tcpxo", "nvlink"])
def test_where_a_plugin_chooses_the_nics_no_rail_is_tested(name: str) -> None:
    assert rails_of(cast("SshSession", Session("a", "b")), [host("gpu001")], FABRICS[name]) == ()


def test_sockets_are_kept_to_one_interface_by_its_exact_name() -> None:
    assert ("NCCL_SOCKET_IFNAME", "=eth1") in rail_environment("eth1", FABRICS["ethernet"])


def test_busy_and_drained_nodes_are_left_out_and_the_idle_ones_are_tested() -> None:
    states = {"gpu001": "idle", "gpu002": "allocated", "gpu003": "drained", "gpu004": "idle*"}
    hosts = tuple(map(host, NAMES[:4]))
    idle, busy = choose_idle(SchedulerView(states=states), hosts)
    assert ([h.name for h in idle], busy) == (["gpu001"], ("gpu002", "gpu003", "gpu004"))


def test_when_none_is_idle_or_the_scheduler_is_silent_all_are_requested() -> None:
    hosts = tuple(map(host, NAMES[:2]))
    assert choose_idle(SchedulerView(problem="dead"), hosts) == (hosts, ())
    assert choose_idle(SchedulerView(states=dict.fromkeys(NAMES, "mixed")), hosts) == (hosts, ())


def test_a_search_for_wrong_numbers_requests_no_speed() -> None:
    requested: list[float | None] = []

    class Noting(Runner):
        """Records the floor that each part is given."""

        def run(self, launch: Launch, expected: Expectation) -> SmokeRun:
            """Answer at once."""
            requested.append(expected.floor)
            return super().run(launch, expected)

    runner = Noting({"gpu003"})
    failed = runner.run(LAUNCH, Expectation(ranks=8))
    requested.clear()
    looking = Search(
        LAUNCH, failed, cast("JobRunner", runner), lambda _: Expectation(ranks=8, floor=9)
    )
    looking.locate([NAMES], silent, "smoke")
    assert set(requested) == {None}
