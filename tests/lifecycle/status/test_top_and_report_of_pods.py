"""`top`, `report` and `dashboard` of a Kubernetes cluster, of a real Prometheus with known figures.

Debian's Prometheus serves two hours of samples. What runs in its pod runs here, by the words that
`kubectl exec` gets; no cluster is behind it.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec
import pytest
from tests.lifecycle.scheduler.test_account import STATE
from tests.lifecycle.status import test_top_and_report as slurm

from gcluster.inventory.dashboards import boards_of_pods
from gcluster.inventory.waste import recording_rules
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.kubectl import Kubectl
from gcluster.lifecycle.nodes.ssh import Answer
from gcluster.lifecycle.nodes.ssh.session import SshResult
from gcluster.lifecycle.scheduler.workloads.progress import GpuUse, use_of
from gcluster.lifecycle.status.dashboard.answers import Answers, UnknownError
from gcluster.lifecycle.status.waste.kubernetes import NOW, query_in_pod, report_queries
from gcluster.lifecycle.status.waste.now import read_now
from gcluster.lifecycle.status.waste.prometheus import QueryPrometheus
from gcluster.lifecycle.status.waste.queries import Queries
from gcluster.lifecycle.status.waste.report import read_report

pytestmark = pytest.mark.monitoring

NODE = {"instance": "gpu001", "pool": "gpu", "site": "hall"}
TRAIN = {"namespace": "nlp", "owner_kind": "Job", "owner_name": "train", "pool": "gpu"}
SLEEP = {"namespace": "vision", "owner_kind": "StatefulSet", "owner_name": "sleep", "pool": "gpu"}


class InPod:
    """A double of kubectl: runs here what it would run in Prometheus' pod."""

    name = "head01"

    def run(self, arguments: Sequence[str], *, stdin: str | None, timeout_s: float) -> Answer:
        """Run the words behind `--`."""
        assert list(arguments[:4]) == ["--namespace", "gcluster-monitoring", "exec", "--stdin"]
        assert arguments[4] == "service/gcluster-prometheus"
        words = list(arguments)[list(arguments).index("--") + 1 :]
        done = subprocess.run(
            words, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def stream(
        self, arguments: Sequence[str], take: Callable[[str], None], *, timeout_s: float
    ) -> Answer:
        raise NotImplementedError


def of_pods() -> list[tuple[str, dict[str, str], float, int]]:
    """Return metrics of two pods of a Job at 16.25 % of 2 GPUs each, and one that sleeps on 2.

    A node has 8 GPUs, 2.50 an hour each; two are free. The second half of the time has the sleeper.
    """
    half = slurm.SAMPLES // 2
    pods = [(TRAIN | {"pod": f"train-{at}"}, 0.325, 0, 0) for at in range(2)]
    pods += [(SLEEP | {"pod": "sleep-0"}, 0.0, 2, half)]
    found = []
    for pod, active, idle, begins in pods:
        found += [
            ("gcluster:pod_gpus:held", pod, 2, begins),
            ("gcluster:pod_gpus:active", pod, active, begins),
            ("gcluster:pod_gpus:tensor", pod, active / 2, begins),
            ("gcluster:pod_gpus:idle", pod, idle, begins),
            ("gcluster:pod_usd_per_hour", pod, 5, begins),
            ("gcluster:pod_wasted_usd_per_hour", pod, 5 - 2.5 * active, begins),
        ]
        name = {key: pod[key] for key in ("namespace", "pod")}
        owner = {key: pod[key] for key in ("owner_kind", "owner_name")}
        found += [
            ("gcluster:pod_owner", name | owner, 1, begins),
            ("kube_pod_start_time", name, 1_000, begins),
        ]
        card = {"instance": "gpu001", "pool": "gpu", "gpu": pod["pod"][-1]}
        found.append(("gcluster:pod_gpu:active", name | card, active / 2, begins))
        found.append(("gcluster:pod_gpu:tensor", name | card, active / 4, begins))
    for account, held, active, begins in (("nlp", 4, 0.65, 0), ("vision", 2, 0, half)):
        own = {"account": account, "pool": "gpu"}
        found += [
            ("gcluster:account_gpus:held", own, held, begins),
            ("gcluster:account_gpus:active", own, active, begins),
            ("gcluster:account_usd_per_hour", own, 2.5 * held, begins),
            ("gcluster:account_wasted_usd_per_hour", own, 2.5 * (held - active), begins),
        ]
    found += [
        ("up", {"job": "node", **NODE}, 1, 0),
        ("gcluster:node_usd_per_hour", NODE, 20, 0),
        ("gcluster:pool_usd_per_hour", {"pool": "gpu"}, 20, 0),
        ("gcluster:gpu_node_free:ratio", NODE, 0.25, 0),
        ("gcluster:gpu_node_unused_usd_per_hour", NODE | {"state": "drained"}, 5, 0),
        ("kube_node_spec_unschedulable", {"node": "gpu001"}, 1, 0),
        (
            "kube_node_status_condition",
            {"node": "gpu001", "condition": "Ready", "status": "true"},
            1,
            0,
        ),
    ]
    found += [("gcluster:gpu_active:ratio", NODE | {"gpu": str(gpu)}, 0.25, 0) for gpu in range(8)]
    return [(name, labels, float(value), begins) for name, labels, value, begins in found]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slurm, "series", of_pods)
        made = slurm.Server(tmp_path_factory.mktemp("prometheus"))
    (made.folder / "web.yml").write_text("{}\n")  # in its pod it has neither TLS nor a password
    process = made.start()
    try:
        for _ in range(100):
            try:
                client(made)([("query", {"query": "1"})])[0]["data"]
            except (LifecycleError, KeyError):
                assert process.poll() is None, (made.folder / "log").read_text()
                time.sleep(0.2)
            else:
                break
        yield made
    finally:
        process.terminate()
        process.wait()


