"""A training on local Kubernetes nodes: two pods find each other, and come back when one is lost.

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

import pytest
import yaml

from .conftest import until
from .kubernetes_site import KubernetesCluster

pytestmark = [pytest.mark.local, pytest.mark.training]

IMAGE = "localhost/training:1"
STEPS = 60
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
    cluster = KubernetesCluster(tmp_path_factory.mktemp("workloads"), nodes=2)
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
    spec["workloads"] = {"plain": training, "lost": slow, "by-itself": by_itself}
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
    for name in ("gpu001", "gpu002"):
        target = f"gcluster-{cluster.name}-{name}"
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
    assert (figures["node_count"], figures["is_shared_machine"]) == (2, True)
    for nodes in ("alone", "together"):
        MEASURED.append(
            f"{nodes}: " + ", ".join(f"{k} {v:,.0f}" for k, v in figures[nodes].items())
        )
        assert all(figures[nodes].values())
    after = live.gcluster("run", str(live.spec), "by-itself", "--dry-run").stdout
    assert "GB/s (measured on 2 nodes" in after
    assert f"{every}'1800'" not in after


def test_two_pods_train_together_and_the_job_is_listed(
    live: KubernetesCluster, undisturbed: dict[int, str]
) -> None:
    assert float(undisturbed[STEPS]) < float(undisturbed[1])
    listed = live.gcluster("jobs", str(live.spec)).stdout
    assert re.search(r"physics/plain +plain +ada +completed", listed), listed
    pods = live.get("pods", SPACE, "--selector=gcluster.local/workload=plain")["items"]
    assert {one["spec"]["nodeName"] for one in pods} == {"gpu001", "gpu002"}
    assert {one["spec"]["containers"][0]["securityContext"]["runAsUser"] for one in pods} == {2001}


def test_a_killed_pod_comes_back_from_the_checkpoint_with_the_same_curve(
    live: KubernetesCluster, undisturbed: dict[int, str]
) -> None:
    live.gcluster("run", str(live.spec), "lost", "--user", "ada", "--detach")
    seen = ""

    def log() -> str:
        return str(live.gcluster("logs", str(live.spec), "physics/lost", expect=None).stdout)

    def steps() -> int:
        nonlocal seen
        seen += log()
        return max((int(step) for step, _ in LOSS.findall(seen)), default=0)

    until(lambda: steps() >= STEPS // 3, seconds=240)
    again = live.gcluster("run", str(live.spec), "lost", "--user", "ada", "--detach", expect=None)
    assert "has not ended" in again.stderr
    (victim,) = live.get("pods", SPACE, "--selector=batch.kubernetes.io/job-completion-index=1")[
        "items"
    ][-1:]
    began = time.monotonic()
    live.kubectl("delete", "pod", victim["metadata"]["name"], SPACE, "--force", "--grace-period=0")
    until(lambda: "gcluster: resuming from /scratch/checkpoints/lost/" in log(), seconds=180)
    MEASURED.append(f"resumed {time.monotonic() - began:.0f} s after its pod was killed")
    done = live.gcluster("logs", str(live.spec), "physics/lost", "--follow")
    assert "completed" in done.stdout + done.stderr
    seen += done.stdout
    assert _curve(seen).items() <= undisturbed.items()
    assert _curve(seen)[STEPS] == undisturbed[STEPS]
