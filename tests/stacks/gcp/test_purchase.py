"""The options of pools on Google Cloud, and what going to another one changes in the program."""

from __future__ import annotations

import msgspec
import pytest
from tests.stacks.recorded_graph import Graph

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.gcp.plan.purchase import purchase_options, purchases

from ..graph_comparison import diff
from .gcp_cases import MACHINE, TEMPLATE, recorded, site_of, spec_of

SPOT = "spot-us-central1-a"
QUEUED = "a4-highgpu-8g"


@pytest.fixture(scope="module")
def spec() -> ClusterSpec:
    return spec_of("a3-megagpu-8g")


def test_the_next_option_changes_the_template_the_machines_and_their_policy(
    spec: ClusterSpec,
) -> None:
    found = diff(recorded(spec), recorded(spec, purchased={"train001": SPOT, "train002": SPOT}))
    assert [r.name for r in found.removed] == ["tcpxo-central-train-reservation-us-central1-a"]
    added = sorted(r.name for r in found.added)
    assert added == ["tcpxo-central-train-placement-1", f"tcpxo-central-train-{SPOT}"]
    assert {c.urn.rpartition("::")[2]: c.inputs for c in found.changed} == {
        f"tcpxo-central-train00{n}": (
            "labels.gcluster-option", "resourcePolicies", "sourceInstanceTemplate",
        )
        for n in (1, 2)
    }  # fmt: skip


def test_one_machine_continues_alone_and_the_other_stays_as_it_is(spec: ClusterSpec) -> None:
    found = diff(recorded(spec), recorded(spec, purchased={"train002": SPOT}))
    assert found.removed == ()
    assert [c.urn.rpartition("::")[2] for c in found.changed] == ["tcpxo-central-train002"]


def test_a_machine_that_is_given_up_is_the_only_item_that_goes(spec: ClusterSpec) -> None:
    found = diff(recorded(spec), recorded(spec, purchased={"train001": ""}))
    assert [r.name for r in found.removed] == ["tcpxo-central-train001"]
    assert (found.added, found.changed) == ((), ())


def test_a_queued_pool_requests_all_its_machines_or_for_none() -> None:
    queued = spec_of(QUEUED)
    pool = queued.pools["train"]
    nodes = [f"train{n:03d}" for n in range(1, 5)]
    assert pool.least == len(nodes)
    none = Graph(recorded(queued, purchased=dict.fromkeys(nodes, "")))
    assert none.of_type("ResizeRequest") == ()
    assert none.of_type("InstanceGroupManager") == ()
    found = purchase_options(queued, site_of(queued), "train", load_catalog())
    assert all(option.whole for option in found if option.market == "flex-start")


def test_every_machine_of_the_program_is_known_for_what_it_buys(spec: ClusterSpec) -> None:
    for each in (spec, spec_of(QUEUED)):
        known = purchases(each, site_of(each))
        graph = Graph(recorded(each))
        made = [*graph.of_type(MACHINE), *graph.of_type("ResizeRequest")]
        assert made
        assert {r.name: known[r.name].pool for r in made if r.name in known}.keys() == {
            r.name for r in made
        }


def test_an_elastic_pool_keeps_a_template_for_every_option() -> None:
    elastic = spec_of("a3-ultragpu-8g")
    first, second = (
        r.key for r in purchase_options(elastic, site_of(elastic), "train", load_catalog())
    )
    nodes = Graph(recorded(elastic)).of_type(MACHINE)
    purchased = {n.name.rpartition("-")[2]: second for n in nodes if "train" in n.name}
    moved = Graph(recorded(elastic, purchased=purchased))
    templates = {t.name for t in moved.of_type(TEMPLATE) if "-train-" in t.name}
    assert {name.partition("-train-")[2] for name in templates} == {first, second}


def test_a_spot_limit_is_no_bound_where_google_has_none(spec: ClusterSpec) -> None:
    pool = spec.pools["train"]
    plain = purchase_options(spec, "central", "train", load_catalog())[1]
    market = [
        *pool.market[:1],
        msgspec.convert({"spot_max_usd_per_hour": 1.0}, type(pool.market[0])),
    ]
    limited = msgspec.structs.replace(
        spec, pools=dict(spec.pools) | {"train": msgspec.structs.replace(pool, market=market)}
    )
    found = purchase_options(limited, "central", "train", load_catalog())[1]
    assert (found.market, found.usd_per_hour) == ("spot", plain.usd_per_hour)
