"""`top` and `report` of a real Prometheus, behind TLS and its password, with known figures.

Debian's Prometheus serves two hours of samples that promtool wrote into its store. SSH is left out:
the node's program runs here, in the way in which it runs there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.free_port import free_port
from tests.lifecycle.scheduler.test_account import STATE

from gcluster.ansible_collections.gcluster.cluster.plugins.modules.web_config import crypt
from gcluster.inventory.compile.system.monitoring import SERVER_SECRET
from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.nodes.ssh.session import SshResult
from gcluster.lifecycle.scheduler.workloads.progress import GpuUse, use_of
from gcluster.lifecycle.secrets.certificates import certificate_of, issue, new_authority
from gcluster.lifecycle.secrets.makers import ISSUED
from gcluster.lifecycle.status.waste.goodput import Ended
from gcluster.lifecycle.status.waste.now import read_now
from gcluster.lifecycle.status.waste.prometheus import (
    Query,
    QueryPrometheus,
    instant,
    query_over_ssh,
)
from gcluster.lifecycle.status.waste.report import read_report

pytestmark = pytest.mark.monitoring

PASSWORD = "plover-metrics-1103"  # noqa: S105  # of the server of this test
STEP_S, SAMPLES = 15, 480
"""Two hours, as Prometheus' rules are evaluated."""
HOSTILE = 'a"} 1\nup 0 <script>alert(1)</script>\x1b[31m'
ADA = {"account": "nlp", "user": "ada", "qos": "normal", "pool": "gpu"}
BOB = {"account": "vision", "user": "bob", "qos": "normal", "pool": "gpu"}
JOB_7 = ADA | {"hpc_job": "7", "partition": "main", "job_name": "train"}
JOB_8 = BOB | {"hpc_job": "8", "partition": "main", "job_name": HOSTILE}
ON_GPU001 = {"instance": "gpu001", "pool": "gpu", "site": "hall"}


