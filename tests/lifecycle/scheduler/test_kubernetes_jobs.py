"""Workloads in a real API server: created once, listed, refused twice, ended.

No controller and no kubelet run there, so what becomes of a job is written into its status.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from bench.simulated.api_server import ApiServer
from tests.inventory.kubernetes_objects.compiled import facts_of
from tests.inventory.workloads.test_kubernetes import LOCAL, WORKLOADS, compiled
from tests.lifecycle.kubernetes.addons.api import LocalKubectl

from gcluster.inventory.compile.kubernetes_objects.accounts import memberships
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.scheduler.workloads.jobs import JobState
from gcluster.lifecycle.scheduler.workloads.kubernetes import KubernetesLog, KubernetesQueue
from gcluster.schemas.load import load_text

pytestmark = pytest.mark.kubernetes_api


MEMBERS = LOCAL.replace("kueue: false", "kueue: false, accounts: {nlp: {users: [ada]}}")
MEMBERS += "users: [{name: ada, uid: 2001}]\n"


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    """Workloads of local nodes, compiled."""
    return compiled(MEMBERS + WORKLOADS.replace("ACCOUNT", "nlp").replace("FOLDER", "/scratch"))


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesQueue]:
    """The queue of a server with the account's namespace and its member's rights."""
    spec = load_text(MEMBERS).spec
    assert spec is not None
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nlp"}}
    with ApiServer() as server:
        own = {"name": "default", "namespace": "nlp"}  # which a controller would make
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": own}
        for made in ([space], [account], memberships(facts_of(spec))):
            answer = server.apply(made)
            assert answer.returncode == 0, answer.stderr
        yield KubernetesQueue(LocalKubectl(server, tmp_path_factory.mktemp("api")), has_sets=False)


def _ended(
    queue: KubernetesQueue,
    name: str,
    kind: str,
    *,
    left: bool = False,
    at: str = "2026-11-29T01:00:00Z",
) -> None:
    """Write a job's end, as its controller would; `left`: a pod of it is on a lost node."""
    since = {"lastProbeTime": at, "lastTransitionTime": at, "status": "True"}
    before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
    message = {"message": "Job has reached the specified backoff limit", "reason": "Backoff"}
    kinds = (before,) if left else (before, kind)
    status: dict[str, Any] = {
        "startTime": f"{at[:11]}00:58:30Z" if "T01" in at else at,
        "terminating": int(left),
        "conditions": [{"type": each, **since, **message} for each in kinds],
    }
    if not left:
        status |= {"completionTime": at, "succeeded": 2} if kind == "Complete" else {"failed": 8}
    queue._kubectl.text(  # noqa: SLF001  # the administrator's own
        *("patch", "job", name, "--namespace=nlp", "--subresource=status", "--type=merge"),
        f"--patch={json.dumps({'status': status})}",
    )


def test_a_workload_is_created_once_and_again_when_it_has_ended(
    queue: KubernetesQueue, objects: dict[str, Any]
) -> None:
    assert queue.submit(objects["letters"], "ada") == "nlp/letters"
    (job,) = queue.jobs()
    assert (job.id, job.user, job.state, job.nodes) == ("nlp/letters", "ada", "PENDING", "2")
    with pytest.raises(LifecycleError) as refused:
        queue.submit(objects["letters"], "ada")
    assert refused.value.diagnostics[0].code == "GC1213"
    assert "saves to /scratch/own, and has not ended" in refused.value.diagnostics[0].summary
    _ended(queue, "letters", "Failed", left=True)
    assert queue.state("nlp/letters").state == "FAILED", "the one on a lost node decides nothing"
    with pytest.raises(LifecycleError) as still:
        queue.submit(objects["letters"], "ada")
    assert "has pods that still end" in still.value.diagnostics[0].summary
    _ended(queue, "letters", "Failed")
    state = queue.state("nlp/letters")
    assert (state.state, state.restarts, state.elapsed) == ("FAILED", 8, "0:01:30")
    assert state.exit_code == "Job has reached the specified backoff limit"
    assert queue.submit(objects["letters"], None) == "nlp/letters"
    _ended(queue, "letters", "Complete")
    assert queue.state("nlp/letters").has_succeeded
    queue.cancel("nlp/letters")
    assert queue.jobs() == ()
    with pytest.raises(LifecycleError) as gone:
        queue.state("nlp/letters")
    assert gone.value.diagnostics[0].code == "GC1214"


def _pod(index: int, node: str, attempt: int) -> dict[str, Any]:
    """Return a pod of the job, on a node, as its controller would make it."""
    labels = {
        "batch.kubernetes.io/job-name": "letters",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    limits = {"cpu": "8", "nvidia.com/gpu": "4"}
    container = {"name": "main", "image": "x", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"letters-{index}-{attempt}",
            "namespace": "nlp",
            "labels": labels,
        },
        "spec": {"nodeName": node, "containers": [container]},
    }


