"""A cluster under EKS from `up` to `down`, against a real API server; the cloud is a double."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.simulated.api_server import ApiServer
from tests.lifecycle.smoke.kubernetes_cluster import RECORDED

from gcluster.lifecycle.cluster import sites
from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.hosts import existing_hosts
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.down.down import DownResult, down
from gcluster.lifecycle.kubernetes.managed import joining, release
from gcluster.lifecycle.nodes.ssh import SshSession
from gcluster.lifecycle.operations import service
from gcluster.lifecycle.operations.repair.attempt import Intended
from gcluster.lifecycle.operations.repair.work import repair
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.scheduler.select import scheduler_of
from gcluster.lifecycle.smoke.gate import last_certificate
from gcluster.lifecycle.status.drift.observe import find_drift
from gcluster.lifecycle.status.health import read_status
from gcluster.lifecycle.up.phase import UpResult
from gcluster.lifecycle.up.up import up
from gcluster.schemas.load import load_text

from .eks_double import ClusterDouble, put_programs, until
from .held_objects import CONTAINER, RESTRICTED, deployments, held
from .stack_double import NODES, StackDouble

pytestmark = pytest.mark.kubernetes_api

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites:
  here:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}
pools:
  cpu: {site: here, machine: m7i.4xlarge, count: 2}
scheduler:
  type: kubernetes
  control_plane: eks
  kueue: false
  accounts: {physics: {}, biology: {}}
smoke:
  allreduce: {image: "registry.example.edu/allreduce:1.4", sizes: 8B..1MiB, iterations: 3}
"""


class Eks:
    """A cluster under the doubles, driven as the command line drives one."""

    def __init__(self, folder: Path, stack: StackDouble, nodes: ClusterDouble) -> None:
        """Describe it."""
        self.text, self.folder, self.stack, self.nodes = SPEC, folder, stack, nodes
        self.api = nodes.api

    def open(self) -> Cluster:
        """Open the cluster again, as another process would."""
        loaded = load_text(self.text, file="cluster.yaml")
        assert loaded.spec is not None, loaded.diagnostics
        return Cluster(
            spec=loaded.spec,
            text=self.text,
            spec_path=self.folder / "cluster.yaml",
            state_url=f"file://{self.folder}/state",
        )

    def up(self) -> UpResult:
        """Bring it up."""
        return up(self.open(), silent, confirm=lambda _: True)

    def down(self) -> DownResult:
        """Take it down; keep what was shown before."""
        self.shown: list[str] = []

        def confirm(existing: Any) -> bool:
            self.shown = [f"{one.kind} {one.name}" for one in existing]
            return True

        return down(self.open(), silent, confirm=confirm)

    def get(self, *what: str) -> Any:
        """Query the API as JSON."""
        return json.loads(self.api.kubectl("get", *what, "--output=json").stdout)

    def serve(self, act: Callable[..., service.ServiceResult], *more: str) -> service.ServiceResult:
        """Drain or resume the first node."""
        cluster = self.open()
        with SshSession(cluster.workdir) as session:
            hosts = existing_hosts(cluster)
            return act(hosts, scheduler_of(cluster.spec, hosts, session), [NODES[0]], *more)


@pytest.fixture(scope="module")
def eks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Eks]:
    """Give a cluster that is not up yet, on an API server with its scheduler and controllers."""
    folder = tmp_path_factory.mktemp("eks")
    with pytest.MonkeyPatch.context() as patch, ApiServer() as api:
        api.run_scheduler()
        patch.setenv("PATH", put_programs(api, folder / "bin"))
        for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(folder / name))
        with ClusterDouble(api, RECORDED) as nodes:
            stack = StackDouble(api, nodes.join)
            patch.setattr(sites, "provider", lambda *_: stack)
            yield Eks(folder, stack, nodes)


def test_a_plan_before_it_is_made_adds_every_object(eks: Eks) -> None:
    plan = make_plan(eks.open())
    assert plan.objects is not None
    assert any("add Namespace" in line for line in plan.objects.changes)
    assert not [diagnostic for diagnostic in plan.diagnostics if diagnostic.is_error]


def test_up_applies_labels_and_proves_it(eks: Eks) -> None:
    done = eks.up()
    assert (done.exit_code, done.failed_hosts) == (Exit.OK, {}), (done.diagnostics, done.verdict)
    labels = {n["metadata"]["name"]: n["metadata"]["labels"] for n in eks.get("nodes")["items"]}
    assert {own["gcluster.local/site"] for own in labels.values()} == {"here"}
    assert {own["partition.gcluster.local/main"] for own in labels.values()} == {"true"}
    assert eks.get("namespace", "physics")["metadata"]["labels"]["gcluster.local/cluster"] == "demo"
    certificate: Any = last_certificate(eks.open())
    assert certificate["verdict"]["verdict"] == "pass"
    assert certificate["software"]["kubernetes"] == {
        "1.35.4-eks-1": "ip-10-40-0-[11-12].ec2.internal"
    }
    assert eks.get("jobs", "--namespace=gcluster-system")["items"] == []


