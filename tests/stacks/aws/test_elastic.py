"""Bursts on AWS, against moto: one fleet call, all or none, found again after a kill.

No option is mixed with another.

Moto makes instances out of fleets and templates and keeps their tags; it has no idea of capacity,
client tokens or minimum sizes. What those do is AWS's; that they are requested is tested here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gcluster.schemas.catalog import Catalog
from gcluster.stacks.aws import elastic
from gcluster.stacks.aws.api import Api
from gcluster.stacks.aws.hosts import instances
from gcluster.stacks.aws.plan.layout import site_plan
from gcluster.stacks.aws.plan.types import SitePlan
from gcluster.stacks.provider import ProviderError

from .conftest import BASE, SITE, Recorded, spec_of

TEXT = BASE.replace(
    "count: 2", "count: {min: 0, max: 8}, image: ami-1e749f67, market: [spot, on-demand]"
)
MOST = 64
NO_ROOM = b"""<CreateFleetResponse><fleetId>fleet-0</fleetId><errorSet><item>
<errorCode>InsufficientInstanceCapacity</errorCode>
<errorMessage>We currently do not have sufficient p5.48xlarge capacity in the Availability Zone
you requested (us-east-1d).</errorMessage></item></errorSet></CreateFleetResponse>"""


@pytest.fixture
def plan(api: Api, catalog: Catalog) -> SitePlan:
    """Give a plan whose launch templates exist, as `up` would have made them."""
    return made(api, site_plan(spec_of(TEXT), SITE, catalog))


def made(api: Api, plan: SitePlan) -> SitePlan:
    """Make the launch templates of a plan, as its program says them."""
    subnet = api.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    for pool in plan.pools:
        for offer in pool.offers if pool.elastic else ():
            tags = {
                **plan.labels.found_by(),
                "gcluster-pool": pool.name,
                "gcluster-offer": offer.key,
            }
            api.client("ec2").create_launch_template(
                LaunchTemplateName=plan.names(f"{pool.name}-{offer.key}"),
                LaunchTemplateData={
                    "ImageId": pool.image.ami,
                    "InstanceType": pool.machine,
                    "NetworkInterfaces": [
                        {
                            "NetworkCardIndex": interface.card,
                            "DeviceIndex": interface.device,
                            "InterfaceType": interface.kind,
                            "SubnetId": subnet,
                        }
                        for interface in pool.interfaces
                    ],
                },
                TagSpecifications=[
                    {
                        "ResourceType": "launch-template",
                        "Tags": [{"Key": k, "Value": v} for k, v in tags.items()],
                    }
                ],
            )
    return plan


@pytest.fixture
def fleets(api: Api) -> list[dict[str, Any]]:
    """Give the parameters of every CreateFleet call."""
    calls: list[dict[str, Any]] = []

    def keep(params: dict[str, Any], **_: Any) -> None:
        calls.append(params)

    api.client("ec2").meta.events.register("provide-client-params.ec2.CreateFleet", keep)
    return calls


Grow = Callable[..., tuple[str, ...]]


@pytest.fixture
def grow(api: Api, plan: SitePlan) -> Grow:
    """Return what grows the pool and gives the instances by name."""

    def run(names: list[str], token: str = "intent-1") -> tuple[str, ...]:  # noqa: S107  # no secret
        started = elastic.grow(api, plan, plan.pool("train"), names, token)
        assert sorted(machine.host for machine in started) == sorted(names)
        return tuple(m.instance_id for m in sorted(started, key=lambda m: m.host))

    return run


def instance_ids(api: Api, plan: SitePlan) -> dict[str, str]:
    return {machine.host: machine.instance_id for machine in instances(api, plan)}


def test_a_burst_is_one_call_for_all_or_none(grow: Grow, fleets: list[dict[str, Any]]) -> None:
    grow(["train001", "train002", "train003"])
    [call] = fleets
    assert call["Type"] == "instant"
    assert call["ClientToken"] == "intent-1"
    assert call["TargetCapacitySpecification"] == {
        "TotalTargetCapacity": 3,
        "DefaultTargetCapacityType": "spot",
    }
    assert call["SpotOptions"]["MinTargetCapacity"] == 3
    assert call["SpotOptions"]["SingleAvailabilityZone"] is True
    assert "OnDemandOptions" not in call


def test_nodes_carry_the_tags_that_find_them(api: Api, plan: SitePlan, grow: Grow) -> None:
    grow(["train001"])
    [machine] = instances(api, plan)
    tags = {tag.key: tag.value for tag in machine.tags}
    assert plan.labels.tags().items() <= tags.items()
    assert tags["gcluster-token"] == "intent-1"
    assert tags["gcluster-offer"] == "spot-use1-az4"
    assert tags["Name"] == "demo-train001"


def test_growing_again_with_the_same_token_makes_nothing_new(
    api: Api, plan: SitePlan, grow: Grow, fleets: list[dict[str, Any]]
) -> None:
    first = grow(["train001", "train002"])
    assert grow(["train001", "train002"]) == first
    assert len(fleets) == 1
    assert len(instance_ids(api, plan)) == 2


def test_growing_by_names_that_exist_makes_only_the_others(
    grow: Grow, fleets: list[dict[str, Any]]
) -> None:
    [first] = grow(["train001"])
    assert grow(["train001", "train002"], "intent-2")[0] == first
    assert [call["TargetCapacitySpecification"]["TotalTargetCapacity"] for call in fleets] == [
        1,
        1,
    ]


class KilledError(BaseException):
    """What a test raises where the process would be killed."""


def test_killed_between_starting_and_naming_the_nodes_are_found_by_the_token(
    api: Api, plan: SitePlan, grow: Grow, fleets: list[dict[str, Any]]
) -> None:
    def die(**_: Any) -> None:
        raise KilledError

    events = api.client("ec2").meta.events
    events.register("before-call.ec2.CreateTags", die)
    with pytest.raises(KilledError):
        grow(["train001", "train002"])
    events.unregister("before-call.ec2.CreateTags", die)
    assert set(instance_ids(api, plan)) == {""}
    survivors = {machine.instance_id for machine in instances(api, plan)}
    assert set(grow(["train001", "train002"])) == survivors
    assert len(fleets) == 1


def test_more_nameless_nodes_than_names_are_ended(api: Api, plan: SitePlan, grow: Grow) -> None:
    grow(["train001", "train002"])
    ids = [machine.instance_id for machine in instances(api, plan)]
    api.client("ec2").delete_tags(Resources=ids, Tags=[{"Key": "gcluster-host"}])
    grow(["train001"])
    assert len(instance_ids(api, plan)) == 1


def test_shrinking_ends_the_named_nodes_and_no_other(api: Api, plan: SitePlan, grow: Grow) -> None:
    first, second = grow(["train001", "train002"])
    assert elastic.shrink(api, plan, ["train002", "train777"]) == {"train002": second}
    assert instance_ids(api, plan) == {"train001": first}
    assert elastic.shrink(api, plan, ["train002"]) == {}


def test_a_node_of_the_spec_is_not_elastic(api: Api, plan: SitePlan) -> None:
    with pytest.raises(ProviderError, match="belongs to the spec"):
        elastic.shrink(api, plan, ["head"])


def test_another_cluster_of_the_account_is_not_touched(
    api: Api, plan: SitePlan, catalog: Catalog, grow: Grow
) -> None:
    other = made(api, site_plan(spec_of(TEXT.replace("name: demo", "name: other")), SITE, catalog))
    elastic.grow(api, other, other.pool("train"), ["train001"], "intent-9")
    grow(["train001"])
    elastic.shrink(api, plan, ["train001"])
    assert list(instance_ids(api, other)) == ["train001"]
    assert instance_ids(api, plan) == {}


@pytest.fixture
def without_spot(aws_api: Recorded) -> None:
    """Let AWS have no spot machines, as the EC2 documentation words it: moto knows no limits."""
    aws_api.only_if = lambda body: "DefaultTargetCapacityType=spot" in body
    aws_api.record("ec2", "CreateFleet", NO_ROOM)


@pytest.mark.usefixtures("without_spot")
def test_the_next_option_is_tried_when_the_first_has_no_capacity(
    api: Api, plan: SitePlan, grow: Grow, fleets: list[dict[str, Any]]
) -> None:
    grow(["train001", "train002"])
    kinds = [call["TargetCapacitySpecification"]["DefaultTargetCapacityType"] for call in fleets]
    assert kinds == ["spot", "on-demand"]
    assert [call["ClientToken"] for call in fleets] == ["intent-1", "intent-1.1"]
    assert {machine.offer for machine in instances(api, plan)} == {"on-demand-use1-az4"}


def test_a_later_burst_stays_on_the_option_that_is_in_use(
    api: Api, plan: SitePlan, grow: Grow, request: pytest.FixtureRequest
) -> None:
    grow(["train001"])
    request.getfixturevalue("without_spot")
    with pytest.raises(ProviderError) as refused:
        grow(["train002"], "intent-2")
    [message] = refused.value.diagnostics
    assert message.code == "GC960"
    assert "p5.48xlarge" in message.detail
    assert list(instance_ids(api, plan)) == ["train001"]


def test_without_templates_the_pool_is_named_and_up_is_the_answer(
    api: Api, catalog: Catalog
) -> None:
    plan = site_plan(spec_of(TEXT), SITE, catalog)
    with pytest.raises(ProviderError) as refused:
        elastic.grow(api, plan, plan.pool("train"), ["train001"], "intent-1")
    assert refused.value.diagnostics[0].code == "GC978"


def test_tokens_fit_and_are_the_same_for_the_same_try() -> None:
    long = "x" * 80
    assert elastic.client_token("intent-1", 0) == "intent-1"
    assert len(elastic.client_token(long, 0)) == MOST
    assert elastic.client_token(long, 1) != elastic.client_token(long, 0)
