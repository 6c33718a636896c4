"""Under EKS elastic pools are groups that the Cluster Autoscaler sizes, from no node on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pulumi
import pytest
from tests.stacks.graph_comparison import agrees
from tests.stacks.recorded_graph import Graph, orphans, unregistered, untagged

from gcluster.inventory.compile.kubernetes_objects.addons import chosen_addons
from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts, kubernetes_facts
from gcluster.inventory.hosts import ClusterInventory
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec, NodeTaint
from gcluster.stacks.aws.plan.layout import site_plan
from gcluster.stacks.aws.plan.types import EksPlan
from gcluster.stacks.aws.program import site as program
from gcluster.stacks.aws.program.control_plane import ControlPlane, node_config, node_config_text
from gcluster.stacks.aws.provider import AwsProvider
from gcluster.stacks.pulumi.program import record_site
from gcluster.stacks.pulumi.recording.graph import RecordedGraph

TEXT = (
    Path(__file__).parents[2].joinpath("cases/stacks/aws/kubernetes/eks-elastic.yaml").read_text()
)
HINT = "k8s.io/cluster-autoscaler/node-template/"


@cache
def loaded(text: str = TEXT) -> ClusterSpec:
    spec = load_text(text).spec
    assert spec is not None
    return spec


@cache
def recording(*, preview: bool = False) -> RecordedGraph:
    return record_site(loaded(), "east", load_catalog(), preview=preview)


def made() -> Graph:
    return Graph(recording())


def facts(text: str = TEXT) -> KubernetesFacts:
    spec, catalog = loaded(text), load_catalog()
    hosts = AwsProvider().planned_hosts(spec, "east")
    return kubernetes_facts(spec, ClusterInventory(cluster=spec.name, hosts=tuple(hosts)), catalog)


def values(text: str = TEXT) -> dict[str, Any]:
    [one] = [c for c in chosen_addons(facts(text)) if c.addon.name == "cluster-autoscaler"]
    return one.values


def group(pool: str) -> dict[str, Any]:
    [one] = [g for g in made().of_type("Group") if g.name == f"grows-east-{pool}-elastic"]
    return one.inputs


def tags(pool: str) -> dict[str, str]:
    return {one["key"]: one["value"] for one in group(pool)["tags"]}


def hints(pool: str, kind: str) -> dict[str, str]:
    """Return what a group's tags say of its next node: labels, taints or resources by name."""
    head = f"{HINT}{kind}/"
    return {k.removeprefix(head): v for k, v in tags(pool).items() if k.startswith(head)}


def template(name: str) -> dict[str, Any]:
    [one] = [t for t in made().of_type("LaunchTemplate") if t.name == f"grows-east-{name}"]
    return one.inputs


def test_all_of_it_is_tagged_in_a_component_and_a_preview_agrees() -> None:
    assert untagged(recording(), {"gcluster-cluster": "grows", "gcluster-site": "east"}) == ()
    assert (orphans(recording()), unregistered(recording())) == ((), ())
    assert agrees(recording(), recording(preview=True))


def test_a_group_has_no_node_by_itself_and_at_most_those_beyond_the_fixed_ones() -> None:
    sizes = {pool: (group(pool)["minSize"], group(pool)["maxSize"]) for pool in ("train", "cheap")}
    assert sizes == {"train": (0, 3), "cheap": (0, 8)}
    assert "desiredCapacity" not in group("train")  # the autoscaler's to say
    assert group("train")["protectFromScaleIn"] is True
    fixed = [one.name for one in made().of_type("Instance")]
    assert sorted(fixed) == [f"grows-east-{n}" for n in ("own001", "own002", "train001")]
    assert {one.name for one in made().of_type("Group")} == {
        f"grows-east-{pool}-elastic" for pool in ("train", "cheap", "block")
    }


def test_its_machines_are_as_the_pool_s_others_but_for_the_subnet_that_the_group_has() -> None:
    fixed, elastic = template("train-on-demand-use1-az4"), template("train-elastic")
    for key in ("placement", "imageId", "instanceType", "metadataOptions", "blockDeviceMappings"):
        assert elastic[key] == fixed[key], key
    without = [{k: v for k, v in n.items() if k != "subnetId"} for n in fixed["networkInterfaces"]]
    assert elastic["networkInterfaces"] == without
    assert sum(nic["interfaceType"] == "efa-only" for nic in without) == 32
    assert group("train")["vpcZoneIdentifiers"] == [fixed["networkInterfaces"][0]["subnetId"]]
    spot = template("cheap-elastic")["instanceMarketOptions"]
    assert spot["marketType"] == "spot"
    assert spot["spotOptions"] == {"spotInstanceType": "one-time", "maxPrice": "9.5"}
    block = template("block-elastic")
    assert block["instanceMarketOptions"] == {"marketType": "capacity-block"}
    [reserved] = block["capacityReservationSpecification"].values()
    assert reserved == {"capacityReservationId": "cr-0123456789abcdef0"}


