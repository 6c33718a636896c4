"""What nodes on AWS may do: nothing by themselves, and the controller no more than its bursts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from tests.stacks.recorded_graph import Graph

from gcluster.stacks.pulumi.recording.graph import RecordedGraph

from .conftest import BASE

Ask = Callable[..., Graph]
BURSTS = BASE.replace("count: 2", "count: {min: 0, max: 8}")


def profile_of(recorded: Graph, pool: str) -> object:
    template = next(t for t in recorded.of_type("LaunchTemplate") if f"-{pool}-" in t.name)
    return template.inputs["iamInstanceProfile"]


def test_nodes_have_a_role_without_any_right(graph: Ask) -> None:
    recorded = graph()
    assert recorded.only("Role").name == "demo-east-node"
    assert recorded.of_type("RolePolicy") == ()
    assert recorded.of_type("RolePolicyAttachment") == ()
    assert profile_of(recorded, "head") == {"name": "${InstanceProfile/demo-east-node.name}"}


def test_only_the_controller_of_an_elastic_site_may_start_nodes(graph: Ask) -> None:
    recorded = graph(BURSTS)
    assert profile_of(recorded, "train") == {"name": "${InstanceProfile/demo-east-node.name}"}
    assert profile_of(recorded, "head") == {"name": "${InstanceProfile/demo-east-controller.name}"}
    policy = recorded.only("RolePolicy")
    assert policy.inputs["role"] == "${Role/demo-east-controller.name}"


def test_the_burst_policy_ends_and_reads_the_clusters_own_nodes_alone(graph: Ask) -> None:
    policy = json.loads(graph(BURSTS).only("RolePolicy").inputs["policy"])
    ours = {
        "StringEquals": {
            "aws:ResourceTag/gcluster-cluster": "demo",
            "aws:ResourceTag/gcluster-site": "east",
        }
    }
    by_action = {
        action: statement for statement in policy["Statement"] for action in statement["Action"]
    }
    for action in ("ec2:TerminateInstances", "ec2:GetConsoleOutput"):
        assert by_action[action]["Condition"] == ours
    assert by_action["iam:PassRole"]["Resource"] == "${Role/demo-east-node.arn}"
    for statement in policy["Statement"]:
        if statement["Resource"] == "*":
            assert all("Describe" in a or "Get" in a for a in statement["Action"])
        assert not any(action.endswith("*") for action in statement["Action"])


def test_the_controller_may_tag_what_its_fleet_launches(graph: Ask) -> None:
    policy = json.loads(graph(BURSTS).only("RolePolicy").inputs["policy"])
    [tag] = [s for s in policy["Statement"] if s["Sid"] == "tag"]
    assert tag["Condition"] == {
        "StringEquals": {"ec2:CreateAction": ["CreateFleet", "RunInstances"]}
    }
    kinds = {arn.split("/")[0].rpartition(":")[2] for arn in tag["Resource"]}
    # What the launch template and the fleet tag.
    assert kinds >= {"fleet", "instance", "volume", "network-interface"}


def test_a_controller_that_bursts_into_spot_may_have_ec2_make_the_role_of_spot(graph: Ask) -> None:
    def statements(text: str) -> dict[str, dict[str, object]]:
        policy = json.loads(graph(text).only("RolePolicy").inputs["policy"])
        return {statement["Sid"]: statement for statement in policy["Statement"]}

    assert "spot" not in statements(BURSTS)
    spot = statements(BURSTS.replace("max: 8}", "max: 8}, market: [on-demand, spot]"))["spot"]
    assert spot["Action"] == ["iam:CreateServiceLinkedRole"]
    assert spot["Condition"] == {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}}


def test_roles_that_exist_are_used_and_none_is_made(graph: Ask) -> None:
    text = BURSTS.replace(
        "    network:", "    roles: {node: gpu-nodes, burst: gpu-burst}\n    network:"
    )
    recorded = graph(text)
    assert recorded.of_type("Role") == ()
    assert recorded.of_type("InstanceProfile") == ()
    assert profile_of(recorded, "train") == {"name": "gpu-nodes"}
    assert profile_of(recorded, "head") == {"name": "gpu-burst"}


def test_another_partition_has_arns_of_its_own(graph: Ask) -> None:
    text = BURSTS.replace("us-east-1", "us-gov-west-1").replace("use1-az4", "usgw1-az1")
    policy = str(graph(text).only("RolePolicy").inputs["policy"])
    assert "arn:aws-us-gov:ec2" in policy
    assert "arn:aws:" not in policy


def through(tunnel: str) -> str:
    text = BASE.replace("    zone_id", f"    ssh: {{tunnel: {tunnel}}}\n    zone_id")
    return re.sub(r", admin_cidrs: \[[^]]*\]", "", text)


def test_session_manager_is_let_in_by_the_nodes_role(graph: Ask) -> None:
    attached = graph(through("ssm")).only("RolePolicyAttachment")
    assert attached.inputs["policyArn"] == "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    assert attached.inputs["role"] == "${Role/demo-east-node.name}"


def test_the_policies_of_a_site_are_the_nodes_role_s_each_once(graph: Ask) -> None:
    arns = (
        "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess",
        "arn:aws:iam::111122223333:policy/team/reads-images",
        "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore",
    )
    text = through("ssm").replace("    zone_id", f"    policies: [{', '.join(arns)}]\n    zone_id")
    attached = graph(text).of_type("RolePolicyAttachment")
    assert sorted(str(each.inputs["policyArn"]) for each in attached) == sorted(arns)
    assert {each.inputs["role"] for each in attached} == {"${Role/demo-east-node.name}"}


def test_an_endpoint_reaches_ssh_of_the_way_in_and_nothing_else(graph: Ask) -> None:
    recorded = graph(through("instance-connect"))
    endpoint = recorded.only("InstanceConnectEndpoint")
    assert endpoint.inputs["preserveClientIp"] is False
    assert endpoint.inputs["securityGroupIds"] == ["${SecurityGroup/demo-east-connect.id}"]
    rules = [
        rule
        for kind in ("SecurityGroupIngressRule", "SecurityGroupEgressRule")
        for rule in recorded.of_type(kind)
        if "${SecurityGroup/demo-east-connect.id}"
        in (rule.inputs["securityGroupId"], rule.inputs.get("referencedSecurityGroupId"))
    ]
    assert sorted((r.inputs["fromPort"], r.inputs["ipProtocol"]) for r in rules) == [
        (22, "tcp"), (22, "tcp"),
    ]  # fmt: skip
    assert all("cidrIpv4" not in rule.inputs for rule in rules)


APART = """
apiVersion: gcluster/v1
name: demo
sites:
  east: {provider: aws, region: us-east-1, zone_id: use1-az4, network: {vpc: vpc-0abc, subnets: {compute: subnet-0aaa}, security_groups: [sg-0aaa]}, roles: {node: train-nodes}}
  data: {provider: aws, region: us-east-1, zone_id: use1-az4, network: {vpc: vpc-0abc, subnets: {compute: subnet-0bbb}, security_groups: [sg-0bbb]}, roles: {node: data-nodes}}
links: [{between: [east, data], via: routed}]
pools:
  head: {site: east, role: controller, machine: m7i.4xlarge}
  prep: {site: data, machine: c7i.8xlarge, count: 2}
scheduler: {type: slurm}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("site", "own"),
    [
        ("east", {"train-nodes", "subnet-0aaa", "sg-0aaa"}),
        ("data", {"data-nodes", "subnet-0bbb", "sg-0bbb"}),
    ],
)
def test_pools_of_two_sites_in_one_vpc_have_identity_subnet_and_groups_of_their_own(
    recorded: Callable[..., RecordedGraph], site: str, own: set[str]
) -> None:
    found = Graph(recorded(APART, site=site))
    [template] = found.of_type("LaunchTemplate")
    words = set(re.findall(r'"([\w-]+)"', json.dumps(template.inputs)))
    assert words & {f"{kind}-0{x * 3}" for kind in ("subnet", "sg") for x in "ab"} <= own
    assert own <= words
    assert found.of_type("SecurityGroup") == ()
    assert found.of_type("Subnet") == ()
