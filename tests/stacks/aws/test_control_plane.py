"""EKS runs the control plane of nodes that are ours; several of ours are behind a load balancer."""

from __future__ import annotations

import json
from collections.abc import Callable
from email import message_from_string
from email.message import Message

import pytest
from tests.stacks.recorded_graph import Graph, orphans, unregistered, untagged

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.aws.cloud_init import with_node_config
from gcluster.stacks.aws.program.control_plane import node_config_text
from gcluster.stacks.pulumi.program import record_site
from gcluster.stacks.pulumi.recording.graph import RecordedGraph

from ..graph_comparison import agrees
from .conftest import BASE, SITE, spec_of

Record = Callable[..., RecordedGraph]
_SCHEDULER = "scheduler: {type: slurm}"
_HEAD = "  head: {site: east, role: controller, machine: m7i.4xlarge}\n"
EKS = BASE.replace(_HEAD, "").replace(
    _SCHEDULER,
    "scheduler: {type: kubernetes, control_plane: eks, service_cidr: 10.96.0.0/16}\n"
    'software: {kubernetes: "1.34"}\n'
    'smoke: {allreduce: {image: "registry.example.edu/allreduce:1.4"}}',
)
THREE = BASE.replace("m7i.4xlarge}", "m7i.4xlarge, count: 3}").replace(
    _SCHEDULER, "scheduler: {type: kubernetes}"
)
both = pytest.mark.parametrize("text", [EKS, THREE], ids=["eks", "self"])


def template(graph: Graph) -> dict[str, object]:
    found = next(t for t in graph.of_type("LaunchTemplate") if "-train-" in t.name)
    return found.inputs


@both
def test_all_is_tagged_in_a_component_and_a_preview_agrees(recorded: Record, text: str) -> None:
    graph = recorded(text)
    assert untagged(graph, {"gcluster-cluster": "demo", "gcluster-site": SITE}) == ()
    assert (orphans(graph), unregistered(graph)) == ((), ())
    assert agrees(graph, recorded(text, preview=True))


def test_the_cluster_is_the_release_that_is_queried_and_closed_but_for_administrators(
    recorded: Record,
) -> None:
    made = Graph(recorded(EKS)).only("Cluster").inputs
    assert made["version"] == "1.34"
    assert made["vpcConfig"]["publicAccessCidrs"] == ["192.0.2.0/24"]
    assert made["vpcConfig"]["endpointPrivateAccess"] is True
    assert made["accessConfig"]["authenticationMode"] == "API"
    assert "audit" in made["enabledClusterLogTypes"]
    closed = EKS.replace(", admin_cidrs: [192.0.2.0/24]", "")
    assert Graph(recorded(closed)).only("Cluster").inputs["vpcConfig"]["endpointPublicAccess"] is (
        False
    )


def test_its_interfaces_have_subnets_of_their_own_in_two_zones(recorded: Record) -> None:
    graph = Graph(recorded(EKS))
    own = [s for s in graph.of_type("Subnet") if "-eks-" in s.name]
    assert [s.inputs["cidrBlock"] for s in own] == ["10.40.240.0/28", "10.40.240.16/28"]
    assert len({s.inputs["availabilityZoneId"] for s in own}) == 2
    there = EKS.replace(
        "{cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}",
        "{vpc: vpc-1, subnets: {compute: subnet-1, control_plane: [subnet-2, subnet-3]}}",
    )
    graph = Graph(recorded(there))
    assert graph.of_type("Subnet") == ()
    assert graph.only("Cluster").inputs["vpcConfig"]["subnetIds"] == ["subnet-2", "subnet-3"]


def test_nodes_join_by_their_role_and_may_do_no_more_than_nodes_must(recorded: Record) -> None:
    graph = Graph(recorded(EKS))
    entry = graph.only("AccessEntry").inputs
    assert (entry["type"], entry["principalArn"]) == ("EC2_LINUX", "${Role/demo-east-node.arn}")
    given = [
        str(a.inputs["policyArn"]).rpartition("/")[2]
        for a in graph.of_type("RolePolicyAttachment")
        if a.inputs["role"] == "${Role/demo-east-node.name}"
    ]
    assert sorted(given) == [
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
    ]
    existing = EKS.replace("    network:", "    roles: {node: gpu-nodes}\n    network:")
    graph = Graph(recorded(existing))
    assert graph.only("AccessEntry").inputs["principalArn"] == "${the role of the profile}"


def test_eks_add_ons_are_of_the_release_and_network_policies_hold(recorded: Record) -> None:
    """EKS User Guide, "Amazon EKS add-ons" and "Limit Pod traffic with network policies"."""
    graph = Graph(recorded(EKS))
    addons = {str(one.inputs["addonName"]): one.inputs for one in graph.of_type("Addon")}
    assert set(addons) == {
        "vpc-cni",
        "kube-proxy",
        "coredns",
        "eks-pod-identity-agent",
        "eks-node-monitoring-agent",
        "aws-ebs-csi-driver",
    }
    assert json.loads(addons["vpc-cni"]["configurationValues"]) == {"enableNetworkPolicy": "true"}
    assert not [name for name, one in addons.items() if "addonVersion" in one]
    assert Graph(recorded(THREE)).of_type("Addon") == ()


