"""AWS's current prices of machines: each price with its source and age, or said to be unknown."""

from __future__ import annotations

from collections.abc import Callable

from gcluster.schemas.catalog import Catalog
from gcluster.schemas.diagnostics import Severity
from gcluster.stacks.aws.api import Api
from gcluster.stacks.aws.offers import check_price, offers
from gcluster.stacks.aws.plan.types import SitePlan
from gcluster.stacks.aws.preflight.blocks import check_block_offering

from .conftest import BASE, BUYS, CASES, NONE, Recorded


def test_the_price_of_a_block_is_reported_before_it_is_bought(
    api: Api, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    aws_api.answer("ec2", "DescribeCapacityBlockOfferings", "block-offerings.xml")
    pool = planned(BUYS).pool("train")
    [finding] = check_block_offering(api, pool, pool.offers[0], NONE)
    assert finding.severity is Severity.WARNING
    assert "costs 13214.88 USD at once, from 2026-12-01 11:30 UTC" in finding.summary
    assert "not refundable" in finding.detail


def test_a_price_has_its_source_and_is_a_warning_where_the_catalog_is_off(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    aws_api.answer("pricing", "GetProducts", "prices.json")
    pool = planned().pool("train")
    [finding] = check_price(api, pool, "on-demand", catalog)
    assert finding.code == "GC979"
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "p5.48xlarge costs 60.50 USD an hour (on-demand); the catalog says 55.04"
    )
    assert finding.detail == "AWS price list of us-east-1, queried now"


def test_a_price_that_the_catalog_has_too_is_a_note(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    listed = (CASES / "recorded/prices.json").read_text(encoding="utf-8")
    aws_api.record("pricing", "GetProducts", listed.replace("60.5", "55.0").encode())
    [finding] = check_price(api, planned().pool("train"), "on-demand", catalog)
    assert finding.severity is Severity.NOTE
    assert finding.summary.startswith("p5.48xlarge costs 55.0")


def test_a_spot_price_is_reported_with_its_age(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan]
) -> None:
    [finding] = check_price(api, planned().pool("train"), "spot", catalog)
    assert finding.code == "GC979"
    assert "(spot)" in finding.summary
    assert "minutes old" in finding.detail


def test_a_price_that_is_unknown_is_a_warning_and_not_zero(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    aws_api.record("pricing", "GetProducts", b'{"PriceList": []}')
    pool = planned(BASE.replace("m7i.4xlarge", "m9x.large")).pool("head")
    [finding] = check_price(api, pool, "on-demand", catalog)
    assert finding.severity is Severity.WARNING
    assert finding.summary == "no price found for m9x.large (on-demand) in us-east-1"


def test_offers_report_price_room_source_and_age_option_by_option(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    aws_api.answer("pricing", "GetProducts", "prices.json")
    aws_api.answer("ec2", "DescribeCapacityReservations", "reservation.xml")
    market = "market: [{reservation: cr-0abc}, spot, on-demand]"
    pool = planned(BASE.replace("count: 2", f"count: 2, {market}")).pool("train")
    reserved, spot, demand = offers(api, pool, catalog)
    assert (reserved.available, reserved.usd_per_hour) == (3, 60.5)
    assert spot.source.startswith("EC2 spot price history")
    assert spot.age_s > 0
    assert (demand.available, demand.usd_per_hour, demand.age_s) == (None, 60.5, 0.0)