def client(server: slurm.Server) -> QueryPrometheus:
    return query_in_pod(Kubectl.by(InPod()), server.port)


def test_top_has_what_made_the_pods_by_waste(server: slurm.Server) -> None:
    now = read_now("campus", client(server), server.end, queries=NOW)

    train, sleep = now.jobs
    assert (train.job, train.name, train.account, train.partition) == (
        "nlp/train", "train", "nlp", "Job",
    )  # fmt: skip
    assert (train.gpus, train.active, train.usd_per_hour) == (4, pytest.approx(0.1625), 10)
    assert train.wasted_usd_per_hour == 8.375  # 4 GPUs, 2.50 each, 1 - 0.1625 unused
    assert train.running_s == server.end - 1_000
    assert (sleep.job, sleep.idle_gpus, sleep.wasted_usd_per_hour) == ("vision/sleep", 2, 5)
    assert (train.tensor, sleep.tensor) == (pytest.approx(0.08125), 0)
    assert (sleep.user, sleep.untouched_gpus) == ("", None)
    [node] = now.nodes
    assert (node.name, node.state, node.gpus, node.unused_usd_per_hour) == (
        "gpu001",
        "drained",
        8,
        5,
    )
    assert (now.problems, now.knows_jobs) == ((), True)


def test_a_job_that_is_followed_shows_the_use_of_its_own_pods_gpus(server: slurm.Server) -> None:
    def use(*owners: str, job: str = "nlp/train") -> GpuUse | None:
        state = msgspec.structs.replace(STATE, id=job, pods_of=owners)
        return use_of(client(server), state, server.end)

    assert use("train", "train-2") == GpuUse(4, pytest.approx(0.1625))
    assert use("trai") is None
    assert use("train", job="vision/train") is None


def test_the_dashboard_shows_what_made_the_pods(server: slurm.Server) -> None:
    answers = Answers("campus", client(server), of_pods=True)

    overview = json.loads(answers.overview())
    assert [job["job"] for job in overview["now"]["jobs"]] == ["nlp/train", "vision/sleep"]
    job = json.loads(answers.board("job", "1", "nlp/train"))
    last = {
        (chart["title"], line["name"]): [at for at in line["values"] if at is not None][-1]
        for chart in job["charts"]
        for line in chart["lines"]
    }
    held, by_pod, by_gpu, tensor, dollars = boards_of_pods()["job"].panels
    assert last == pytest.approx({
        (held.title, "held"): 4,
        (held.title, "active"): 0.65,
        (held.title, "below 1 % for 10 minutes"): 0,
        (by_pod.title, "train-0"): 0.1625,
        (by_pod.title, "train-1"): 0.1625,
        (by_gpu.title, "gpu001 0"): 0.1625,
        (by_gpu.title, "gpu001 1"): 0.1625,
        (tensor.title, "gpu001 0"): 0.08125,
        (tensor.title, "gpu001 1"): 0.08125,
        (dollars.title, "held"): 10,
        (dollars.title, "wasted"): 8.375,
    })  # fmt: skip
    money = json.loads(answers.board("money", "1", ""))
    assert [chart["title"] for chart in money["charts"] if not chart["lines"]] == []


@pytest.mark.parametrize("of", ["nlp/none", "7", 'nlp/train"} or up{a="', "nlp/TRAIN", ""])
def test_a_job_that_isn_t_there_never_becomes_a_query(server: slurm.Server, of: str) -> None:
    with pytest.raises(UnknownError):
        Answers("campus", client(server), of_pods=True).board("job", "1", of)


def test_a_report_has_accounts_by_waste(server: slurm.Server) -> None:
    report = read_report(
        "campus", client(server), since=server.end - 2 * 3600, until=server.end, of_pods=True
    )

    nlp, vision = report.accounts
    # 4 GPUs for two hours at 2.50, of which 16.25 % was used; 2 GPUs for one hour
    assert (nlp.gpu_hours, nlp.usd, nlp.wasted_usd) == pytest.approx((8, 20, 16.75))
    assert (nlp.active, nlp.tensor) == pytest.approx((0.1625, 0.08125))
    assert (nlp.jobs, nlp.untouched_gpu_hours) == (1, None)
    assert (vision.gpu_hours, vision.wasted_usd, vision.idle_gpu_hours) == pytest.approx((2, 5, 2))
    assert report.users == ()
    [pool] = report.pools
    assert (pool.usd, pool.unused_usd) == (pytest.approx(40), {"drained": pytest.approx(10)})
    assert report.measured_s == 7200
    # 16.75 + 5; the sample at an hour's end is in both of its neighbours
    assert sum(each.wasted_usd for each in report.slices) == pytest.approx(21.75, rel=0.005)


def test_a_query_that_prometheus_refuses_is_an_error(server: slurm.Server) -> None:
    wrong = Queries(texts={"nodes": "sum("}, missing="")

    with pytest.raises(LifecycleError, match="refuses a query"):
        read_now("campus", client(server), server.end, queries=wrong)


def test_what_is_queried_of_pods_is_recorded() -> None:
    recorded = {rule.record for rule in recording_rules()}
    shown = [
        text
        for name in ("job", "money")
        for panel in boards_of_pods()[name].panels
        for text in panel.queries.values()
    ]
    texts = " ".join([*NOW.texts.values(), *report_queries(60, 1).values(), *shown])

    queried = set(re.findall(r"gcluster:[a-z_:]+", texts))
    assert "gcluster:pod_gpu:active" in queried
    assert queried <= recorded