def test_what_the_autoscaler_is_reported_of_a_node_is_what_its_kubelet_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it makes nodes that the pod can't run on (its README, "It is your responsibility")."""
    requested: list[tuple[dict[str, str], Sequence[NodeTaint]]] = []

    def noted(
        plane: ControlPlane,
        plan: EksPlan,
        labels: dict[str, str],
        taints: Sequence[NodeTaint] = (),
        *,
        striped: bool,
    ) -> pulumi.Output[str]:
        requested.append((labels, taints))
        return node_config(plane, plan, labels, taints, striped=striped)

    monkeypatch.setattr(program, "node_config", noted)
    record_site(loaded(), "east", load_catalog())
    started = {labels["gcluster.local/pool"]: labels for labels, _ in requested if len(labels) > 1}
    assert started.keys() == {"train", "cheap", "block"}
    for pool, labels in started.items():
        assert hints(pool, "label") == labels
        assert labels["k8s.amazonaws.com/accelerator"].startswith("nvidia-")
    [tainted] = [taints for labels, taints in requested if taints]
    assert hints("train", "taint") == {one.key: f"{one.value}:{one.effect}" for one in tainted}
    assert hints("cheap", "taint") == {}
    text = node_config_text("grows", "https://1.2.3.4", "Q0E=", "10.96.0.0/16", {"a": "b"}, tainted)
    assert json.loads(text)["spec"]["kubelet"]["flags"] == [
        "--node-labels=a=b",
        "--register-with-taints=dedicated=training:NoSchedule",
    ]


def test_devices_that_no_node_has_shown_yet_are_hints_and_pods_request_no_others() -> None:
    assert hints("train", "resources") == {
        "nvidia.com/gpu": "8",
        "vpc.amazonaws.com/efa": "32",
        "hugepages-2Mi": "5120Mi",
        "ephemeral-storage": "170Gi",
    }
    assert f"{HINT}taint/dedicated" in tags("train")
    assert tags("train")[f"{HINT}label/partition.gcluster.local/train"] == "true"
    assert all(len(key) <= 128 for key in tags("train"))


@pytest.mark.parametrize(("gpu", "units"), [("mig: all-1g.10gb", "56"), ("time_slices: 4", "32")])
def test_gpus_that_are_cut_or_shared_count_as_pods_request_them(gpu: str, units: str) -> None:
    text = TEXT.replace("control_plane: eks\n", f"control_plane: eks\n  gpu: {{{gpu}}}\n")
    text = text.replace("g5.48xlarge", "p5.48xlarge").replace("9.5", "60")
    plane = site_plan(loaded(text), "east", load_catalog()).control_plane
    assert plane is not None
    assert plane.groups["train"].resources["nvidia.com/gpu"] == units


def test_the_autoscaler_finds_the_cluster_s_groups_and_sizes_no_others() -> None:
    requested = values()["autoDiscovery"]["tags"]
    wanted = {key: value for key, _, value in (one.partition("=") for one in requested)}
    assert wanted.items() >= {"gcluster-cluster": "grows", "gcluster-site": "east"}.items()
    for pool in ("train", "cheap", "block"):
        assert all(tags(pool).get(key, None) == (value or "true") for key, value in wanted.items())
    [policy] = [p for p in made().of_type("RolePolicy") if p.name.endswith("eks-autoscaler")]
    look, size = json.loads(str(policy.inputs["policy"]))["Statement"]
    assert size["Condition"]["StringEquals"] == {
        "aws:ResourceTag/gcluster-cluster": "grows",
        "aws:ResourceTag/gcluster-site": "east",
    }
    assert not [a for a in look["Action"] if not fnmatch(a, "*:Describe*") and ":Get" not in a]
    [given] = made().of_type("PodIdentityAssociation")
    account = values()["rbac"]["serviceAccount"]["name"]
    assert (given.inputs["namespace"], given.inputs["serviceAccount"]) == ("kube-system", account)


