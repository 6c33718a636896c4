"""Cost and power: known where the catalog knows, None where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.catalog import Catalog, Machine, Price, load_catalog
from gcluster.schemas.catalog.model.machine import Cpu, Market
from gcluster.schemas.cost.pools import HOURS_PER_MONTH, Cost, OptionCost, usd_per_hour
from gcluster.schemas.load import load_text

_BARE_METAL = """\
apiVersion: gcluster/v1
name: demo
sites: {room: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: room, role: controller, machine: MACHINE, hosts: head01}
  train: {site: room, machine: dgx-h100, hosts: ["gpu[01-04]", {name: gpu05}]}
scheduler: {type: slurm}
"""


def _cost(text: str, *extra: Path) -> Cost:
    catalog = load_catalog(extra)
    spec = load_text(text, catalog=catalog).spec
    assert spec is not None
    return usd_per_hour(spec, catalog)


def test_nodes_on_this_machine_cost_nothing() -> None:
    cost = _cost(
        "apiVersion: gcluster/v1\nname: demo\nsites: {here: {provider: local}}\n"
        "pools: {head: {site: here, role: controller},"
        " gpu: {site: here, machine: sim.h100x8, count: 4}}\nscheduler: {type: slurm}\n"
    )

    assert cost.usd_per_hour == 0
    assert cost.unpriced == ()
    assert (cost.pools["head"].count, cost.pools["gpu"].count) == (1, 4)


def test_an_unknown_price_is_reported_and_never_zero() -> None:
    cost = _cost(_BARE_METAL.replace("machine: MACHINE, ", ""))

    assert cost.usd_per_hour is None
    assert cost.unpriced == ("head", "train")
    assert cost.pools["train"].count == 5
    assert cost.pools["train"].watts == 5 * 10_200
    assert cost.watts is None


def test_a_price_of_ones_own_is_multiplied_by_the_machines(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    entry = (
        "  - {{name: {name}, sites: [bare-metal], source: s, date: 2026-01, power_w: {watts},\n"
        "     cpu: {{architecture: x86_64}},\n"
        "     prices: [{{usd_per_hour: {rate}, source: s, date: 2026-01}}]}}\n"
    )
    path.write_text(
        "apiVersion: gcluster/catalog/v1\nmachines:\n"
        + entry.format(name="dgx-h100", watts=10_000, rate=20)
        + entry.format(name="small", watts=500, rate=0.5)
    )
    cost = _cost(_BARE_METAL.replace("MACHINE", "small"), path)

    assert cost.usd_per_hour == 100.5
    assert cost.watts == 50_500


def _node(**prices: float) -> Machine:
    """Return a machine with these prices; `_` in a market's name is a hyphen."""
    markets: dict[str, Market] = {
        "on_demand": "on-demand", "spot": "spot", "capacity_block": "capacity-block"
    }  # fmt: skip
    return Machine(
        name="node",
        sites=["gcp"],
        source="s",
        date="2026-01",
        cpu=Cpu(architecture="x86_64"),
        power_w=1000,
        prices=[
            Price(usd_per_hour=rate, source="s", date="2026-01", market=markets[name], region="r1")
            for name, rate in prices.items()
        ],
    )


