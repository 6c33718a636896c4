"""What is asked of AWS before `up`: of moto where it has the API, of recorded answers elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from gcluster.schemas.catalog import Catalog
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.schemas.quotas import QuotaNeed, quota_needs
from gcluster.stacks.aws import capacity, owned, prices, quotas
from gcluster.stacks.aws.api import Api, AwsError
from gcluster.stacks.aws.layout import site_plan
from gcluster.stacks.aws.offers import offers
from gcluster.stacks.aws.plan import SitePlan
from gcluster.stacks.aws.preflight import preflight, standing_of
from gcluster.stacks.pulumi.questions import Standing, nothing_stands

from .conftest import BASE, CASES, SITE, Recorded, spec_of

NONE = nothing_stands()
IMAGE = BASE.replace("    zone_id", "    image: ami-1e749f67\n    zone_id")


@pytest.fixture
def planned(catalog: Catalog) -> Callable[..., SitePlan]:
    """Give a spec's plan."""
    return lambda text=IMAGE: site_plan(spec_of(text), SITE, catalog)


@pytest.fixture
def calm(aws_says: Recorded) -> Recorded:
    """Let AWS be content with everything that moto can't be asked."""
    for operation in ("CreateVpc", "CreatePlacementGroup"):
        aws_says.answer("ec2", operation, "dry-run.xml", 412)
    aws_says.answer("pricing", "GetProducts", "prices.json")
    quota = b'{"Quota": {"Value": 100000.0, "QuotaName": "P"}}'
    aws_says.say("service-quotas", "GetServiceQuota", quota)
    return aws_says


def said(findings: Iterator[Diagnostic]) -> list[tuple[str, str]]:
    return [(finding.code, finding.summary) for finding in findings]


@pytest.mark.usefixtures("calm")
def test_a_spec_that_fits_has_its_prices_told_and_nothing_else(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan]
) -> None:
    findings = preflight(api, spec_of(IMAGE), planned(), catalog)
    assert {finding.code for finding in findings} == {"GC979"}
    assert not any(finding.is_error for finding in findings)