class Local:
    """A double of SSH: runs the node's command here."""

    def run(
        self, _: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> SshResult:
        """Run it as the node's shell would."""
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


HEAD = Host(
    name="head",
    pool="head",
    site="hall",
    role="controller",
    machine=None,
    ssh=SshTarget(user="root"),
)


def series() -> list[tuple[str, dict[str, str], float | Callable[[int], float], int]]:
    """Return metric, labels, value (of all samples, or by their number), and the first sample.

    Job 7 of ada's holds 4 GPUs at 16.25 % for two hours, job 8 of bob's 8 idle ones for the second.
    A GPU costs 2.50 an hour. No metric names the GPUs of job 9.
    """
    half = SAMPLES // 2
    by_user = [
        ("held", 4, 8),
        ("active", 0.65, 0),
        ("tensor", 0.1, 0),
        ("idle", 0, 8),
        ("untouched", 0, 8),
    ]
    found: list[tuple[str, dict[str, str], float | Callable[[int], float], int]] = [
        (f"gcluster:user_gpus:{name}", owner, value, begins)
        for name, ada, bob in by_user
        for owner, value, begins in ((ADA, ada, 0), (BOB, bob, half))
    ]
    found += [
        (f"gcluster:job_gpus:{name}", owner, value, begins)
        for name, ada, bob in by_user
        for owner, value, begins in ((JOB_7, ada, 0), (JOB_8, bob, half))
    ]
    for level, seven, eight in (("user", ADA, BOB), ("job", JOB_7, JOB_8)):
        found += [
            (f"gcluster:{level}_usd_per_hour", seven, 10, 0),
            (f"gcluster:{level}_usd_per_hour", eight, 20, half),
            (f"gcluster:{level}_wasted_usd_per_hour", seven, 8.375, 0),
            (f"gcluster:{level}_wasted_usd_per_hour", eight, 20, half),
        ]
    for job, gpus, wait, begins in ((JOB_7, 4, 60, 0), (JOB_8, 8, 600, half)):
        own = {key: value for key, value in job.items() if key != "pool"}
        number = {"hpc_job": job["hpc_job"]}
        found += [
            ("gcluster_slurm_job_gpus", own, gpus, begins),
            ("gcluster_slurm_job_wait_seconds", number, wait, begins),
        ]
    unknown = {"account": "nlp", "user": "eve", "qos": "normal"}
    nine = unknown | {"hpc_job": "9", "partition": "main", "job_name": "z"}
    found += [
        ("gcluster_slurm_job_gpus", nine, 2, half),
        ("gcluster:user_gpus:unmeasured", unknown, 2, half),
        ("up", {"job": "node", **ON_GPU001}, 1, 0),
        ("up", {"job": "node", "instance": "login", "pool": "login", "site": "hall"}, 1, 0),
        ("up", {"job": "prometheus"}, 1, 0),
        ("gcluster_slurm_preemptions_total", {"qos": "low", "account": "nlp"}, 3, 0),
        ("gcluster:node_failed", ON_GPU001, 0, 0),
        ("gcluster:job_nodes:spare", {"hpc_job": "7"}, 2, 0),
        ("gcluster:job_nodes:spare", {"hpc_job": "8"}, 0, half),
        ("slurm_node_cpus", {"node": "gpu001"}, 96, 0),
        ("slurm_node_gpus", {"node": "gpu001"}, 16, 0),
        ("gcluster_slurm_up", {}, 1, 0),
        ("gcluster:node_usd_per_hour", ON_GPU001, 40, 0),
        ("gcluster:node_free:ratio", ON_GPU001, 0.25, 0),
        ("gcluster:node_unused_usd_per_hour", ON_GPU001 | {"state": "idle"}, 10, 0),
        ("gcluster:pool_usd_per_hour", {"pool": "gpu"}, 40, 0),
        ("gcluster:pool_unused_usd_per_hour", {"pool": "gpu", "state": "idle"}, 10, 0),
        *links(),
    ]
    return found


def links() -> list[tuple[str, dict[str, str], float | Callable[[int], float], int]]:
    """Return links: a busy one, one without a cable, two down, one shut, one that flaps."""
    last = SAMPLES - 1
    eth = {
        device: ON_GPU001 | {"device": device}
        for device in ("eth0", "eth1", "eth2", "eth5", "veth9")
    }
    ib = {n: ON_GPU001 | {"device": f"mlx5_{n}", "port": "1"} for n in (0, 1)}
    return [
        ("node_network_carrier", eth["eth0"], 1, 0),
        ("node_network_carrier", eth["eth1"], 0, 0),
        ("node_network_carrier", eth["eth2"], lambda at: int(at < last - 8), 0),
        ("node_network_up", eth["eth5"], lambda at: int(at < last - 8), 0),
        (
            "node_network_carrier_down_changes_total",
            eth["eth5"],
            lambda at: int(at >= last - 8),
            0,
        ),
        ("node_network_carrier", eth["veth9"], lambda at: int(at < last - 8), 0),
        ("node_network_receive_bytes_total", eth["eth0"], lambda at: 2e6 * STEP_S * at, 0),
        ("node_network_transmit_bytes_total", eth["eth0"], lambda at: 1e6 * STEP_S * at, 0),
        ("node_infiniband_state_id", ib[0], 4, 0),
        ("node_infiniband_state_id", ib[1], lambda at: 4 if at < last - 8 else 1, 0),
        ("node_infiniband_link_downed_total", ib[0], lambda at: max(at - last + 20, 0) // 4, 0),
    ]


def openmetrics(end: float) -> str:
    """Return the samples as promtool reads them, the last one at `end`."""
    lines: dict[str, list[str]] = {}
    for name, labels, of, begins in series():
        shown = ",".join(f"{key}={json.dumps(word)}" for key, word in labels.items())
        shown = shown.replace("\\u001b", "\x1b")
        lines.setdefault(name, [f"# TYPE {name} gauge"]).extend(
            f"{name}{{{shown}}} {of(at) if callable(of) else of} "
            f"{end - (SAMPLES - 1 - at) * STEP_S:.0f}"
            for at in range(begins, SAMPLES)
        )
    return "\n".join(line for family in lines.values() for line in family) + "\n# EOF\n"


class Server:
    """A Prometheus with those samples."""

    def __init__(self, folder: Path) -> None:
        """Write its store, its certificate and its password."""
        self.folder = folder
        self.end = float(int(time.time()) // STEP_S * STEP_S)
        authority = new_authority("lab")
        (folder / "ca.pem").write_bytes(certificate_of(authority))
        (folder / "server.pem").write_bytes(issue(authority, *ISSUED[SERVER_SECRET]))
        (folder / "password").write_text(f"{PASSWORD}\n")
        hashed = crypt(PASSWORD, "$2b$04$abcdefghijklmnopqrstuu")
        pem = str(folder / "server.pem")
        web = {
            "tls_server_config": {"cert_file": pem, "key_file": pem},
            "basic_auth_users": {"gcluster": hashed},
        }
        (folder / "web.yml").write_text(yaml.safe_dump(web))
        (folder / "prometheus.yml").write_text("{}\n")
        (folder / "samples").write_text(openmetrics(self.end))
        store = ["tsdb", "create-blocks-from", "openmetrics", "-q", "samples", "data"]
        subprocess.run([program("promtool"), *store], cwd=folder, check=True)
        self.port = free_port()

    def start(self) -> subprocess.Popen[bytes]:
        """Start it; it may not answer yet."""
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(
                [
                    program("prometheus"),
                    "--config.file=prometheus.yml",
                    "--storage.tsdb.path=data",
                    "--storage.tsdb.retention.time=30d",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--web.config.file=web.yml",
                ],
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

    def client(self) -> QueryPrometheus:
        """Return how to query it."""
        return query_over_ssh(Local(), HEAD, str(self.folder), self.port)  # type: ignore[arg-type]


def program(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, "make test-alerts brings it"
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("prometheus"))
    process = made.start()
    try:
        for _ in range(100):
            try:
                made.client()([("query", {"query": "1"})])
            except LifecycleError:
                assert process.poll() is None, (made.folder / "log").read_text()
                time.sleep(0.2)
            else:
                break
        yield made
    finally:
        process.terminate()
        process.wait()


def test_top_has_jobs_by_waste_and_lists_what_isnt_measured(server: Server) -> None:
    now = read_now("lab", server.client(), server.end, "https://g.example.edu")

    assert now.jobs[0].link == "https://g.example.edu/d/lab-job?var-job=8"
    assert [node.link.rpartition("=")[2] for node in now.nodes] == ["gpu001", "login"]
    assert [job.job for job in now.jobs] == ["8", "7", "9"]
    eight, seven, nine = now.jobs
    assert (eight.wasted_usd_per_hour, eight.idle_gpus, eight.untouched_gpus) == (20, 8, 8)
    assert (seven.gpus, seven.active, seven.usd_per_hour) == (4, pytest.approx(0.1625), 10)
    assert seven.wasted_usd_per_hour == 8.375  # 4 GPUs, 2.50 each, 1 - 0.1625 unused
    assert (nine.gpus, nine.measured_gpus, nine.active, nine.usd_per_hour) == (2, 0, None, None)
    assert now.wasted_usd_per_hour == 28.375
    assert now.unused_usd_per_hour == {"idle": 10}
    assert [(node.name, node.state) for node in now.nodes] == [("gpu001", "in use"), ("login", "")]
    assert now.unpriced_pools == ()
    assert now.knows_jobs
    assert len(now.problems) == 1
    assert "job 9 aren't measured" in now.problems[0]


def test_jobs_of_a_scheduler_that_isnt_scraped_arent_known() -> None:
    def nothing(queries: Sequence[Query]) -> list[Any]:
        return [{"status": "success", "data": {"result": []}} for _ in queries]

    now = read_now("campus", nothing, 0.0)

    assert (now.jobs, now.knows_jobs, len(now.problems)) == ((), False, 1)


def test_a_job_that_is_followed_shows_the_use_of_its_own_gpus(server: Server) -> None:
    def use(job: str) -> GpuUse | None:
        state = msgspec.structs.replace(STATE, id=job)
        return use_of(server.client(), state, server.end)

    assert use("7") == GpuUse(4, pytest.approx(0.1625))
    assert use("8") == GpuUse(8, 0)
    assert use("9") is None  # no metric names its GPUs
    assert use("77") is None


def test_top_has_links_that_are_lost_or_come_and_go_and_the_busiest(server: Server) -> None:
    links = read_now("lab", server.client(), server.end).links

    assert [(link.device, link.up) for link in links] == [
        ("eth5", False),
        ("eth2", False),
        ("mlx5_1:1", False),
        ("mlx5_0:1", True),
        ("eth0", True),
    ]
    lost, busy = links[3:]
    assert {link.node for link in links} == {"gpu001"}
    assert (lost.lost, lost.bytes_per_s) == (5, None)
    assert (busy.lost, busy.bytes_per_s) == (0, pytest.approx(3e6))


def test_a_report_s_hours_and_dollars_are_those_of_the_calculation_by_hand(server: Server) -> None:
    ended = {"nlp": Ended(6, 2)}
    report = read_report(
        "lab",
        server.client(),
        since=server.end - 2 * 3600,
        until=server.end,
        goodput=ended,
        bounds=("gpu", "other"),
    )

    vision, nlp = report.accounts
    # 8 GPUs for an hour at 2.50, none of it used
    assert (vision.account, vision.active) == ("vision", 0)
    of_vision = (vision.gpu_hours, vision.usd, vision.wasted_usd, vision.untouched_gpu_hours)
    assert of_vision == pytest.approx((8, 20, 20, 8))
    # 4 GPUs for two hours, and 2 for one hour of which nothing is known
    assert (nlp.gpu_hours, nlp.unmeasured_gpu_hours) == pytest.approx((10, 2))
    assert (nlp.active, nlp.usd, nlp.wasted_usd) == pytest.approx((0.1625, 20, 16.75))
    assert (nlp.wait_median_s, vision.wait_max_s) == (60, 600)
    assert (nlp.goodput, vision.goodput) == (0.75, None)
    assert {(u.account, u.user): u.jobs for u in report.users} == {
        ("nlp", "ada"): 1,
        ("nlp", "eve"): 1,
        ("vision", "bob"): 1,
    }
    gpu, login = report.pools
    assert (gpu.usd, gpu.wasted_usd) == pytest.approx((80, 36.75))
    assert gpu.unused_usd == pytest.approx({"idle": 20})
    assert login.usd is None
    assert (gpu.node_hours, gpu.failures, gpu.mtbf_hours) == (pytest.approx(2), 0, None)
    assert (login.node_hours, login.failures) == (None, None)
    # 8.375 in the first hour, 8.375 + 20 in the second
    assert [each.wasted_usd for each in report.slices] == pytest.approx([8.375, 28.375], rel=0.01)
    assert report.measured_s == 2 * 3600
    assert [note for note in report.notes if "login" in note or "gpu cost at most" in note]
    assert "badly packed, on 2 nodes more than their GPUs fill: job 7" in report.notes


def test_a_time_without_metrics_is_unknown_and_not_0(server: Server) -> None:
    before = server.end - 30 * 86400
    report = read_report("lab", server.client(), since=before - 3600, until=before)

    assert (report.accounts, report.pools, report.measured_s) == ((), (), 0)
    assert report.notes == ("Prometheus has no metrics of that time",)


def test_a_wrong_password_a_stopped_server_and_a_wrong_query_have_each_a_message(
    server: Server, tmp_path: Path
) -> None:
    shutil.copy(server.folder / "ca.pem", tmp_path)
    (tmp_path / "password").write_text("wrong")
    words: dict[str, Any] = {}
    for what, client, query in (
        ("password", query_over_ssh(Local(), HEAD, str(tmp_path), server.port), "1"),  # type: ignore[arg-type]
        ("stopped", query_over_ssh(Local(), HEAD, str(server.folder), 1), "1"),  # type: ignore[arg-type]
        ("query", server.client(), "sum("),
    ):
        with pytest.raises(LifecycleError) as raised:
            instant(client, {"it": query}, server.end)
        words[what] = raised.value.diagnostics[0]

    assert {each.code for each in words.values()} == {"GC1198"}
    assert "status 401" in words["password"].summary
    assert "Connection refused" in words["stopped"].summary
    assert "refuses a query" in words["query"].summary