def test_the_driver_of_volumes_has_its_role_by_pod_identity_and_no_other_add_on(
    recorded: Record,
) -> None:
    """EKS User Guide, "Amazon EBS CSI driver": the controller's service account, by EKS' agent."""
    graph = Graph(recorded(EKS))
    addons = {str(one.inputs["addonName"]): one.inputs for one in graph.of_type("Addon")}
    with_role = [name for name, one in addons.items() if one.get("podIdentityAssociations")]
    assert with_role == ["aws-ebs-csi-driver"]
    [given] = addons["aws-ebs-csi-driver"]["podIdentityAssociations"]
    assert given["serviceAccount"] == "ebs-csi-controller-sa"
    assert given["roleArn"] == "${Role/demo-east-eks-volumes.arn}"
    [role] = [r for r in graph.of_type("Role") if r.name == "demo-east-eks-volumes"]
    [statement] = json.loads(str(role.inputs["assumeRolePolicy"]))["Statement"]
    assert statement["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"]


def test_an_account_s_pods_have_its_role_by_eks_agent_and_no_key(recorded: Record) -> None:
    """EKS User Guide, "EKS Pod Identity": namespace, service account and role, and no more."""
    role = "arn:aws:iam::123456789012:role/nlp"
    text = EKS.replace(
        "control_plane: eks,",
        "control_plane: eks, accounts: {nlp: {users: [ada]}}, "
        f'identities: {{nlp: {{name: "{role}"}}}},',
    ) + "users: [{name: ada, uid: 2001}]\n"  # fmt: skip
    graph = recorded(text)
    made = Graph(graph).only("PodIdentityAssociation").inputs
    assert (made["namespace"], made["serviceAccount"]) == ("nlp", "default")
    assert made["roleArn"] == role
    assert made["clusterName"] == "demo-east-eks"
    assert (orphans(graph), unregistered(graph)) == ((), ())
    assert agrees(graph, recorded(text, preview=True))
    assert Graph(recorded(EKS)).of_type("PodIdentityAssociation") == ()


def test_people_of_an_identity_provider_are_known_by_a_prefix_that_no_user_of_eks_has(
    recorded: Record,
) -> None:
    """EKS User Guide, "Grant users access to Kubernetes with an external OIDC provider"."""
    text = EKS.replace(
        "control_plane: eks,",
        "control_plane: eks, oidc: {issuer: https://login.example.edu, client_id: kubernetes},",
    )
    graph = recorded(text)
    made = Graph(graph).only("IdentityProviderConfig").inputs["oidc"]
    assert (made["issuerUrl"], made["clientId"]) == ("https://login.example.edu", "kubernetes")
    assert (made["usernameClaim"], made["usernamePrefix"]) == ("sub", "oidc:")
    assert (made["groupsClaim"], made["groupsPrefix"]) == ("groups", "oidc:")
    assert "requiredClaims" not in made
    assert (orphans(graph), unregistered(graph)) == ((), ())
    assert agrees(graph, recorded(text, preview=True))
    assert Graph(recorded(EKS)).of_type("IdentityProviderConfig") == ()


def test_nodes_boot_the_release_s_image_and_are_reported_which_cluster(recorded: Record) -> None:
    node = template(Graph(recorded(EKS)))
    assert node["imageId"] == (
        "resolve:ssm:/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia"
        "/recommended/image_id"
    )
    [instance, *_] = node["tagSpecifications"]
    assert instance["tags"]["kubernetes.io/cluster/demo-east-eks"] == "owned"
    assert node["metadataOptions"]["instanceMetadataTags"] == "disabled"


def test_another_image_is_for_new_nodes_and_a_node_goes_before_its_successor(
    recorded: Record,
) -> None:
    own = Graph(recorded(EKS.replace("count: 2", "count: 2, image: ami-0abc")))
    assert template(own)["imageId"] == "ami-0abc"
    nodes = own.of_type("Instance")
    assert len(nodes) == 2
    assert not any("ami" in node.inputs for node in nodes)
    assert all(node.options.delete_before_replace for node in nodes)


def test_user_data_is_one_mime_text_of_what_nodeadm_and_what_cloud_init_read() -> None:
    labels = {"gcluster.local/pool": "train"}
    config = node_config_text("demo", "https://1.2.3.4", "Q0E=", "10.96.0.0/16", labels)
    first, second = message_from_string(with_node_config(config, "#cloud-config\n")).get_payload()
    assert isinstance(first, Message)
    assert isinstance(second, Message)
    assert first.get_content_type() == "application/node.eks.aws"
    answer = json.loads(str(first.get_payload()))["spec"]
    assert answer["cluster"] == {
        "name": "demo",
        "apiServerEndpoint": "https://1.2.3.4",
        "certificateAuthority": "Q0E=",
        "cidr": "10.96.0.0/16",
    }
    assert answer["kubelet"]["flags"] == ["--node-labels=gcluster.local/pool=train"]
    limits = answer["containerd"]["baseRuntimeSpec"]["process"]["rlimits"]
    assert {one["type"]: one["hard"] for one in limits}["RLIMIT_MEMLOCK"] == 2**64 - 1
    assert second.get_payload() == "#cloud-config\n"


def test_several_api_servers_are_behind_an_internal_balancer(recorded: Record) -> None:
    graph = Graph(recorded(THREE))
    balancer, targets = graph.only("LoadBalancer").inputs, graph.only("TargetGroup").inputs
    assert (balancer["internal"], balancer["loadBalancerType"]) == (True, "network")
    assert (targets["port"], targets["preserveClientIp"]) == (6443, "false")
    assert targets["healthCheck"]["path"] == "/readyz"
    assert len(graph.of_type("TargetGroupAttachment")) == 3
    [name] = [r for r in graph.of_type("Record") if r.name == "demo-east-api"]
    assert name.inputs["name"] == "api.demo.east.internal"


def test_one_api_server_has_no_balancer() -> None:
    one = THREE.replace(", count: 3", "")
    graph = Graph(record_site(spec_of(one), SITE, load_catalog()))
    assert graph.of_type("LoadBalancer") == ()