def test_nobody_logged_in_is_one_warning_that_lists_what_is_not_known(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    [only] = preflight(api, spec_of(IMAGE), planned(), catalog)
    assert (only.code, only.severity) == ("GC970", Severity.WARNING)
    assert "quota L-417A185B" in only.detail
    assert "aws sso login" in only.hint


@pytest.mark.usefixtures("calm")
def test_one_question_that_fails_leaves_the_others(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    aws_says.answer("ec2", "DescribeInstanceTypeOfferings", "unauthorized.xml", 403)
    findings = preflight(api, spec_of(IMAGE), planned(), catalog)
    unanswered = [finding for finding in findings if finding.code == "GC970"]
    assert [finding.summary.partition(":")[0] for finding in unanswered] == [
        'zones of pool "head"',
        'zones of pool "train"',
    ]
    assert all("UnauthorizedOperation" in finding.detail for finding in unanswered)
    assert "GC979" in {finding.code for finding in findings}


DENIED_XML = (
    b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
)
DENIED_JSON = b'{"__type": "AccessDeniedException", "message": "you may not"}'


@pytest.mark.parametrize(
    ("service", "operation", "body", "what"),
    [
        ("sts", "GetCallerIdentity", DENIED_XML, "the account"),
        ("service-quotas", "GetServiceQuota", DENIED_JSON, "quota L-417A185B"),
        ("service-quotas", "GetServiceQuota", DENIED_JSON, "what is left of quota L-417A185B"),
        ("ec2", "DescribeInstances", b"", "what is left of quota L-417A185B"),
        ("ec2", "DescribeInstanceTypeOfferings", b"", 'zones of pool "train"'),
        ("ec2", "DescribeImages", b"", "image ami-1e749f67"),
        ("pricing", "GetProducts", DENIED_JSON, "on-demand price of p5.48xlarge"),
    ],
)
def test_each_question_that_is_refused_is_named(
    api: Api,
    catalog: Catalog,
    planned: Callable[..., SitePlan],
    calm: Recorded,
    *,
    service: str,
    operation: str,
    body: bytes,
    what: str,
) -> None:
    if body:
        calm.say(service, operation, body, 403)
    else:
        calm.answer(service, operation, "unauthorized.xml", 403)
    said = [f for f in preflight(api, spec_of(IMAGE), planned(), catalog) if f.code == "GC970"]
    assert all(finding.severity is Severity.WARNING for finding in said)
    assert any(finding.summary.startswith(f"{what}: not checked") for finding in said)


@pytest.mark.parametrize(
    ("operation", "ask"),
    [
        ("DescribeSubnets", lambda api, plan: owned.check_network(api, plan, NONE)),
        ("DescribeSecurityGroups", owned.check_groups),
        (
            "DescribeCapacityReservations",
            lambda api, plan: capacity.check_reservation(
                api, plan.pool("train"), plan.pool("train").offers[0], NONE
            ),
        ),
        (
            "DescribeCapacityBlockOfferings",
            lambda api, plan: capacity.check_block_offering(
                api, plan.pool("train"), plan.pool("train").offers[1], NONE
            ),
        ),
    ],
)
def test_what_may_not_be_read_is_no_answer(
    api: Api,
    planned: Callable[..., SitePlan],
    aws_says: Recorded,
    operation: str,
    ask: Callable[[Api, SitePlan], Iterator[Diagnostic]],
) -> None:
    aws_says.answer("ec2", operation, "unauthorized.xml", 403)
    market = "market: [{reservation: cr-0abc}, {buy_capacity_block: 7d}]"
    text = existing("subnet-0a", "vpc-0a", "sg-0a").replace("count: 2", f"count: 2, {market}")
    with pytest.raises(AwsError, match="may not do this"):
        list(ask(api, planned(text)))


def test_a_page_that_is_not_from_aws_is_an_error_and_no_traceback(
    api: Api, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    aws_says.say("sts", "GetCallerIdentity", b"<html>Sign in to the proxy", 403)
    with pytest.raises(AwsError) as caught:
        list(owned.check_account(api, planned()))
    assert "Sign in to the proxy" in caught.value.diagnostics[0].detail


def test_another_account_is_told(api: Api, planned: Callable[..., SitePlan]) -> None:
    text = BASE.replace("    zone_id", "    account: '999999999999'\n    zone_id")
    [(code, summary)] = said(owned.check_account(api, planned(text)))
    assert code == "GC971"
    assert "123456789012 is logged in" in summary
    assert said(owned.check_account(api, planned())) == []


def test_a_right_that_is_missing_is_named_and_nothing_is_made(
    api: Api, planned: Callable[..., SitePlan], calm: Recorded
) -> None:
    before = len(api.client("ec2").describe_internet_gateways()["InternetGateways"])
    calm.answer("ec2", "CreateVpc", "unauthorized.xml", 403)
    [finding] = owned.check_rights(api, planned())
    assert finding.code == "GC971"
    assert "create_vpc" in finding.summary
    assert "ec2:CreateVpc" in finding.detail
    assert len(api.client("ec2").describe_internet_gateways()["InternetGateways"]) == before


def test_a_zone_that_does_not_offer_the_machine_is_told_with_those_that_do(
    api: Api, planned: Callable[..., SitePlan]
) -> None:
    wrong = planned(BASE.replace("use1-az4", "use1-az9"))
    [finding] = capacity.check_zones(api, wrong.pool("train"))
    assert finding.summary == 'pool "train": p5.48xlarge is not offered in use1-az9'
    assert "use1-az4" in finding.hint
    assert said(capacity.check_zones(api, planned().pool("train"))) == []


def quota_says(aws_says: Recorded, value: int) -> None:
    """Let the quota of P instances be so large; its usage is where the documentation says."""
    quota = json.loads((CASES / "recorded" / "quota.json").read_text(encoding="utf-8"))
    quota["Quota"]["Value"] = value
    aws_says.say("service-quotas", "GetServiceQuota", json.dumps(quota).encode())


@pytest.fixture
def need(catalog: Catalog) -> QuotaNeed:
    """Give what two p5 take."""
    [found] = [n for n in quota_needs(spec_of(), catalog) if n.code == "L-417A185B"]
    return found


def test_a_quota_below_the_need_says_how_to_ask_for_more(
    api: Api, need: QuotaNeed, aws_says: Recorded
) -> None:
    quota_says(aws_says, 192)
    [finding] = quotas.check_limit(api, need)
    assert finding.code == "GC972"
    assert finding.is_error
    assert "is 192 vcpu, pools train need 384" in finding.summary
    assert "--desired-value 384" in finding.hint
    quota_says(aws_says, 384)
    assert said(quotas.check_limit(api, need)) == []


@pytest.mark.parametrize(
    ("used", "there", "missing"),
    [(0, 0, None), (1, 0, 384), (192, 1, None), (193, 1, 192), (384, 2, None)],
)
def test_a_quota_must_have_room_for_the_machines_that_do_not_exist_yet(
    api: Api,
    catalog: Catalog,
    need: QuotaNeed,
    aws_says: Recorded,
    *,
    used: int,
    there: int,
    missing: int | None,
) -> None:
    quota_says(aws_says, 384)
    dimensions = [
        {"Name": "Class", "Value": "P/OnDemand"},
        {"Name": "Resource", "Value": "vCPU"},
        {"Name": "Service", "Value": "EC2"},
        {"Name": "Type", "Value": "Resource"},
    ]
    point = {
        "MetricName": "ResourceCount",
        "Dimensions": dimensions,
        "Value": float(used),
        "Timestamp": datetime.now(UTC) - timedelta(minutes=2),
    }
    api.client("cloudwatch").put_metric_data(Namespace="AWS/Usage", MetricData=[point])
    standing = Standing(lambda: ["train"] * there)
    found = list(quotas.check_room(api, spec_of(), catalog, need, standing))
    if missing is None:
        assert found == []
    else:
        [finding] = found
        assert finding.severity is Severity.WARNING
        assert f"{used} of 384 are in use, {missing} more are needed" in finding.summary
        assert f"--desired-value {used + missing}" in finding.hint


def test_a_quota_whose_usage_nobody_publishes_is_only_held_against_the_need(
    api: Api, catalog: Catalog, need: QuotaNeed, aws_says: Recorded
) -> None:
    quota_says(aws_says, 384)
    none = nothing_stands()
    assert said(quotas.check_room(api, spec_of(), catalog, need, none)) == []


def test_what_the_cluster_runs_already_is_counted_by_its_tags(
    api: Api, planned: Callable[..., SitePlan]
) -> None:
    plan = planned()
    tags = {**plan.labels.found_by(), "gcluster-pool": "train"}
    api.client("ec2").run_instances(
        ImageId="ami-1e749f67",
        MinCount=2,
        MaxCount=2,
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": [{"Key": k, "Value": v} for k, v in tags.items()],
            }
        ],
    )
    api.client("ec2").run_instances(ImageId="ami-1e749f67", MinCount=1, MaxCount=1)
    assert standing_of(api, plan).counts() == {"train": 2}


RESERVED = BASE.replace("count: 2", "count: 2, market: [{reservation: cr-0abc}]")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (RESERVED, None),
        (RESERVED.replace("count: 2", "count: 5"), "has 4 machines, the pool needs 5"),
        (RESERVED.replace("use1-az4", "use1-az6"), "is in use1-az4, not use1-az6"),
        (RESERVED.replace("p5.48", "p5en.48"), "is for p5.48xlarge, not p5en.48xlarge"),
        (RESERVED.replace("reservation:", "capacity_block:"), "is no capacity block"),
    ],
)
def test_a_reservation_must_fit_the_pool(
    text: str,
    problem: str | None,
    api: Api,
    planned: Callable[..., SitePlan],
    aws_says: Recorded,
) -> None:
    aws_says.answer("ec2", "DescribeCapacityReservations", "reservation.xml")
    pool = planned(text).pool("train")
    found = said(capacity.check_reservation(api, pool, pool.offers[0], NONE))
    if problem is None:
        assert found == []
    else:
        [(code, summary)] = found
        assert code == "GC974"
        assert problem in summary


