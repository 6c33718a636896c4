"""A training on local Kubernetes nodes: two pods find each other; one comes back, and a node's too.

The program is that of examples/first-model, its image the nodes' own: what it needs is Python. The
curve of losses is the same whatever happened, digit by digit.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import until
from .kubernetes_site import KubernetesCluster

pytestmark = [pytest.mark.local, pytest.mark.training]

IMAGE = "localhost/training:1"
NODES, STEPS = 3, 60
LOSS = re.compile(r"step (\d+) loss ([-\d.]+)")
MEASURED: list[str] = []
"""What is printed when all is done."""
SPACE = "--namespace=physics"


def _podman(*words: str, stdin: bytes | None = None) -> bytes:
    done = subprocess.run(["podman", *words], input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture(scope="module")
def live(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, root: Path
) -> Iterator[KubernetesCluster]:
    """A cluster with the program on its storage and the image on its nodes."""
    cluster = KubernetesCluster(tmp_path_factory.mktemp("workloads"), nodes=NODES)
    spec = yaml.safe_load(cluster.spec.read_text())
    spec["storage"] = {"scratch": {"type": "nfs", "mount": "/scratch", "server": "head"}}
    training = {
        "framework": "command",
        "nodes": 2,
        "image": IMAGE,
        "chdir": "/scratch",
        "command": ["python3", "/scratch/train.py"],
        "variables": {"STEPS": str(STEPS), "PAUSE": "0.2"},
        "checkpoint": {"to": "scratch", "every": "3s", "notice": "20s"},
        "restarts": 3,
    }
    by_itself = training | {"checkpoint": {"to": "scratch", "every": "auto", "size": "1 GB"}}
    slow = training | {"variables": {"STEPS": str(STEPS), "PAUSE": "3"}}
    second = training | {"variables": {"STEPS": str(STEPS), "PAUSE": "1"}}
    spec["workloads"] = {"plain": training, "lost": slow, "node": second, "by-itself": by_itself}
    cluster.spec.write_text(yaml.safe_dump(spec, sort_keys=False))
    try:
        cluster.up()
        folder = f"gcluster-{cluster.name}-here-scratch"
        scratch = Path(
            _podman("volume", "inspect", "--format", "{{.Mountpoint}}", folder).decode().strip()
        )
        shutil.copy(root / "examples" / "first-model" / "train.py", scratch / "train.py")
        (scratch / "checkpoints").mkdir(mode=0o777)
        (scratch / "checkpoints").chmod(0o777)
        _give_image(cluster)
        yield cluster
    finally:
        words = ("down", str(cluster.spec), "--yes", "--delete-data", "scratch")
        cluster.gcluster(*words, expect=None)
        capture = request.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            sys.stdout.write("\n" + "".join(f"  {line}\n" for line in MEASURED))


def _give_image(cluster: KubernetesCluster) -> None:
    """Put the nodes' own image into their containerd under the name of the workloads' image."""
    node = f"gcluster-{cluster.name}-gpu001"
    of = _podman("inspect", "--format", "{{.Image}}", node).decode().strip()
    _podman("tag", of, IMAGE)
    try:
        saved = _podman("save", IMAGE)
    finally:
        _podman("untag", IMAGE, IMAGE)
    for number in range(1, NODES + 1):
        target = f"gcluster-{cluster.name}-gpu{number:03d}"
        words = ("ctr", "--namespace=k8s.io", "images", "import", "-")
        _podman("exec", "--interactive", target, *words, stdin=saved)


def _curve(text: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for step, loss in LOSS.findall(text):
        assert found.setdefault(int(step), loss) == loss, f"step {step} differs"
    return found


@pytest.fixture(scope="module")
def undisturbed(live: KubernetesCluster) -> dict[int, str]:
    """The curve of the run that nothing happens to."""
    done = live.gcluster("run", str(live.spec), "plain", "--user", "ada")
    assert "job physics/plain: completed" in done.stderr + done.stdout
    curve = _curve(done.stdout)
    assert sorted(curve) == list(range(1, STEPS + 1))
    return curve


def test_measured_storage_decides_how_often_a_training_saves(live: KubernetesCluster) -> None:
    every = "name: GCLUSTER_CHECKPOINT_EVERY\n          value: "
    before = live.gcluster("run", str(live.spec), "by-itself", "--dry-run").stdout
    assert f"{every}'1800'" in before
    answer = live.gcluster("smoke", str(live.spec), "--storage", "--format", "json")
    (figures,) = yaml.safe_load(answer.stdout)["storage"].values()
    assert (figures["node_count"], figures["is_shared_machine"]) == (NODES, True)
    for nodes in ("alone", "together"):
        MEASURED.append(
            f"{nodes}: " + ", ".join(f"{k} {v:,.0f}" for k, v in figures[nodes].items())
        )
        assert all(figures[nodes].values())
    after = live.gcluster("run", str(live.spec), "by-itself", "--dry-run").stdout
    assert f"GB/s (measured on {NODES} nodes" in after
    assert f"{every}'1800'" not in after


def test_two_pods_train_together_and_the_job_is_listed(
    live: KubernetesCluster, undisturbed: dict[int, str]
) -> None:
    assert float(undisturbed[STEPS]) < float(undisturbed[1])
    listed = live.gcluster("jobs", str(live.spec)).stdout
    assert re.search(r"physics/plain +plain +ada +completed", listed), listed
    pods = live.get("pods", SPACE, "--selector=gcluster.local/workload=plain")["items"]
    assert len(pods) == len({one["spec"]["nodeName"] for one in pods}) == 2
    assert {one["spec"]["containers"][0]["securityContext"]["runAsUser"] for one in pods} == {2001}


class Watched:
    """A training that runs by itself, and all that was seen of its log."""

    def __init__(self, live: KubernetesCluster, workload: str) -> None:
        """Start it."""
        self.live, self.workload, self.seen = live, workload, ""
        live.gcluster("run", str(live.spec), workload, "--user", "ada", "--detach")

    def log(self) -> str:
        """Return the log of the pods that are there now."""
        job = f"physics/{self.workload}"
        text = str(self.live.gcluster("logs", str(self.live.spec), job, expect=None).stdout)
        self.seen += text
        return text

    def last(self) -> int:
        """Return the highest step that is done."""
        self.log()
        return max((int(done) for done, _ in LOSS.findall(self.seen)), default=0)

    def reaches(self, step: int) -> None:
        """Return when a step is done."""
        until(lambda: self.last() >= step, seconds=240)

    def second_pod(self) -> dict[str, Any]:
        """Return the pod of the second process."""
        labels = (
            f"batch.kubernetes.io/job-completion-index=1,gcluster.local/workload={self.workload}"
        )
        (pod,) = self.live.get("pods", SPACE, f"--selector={labels}")["items"]
        return dict(pod)

    def goes_on(self, began: float, lost_at: int) -> float:
        """Return the seconds until it has resumed and is past the step where it was lost."""
        self.reaches(lost_at + 3)  # one or two more may have been done meanwhile
        assert f"gcluster: resuming from /scratch/checkpoints/{self.workload}/" in self.seen
        return time.monotonic() - began

    def ends_as(self, undisturbed: dict[int, str]) -> None:
        """Hold its losses against those of the run that nothing happened to."""
        done = self.live.gcluster(
            "logs", str(self.live.spec), f"physics/{self.workload}", "--follow"
        )
        assert "completed" in done.stdout + done.stderr
        curve = _curve(self.seen + done.stdout)
        assert curve.items() <= undisturbed.items()
        assert curve[STEPS] == undisturbed[STEPS]


def test_a_killed_pod_comes_back_from_the_checkpoint_with_the_same_curve(
    live: KubernetesCluster, undisturbed: dict[int, str]
) -> None:
    training = Watched(live, "lost")
    training.reaches(STEPS // 3)
    again = live.gcluster("run", str(live.spec), "lost", "--user", "ada", "--detach", expect=None)
    assert "has not ended" in again.stderr
    pod = training.second_pod()["metadata"]["name"]
    lost_at, began = training.last(), time.monotonic()
    live.kubectl("delete", "pod", pod, SPACE, "--force", "--grace-period=0")
    MEASURED.append(f"{training.goes_on(began, lost_at):.0f} s after its pod was killed")
    training.ends_as(undisturbed)


def test_the_pod_of_a_lost_node_goes_to_another_and_the_curve_is_the_same(
    live: KubernetesCluster, undisturbed: dict[int, str]
) -> None:
    training = Watched(live, "node")
    training.reaches(STEPS // 3)
    victim = training.second_pod()["spec"]["nodeName"]
    lost_at, began = training.last(), time.monotonic()
    _podman("kill", f"gcluster-{live.name}-{victim}")
    try:
        MEASURED.append(f"{training.goes_on(began, lost_at):.0f} s after its node was killed")
        # Its other pods end it: the one on the lost node is left until that is back.
        training.ends_as(undisturbed)
    finally:
        _podman("start", f"gcluster-{live.name}-{victim}")