def _cloud(
    machine: Machine, pool: str, *, region: str = "r1", more: str = "", budget: str = ""
) -> Cost:
    text = f"""apiVersion: gcluster/v1
name: demo
sites: {{cloud: {{provider: gcp, project: p, region: {region}}}, here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: cloud, machine: node, {pool}}}
{more}scheduler: {{type: slurm}}
{budget}
"""
    loaded = load_text(text, check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return usd_per_hour(loaded.spec, Catalog(machines={"node": machine}))


def test_what_is_always_there_is_reported_apart_from_every_machine_running() -> None:
    cost = _cloud(_node(on_demand=10), "count: {min: 2, max: 16}")

    gpu = cost.pools["gpu"]
    assert (gpu.least, gpu.count) == (2, 16)
    assert (cost.usd_per_hour_now, cost.usd_per_hour) == (20, 160)
    assert (gpu.watts, cost.watts) == (16_000, None)  # this machine's own power is not known


def test_the_worst_case_is_the_dearest_option_and_now_is_the_first() -> None:
    cost = _cloud(_node(on_demand=10, spot=4), "count: 3, market: [spot, on-demand]")

    assert cost.pools["gpu"].purchase_options == (
        OptionCost(market="spot", usd_per_hour=4),
        OptionCost(market="on-demand", usd_per_hour=10),
    )
    assert (cost.usd_per_hour_now, cost.usd_per_hour) == (12, 30)
    assert cost.bounds == ()


@pytest.mark.parametrize("option", ["spot", "{reservation: r}", "flex-start", "{flex_start: 2h}"])
def test_a_option_that_is_never_dearer_than_on_demand_is_bound_by_it_and_marked(
    option: str,
) -> None:
    cost = _cloud(_node(on_demand=10), f"count: 3, market: [{option}]")

    assert cost.usd_per_hour == 30
    assert cost.pools["gpu"].purchase_options[0].is_bound
    assert cost.bounds == ("gpu",)


def test_a_limit_on_the_spot_price_is_the_most_that_spot_costs() -> None:
    cost = _cloud(_node(on_demand=10, spot=4), "count: 3, market: [{spot_max_usd_per_hour: 6}]")

    assert cost.usd_per_hour == 18
    assert cost.bounds == ("gpu",)


@pytest.mark.parametrize(
    ("machine", "market", "region"),
    [
        (_node(), "spot", "r1"),
        (_node(), "on-demand", "r1"),
        (_node(on_demand=10), "on-demand", "elsewhere"),
        (_node(on_demand=10), "on-demand, {capacity_block: cr-1}", "r1"),
    ],
)
def test_one_option_without_a_price_makes_the_worst_case_unknown_and_names_the_pool(
    machine: Machine, market: str, region: str
) -> None:
    cost = _cloud(machine, f"count: 3, market: [{market}]", region=region)

    assert cost.usd_per_hour is None
    assert cost.usd_per_month is None
    assert cost.unpriced == ("gpu",)
    assert cost.bounds == ()


def test_what_runs_now_may_be_known_where_the_worst_case_is_not() -> None:
    block = "market: [on-demand, {capacity_block: cr-1}]"
    cost = _cloud(_node(on_demand=10), f"count: {{min: 1, max: 2}}, {block}")

    assert (cost.usd_per_hour_now, cost.usd_per_hour) == (10, None)


def test_no_machine_costs_nothing_though_the_price_of_one_is_unknown() -> None:
    cost = _cloud(_node(), "count: {min: 0, max: 2}")

    assert (cost.usd_per_hour_now, cost.usd_per_hour) == (0, None)


def test_each_site_has_its_own_totals() -> None:
    cost = _cloud(
        _node(on_demand=10), "count: 2", more="  more: {site: cloud, machine: node, count: 1}\n"
    )

    assert cost.sites["cloud"].usd_per_hour == 30
    assert cost.sites["here"].usd_per_hour == 0
    assert cost.sites["cloud"].watts == 3000


def test_a_month_counts_elastic_machines_by_the_budget_s_utilisation() -> None:
    cost = _cloud(
        _node(on_demand=10), "count: {min: 2, max: 12}", budget="budget: {utilisation: 0.25}"
    )

    assert cost.usd_per_month == pytest.approx((2 + 0.25 * 10) * 10 * HOURS_PER_MONTH)


@given(
    least=st.integers(0, 50),
    extra=st.integers(0, 50),
    prices=st.fixed_dictionaries(
        {}, optional={name: st.floats(0, 200) for name in ("on_demand", "spot", "capacity_block")}
    ),
    market=st.permutations(["spot", "on-demand", "{capacity_block: cr-1}"]),
)
def test_now_is_never_above_the_worst_case_and_the_cluster_is_the_sum_of_its_sites(
    least: int, extra: int, prices: dict[str, float], market: list[str]
) -> None:
    cost = _cloud(
        _node(**prices),
        f"count: {{min: {least}, max: {least + extra}}}, market: [{', '.join(market)}]",
    )

    if cost.usd_per_hour is not None:
        assert cost.usd_per_hour_now is not None
        assert cost.usd_per_month is not None
        assert cost.usd_per_hour_now <= cost.usd_per_hour
        assert cost.usd_per_month <= cost.usd_per_hour * HOURS_PER_MONTH * (1 + 1e-9)
        assert cost.usd_per_hour == sum(site.usd_per_hour or 0 for site in cost.sites.values())
    assert (cost.usd_per_hour is None) == bool(cost.unpriced)
