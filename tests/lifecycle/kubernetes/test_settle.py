"""Objects are applied in their order and pruned; what the API says or doesn't is reported.

kubectl is a double that keeps what it is given in files and prints what a test sets: the API itself
is tried on nodes (tests/e2e/test_kubernetes.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.lifecycle.controller import LocalShell

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.members import drain
from gcluster.lifecycle.kubernetes.settle import objects_plan, settle_objects
from gcluster.lifecycle.planning.changes import SitePlan
from gcluster.lifecycle.status.observe import Observation
from gcluster.stacks.provider import Resource, ResourceChange

from .spec import TEXT, hosts_of, wanted_of

KUBECTL = """\
shift
echo "$*" >>{folder}/asked
case "$1 $2" in
"api-resources "*) echo resourcequotas quota v1 true ResourceQuota ;;
"get resourcequotas") cat {folder}/to-keep 2>/dev/null ;;
"get nodes") cat {folder}/nodes ;;
"get pods,"*) cat {folder}/work 2>/dev/null ;;
"get "*) cat {folder}/objects ;;
"apply "*) cat >{folder}/applied; cat {folder}/refusal >&2 2>/dev/null && exit 1 ;;
"rollout "*) cat {folder}/late >&2 2>/dev/null && exit 1 ;;
esac
exit 0
"""


class Api:
    """A control plane whose kubectl answers from a folder."""

    def __init__(self, folder: Path) -> None:
        """Begin with a cluster that has nodes and no objects of ours."""
        self.folder = folder
        self.session = LocalShell(folder / "bin")
        self.session.has("sudo", 'shift; exec "$@"')
        self.session.has("kubectl", KUBECTL.format(folder=folder))
        self.has(objects=[], nodes=["head", "gpu001", "gpu002"])

    def has(self, *, objects: list[dict[str, Any]], nodes: list[str]) -> None:
        """Say what is there."""
        answer = [
            {
                "metadata": {"name": name, "labels": {"gcluster.local/pool": "gpu"}},
                "spec": {},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
            for name in nodes
        ]
        (self.folder / "nodes").write_text(json.dumps({"items": answer}))
        (self.folder / "objects").write_text(json.dumps({"items": objects}))

    def kubectl_calls(self, verb: str) -> list[str]:
        """Return kubectl's calls of one kind."""
        lines = (self.folder / "asked").read_text().splitlines()
        return [line for line in lines if line.startswith(verb)]

    def applied(self) -> list[dict[str, Any]]:
        """Return the objects that were applied, in order."""
        items: list[dict[str, Any]] = json.loads((self.folder / "applied").read_text())["items"]
        return items


