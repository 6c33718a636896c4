"""Ways from an account's credentials to a node or the cluster, tried on nodes: none leads there.

The ways are in kubernetes_escapes.yaml. A job that is no way out is made with the same credentials
and runs, so what is refused is refused for what it says.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import until
from .kubernetes_site import KubernetesCluster, kernel, pod

pytestmark = [pytest.mark.local, pytest.mark.kubernetes]

WAYS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("kubernetes_escapes.yaml").read_text(encoding="utf-8")
)
REFUSALS = (
    "forbidden", "Forbidden", "denied", "Unauthorized", "must be logged in", "certificate required",
    "client conn could not be established",  # TLS ended by a server that got no certificate
)  # fmt: skip
KERNEL_BEFORE = kernel()


class Hands:
    """kubectl on the control plane with credentials of an account, of its pods, or none."""

    def __init__(self, live: KubernetesCluster, folder: Path) -> None:
        """Have a member's kubeconfig made, and a token as kubelets give it to pods."""
        self._node = f"gcluster-{live.name}-head"
        access = folder / "ada"
        as_ada = ("--as", "physics", "--user", "ada", "--for", "1h", "--out", str(access))
        live.gcluster("kubeconfig", str(live.spec), *as_ada)
        subprocess.run(["podman", "cp", str(access), f"{self._node}:/run/access"], check=True)
        server = yaml.safe_load(access.read_text(encoding="utf-8"))["clusters"][0]["cluster"]
        token = live.kubectl("create", "token", "default", "--namespace=physics").strip()
        none = (
            "--kubeconfig=/dev/null",
            "--insecure-skip-tls-verify",
            f"--server={server['server']}",
        )
        self._options = {
            "member": ("--kubeconfig=/run/access",),
            "pod": (*none, f"--token={token}"),
            "anybody": (*none, "--token=none"),  # without any, kubectl requests a password
        }

    def kubectl(self, who: str, *arguments: str, stdin: str = "") -> tuple[int, str]:
        """Return the exit code and all that it printed."""
        command = ["podman", "exec", "--interactive", self._node, "kubectl"]
        done = subprocess.run(
            [*command, *self._options[who], "--request-timeout=20s", *arguments],
            input=stdin, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def apply(self, made: dict[str, Any]) -> tuple[int, str]:
        """Create an object as the member."""
        return self.kubectl("member", "create", "--filename=-", stdin=json.dumps(made))


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """A control plane and a node, taken down whatever happens."""
    cluster = KubernetesCluster(tmp_path_factory.mktemp("kubernetes"), nodes=1)
    cluster.up()
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


@pytest.fixture(scope="module")
def hands(live: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory) -> Hands:
    return Hands(live, tmp_path_factory.mktemp("access"))


def _job(name: str, way: dict[str, Any]) -> dict[str, Any]:
    spec = copy.deepcopy(pod(name, qos="low")["spec"]) | {"restartPolicy": "Never"}
    _merge(spec, way.get("pod", {}))
    _merge(spec["containers"][0], way.get("container", {}))
    metadata = {"name": name, "namespace": "physics"}
    template = {"backoffLimit": 0, "template": {"spec": spec}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template}


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _pods(live: KubernetesCluster, job: str) -> list[str]:
    found = live.get("pods", "--namespace=physics", f"--selector=job-name={job}")["items"]
    return [each["metadata"]["name"] for each in found]


def _why_no_pod(live: KubernetesCluster, job: str) -> str:
    events = live.get(
        "events", "--namespace=physics", f"--field-selector=involvedObject.name={job}"
    )["items"]
    return " ".join(each["message"] for each in events if each["reason"] == "FailedCreate")


def test_a_job_that_is_no_way_out_is_made_and_runs(live: KubernetesCluster, hands: Hands) -> None:
    code, answer = hands.apply(_job("honest", {}))
    assert code == 0, answer
    until(lambda: any(live.phase(name) == "Running" for name in _pods(live, "honest")), seconds=90)


@pytest.mark.parametrize(
    ("number", "way"), enumerate(WAYS), ids=[way["way"].replace(" ", "-") for way in WAYS]
)
def test_no_way_leads_from_an_account_to_a_node_or_the_cluster(
    live: KubernetesCluster, hands: Hands, number: int, way: dict[str, Any]
) -> None:
    job = f"way-{number}"
    if "kubectl" in way:
        code, answer = hands.kubectl(way.get("as", "member"), *way["kubectl"])
    elif "object" in way:
        made = copy.deepcopy(way["object"])
        made["metadata"].setdefault("namespace", "physics")
        code, answer = hands.apply(made)
    else:
        code, answer = hands.apply(_job(job, way))
        if code == 0:  # pods are looked at when the job's controller makes them
            until(lambda: bool(_why_no_pod(live, job) or _pods(live, job)), seconds=60)
            assert _pods(live, job) == []
            code, answer = 1, _why_no_pod(live, job)
    assert code != 0, answer
    assert any(word in answer for word in REFUSALS), answer


def test_down_leaves_nothing_and_the_kernel_as_it_was(live: KubernetesCluster) -> None:
    live.gcluster("down", str(live.spec), "--yes")
    assert not any(live.left_behind().values()), live.left_behind()
    assert kernel() == KERNEL_BEFORE
