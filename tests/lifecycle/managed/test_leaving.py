"""Which nodes a smaller spec takes from a cloud's control plane, and what they are drained by."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.lifecycle.kubernetes.addons.kubectl_double import KubectlDouble

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.open_site import OpenSite
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.managed import login as here
from gcluster.lifecycle.kubernetes.managed.leaving import leaving_nodes, surplus
from gcluster.lifecycle.kubernetes.managed.nodes import ApiNode, read_nodes, with_managed_nodes
from gcluster.lifecycle.kubernetes.phases import drain_leaving
from gcluster.lifecycle.nodes.ssh import SshSession
from gcluster.lifecycle.planning.changes import SitePlan
from gcluster.lifecycle.status.observe import Observation
from gcluster.stacks.aws.provider import AwsProvider
from gcluster.stacks.provider import Effect, Resource, ResourceChange

from .eks_spec import EKS, spec_of

SPEC = spec_of()
PLANNED = AwsProvider().planned_hosts(SPEC, "here")
IDS = {"demo-here-cpu001": "i-1", "demo-here-cpu002": "i-2", "demo-here-door": "i-9"}
NODES = tuple(
    ApiNode(name=name, pool="cpu", created=str(n), machine_id=f"i-{n}", ready=True)
    for n, name in enumerate(("ip-1", "ip-2", "ip-3"), start=1)
)


class StackOf(AwsProvider):
    """A cloud whose stack says which machine is which instance."""

    def machine_ids(self, context: Any) -> Mapping[str, str]:
        """Return them."""
        del context
        return IDS


def leaving(*effects: tuple[Effect, str]) -> dict[str, str]:
    changes = tuple(
        ResourceChange(effect=effect, resource=Resource(kind="Instance", name=f"demo-here-{name}"))
        for effect, name in effects
    )
    context = cast("Any", SimpleNamespace(spec=SPEC))
    site = OpenSite(name="here", provider=cast("Any", StackOf()), context=context)
    plan = SitePlan(site="here", provider="aws", changes=changes)
    return leaving_nodes([site], {"here": plan}, NODES)


def test_a_node_is_known_by_the_instance_that_the_stack_ends() -> None:
    assert leaving(("delete", "cpu001"), ("keep", "cpu002")) == {"ip-1": "cpu"}
    assert leaving(("replace", "cpu002"), ("delete", "door")) == {"ip-2": "cpu"}
    assert leaving(("create", "cpu003"), ("update", "cpu001"), ("delete", "cpu004")) == {}


def test_nodes_that_the_autoscaler_made_leave_with_their_group_and_fixed_ones_stay() -> None:
    assert leaving(("delete", "cpu-elastic"), ("keep", "cpu001")) == {"ip-3": "cpu"}
    assert leaving(("update", "cpu-elastic")) == {}
    assert leaving(("delete", "gpu-elastic")) == {}


def test_the_node_that_goes_is_no_host_though_it_is_the_oldest() -> None:
    _, existing = with_managed_nodes(SPEC, PLANNED, NODES, {"ip-1": "cpu"})
    assert [host.name for host in existing] == ["ip-2", "ip-3"]


def test_once_drained_it_is_none_either_while_its_cloud_has_not_removed_it() -> None:
    answer = [
        {
            "metadata": {"name": name, "labels": {"gcluster.local/pool": "cpu"}},
            "spec": {"providerID": f"aws:///us-east-1f/{name}", "unschedulable": name == "i-a"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        for name in ("i-a", "i-b", "i-c")
    ]
    kubectl = cast("Any", type("Api", (), {"get": lambda *_, **__: {"items": answer}})())
    nodes = read_nodes(kubectl)
    assert [node.machine_id for node in nodes] == ["i-a", "i-b", "i-c"]
    assert [host.name for host in with_managed_nodes(SPEC, PLANNED, nodes)[1]] == ["i-b", "i-c"]


@pytest.mark.parametrize(("cloud", "more"), [("gke", {"cpu": 1}), ("aks", {"cpu": 1}), ("eks", {})])
def test_where_the_cloud_chooses_it_is_known_how_many_go(cloud: str, more: dict[str, int]) -> None:
    spec = spec_of(EKS.replace("control_plane: eks", f"control_plane: {cloud}"), check=False)
    assert surplus(spec, PLANNED, NODES) == more


def test_they_are_drained_before_the_stack_is_applied_and_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    kubectl = KubectlDouble({"get nodes": "node/ip-1\nnode/ip-2\nnode/ip-3\n"})
    monkeypatch.setattr(here, "local_kubectl", lambda _: kubectl)
    wanted, existing = with_managed_nodes(SPEC, PLANNED, NODES, {"ip-1": "cpu"})
    seen = Observation(
        sites=(),
        existing=ClusterInventory(cluster="demo", hosts=existing),
        desired=ClusterInventory(cluster="demo", hosts=wanted),
        stamps={},
        unreachable={},
        taken_at=0.0,
        leaving={"ip-1": "cpu"},
    )
    cluster = cast("Cluster", type("Of", (), {"spec": SPEC})())
    drain_leaving(cluster, seen, SshSession(tmp_path), silent)
    (call,) = [line for line in kubectl.calls if line.startswith("drain ")]
    assert call.startswith("drain ip-1 --ignore-daemonsets")