def test_the_autoscaler_is_its_release_s_and_stays_on_nodes_that_stay() -> None:
    assert values()["image"] == {"tag": "v1.35.2"}
    older = TEXT + 'software: {kubernetes: "1.33"}\n'
    assert values(older)["image"] == {"tag": "v1.33.6"}
    [one] = [c for c in chosen_addons(facts(older)) if c.addon.name == "cluster-autoscaler"]
    assert list(one.addon.images) == ["registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.6"]
    newer = TEXT + 'software: {kubernetes: "1.37"}\n'
    assert values(newer)["image"] == {"tag": "v1.36.1"}
    [term] = values()["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchExpressions"] == [
        {"key": "gcluster.local/elastic", "operator": "DoesNotExist"}
    ]
    assert f"{HINT}label/gcluster.local/elastic" in tags("cheap")


def test_the_service_that_starts_machines_may_use_the_site_s_key_for_their_disks() -> None:
    grants = made().of_type("Grant")
    assert len(grants) == 3
    assert "CreateGrant" in grants[0].inputs["operations"]  # type: ignore[operator]
    without = TEXT.replace(TEXT[TEXT.index("    kms_key") : TEXT.index("    network:")], "")
    assert Graph(record_site(loaded(without), "east", load_catalog())).of_type("Grant") == ()


def test_behind_a_proxy_the_autoscaler_has_the_endpoints_that_it_calls() -> None:
    assert site_plan(loaded(), "east", load_catalog()).network.endpoints == ()
    proxied = TEXT.replace("    network:", "    proxy: {https: http://10.9.9.9:3128}\n    network:")
    spec = load_text(proxied, check=False).spec
    assert spec is not None
    network = site_plan(spec, "east", load_catalog()).network
    assert network.endpoints == ("autoscaling", "ec2", "eks-auth")


def test_a_cluster_of_fixed_pools_has_no_autoscaler() -> None:
    fixed = TEXT
    for bounds, count in (("{min: 1, max: 4}", "2"), ("{min: 0, max: 8}", "2"),
                          ("{min: 0, max: 2}", "2")):  # fmt: skip
        fixed = fixed.replace(f"count: {bounds}", f"count: {count}")
    graph = Graph(record_site(loaded(fixed), "east", load_catalog()))
    assert graph.of_type("Group") == graph.of_type("PodIdentityAssociation") == ()
    names = {one.addon.name for one in chosen_addons(facts(fixed))}
    assert not names & {"cluster-autoscaler", "provisioning-requests"}


def test_own_disks_are_striped_before_kubelet_starts_and_are_the_hint_of_the_next_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """awslabs/amazon-eks-ami, nodeadm/api/v1alpha1/nodeconfig_types.go (read 2026-11)."""
    requested: dict[str, set[bool]] = {}

    def noted(
        plane: ControlPlane, plan: EksPlan, labels: dict[str, str], *more: Any, striped: bool
    ) -> pulumi.Output[str]:
        requested.setdefault(labels["gcluster.local/pool"], set()).add(striped)
        return node_config(plane, plan, labels, *more, striped=striped)

    monkeypatch.setattr(program, "node_config", noted)
    disks = "{type: local-nvme, mount: /scratch, format: true, pools: [train, block]}"
    spec = loaded(f"{TEXT}storage: {{scratch: {disks}}}\n")
    record_site(spec, "east", load_catalog())
    assert requested == {"own": {False}, "train": {True}, "cheap": {False}, "block": {True}}
    plane = site_plan(spec, "east", load_catalog()).control_plane
    assert plane is not None
    room = {name: group.resources["ephemeral-storage"] for name, group in plane.groups.items()}
    assert room == {"train": "24065Gi", "cheap": "170Gi", "block": "24065Gi"}
    known = ("grows", "https://1.2.3.4", "Q0E=", "10.96.0.0/16", {"a": "b"})
    disk = json.loads(node_config_text(*known, striped=True))["spec"]["instance"]
    assert disk == {"localStorage": {"strategy": "RAID0"}}
    assert "instance" not in json.loads(node_config_text(*known))["spec"]


def test_a_group_of_more_tags_than_aws_takes_is_refused_with_their_number() -> None:
    """EC2 Auto Scaling User Guide, "Tag naming and usage restrictions": 50 of one resource."""
    has = len(group("train")["tags"])
    assert has == len(tags("train")), "no key stands twice"
    more = 50 - has

    def refusals(labels: int) -> list[str]:
        named = ", ".join(["example.edu/team: nlp", *(f"l{n}: x" for n in range(labels))])
        text = TEXT.replace("labels: {example.edu/team: nlp}", f"labels: {{{named}}}")
        return [one.summary for one in AwsProvider().refusals(loaded(text), "east")]

    assert refusals(more) == []
    assert refusals(more + 2) == [
        'pool "train": its Auto Scaling group would have 52 tags, and AWS takes 50'
    ]