def test_a_job_that_runs_has_the_nodes_and_gpus_of_its_newest_pods(
    queue: KubernetesQueue, objects: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = queue._kubectl  # noqa: SLF001  # the administrator's own
    text, listed_kinds = kubectl.text, list[str]()

    def counted(*words: str, stdin: str | None = None) -> str:
        listed_kinds.extend(words[1:2] if words[0] == "get" else ())
        return text(*words, stdin=stdin)

    queue.submit(objects["letters"], "ada")
    assert queue.state("nlp/letters").on == ()
    for pods in (
        [_pod(0, "gpu001", 0), _pod(1, "gpu002", 0)],
        [_pod(1, "gpu003", 1)],  # a second later: of one second the order isn't known
    ):
        listed = {"apiVersion": "v1", "kind": "List", "items": pods}
        kubectl.text("create", "--filename=-", stdin=json.dumps(listed))
        time.sleep(1.1)

    def runs(ready: int) -> None:
        status = {"startTime": "2026-11-29T00:58:30Z", "ready": ready, "active": 2}
        kubectl.text(
            *("patch", "job", "letters", "--namespace=nlp", "--subresource=status", "--type=merge"),
            f"--patch={json.dumps({'status': status})}",
        )

    runs(2)
    monkeypatch.setattr(kubectl, "text", counted)

    state = queue.state("nlp/letters")

    assert (state.state, state.gpus, state.pods_of) == ("RUNNING", 8, ("letters",))
    assert sorted(state.on) == ["gpu001", "gpu003"]
    assert queue.state("nlp/letters").on == state.on
    assert listed_kinds == ["jobs.batch", "pods", "jobs.batch"], "pods once, as nothing changed"
    runs(1)
    queue.state("nlp/letters")
    assert listed_kinds[3:] == ["jobs.batch", "pods"]
    kubectl.text("delete", "pods", "--all", "--namespace=nlp", "--grace-period=0", "--force")
    queue.cancel("nlp/letters")


def test_commands_of_no_spec_are_removed_a_day_after_their_end(
    queue: KubernetesQueue, objects: dict[str, Any]
) -> None:
    for name in ("hello-1", "hello-2"):
        made = json.loads(json.dumps(objects["ddp"]).replace('"ddp"', f'"{name}"'))
        made[-1]["metadata"]["labels"]["gcluster.local/command"] = "true"
        queue.submit(made, "ada")
    _ended(queue, "hello-1", "Complete", at="2026-11-27T01:00:00Z")
    _ended(queue, "hello-2", "Complete", at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    queue.submit(objects["parted"], "ada")
    assert [job.name for job in queue.jobs()] == ["hello-2", "parted"]
    queue.cancel("nlp/hello-2")
    queue.cancel("nlp/parted")


def test_who_has_no_rights_in_the_account_creates_nothing(
    queue: KubernetesQueue, objects: dict[str, Any]
) -> None:
    with pytest.raises(LifecycleError) as refused:
        queue.submit(objects["ddp"], "eve")
    assert refused.value.diagnostics[0].code == "GC1213"
    assert 'User "eve" cannot create' in refused.value.diagnostics[0].summary
    assert queue.jobs() == ()


@pytest.mark.parametrize("word", ["7", "nlp", "nlp/../x", "nlp/a b", "--all/x"])
def test_words_that_are_no_id_reach_no_server(queue: KubernetesQueue, word: str) -> None:
    with pytest.raises(LifecycleError) as refused:
        queue.cancel(word)
    assert refused.value.diagnostics[0].code == "GC1214"


class Printed:
    """A double of the queue whose pods print lines, of which kubectl repeats the last second."""

    def __init__(self, *lines: tuple[str, str, str]) -> None:
        """Take pod, time and text of each line."""
        self.lines = list(lines)

    def logs(self, job: str, nodes: int, since: str) -> list[tuple[str, str, str]]:
        """Return those from a second on."""
        del job, nodes
        return [line for line in self.lines if line[1][:19] >= since[:19]]


def test_each_line_of_a_pod_is_shown_once_and_none_is_lost() -> None:
    state = JobState(
        id="nlp/x",
        state="RUNNING",
        reason="",
        exit_code="",
        restarts=0,
        elapsed="",
        nodes=2,
        batch_host="",
        log="",
    )
    at = "2026-11-29T01:00:00.{:03}Z".format
    pods = Printed(("a", at(1), "one"), ("b", at(2), "two"))
    log = KubernetesLog(pods)  # type: ignore[arg-type]  # what it uses of the queue
    assert log.more(state) == "one\ntwo\n"
    pods.lines += [("a", at(5), "three")]
    assert log.more(state) == "three\n"
    assert log.more(state) == ""
    # Of a pod that printed nothing for a while a line comes late.
    pods.lines += [("b", at(3), "late"), ("c", at(4), "new")]
    assert log.more(state) == "late\nnew\n"
