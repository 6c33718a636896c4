"""The capacity block that a pool would buy: in its own zone, the earliest, and by its id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from gcluster.schemas.catalog import Catalog
from gcluster.stacks.aws.api import Api
from gcluster.stacks.aws.plan.types import SitePlan
from gcluster.stacks.aws.preflight.blocks import block_offering, check_block_offering
from gcluster.stacks.aws.preflight.capacity import Reservations
from gcluster.stacks.aws.session import Session
from gcluster.stacks.provider import ProviderError, SiteContext

from ..ledger_double import RecordingLedger
from .conftest import BUYS, NONE, SITE, Recorded, listed, spec_of

OFFERS = ("ec2", "DescribeCapacityBlockOfferings")
BLOCK = "buy-168h-use1-az4"


def test_the_earliest_block_in_the_pools_own_zone_is_chosen(
    api: Api, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    aws_api.answer(*OFFERS, "block-offerings-in-zones.xml")
    pool = planned(BUYS).pool("train")
    found = block_offering(api, pool, pool.offers[0])
    assert found is not None
    # Not the first of the list, which is elsewhere; nor the one that is torn over two zones;
    # and of two that begin at once the cheaper.
    assert (found.id, found.zone, found.usd) == ("cb-right", "use1-az4", 13300.0)
    assert (found.starts, found.ends) == ("2026-12-03 11:30 UTC", "2026-12-10 11:30 UTC")
    [finding] = check_block_offering(api, pool, pool.offers[0], NONE)
    assert not finding.is_error
    assert "in use1-az4 costs 13300.00 USD at once" in finding.summary
    assert finding.summary.endswith("(cb-right)")


def test_a_block_of_another_zone_is_none(
    api: Api, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    aws_api.answer(*OFFERS, "block-offerings-in-zones.xml")
    pool = planned(BUYS.replace("use1-az4", "use1-az5")).pool("train")
    assert block_offering(api, pool, pool.offers[0]) is None
    [finding] = check_block_offering(api, pool, pool.offers[0], NONE)
    assert finding.is_error
    assert finding.summary.endswith("is not on offer in use1-az5")


def test_without_a_zone_no_block_is_chosen(api: Api, planned: Callable[..., SitePlan]) -> None:
    pool = planned(BUYS.replace("    zone_id: use1-az4\n", "")).pool("train")
    with pytest.raises(ProviderError) as error:
        block_offering(api, pool, pool.offers[0])
    [finding] = error.value.diagnostics
    assert finding.code == "GC975"
    assert "zone_id" in finding.hint


class _NoBlocks:
    """A double of AWS: nothing was bought before."""

    def call(self, *_: object, **__: object) -> Reservations:
        return Reservations()


def test_a_block_that_no_plan_showed_is_not_bought(tmp_path: Path, catalog: Catalog) -> None:
    context = SiteContext(
        spec=spec_of(BUYS),
        site=SITE,
        cluster_id="0",
        workdir=tmp_path,
        cache=tmp_path,
        ledger=RecordingLedger(),
        emit=lambda _: None,
        buys=frozenset({"train"}),
        offerings={"train/buy-24h-use1-az4": "cb-other"},
    )
    with pytest.raises(ProviderError) as error:
        Session(context, catalog, cast("Api", _NoBlocks())).before_up()
    # The pool is without capacity, so that the next option of its list is taken.
    assert list(error.value.lacking) == ["demo-east-block-train"]
    [(code, summary)] = listed(error.value.diagnostics)
    assert code == "GC975"
    assert f"({BLOCK})" in summary
