"""TrainJobs in a real API server with Kubeflow Trainer's CRDs: created, listed, ended.

No trainer runs there: what becomes of a job and the JobSet that it would make are written here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from bench.simulated.api_server import ApiServer
from tests.inventory.kubernetes_objects.compiled import facts_of
from tests.inventory.kubernetes_objects.crds import crds
from tests.inventory.workloads.test_kubernetes import LOCAL, WORKLOADS, compiled
from tests.lifecycle.kubernetes.addons.api import LocalKubectl

from gcluster.inventory.compile.kubernetes_objects.accounts import memberships
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.addons.ownership import establish
from gcluster.lifecycle.kubernetes.kubectl import Kubectl
from gcluster.lifecycle.nodes.ssh import SshResult
from gcluster.lifecycle.scheduler.workloads.kubernetes import KubernetesQueue
from gcluster.schemas.load import load_text

MEMBERS = LOCAL.replace(
    "kueue: false", "kueue: false, accounts: {nlp: {users: [ada]}}, addons: [kubeflow-trainer]"
)
MEMBERS += "users: [{name: ada, uid: 2001}]\n"
JOBS = WORKLOADS.replace("ACCOUNT", "nlp").replace("FOLDER", "/scratch")
JOBS = JOBS.replace("    restarts: 3\n", "    restarts: 3\n    kind: TrainJob\n")


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesQueue]:
    """The queue of a server with the account's namespace, its member's rights and the CRDs."""
    spec = load_text(MEMBERS).spec
    assert spec is not None
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nlp"}}
    with ApiServer() as server:
        kubectl = LocalKubectl(server, tmp_path_factory.mktemp("api"))
        establish(kubectl, crds("trainer.kubeflow.org"), "trainer.kubeflow.org")
        for made in ([space], memberships(facts_of(spec))):
            answer = server.apply(made)
            assert answer.returncode == 0, answer.stderr
        yield KubernetesQueue(kubectl, has_sets=False, has_trainer=True)


@pytest.mark.kubernetes_api
def test_a_train_job_is_created_listed_and_ended_with_its_runtime(queue: KubernetesQueue) -> None:
    kubectl = queue._kubectl  # noqa: SLF001  # the administrator's own
    objects = compiled(MEMBERS + JOBS)["letters"]
    assert queue.submit(objects, "ada") == "nlp/letters"
    (job,) = queue.jobs()
    assert (job.id, job.user, job.state, job.nodes) == ("nlp/letters", "ada", "PENDING", "2")
    with pytest.raises(LifecycleError) as refused:
        queue.submit(objects, "ada")
    assert "has not ended" in refused.value.diagnostics[0].summary
    counts = {"ready": 1, "active": 1, "failed": 0, "succeeded": 0, "suspended": 0}
    _write(kubectl, {"jobsStatus": [{"name": "node", **counts}]})
    assert queue.state("nlp/letters").state == "RUNNING"
    ended = {
        "type": "Failed",
        "status": "True",
        "reason": "JobSetFailed",
        "message": "jobset failed",
    }
    _write(kubectl, {"conditions": [{**ended, "lastTransitionTime": "2026-11-29T01:00:00Z"}]})
    state = queue.state("nlp/letters")
    assert (state.state, state.exit_code) == ("FAILED", "jobset failed")
    assert queue.submit(objects, "ada") == "nlp/letters", "one that has ended is removed first"
    queue.cancel("nlp/letters")
    kinds = "trainjobs,trainingruntimes,services,configmaps"
    left = kubectl.text("get", kinds, "--namespace=nlp", "--output=name")
    assert "letters" not in left


def _write(kubectl: Kubectl, status: dict[str, Any]) -> None:
    """Write a status, as the trainer would."""
    kubectl.text(
        *("patch", "trainjob", "letters", "--namespace=nlp", "--subresource=status"),
        *("--type=merge", f"--patch={json.dumps({'status': status})}"),
    )


class Listed(Kubectl):
    """A double of the API: it lists objects; a TrainJob is refused until its runtime is seen."""

    def __init__(self, items: list[Any], unseen: int = 0) -> None:
        """Hold what it lists, and how often it refuses."""
        self.items, self.unseen, self.made = items, unseen, list[str]()

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        """Answer as kubectl does."""
        del timeout_s
        if arguments[0] != "create":
            return SshResult(returncode=0, stdout=json.dumps({"items": self.items}), stderr="")
        kinds = [one["kind"] for one in json.loads(stdin or "")["items"]]
        if "TrainJob" in kinds and self.unseen:
            self.unseen -= 1
            words = "specified trainingRuntime must be created before the TrainJob is created"
            return SshResult(returncode=1, stdout="", stderr=f"Error from server: {words}")
        self.made += kinds
        return SshResult(returncode=0, stdout="", stderr="")


def _object(kind: str, name: str, owner: str = "", **parts: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "nlp"}
    if owner:
        meta["ownerReferences"] = [{"kind": owner, "name": name, "controller": True}]
    return {"kind": kind, "metadata": meta, "spec": {}, **parts}


def test_the_job_set_of_a_train_job_is_no_job_of_its_own_and_counts_its_restarts() -> None:
    items = [
        _object("Job", "letters-node-0", owner="JobSet"),
        _object("JobSet", "letters", owner="TrainJob", status={"restarts": 2}),
        _object("TrainJob", "letters", spec={"trainer": {"numNodes": 3}}),
    ]
    queue = KubernetesQueue(Listed(items), has_sets=True, has_trainer=True)
    assert [(job.id, job.nodes) for job in queue.jobs()] == [("nlp/letters", "3")]
    assert queue.state("nlp/letters").restarts == 2


def test_a_trainer_that_has_not_seen_the_runtime_yet_is_requested_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    objects = compiled(MEMBERS + JOBS)["letters"]
    kubectl = Listed([], unseen=3)
    KubernetesQueue(kubectl, has_sets=True, has_trainer=True).submit(objects, None)
    assert kubectl.made == ["ConfigMap", "TrainingRuntime", "TrainJob"]
    with pytest.raises(LifecycleError) as refused:
        KubernetesQueue(Listed([], unseen=99), has_sets=True, has_trainer=True).submit(
            objects, None
        )
    assert "must be created before" in refused.value.diagnostics[0].summary