def test_a_reservation_that_is_not_there_is_told(
    api: Api, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    aws_says.answer("ec2", "DescribeCapacityReservations", "no-reservation.xml", 400)
    pool = planned(RESERVED).pool("train")
    [(code, summary)] = said(capacity.check_reservation(api, pool, pool.offers[0], NONE))
    assert code == "GC974"
    assert "is not in us-east-1" in summary


def test_a_reservation_that_others_use_is_a_warning_until_the_machines_stand(
    api: Api, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    aws_says.answer("ec2", "DescribeCapacityReservations", "reservation.xml")
    pool = planned(RESERVED.replace("count: 2", "count: 4")).pool("train")
    [finding] = capacity.check_reservation(api, pool, pool.offers[0], NONE)
    assert finding.severity is Severity.WARNING
    assert "has 3 machines free, 4 are still to be made" in finding.summary
    one = Standing(lambda: ["train"])
    assert said(capacity.check_reservation(api, pool, pool.offers[0], one)) == []


BUYS = BASE.replace("count: 2", "count: 2, market: [{buy_capacity_block: 7d}]")


def test_the_price_of_a_block_is_told_before_it_is_bought(
    api: Api, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    aws_says.answer("ec2", "DescribeCapacityBlockOfferings", "block-offerings.xml")
    pool = planned(BUYS).pool("train")
    [finding] = capacity.check_block_offering(api, pool, pool.offers[0], NONE)
    assert finding.severity is Severity.WARNING
    assert "costs 13214.88 USD at once, from 2026-12-01 11:30 UTC" in finding.summary
    assert "not refundable" in finding.detail


def test_no_block_on_offer_is_an_error(
    api: Api, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    aws_says.answer("ec2", "DescribeCapacityBlockOfferings", "no-block-offerings.xml")
    pool = planned(BUYS).pool("train")
    [finding] = capacity.check_block_offering(api, pool, pool.offers[0], NONE)
    assert finding.is_error


def test_a_pool_that_stands_buys_no_second_block(
    api: Api, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    pool = planned(BUYS).pool("train")
    both = Standing(lambda: ["train", "train"])
    assert said(capacity.check_block_offering(api, pool, pool.offers[0], both)) == []
    assert aws_says.asked == []


def existing(subnet: str, vpc: str, group: str) -> str:
    return BASE.replace(
        "{cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}",
        f"{{vpc: {vpc}, subnets: {{compute: {subnet}}}, security_groups: [{group}]}}",
    )


def test_a_network_that_exists_is_looked_at(api: Api, planned: Callable[..., SitePlan]) -> None:
    ec2 = api.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    zones = {"AvailabilityZoneId": "use1-az4"}
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/28", **zones)["Subnet"]["SubnetId"]
    fits = planned(existing(subnet, vpc, "sg-0a"))
    assert said(owned.check_network(api, fits, NONE)) == []
    full = planned(existing(subnet, vpc, "sg-0a").replace("count: 2", "count: 12"))
    [finding] = owned.check_network(api, full, NONE)
    assert finding.summary == f"subnet {subnet} has 11 free addresses, the nodes still need 13"
    there = Standing(lambda: ["train"] * 2)
    assert said(owned.check_network(api, full, there)) == []
    other = planned(existing(subnet, "vpc-0other", "sg-0a").replace("use1-az4", "use1-az6"))
    assert [summary for _, summary in said(owned.check_network(api, other, NONE))] == [
        f"subnet {subnet} is in {vpc}, not vpc-0other",
        f"subnet {subnet} is in use1-az4, not use1-az6",
    ]
    gone = planned(existing("subnet-0abc", vpc, "sg-0a"))
    [(code, summary)] = said(owned.check_network(api, gone, NONE))
    assert (code, summary) == ("GC976", "subnet subnet-0abc is not in us-east-1 of this account")


def test_efa_wants_a_group_that_is_open_to_itself_both_ways(
    api: Api, planned: Callable[..., SitePlan]
) -> None:
    ec2 = api.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="g", Description="d", VpcId=vpc)["GroupId"]
    plan = planned(existing("subnet-0a", vpc, group))
    everything = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=everything)
    [finding] = owned.check_groups(api, plan)
    assert "EFA needs" in finding.summary
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=everything)
    assert said(owned.check_groups(api, plan)) == []


def test_an_image_must_exist_and_boot_as_planned(
    api: Api, planned: Callable[..., SitePlan]
) -> None:
    image = planned().pool("train").image
    assert said(owned.check_image(api, image, "x86_64", ("train",))) == []
    [(code, summary)] = said(owned.check_image(api, image, "aarch64", ("train",)))
    assert code == "GC977"
    assert "is for x86_64, not aarch64" in summary
    debian = IMAGE.replace("scheduler:", "software: {distribution: debian-12}\nscheduler:")
    [(_, summary)] = said(
        owned.check_image(api, planned(debian).pool("train").image, "x86_64", ("train",))
    )
    assert "boots from /dev/sda1, not /dev/xvda" in summary
    gone = planned(IMAGE.replace("ami-1e749f67", "ami-0abc")).pool("train").image
    [(_, summary)] = said(owned.check_image(api, gone, "x86_64", ("train",)))
    assert "ami-0abc is not in us-east-1" in summary


def test_a_distribution_without_a_known_image_asks_for_one(
    api: Api, planned: Callable[..., SitePlan]
) -> None:
    plan = planned(BASE.replace("scheduler:", "software: {distribution: el-9}\nscheduler:"))
    [(code, summary)] = said(owned.check_image(api, plan.pool("train").image, "x86_64", ("train",)))
    assert code == "GC977"
    assert "image: AMI" in summary


def test_keys_and_profiles_that_do_not_exist_are_told(api: Api) -> None:
    key = api.client("kms").create_key()["KeyMetadata"]["KeyId"]
    assert said(owned.check_key(api, key)) == []
    assert said(owned.check_key(api, "alias/none")) == [("GC976", "the key alias/none is missing")]
    api.client("iam").create_instance_profile(InstanceProfileName="nodes")
    assert said(owned.check_profile(api, "nodes")) == []
    assert [code for code, _ in said(owned.check_profile(api, "none"))] == ["GC976"]


def test_a_price_has_its_source_and_is_a_warning_where_the_catalog_is_off(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    aws_says.answer("pricing", "GetProducts", "prices.json")
    pool = planned().pool("train")
    [finding] = prices.check_price(api, pool, "on-demand", catalog)
    assert finding.code == "GC979"
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "p5.48xlarge costs 60.50 USD an hour (on-demand); the catalog says 55.04"
    )
    assert finding.detail == "AWS price list of us-east-1, asked now"


def test_a_price_that_the_catalog_has_too_is_a_note(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    listed = (CASES / "recorded/prices.json").read_text(encoding="utf-8")
    aws_says.say("pricing", "GetProducts", listed.replace("60.5", "55.0").encode())
    [finding] = prices.check_price(api, planned().pool("train"), "on-demand", catalog)
    assert finding.severity is Severity.NOTE
    assert finding.summary.startswith("p5.48xlarge costs 55.0")


def test_a_spot_price_is_told_with_its_age(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan]
) -> None:
    [finding] = prices.check_price(api, planned().pool("train"), "spot", catalog)
    assert finding.code == "GC979"
    assert "(spot)" in finding.summary
    assert "minutes old" in finding.detail


def test_a_price_that_nobody_tells_is_a_warning_and_not_zero(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    aws_says.say("pricing", "GetProducts", b'{"PriceList": []}')
    pool = planned(BASE.replace("m7i.4xlarge", "m9x.large")).pool("head")
    [finding] = prices.check_price(api, pool, "on-demand", catalog)
    assert finding.severity is Severity.WARNING
    assert finding.summary == "nobody tells what m9x.large costs (on-demand) in us-east-1"


def test_offers_tell_price_room_source_and_age_rung_by_rung(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], aws_says: Recorded
) -> None:
    aws_says.answer("pricing", "GetProducts", "prices.json")
    aws_says.answer("ec2", "DescribeCapacityReservations", "reservation.xml")
    market = "market: [{reservation: cr-0abc}, spot, on-demand]"
    pool = planned(BASE.replace("count: 2", f"count: 2, {market}")).pool("train")
    reserved, spot, demand = offers(api, pool, catalog)
    assert (reserved.available, reserved.usd_per_hour) == (3, 60.5)
    assert spot.source.startswith("EC2 spot price history")
    assert spot.age_s > 0
    assert (demand.available, demand.usd_per_hour, demand.age_s) == (None, 60.5, 0.0)