@pytest.fixture
def api(tmp_path: Path) -> Api:
    """Return a control plane that answers."""
    return Api(tmp_path)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Return the trial cluster."""
    path = tmp_path / "cluster.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return open_cluster(str(path))


def observed(cluster: Cluster, stamps: dict[str, dict[str, str]] | None = None) -> Observation:
    hosts = hosts_of(cluster.spec)
    joined = {"head": {"kubernetes.join": "0" * 64}} if stamps is None else stamps
    return Observation(
        sites=(), existing=hosts, desired=hosts, stamps=joined, unreachable={}, taken_at=0.0
    )


def test_objects_are_applied_by_the_server_in_the_order_of_the_tree(
    cluster: Cluster, api: Api
) -> None:
    assert settle_objects(cluster, observed(cluster), api.session, silent) == ()
    (call,) = api.kubectl_calls("apply")
    assert "--server-side" in call
    assert "--field-manager=gcluster" in call
    kinds = [one["kind"] for one in api.applied()]
    assert kinds.index("Namespace") < kinds.index("PriorityClass") < kinds.index("DaemonSet")


def test_nodes_get_their_labels_and_those_alike_in_one_call(cluster: Cluster, api: Api) -> None:
    settle_objects(cluster, observed(cluster), api.session, silent)
    (call,) = api.kubectl_calls("label")
    assert call.startswith("label node --overwrite gpu001 gpu002 ")
    assert "partition.gcluster.local/main=true" in call


def test_what_has_drifted_is_put_back_and_nothing_is_removed(cluster: Cluster, api: Api) -> None:
    old = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "a", "namespace": "b"}}
    api.has(objects=[old], nodes=["head", "gpu001", "gpu009"])
    assert settle_objects(cluster, observed(cluster), api.session, silent, prune=False) == ()
    assert len(api.kubectl_calls("apply")) == len(api.kubectl_calls("label")) == 1
    assert api.kubectl_calls("delete") == []


def test_what_is_no_longer_compiled_is_deleted_and_a_node_that_left_is_removed(
    cluster: Cluster, api: Api
) -> None:
    old = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "a", "namespace": "b"}}
    api.has(objects=[old], nodes=["head", "gpu001", "gpu002", "gpu003"])
    settle_objects(cluster, observed(cluster), api.session, silent)
    assert api.kubectl_calls("delete") == [
        "delete resourcequotas a --namespace=b --ignore-not-found --wait=false",
        "delete node --ignore-not-found --wait=false gpu003",
    ]


def test_a_namespace_with_work_in_it_is_kept_and_reported(cluster: Cluster, api: Api) -> None:
    old = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "biology"}}
    api.has(objects=[old], nodes=["head"])
    (api.folder / "work").write_text("pod/one\npod/two\njob.batch/three\n")
    (answer,) = settle_objects(cluster, observed(cluster), api.session, silent)
    assert (answer.code, answer.is_error) == ("GC1007", False)
    assert "biology is kept: 2 pod, 1 job.batch" in answer.summary
    assert api.kubectl_calls("delete") == []


def test_a_namespace_with_an_object_that_its_chart_keeps_is_kept_and_reported(
    cluster: Cluster, api: Api
) -> None:
    old = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "biology"}}
    api.has(objects=[old], nodes=["head"])
    (api.folder / "to-keep").write_text("ResourceQuota\x1fnight\x1fkeep\x1e")
    plan = objects_plan(cluster, observed(cluster), api.session)
    assert plan is not None
    assert plan.held_back == (
        "namespace biology stays: ResourceQuota/night (its chart keeps it) in it",
    )
    (answer,) = settle_objects(cluster, observed(cluster), api.session, silent)
    assert (answer.code, answer.is_error) == ("GC1007", False)
    assert "biology is kept: 1 ResourceQuota (its chart keeps it) in it" in answer.summary
    assert api.kubectl_calls("delete") == []


def test_what_the_server_refuses_is_reported_with_its_message(cluster: Cluster, api: Api) -> None:
    (api.folder / "refusal").write_text("Error from server: quota is not a number\n")
    (answer,) = settle_objects(cluster, observed(cluster), api.session, silent)
    assert (answer.code, answer.is_error) == ("GC1006", True)
    assert "quota is not a number" in answer.summary
    assert api.kubectl_calls("delete") == []


def test_pods_of_ours_that_are_late_are_a_warning(cluster: Cluster, api: Api) -> None:
    (api.folder / "late").write_text("error: timed out waiting for the condition\n")
    (answer,) = settle_objects(cluster, observed(cluster), api.session, silent)
    assert (answer.code, answer.is_error) == ("GC1006", False)


def test_an_api_server_that_stays_silent_is_waited_for_and_then_named(
    cluster: Cluster, api: Api
) -> None:
    refused = "The connection to the server head:6443 was refused"
    api.session.has("kubectl", f"echo '{refused}' >&2; exit 1")
    now: list[float] = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    found = settle_objects(
        cluster, observed(cluster), api.session, silent, clock=lambda: now[0], sleep=sleep
    )
    assert [answer.code for answer in found] == ["GC1005"]
    assert "head: The connection" in found[0].summary
    assert slept


def test_a_plan_of_a_cluster_that_was_never_made_adds_all_and_queries_nothing(
    cluster: Cluster, api: Api
) -> None:
    found = objects_plan(cluster, observed(cluster, {}), api.session)
    assert found is not None
    assert len(wanted_of().objects) > len(found.changes) > 0
    assert all(line.startswith("add ") for line in found.changes)
    assert not (api.folder / "asked").exists()


def test_a_plan_reports_that_an_api_server_is_silent(cluster: Cluster, api: Api) -> None:
    api.session.has("kubectl", "echo 'Unable to connect to the server: EOF' >&2; exit 1")
    found = objects_plan(cluster, observed(cluster), api.session)
    assert found is not None
    assert "Unable to connect" in found.problem


def test_a_plan_of_slurm_has_no_objects(tmp_path: Path, api: Api) -> None:
    path = tmp_path / "slurm.yaml"
    head, _, _ = TEXT.partition("scheduler:")
    path.write_text(f"{head}scheduler: {{type: slurm}}\n", encoding="utf-8")
    slurm = open_cluster(str(path))
    assert objects_plan(slurm, observed(slurm), api.session) is None
    assert settle_objects(slurm, observed(slurm), api.session, silent) == ()


def test_nodes_that_are_about_to_go_are_drained_when_the_cluster_has_them(
    cluster: Cluster, api: Api
) -> None:
    api.session.has(
        "kubectl", f'shift; echo "$*" >>{api.folder}/asked; echo node/gpu001; echo node/head'
    )
    gone = tuple(
        ResourceChange(effect="delete", resource=Resource(kind="node", name=name, pool="gpu"))
        for name in ("gpu001", "gpu009")
    )
    site = SitePlan(site="here", provider="local", changes=gone)
    leaving = msgspec.structs.replace(observed(cluster), sites=(site,))
    assert drain(leaving, api.session) == ()
    (call,) = api.kubectl_calls("drain")
    assert call.startswith("drain gpu001 --ignore-daemonsets")


def test_pods_that_stay_on_a_leaving_node_are_a_warning(cluster: Cluster, api: Api) -> None:
    api.session.has(
        "kubectl", '[ "$2" = get ] && echo node/gpu001 && exit; echo "budget" >&2; exit 1'
    )
    gone = ResourceChange(effect="delete", resource=Resource(kind="node", name="gpu001"))
    site = SitePlan(site="here", provider="local", changes=(gone,))
    (answer,) = drain(msgspec.structs.replace(observed(cluster), sites=(site,)), api.session)
    assert (answer.code, answer.is_error) == ("GC1008", False)


def test_a_cluster_of_nodes_that_run_nothing_is_left_alone(tmp_path: Path, api: Api) -> None:
    path = tmp_path / "simulated.yaml"
    path.write_text(TEXT.replace("provider: local", "provider: simulated"), encoding="utf-8")
    simulated = open_cluster(str(path))
    nobody = ClusterInventory(cluster=simulated.name, hosts=())
    seen = Observation(
        sites=(), existing=nobody, desired=nobody, stamps={}, unreachable={}, taken_at=0.0
    )
    assert settle_objects(simulated, seen, api.session, silent) == ()
