"""Zones, quotas, reservations and capacity blocks, as AWS reports them before `up`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from gcluster.schemas.catalog import Catalog
from gcluster.schemas.cost.quotas import QuotaNeed, quota_needs
from gcluster.schemas.diagnostics import Severity
from gcluster.stacks.aws.api import Api
from gcluster.stacks.aws.plan.types import SitePlan
from gcluster.stacks.aws.preflight.blocks import check_block_offering
from gcluster.stacks.aws.preflight.capacity import (
    check_limit,
    check_reservation,
    check_room,
    check_zones,
)
from gcluster.stacks.aws.preflight.questions import existing_machines
from gcluster.stacks.pulumi.preflight import ExistingMachines, nothing_exists

from .conftest import BASE, BUYS, CASES, NONE, Recorded, listed, spec_of


def test_a_zone_that_does_not_offer_the_machine_is_reported_with_those_that_do(
    api: Api, planned: Callable[..., SitePlan]
) -> None:
    wrong = planned(BASE.replace("use1-az4", "use1-az9"))
    [finding] = check_zones(api, wrong.pool("train"))
    assert finding.summary == 'pool "train": p5.48xlarge is not offered in use1-az9'
    assert "use1-az4" in finding.hint
    assert listed(check_zones(api, planned().pool("train"))) == []


def set_quota(aws_api: Recorded, value: int) -> None:
    """Let the quota of P instances be so large; its usage is where the documentation says."""
    quota = json.loads((CASES / "recorded" / "quota.json").read_text(encoding="utf-8"))
    quota["Quota"]["Value"] = value
    aws_api.record("service-quotas", "GetServiceQuota", json.dumps(quota).encode())


@pytest.fixture
def need(catalog: Catalog) -> QuotaNeed:
    """Give what two p5 take."""
    [found] = [n for n in quota_needs(spec_of(), catalog) if n.code == "L-417A185B"]
    return found


def test_a_quota_below_the_need_reports_how_to_request_more(
    api: Api, need: QuotaNeed, aws_api: Recorded
) -> None:
    set_quota(aws_api, 192)
    [finding] = check_limit(api, need)
    assert finding.code == "GC972"
    assert finding.is_error
    assert "is 192 vcpu, pools train need 384" in finding.summary
    assert "--desired-value 384" in finding.hint
    set_quota(aws_api, 384)
    assert listed(check_limit(api, need)) == []


@pytest.mark.parametrize(
    ("used", "there", "missing"),
    [(0, 0, None), (1, 0, 384), (192, 1, None), (193, 1, 192), (384, 2, None)],
)
def test_a_quota_must_have_room_for_the_machines_that_do_not_exist_yet(
    api: Api,
    catalog: Catalog,
    need: QuotaNeed,
    aws_api: Recorded,
    *,
    used: int,
    there: int,
    missing: int | None,
) -> None:
    set_quota(aws_api, 384)
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
    existing = ExistingMachines(lambda: ["train"] * there)
    found = list(check_room(api, spec_of(), catalog, need, existing))
    if missing is None:
        assert found == []
    else:
        [finding] = found
        assert finding.severity is Severity.WARNING
        assert f"{used} of 384 are in use, {missing} more are needed" in finding.summary
        assert f"--desired-value {used + missing}" in finding.hint


def test_a_quota_whose_usage_is_not_published_is_only_held_against_the_need(
    api: Api, catalog: Catalog, need: QuotaNeed, aws_api: Recorded
) -> None:
    set_quota(aws_api, 384)
    none = nothing_exists()
    assert listed(check_room(api, spec_of(), catalog, need, none)) == []


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
    assert existing_machines(api, plan).counts() == {"train": 2}


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
    aws_api: Recorded,
) -> None:
    aws_api.answer("ec2", "DescribeCapacityReservations", "reservation.xml")
    pool = planned(text).pool("train")
    found = listed(check_reservation(api, pool, pool.offers[0], NONE))
    if problem is None:
        assert found == []
    else:
        [(code, summary)] = found
        assert code == "GC974"
        assert problem in summary


def test_a_reservation_in_a_placement_group_is_used_with_that_group_alone(
    api: Api, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    plain = (CASES / "recorded" / "reservation.xml").read_bytes()
    arn = b"arn:aws:ec2:us-east-1:111122223333:placement-group/pg-reserved"
    reported = plain.replace(
        b"<state>", b"<placementGroupArn>" + arn + b"</placementGroupArn><state>"
    )
    aws_api.record("ec2", "DescribeCapacityReservations", reported)
    pool = planned(RESERVED).pool("train")
    [(code, summary)] = listed(check_reservation(api, pool, pool.offers[0], NONE))
    assert code == "GC974"
    assert summary.endswith("placement group pg-reserved; write placement: pg-reserved")
    named = planned(RESERVED.replace("count: 2", "count: 2, placement: pg-reserved")).pool("train")
    assert listed(check_reservation(api, named, named.offers[0], NONE)) == []
    aws_api.record("ec2", "DescribeCapacityReservations", plain)
    [(code, summary)] = listed(check_reservation(api, named, named.offers[0], NONE))
    assert code == "GC974"
    assert "is in no placement group" in summary


def test_a_reservation_that_is_not_there_is_reported(
    api: Api, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    aws_api.answer("ec2", "DescribeCapacityReservations", "no-reservation.xml", 400)
    pool = planned(RESERVED).pool("train")
    [(code, summary)] = listed(check_reservation(api, pool, pool.offers[0], NONE))
    assert code == "GC974"
    assert "is not in us-east-1" in summary


def test_a_reservation_that_others_use_is_a_warning_until_the_machines_exist(
    api: Api, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    aws_api.answer("ec2", "DescribeCapacityReservations", "reservation.xml")
    pool = planned(RESERVED.replace("count: 2", "count: 4")).pool("train")
    [finding] = check_reservation(api, pool, pool.offers[0], NONE)
    assert finding.severity is Severity.WARNING
    assert "has 3 machines free, 4 are still to be made" in finding.summary
    one = ExistingMachines(lambda: ["train"])
    assert listed(check_reservation(api, pool, pool.offers[0], one)) == []


def test_no_block_on_offer_is_an_error(
    api: Api, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    aws_api.answer("ec2", "DescribeCapacityBlockOfferings", "no-block-offerings.xml")
    pool = planned(BUYS).pool("train")
    [finding] = check_block_offering(api, pool, pool.offers[0], NONE)
    assert finding.is_error


def test_a_pool_that_exists_buys_no_second_block(
    api: Api, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    pool = planned(BUYS).pool("train")
    both = ExistingMachines(lambda: ["train", "train"])
    assert listed(check_block_offering(api, pool, pool.offers[0], both)) == []
    assert aws_api.calls == []
