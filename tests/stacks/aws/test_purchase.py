"""The options of pools on AWS, and what going to another one changes in the program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from tests.stacks.recorded_graph import Graph

from gcluster.schemas.catalog import Catalog
from gcluster.stacks.aws.api import Api
from gcluster.stacks.aws.plan.layout import site_plan
from gcluster.stacks.aws.plan.purchase import bought_blocks, purchase_options, purchases
from gcluster.stacks.aws.preflight.capacity import Reservation, Reservations
from gcluster.stacks.aws.program.site import program
from gcluster.stacks.aws.provider import AwsProvider
from gcluster.stacks.provider import SiteContext
from gcluster.stacks.pulumi.program import record_site
from gcluster.stacks.pulumi.recording.record import record

from ..graph_comparison import GraphDiff, diff
from ..ledger_double import RecordingLedger  # all providers' tests have it
from .conftest import BASE, SITE, spec_of

SPOT, NEXT = "spot-use1-az4", "on-demand-use1-az4"
BLOCK = "buy-168h-use1-az4"


def on(market: str) -> str:
    return BASE.replace("count: 2", f"count: 2, market: [{market}]")


@pytest.fixture
def change(catalog: Catalog) -> Callable[[dict[str, str]], GraphDiff]:
    """Return what differs from the first option when nodes are elsewhere."""
    spec = spec_of(on("spot, on-demand"))
    first = record_site(spec, SITE, catalog)
    return lambda purchased: diff(first, record_site(spec, SITE, catalog, purchased=purchased))


Change = Callable[[dict[str, str]], GraphDiff]


def replaced(found: GraphDiff) -> dict[str, tuple[str, ...]]:
    assert all(changed.replaced for changed in found.changed)
    return {changed.urn.rpartition("::")[2]: changed.inputs for changed in found.changed}


def test_the_next_option_replaces_the_nodes_and_their_template_and_nothing_else(
    change: Change,
) -> None:
    found = change({"train001": NEXT, "train002": NEXT})
    assert [r.name for r in found.removed] == [f"demo-east-train-{SPOT}"]
    assert [r.name for r in found.added] == [f"demo-east-train-{NEXT}"]
    inputs = ("instanceMarketOptions", "launchTemplate.id", "tags.gcluster-offer")
    assert {n: tuple(p for p in i if "ersion" not in p) for n, i in replaced(found).items()} == {
        "demo-east-train001": inputs,
        "demo-east-train002": inputs,
    }


def test_one_node_continues_alone_and_the_other_stays_as_it_is(change: Change) -> None:
    found = change({"train002": NEXT})
    assert [r.name for r in found.added] == [f"demo-east-train-{NEXT}"]
    assert found.removed == ()
    assert list(replaced(found)) == ["demo-east-train002"]


def test_only_a_node_that_is_given_up_goes_and_its_name_with_it(change: Change) -> None:
    found = change({"train002": ""})
    gone = {(r.name, r.type.rpartition(":")[2]) for r in found.removed}
    assert gone == {("demo-east-train002", "Instance"), ("demo-east-train002", "Record")}
    assert (found.added, found.changed) == ((), ())


def test_each_option_is_tried_in_all_zones_before_the_next(catalog: Catalog) -> None:
    text = on("spot, on-demand").replace("count: 2,", "count: 2, zones: [use1-az4, use1-az6],")
    found = purchase_options(spec_of(text), SITE, "train", catalog)
    assert [(option.market, option.zone) for option in found] == [
        ("spot", "use1-az4"), ("spot", "use1-az6"),
        ("on-demand", "use1-az4"), ("on-demand", "use1-az6"),
    ]  # fmt: skip


def test_a_option_has_the_catalogs_price_a_limit_is_a_bound(catalog: Catalog) -> None:
    found = purchase_options(
        spec_of(on("{spot_max_usd_per_hour: 30}, on-demand")), SITE, "train", catalog
    )
    listed = catalog.machines["p5.48xlarge"].price("on-demand", "us-east-1")
    assert listed is not None
    assert [(r.usd_per_hour, r.is_bound) for r in found] == [
        (30, True), (listed.usd_per_hour, False),
    ]  # fmt: skip


def test_every_machine_of_the_program_is_known_for_what_it_buys(catalog: Catalog) -> None:
    spec = spec_of(on("{buy_capacity_block: 7d}"))
    known = purchases(spec, SITE)
    graph = Graph(record_site(spec, SITE, catalog))
    made = [*graph.of_type("Instance"), *graph.of_type("CapacityBlockReservation")]
    assert {r.name: known[r.name].pool for r in made} == {
        "demo-east-head": "head",
        "demo-east-train001": "train",
        "demo-east-train002": "train",
        "demo-east-block-train": "train",
    }
    assert known["demo-east-train002"].nodes == ("train002",)


def bought(catalog: Catalog, **how: object) -> Graph:
    """Return the graph of a pool whose first option buys a block, as `up` runs its program."""
    spec = spec_of(on("{buy_capacity_block: 7d}"))
    blocks = cast("dict[str, str]", how.get("blocks", {}))
    buys = cast("frozenset[str]", how.get("buys", frozenset()))
    offerings = {f"train/{BLOCK}": "cb-0abc"}
    run = program(spec, SITE, catalog, blocks=blocks, buys=buys, offerings=offerings)
    return Graph(record(run, project="p", stack=SITE))


def test_nothing_is_bought_unless_it_was_requested_by_name(catalog: Catalog) -> None:
    graph = bought(catalog)
    assert graph.of_type("CapacityBlockReservation") == ()
    assert [i.name for i in graph.of_type("Instance")] == ["demo-east-head"]
    assert graph.recorded.invokes == ()


def test_a_plan_without_an_account_shows_what_would_be_bought_and_no_more(
    tmp_path: Path, catalog: Catalog
) -> None:
    spec = spec_of(on("{buy_capacity_block: 7d}, on-demand"))
    context = SiteContext(
        spec=spec,
        site=SITE,
        cluster_id="0",
        workdir=tmp_path,
        cache=tmp_path,
        ledger=RecordingLedger(),
        emit=lambda _: None,
        purchased={"train001": NEXT, "train002": NEXT},
    )
    found = AwsProvider(catalog).graph_as_bought(context).resources
    assert [r.name for r in found if r.kind == "LaunchTemplate" and r.pool == "train"] == [
        f"demo-east-train-{NEXT}"
    ]
    assert not [r for r in found if r.kind == "CapacityBlockReservation"]


def test_a_block_is_bought_for_the_pool_that_was_named(catalog: Catalog) -> None:
    graph = bought(catalog, buys=frozenset({"train"}))
    block = graph.only("CapacityBlockReservation")
    assert block.name == "demo-east-block-train"
    assert block.inputs["capacityBlockOfferingId"] == "cb-0abc"
    assert graph.recorded.invokes == ()
    [template] = [t for t in graph.of_type("LaunchTemplate") if BLOCK in t.name]
    assert template.inputs["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert template.inputs["capacityReservationSpecification"] == {
        "capacityReservationTarget": {
            "capacityReservationId": "${CapacityBlockReservation/demo-east-block-train.id}"
        }
    }
    assert len(graph.of_type("Instance")) == 3


def test_a_block_that_is_there_is_used_even_if_it_is_requested_again(catalog: Catalog) -> None:
    graph = bought(catalog, blocks={"train": "cr-0abc"}, buys=frozenset({"train"}))
    assert graph.of_type("CapacityBlockReservation") == ()
    [template] = [t for t in graph.of_type("LaunchTemplate") if BLOCK in t.name]
    assert template.inputs["capacityReservationSpecification"] == {
        "capacityReservationTarget": {"capacityReservationId": "cr-0abc"}
    }
    assert len(graph.of_type("Instance")) == 3


class BlocksDouble:
    """A double of AWS: moto has no capacity blocks. Answers one question with what it is given."""

    def __init__(self, *states: str) -> None:
        """Answer with one block for each state."""
        self.found = tuple(
            Reservation(capacity_reservation_id=f"cr-{n}", instance_type="p5.48xlarge", state=state)
            for n, state in enumerate(states)
        )
        self.calls: list[object] = []

    def call(
        self, answer: type[Reservations], service: str, operation: str, **more: object
    ) -> object:
        """Answer, and record the filters of the request."""
        assert (answer, service) == (Reservations, "ec2")
        assert operation == "describe_capacity_reservations"
        self.calls.append(more["Filters"])
        return Reservations(capacity_reservations=self.found)


@pytest.mark.parametrize(
    ("states", "found"),
    [
        (("expired", "active"), {"train": "cr-1"}),
        (("scheduled", "active"), {"train": "cr-1"}),
        (("expired", "cancelled", "failed"), {}),
        ((), {}),
    ],
)
def test_a_bought_block_is_found_by_its_tags_until_it_is_over(
    states: tuple[str, ...], found: dict[str, str], catalog: Catalog
) -> None:
    double = BlocksDouble(*states)
    plan = site_plan(spec_of(on("spot, {buy_capacity_block: 7d}")), SITE, catalog)
    purchased = {"train001": BLOCK, "train002": BLOCK}
    assert bought_blocks(cast("Api", double), plan, purchased) == found
    [requested] = double.calls
    assert {"Name": "tag:gcluster-pool", "Values": ["train"]} in cast("list[object]", requested)


def test_aws_is_not_requested_blocks_where_no_node_is_on_such_a_option(catalog: Catalog) -> None:
    double = BlocksDouble()
    plan = site_plan(spec_of(on("spot, {buy_capacity_block: 7d}")), SITE, catalog)
    assert bought_blocks(cast("Api", double), plan, {}) == {}
    assert double.calls == []