def test_the_login_is_the_cloud_s_and_no_secret_is_in_a_file(eks: Eks) -> None:
    cluster = eks.open()
    file = cluster.workdir / "kubeconfig"
    assert file.stat().st_mode & 0o777 == 0o600
    token = (eks.api.folder / "tokens.csv").read_text(encoding="utf-8").partition(",")[0]
    for path in (file, *eks.folder.joinpath("state").rglob("*")):
        assert not path.is_file() or token not in path.read_text(errors="replace"), path
    requested = (eks.folder / "bin/asked").read_text(encoding="utf-8").splitlines()
    assert set(requested) == {
        "--region us-east-1 eks get-token --cluster-name demo-here-eks --output json"
    }


def test_the_job_ran_the_image_that_the_spec_names(eks: Eks) -> None:
    spec = eks.open().spec
    assert spec.smoke.allreduce.image == "registry.example.edu/allreduce:1.4"
    events = eks.get("events", "--namespace=gcluster-system")["items"]
    assert any(one["reason"] == "Completed" for one in events)


def test_a_second_up_changes_nothing(eks: Eks) -> None:
    again = eks.up()
    assert (again.changed, again.exit_code) == (False, Exit.OK), again.diagnostics


def test_status_shows_of_nodes_by_their_cloud_s_names(eks: Eks) -> None:
    answer = read_status(eks.open())
    assert {(n.name, n.scheduler_state, n.reason) for n in answer.nodes} == {
        (name, "ready", "") for name in NODES
    }
    assert {c.name: c.status for c in answer.conditions} == {
        "NodesReady": "true",
        "SchedulerUp": "true",
        "Converged": "true",
        "AllReducePassed": "true",
    }


def test_drain_and_resume_work_as_elsewhere(eks: Eks) -> None:
    out = eks.serve(service.drain, "a fan is loud")
    assert [(n.name, n.in_service, n.reason) for n in out.nodes] == [
        (NODES[0], False, "a fan is loud")
    ]
    back = eks.serve(service.resume)
    assert [(n.in_service, n.changed) for n in back.nodes] == [(True, True)]


def test_drift_names_what_was_changed_by_hand(eks: Eks) -> None:
    assert find_drift(eks.open()).drifts == ()
    eks.api.kubectl("delete", "role", "--namespace=physics", "--all")
    eks.api.kubectl("label", "node", NODES[1], "gcluster.local/site=elsewhere", "--overwrite")
    found = {(d.kind, d.where) for d in find_drift(eks.open()).drifts}
    assert found == {("label", NODES[1]), ("object", "Role")}
    assert eks.up().exit_code is Exit.OK
    assert find_drift(eks.open()).drifts == ()


def test_an_account_that_the_spec_drops_is_pruned(eks: Eks) -> None:
    eks.text = SPEC.replace(", biology: {}", "")
    assert eks.up().exit_code is Exit.OK
    gone = eks.api.kubectl("get", "namespace", "biology", check=False)
    until(lambda: _is_gone(eks, "namespace", "biology"), gone.stdout)
    eks.text = SPEC
    assert eks.up().exit_code is Exit.OK


def test_a_node_that_is_not_ready_is_named_with_its_pool(
    eks: Eks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "WITHIN_S", 0)
    eks.nodes.ready(NODES[1], "container runtime network not ready: cni plugin not initialized")
    eks.text = SPEC.replace("biology: {}", "chemistry: {}")
    done = eks.up()
    assert done.exit_code is Exit.FAILED
    [message] = [one for one in done.diagnostics if one.code == "GC1042"]
    assert "pool cpu: 1 of 2 nodes are ready" in message.summary
    assert "cni plugin not initialized" in message.summary
    eks.nodes.ready(NODES[1])
    assert eks.up().exit_code is Exit.OK
    eks.text = SPEC


def test_a_smaller_count_drains_the_node_that_goes_and_no_other(eks: Eks) -> None:
    place(eks, {f"on-{n}": node for n, node in enumerate(NODES)})
    eks.text = SPEC.replace("count: 2", "count: 1")
    plan = make_plan(eks.open())
    assert plan.job_impact is not None
    assert plan.job_impact.jobs == ("physics/on-1",)
    eks.up()
    assert eks.stack.out == {NODES[1]: ["true"]}
    (left,) = eks.get("nodes")["items"]
    assert (left["metadata"]["name"], "unschedulable" in left["spec"]) == (NODES[0], False)
    assert not _is_gone(eks, "pod", "on-0", "--namespace=physics")
    eks.api.kubectl("delete", "pod", "on-0", "--namespace=physics", "--wait=false")
    eks.text = SPEC
    assert eks.up().exit_code is Exit.OK


