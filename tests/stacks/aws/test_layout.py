"""A site of the spec as a plan: options in order, zones, and what the spec leaves open."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gcluster.schemas.catalog import Catalog
from gcluster.stacks.aws.plan.facts import facts
from gcluster.stacks.aws.plan.layout import site_plan
from gcluster.stacks.aws.plan.types import PoolPlan
from gcluster.stacks.pulumi.names import spec_hash

from .conftest import BASE, SITE, spec_of


def train(text: str, catalog: Catalog) -> PoolPlan:
    return site_plan(spec_of(text), SITE, catalog).pool("train")


def test_each_option_is_tried_in_all_zones_before_the_next(catalog: Catalog) -> None:
    answer = "count: 2, zones: [use1-az4, use1-az6], market: [{reservation: cr-0abc}, spot]"
    pool = train(BASE.replace("count: 2", answer), catalog)
    assert [(offer.option.market, offer.zone) for offer in pool.offers] == [
        ("reservation", "use1-az4"),
        ("reservation", "use1-az6"),
        ("spot", "use1-az4"),
        ("spot", "use1-az6"),
    ]
    assert len({offer.key for offer in pool.offers}) == 4


def test_a_pool_without_a_market_is_bought_on_demand(catalog: Catalog) -> None:
    [offer] = train(BASE, catalog).offers
    assert (offer.key, offer.option.market) == ("on-demand-use1-az4", "on-demand")


def test_a_option_keeps_its_key_when_another_is_put_before_it(catalog: Catalog) -> None:
    def keys(market: str) -> set[str]:
        text = BASE.replace("count: 2", f"count: 2, market: [{market}]")
        return {offer.key for offer in train(text, catalog).offers}

    assert keys("{reservation: cr-0abc}, spot") < keys("on-demand, {reservation: cr-0abc}, spot")


def test_an_offer_that_is_gone_gives_way_to_the_first(catalog: Catalog) -> None:
    pool = train(BASE.replace("count: 2", "count: 2, market: [spot, on-demand]"), catalog)
    purchased = pool.purchased(
        {"train001": "on-demand-use1-az4", "train002": "reservation-0-use1-az4"}
    )
    assert purchased["train001"].option.market == "on-demand"
    assert purchased["train002"] == pool.offers[0] == pool.purchased({})["train001"]


def test_a_node_that_is_on_no_option_is_not_made(catalog: Catalog) -> None:
    pool = train(BASE.replace("count: 2", "count: 2, market: [spot, on-demand]"), catalog)
    assert list(pool.purchased({"train001": ""})) == ["train002"]


@pytest.mark.parametrize(
    ("message", "ami", "user", "device"),
    [
        ("ubuntu-22.04", "/ubuntu/server/22.04/", "ubuntu", "/dev/sda1"),
        ("ubuntu-24.04", "/ubuntu/server/24.04/", "ubuntu", "/dev/sda1"),
        ("debian-12", "/debian/release/12/latest/amd64", "admin", "/dev/xvda"),
    ],
)
def test_the_image_is_the_vendors_newest_of_the_distribution(
    message: str, ami: str, user: str, device: str, catalog: Catalog
) -> None:
    text = BASE.replace("scheduler:", f"software: {{distribution: {message}}}\nscheduler:")
    image = train(text, catalog).image
    assert image.ami.startswith("resolve:ssm:")
    assert ami in image.ami
    assert (image.user, image.root_device, image.is_fixed) == (user, device, False)


def test_arm_machines_get_an_arm_image(catalog: Catalog) -> None:
    assert "arm64" in train(BASE.replace("p5.48xlarge", "p6e-gb200.36xlarge"), catalog).image.ami


def test_a_controller_without_a_machine_gets_one_of_the_catalog(catalog: Catalog) -> None:
    text = BASE.replace(", machine: m7i.4xlarge", "")
    assert site_plan(spec_of(text), SITE, catalog).pool("head").machine == "m7i.4xlarge"
    assert facts().service_machine in catalog.machines


def test_the_hash_changes_with_the_meaning_and_not_with_the_writing() -> None:
    assert spec_hash(spec_of(BASE)) == spec_hash(spec_of(f"# a comment\n{BASE}"))
    assert spec_hash(spec_of(BASE)) != spec_hash(spec_of(BASE.replace("count: 2", "count: 3")))
    named = BASE.replace("{type: slurm}", "{type: slurm, accounts: {physics: {}}}")
    assert spec_hash(spec_of(BASE)) != spec_hash(spec_of(named)), "a name alone has a meaning"
    spelled = BASE.replace("count: 2", "count: 2, mixed: false")
    assert spec_hash(spec_of(BASE)) == spec_hash(spec_of(spelled)), "a default has none"


def test_planning_and_validating_import_no_sdk() -> None:
    """In another process: this one has imported everything."""
    code = """
import sys
import gcluster.stacks.aws.plan.layout, gcluster.stacks.aws.provider
heavy = {"pulumi", "pulumi_aws", "boto3", "botocore"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_ultraserver_carries_its_efas_on_every_other_card(catalog: Catalog) -> None:
    pool = train(BASE.replace("p5.48xlarge", "p6e-gb200.36xlarge"), catalog)
    primary, *fabric = pool.interfaces
    assert (primary.card, primary.device, primary.kind) == (0, 0, "interface")
    assert [i.card for i in fabric] == [1, 3, 5, 7, 9, 11, 13, 15]
    assert {(i.device, i.kind) for i in fabric} == {(0, "efa-only")}


def test_a_zone_that_only_a_file_system_is_in_gets_a_subnet(catalog: Catalog) -> None:
    home = "type: fsx-openzfs, mount: /home, site: east, capacity: 1 TiB, throughput: 160 MB/s"
    text = f"{BASE}storage:\n  home: {{{home}, zone: use1-az5}}\n"
    plan = site_plan(spec_of(text), SITE, catalog)
    assert [subnet.zone for subnet in plan.network.compute] == ["use1-az4", "use1-az5"]
    assert plan.openzfs[0].zone == "use1-az5"
