"""What a spec brings along is looked at: networks, images, keys, roles, the account itself."""

from __future__ import annotations

from collections.abc import Callable

from gcluster.stacks.aws.api import Api
from gcluster.stacks.aws.plan.types import SitePlan
from gcluster.stacks.aws.preflight.existing import (
    check_account,
    check_groups,
    check_image,
    check_key,
    check_network,
    check_profile,
    check_rights,
    check_spot_role,
)
from gcluster.stacks.pulumi.preflight import ExistingMachines

from .conftest import BASE, IMAGE, NONE, Recorded, existing, listed


def test_another_account_is_reported(api: Api, planned: Callable[..., SitePlan]) -> None:
    text = BASE.replace("    zone_id", "    account: '999999999999'\n    zone_id")
    [(code, summary)] = listed(check_account(api, planned(text)))
    assert code == "GC971"
    assert "123456789012 is logged in" in summary
    assert listed(check_account(api, planned())) == []


def test_a_right_that_is_missing_is_named_and_nothing_is_made(
    api: Api, planned: Callable[..., SitePlan], calm: Recorded
) -> None:
    before = len(api.client("ec2").describe_internet_gateways()["InternetGateways"])
    calm.answer("ec2", "CreateVpc", "unauthorized.xml", 403)
    [finding] = check_rights(api, planned())
    assert finding.code == "GC971"
    assert "create_vpc" in finding.summary
    assert "ec2:CreateVpc" in finding.detail
    assert len(api.client("ec2").describe_internet_gateways()["InternetGateways"]) == before


def test_a_network_that_exists_is_checked(api: Api, planned: Callable[..., SitePlan]) -> None:
    ec2 = api.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    zones = {"AvailabilityZoneId": "use1-az4"}
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/28", **zones)["Subnet"]["SubnetId"]
    fits = planned(existing(subnet, vpc, "sg-0a"))
    assert listed(check_network(api, fits, NONE)) == []
    full = planned(existing(subnet, vpc, "sg-0a").replace("count: 2", "count: 12"))
    [finding] = check_network(api, full, NONE)
    assert finding.summary == f"subnet {subnet} has 11 free addresses, the nodes still need 13"
    there = ExistingMachines(lambda: ["train"] * 2)
    assert listed(check_network(api, full, there)) == []
    other = planned(existing(subnet, "vpc-0other", "sg-0a").replace("use1-az4", "use1-az6"))
    assert [summary for _, summary in listed(check_network(api, other, NONE))] == [
        f"subnet {subnet} is in {vpc}, not vpc-0other",
        f"subnet {subnet} is in use1-az4, not use1-az6",
    ]
    gone = planned(existing("subnet-0abc", vpc, "sg-0a"))
    [(code, summary)] = listed(check_network(api, gone, NONE))
    assert (code, summary) == ("GC976", "subnet subnet-0abc is not in us-east-1 of this account")


def test_efa_needs_a_group_that_is_open_to_itself_both_ways(
    api: Api, planned: Callable[..., SitePlan]
) -> None:
    ec2 = api.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="g", Description="d", VpcId=vpc)["GroupId"]
    plan = planned(existing("subnet-0a", vpc, group))
    everything = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=everything)
    [finding] = check_groups(api, plan)
    assert "EFA needs" in finding.summary
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=everything)
    assert listed(check_groups(api, plan)) == []


def test_an_image_must_exist_and_boot_as_planned(
    api: Api, planned: Callable[..., SitePlan]
) -> None:
    image = planned().pool("train").image
    assert listed(check_image(api, image, "x86_64", ("train",))) == []
    [(code, summary)] = listed(check_image(api, image, "aarch64", ("train",)))
    assert code == "GC977"
    assert "is for x86_64, not aarch64" in summary
    debian = IMAGE.replace("scheduler:", "software: {distribution: debian-12}\nscheduler:")
    [(_, summary)] = listed(
        check_image(api, planned(debian).pool("train").image, "x86_64", ("train",))
    )
    assert "boots from /dev/sda1, not /dev/xvda" in summary
    gone = planned(IMAGE.replace("ami-1e749f67", "ami-0abc")).pool("train").image
    [(_, summary)] = listed(check_image(api, gone, "x86_64", ("train",)))
    assert "ami-0abc is not in us-east-1" in summary


def test_a_distribution_without_a_known_image_requests_one(
    api: Api, planned: Callable[..., SitePlan]
) -> None:
    plan = planned(BASE.replace("scheduler:", "software: {distribution: el-9}\nscheduler:"))
    [(code, summary)] = listed(check_image(api, plan.pool("train").image, "x86_64", ("train",)))
    assert code == "GC977"
    assert "image: AMI" in summary


def test_keys_and_profiles_that_do_not_exist_are_reported(api: Api) -> None:
    key = api.client("kms").create_key()["KeyMetadata"]["KeyId"]
    assert listed(check_key(api, key)) == []
    assert listed(check_key(api, "alias/none")) == [("GC976", "the key alias/none is missing")]
    api.client("iam").create_instance_profile(InstanceProfileName="nodes")
    assert listed(check_profile(api, "nodes")) == []
    assert [code for code, _ in listed(check_profile(api, "none"))] == ["GC976"]


def test_an_account_without_the_role_of_spot_is_shown_how_to_make_it(api: Api) -> None:
    [finding] = check_spot_role(api, ("train",))
    assert finding.code == "GC976"
    assert not finding.is_error
    assert "pools train buy spot" in finding.summary
    command = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
    assert finding.hint == command
    # As EC2 calls it; moto's own call names it otherwise.
    api.client("iam").create_role(
        RoleName="AWSServiceRoleForEC2Spot", AssumeRolePolicyDocument="{}"
    )
    assert listed(check_spot_role(api, ("train",))) == []