def test_repair_drains_a_node_makes_its_machine_again_and_waits_for_it(eks: Eks) -> None:
    shown: list[Intended] = []

    def confirm(intended: tuple[Intended, ...]) -> bool:
        shown.extend(intended)
        return True

    done = repair(eks.open(), [NODES[1]], silent, confirm=confirm)
    assert [(one.entry.node, one.actions) for one in shown] == [(NODES[1], ("replace",))]
    new = "ip-10-40-0-21.ec2.internal"
    assert (done.exit_code, done.admitted, done.held) == (Exit.OK, (new,), {}), done
    assert eks.stack.out[NODES[1]] == ["true"]
    labels = {n["metadata"]["name"]: n["metadata"]["labels"] for n in eks.get("nodes")["items"]}
    assert labels.keys() == {NODES[0], new}
    assert labels[new]["partition.gcluster.local/main"] == "true"


def test_repair_of_a_pool_goes_in_waves_and_waits_for_jobs_by_its_update(eks: Eks) -> None:
    everything = ["cpu[001-002]"]
    place(eks, {"busy": NODES[0]})
    eks.text = SPEC.replace("count: 2", "count: 2, update: {drain_timeout: 1s}")
    done = repair(eks.open(), everything, silent, confirm=lambda _: True)
    assert done.exit_code is Exit.PENDING
    assert done.held == {NODES[0]: "job physics/busy still runs there after 1 s"}
    assert done.admitted == ("ip-10-40-0-22.ec2.internal",)
    there = {n["metadata"]["name"]: n["spec"] for n in eks.get("nodes")["items"]}
    assert "unschedulable" not in there[NODES[0]]
    assert _node(eks, "busy") == NODES[0]
    eks.api.kubectl("delete", "pod", "busy", "--namespace=physics", "--grace-period=0", "--force")
    eks.stack.waves.clear()
    done = repair(eks.open(), everything, silent, confirm=lambda _: True)
    assert (done.exit_code, len(done.admitted)) == (Exit.OK, 2), done
    assert eks.stack.waves == [["cpu001"], ["cpu002"]]
    eks.text = SPEC.replace("count: 2", "count: 2, update: {max_unavailable: 2}")
    assert repair(eks.open(), everything, silent, confirm=lambda _: True).exit_code is Exit.OK
    assert sorted(eks.stack.waves[2]) == ["cpu001", "cpu002"]
    eks.text = SPEC


def test_down_waits_until_the_cloud_let_go(eks: Eks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "_ASK_AGAIN_S", 0.5)
    assert eks.api.apply([*held(), *deployments()]).returncode == 0
    until(lambda: _phase(eks) == "Bound", "the claim was not bound")
    eks.nodes.holds = True
    monkeypatch.setattr(release, "_WITHIN_S", 3)
    with pytest.raises(LifecycleError) as refused:
        eks.down()
    [message] = refused.value.diagnostics
    assert message.code == "GC1045"
    assert "Service default/door" in message.summary
    assert eks.stack.ended == []
    eks.nodes.holds = False
    monkeypatch.setattr(release, "_WITHIN_S", 60)
    done = eks.down()
    assert done.exit_code is Exit.OK
    assert {"load balancer of door", "disk of work"} <= set(eks.nodes.let_go)
    assert _is_gone(eks, "deployment", "holds", "--namespace=physics")
    assert not _is_gone(eks, "deployment", "bystander", "--namespace=physics")
    assert eks.stack.ended == ["here"]
    assert not (eks.open().workdir / "kubeconfig").exists()


def place(eks: Eks, pods: dict[str, str]) -> None:
    """Run pods, each on its node."""
    made = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "physics"},
            "spec": {
                **RESTRICTED,
                "affinity": _only(node),
                "containers": [{"name": "one", "image": "double", **CONTAINER}],
            },
        }
        for name, node in pods.items()
    ]
    assert eks.api.apply(made).returncode == 0
    for name, node in pods.items():
        until(lambda name=name, node=node: _node(eks, name) == node, f"{name} was not placed")


def _is_gone(eks: Eks, kind: str, name: str, *where: str) -> bool:
    return bool(eks.api.kubectl("get", kind, name, *where, check=False).returncode)


def _only(node: str) -> dict[str, object]:
    """Return the affinity of a pod that runs on one node alone."""
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    terms = {"nodeSelectorTerms": [here]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _node(eks: Eks, pod: str) -> str:
    return str(eks.get("pod", pod, "--namespace=physics")["spec"].get("nodeName", ""))


def _phase(eks: Eks) -> str:
    claim = eks.get("persistentvolumeclaim", "work", "--namespace=physics")
    return str(claim["status"].get("phase", ""))
