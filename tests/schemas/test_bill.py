"""A bill shows each price with its source, marks bounds, and names what its sums lack."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.cost.bill import Bill, PoolBill, bill
from gcluster.schemas.cost.pools import HOURS_PER_MONTH
from gcluster.schemas.load import load, load_text

EXAMPLES = Path(__file__).parents[2] / "examples"

_CATALOG = """\
apiVersion: gcluster/catalog/v1
providers:
  - name: gcp
    source: s
    date: 2026-11
    pue: 1.1
    regions: [{name: us-east9, kg_co2_per_kwh: 0.5}, {name: us-east8}]
    markets: [on-demand, spot, reservation]
    lustre:
      - {deployment: managed, throughput_mb_per_s_per_tib: 500, minimum_gib: 18000, step_gib: 18000,
         usd_per_gib_month: 0.34, source: page of file systems, date: 2026-10}
      - {deployment: managed, throughput_mb_per_s_per_tib: 250, minimum_gib: 18000, step_gib: 18000,
         source: page of file systems, date: 2026-10}
machines:
  - name: node
    sites: [gcp]
    cpu: {architecture: x86_64}
    source: s
    date: 2026-11
    gpu: {vendor: nvidia, model: H100, memory_gib: 80, count: 8, power_w: 700}
    power_w: 10000
    markets: [on-demand, spot, capacity-block]
    unverified: [prices.1]
    prices:
      - {usd_per_hour: 90, region: us-east9, source: list, date: 2026-11}
      - {usd_per_hour: 30, market: spot, region: us-east9, source: spot page, date: 2026-08-02}
  - {name: board, sites: [gcp], cpu: {architecture: x86_64}, source: s, date: 2026-11,
     gpu: {vendor: nvidia, model: H100, memory_gib: 80, count: 8, power_w: 700}}
  - {name: small, sites: [gcp, bare-metal], cpu: {architecture: x86_64}, source: s, date: 2026-11}
  - {name: ours, sites: [bare-metal], source: s, date: 2026-01, power_w: 9000,
     cpu: {architecture: x86_64},
     prices: [{usd_per_hour: 18, source: internal rate, date: 2026-10}]}
"""


def _bill(
    tmp_path: Path,
    pool: str,
    *,
    region: str = "us-east9",
    more: str = "",
    utilisation: float | None = None,
) -> Bill:
    path = tmp_path / "own.yaml"
    path.write_text(_CATALOG, encoding="utf-8")
    text = f"""apiVersion: gcluster/v1
name: demo
sites:
  cloud: {{provider: gcp, project: acme-ml, region: {region}}}
  room: {{provider: bare-metal, ssh: {{user: ops}}}}
  here: {{provider: local}}
pools:
  gpu: {{{pool}}}
{more}
scheduler: {{type: slurm}}
"""
    loaded = load_text(text, check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return bill(loaded.spec, load_catalog([path]), utilisation=utilisation)


def _example(name: str) -> Bill:
    loaded = load(EXAMPLES / f"{name}.yaml")
    assert loaded.spec is not None, loaded.diagnostics
    return bill(loaded.spec, load_catalog(loaded.catalogs))


def _pool(of: Bill, name: str) -> PoolBill:
    return next(pool for pool in of.pools if pool.name == name)


def test_a_market_with_a_price_of_its_own_is_reported_with_its_source_and_date(
    tmp_path: Path,
) -> None:
    (pool,) = _bill(tmp_path, "site: cloud, machine: node, count: 2, market: [spot]").pools

    assert [(o.market, o.usd_per_hour, o.source, o.date) for o in pool.fallback_list] == [
        ("spot", 30, "spot page", "2026-08-02")
    ]
    assert pool.fallback_list[0].unverified
    assert not pool.is_bound


def test_every_market_the_machine_is_sold_in_is_compared_priced_or_not(tmp_path: Path) -> None:
    (pool,) = _bill(tmp_path, "site: cloud, machine: node, count: 2, market: [spot]").pools

    assert {o.market: o.usd_per_hour for o in pool.markets} == {
        "on-demand": 90, "spot": 30, "capacity-block": None
    }  # fmt: skip


def test_a_machine_without_markets_is_sold_as_its_provider_sells(tmp_path: Path) -> None:
    (pool,) = _bill(tmp_path, "site: cloud, machine: board, count: 2").pools

    assert {o.market: o.usd_per_hour for o in pool.markets} == {
        "on-demand": None, "spot": None, "reservation": None
    }  # fmt: skip


def test_the_limit_of_a_spot_option_is_a_bound_without_a_source(tmp_path: Path) -> None:
    market = "market: [{spot_max_usd_per_hour: 40}]"
    (pool,) = _bill(tmp_path, f"site: cloud, machine: node, count: 2, {market}").pools

    (option,) = pool.fallback_list
    assert (option.market, option.usd_per_hour, option.is_bound, option.source) == (
        "spot",
        40,
        True,
        None,
    )
    assert pool.is_bound
    assert pool.is_bound_now


def test_a_worst_case_that_a_option_has_as_its_own_price_is_no_bound(tmp_path: Path) -> None:
    market = "market: [{reservation: r}, on-demand]"
    (pool,) = _bill(tmp_path, f"site: cloud, machine: node, count: 2, {market}").pools

    assert pool.fallback_list[0].is_bound
    assert pool.is_bound_now
    assert (pool.usd_per_hour, pool.is_bound) == (180, False)


def test_a_pool_without_a_current_price_is_not_reported_as_free(tmp_path: Path) -> None:
    market = "market: [{reservation: r}]"
    count = "count: {min: 0, max: 2}"
    (pool,) = _bill(tmp_path, f"site: cloud, machine: node, {count}, {market}").pools

    assert (pool.usd_per_hour_now, pool.is_bound_now) == (0, False)
    assert pool.is_bound


def test_a_sum_keeps_what_is_known_and_names_the_pools_that_it_lacks(tmp_path: Path) -> None:
    more = "  head: {site: cloud, role: controller, machine: small}"
    totals = _bill(tmp_path, "site: cloud, machine: node, count: 2", more=more).totals

    for part, usd in (("hour_now", 180), ("hour", 180), ("month", 180 * HOURS_PER_MONTH)):
        found = getattr(totals, part)
        assert (found.usd, found.lacks) == (usd, ("head",))


def test_own_machines_without_a_price_are_named_and_are_no_lack_of_the_sum(tmp_path: Path) -> None:
    more = '  old: {site: room, machine: small, hosts: "old[01-04]"}'
    found = _bill(tmp_path, "site: cloud, machine: node, count: 2", more=more)

    assert found.own_unpriced == ("old",)
    assert (found.totals.hour.usd, found.totals.hour.lacks) == (180, ())


def test_own_machines_with_a_price_of_ones_own_count_and_cite_it(tmp_path: Path) -> None:
    found = _bill(tmp_path, 'site: room, machine: ours, hosts: "gpu[01-04]"')

    (pool,) = found.pools
    assert (pool.holding, found.totals.hour.usd, found.own_unpriced) == ("own", 72, ())
    assert pool.fallback_list[0].source == "internal rate"
    assert pool.markets == ()


def test_the_utilisation_requested_is_before_the_budget_s(tmp_path: Path) -> None:
    pool = "site: cloud, machine: node, count: {min: 2, max: 12}"
    budget = "budget: {utilisation: 0.5}"
    by_budget = _bill(tmp_path, pool, more=budget)
    requested = _bill(tmp_path, pool, more=budget, utilisation=0.1)

    assert (by_budget.utilisation, requested.utilisation) == (0.5, 0.1)
    assert by_budget.totals.month.usd == pytest.approx(7 * 90 * HOURS_PER_MONTH)
    assert requested.totals.month.usd == pytest.approx(3 * 90 * HOURS_PER_MONTH)


def test_power_is_the_node_s_times_the_pue_and_carbon_follows_the_region(tmp_path: Path) -> None:
    pool = "site: cloud, machine: node, count: {min: 1, max: 4}"
    (known,) = _bill(tmp_path, pool).pools
    (dark,) = _bill(tmp_path, pool, region="us-east8").pools

    assert (known.power.basis, known.power.pue) == ("node", 1.1)
    assert known.power.kw_now == pytest.approx(11)
    assert known.power.kw == pytest.approx(44)
    assert known.power.kg_co2_per_hour == pytest.approx(22)
    assert dark.power.kw == pytest.approx(44)
    assert dark.power.kg_co2_per_hour is None


def test_where_a_node_s_power_is_not_known_its_gpus_alone_count_and_it_is_reported(
    tmp_path: Path,
) -> None:
    (pool,) = _bill(tmp_path, "site: cloud, machine: board, count: 2").pools

    assert pool.power.basis == "gpus"
    assert pool.power.kw == pytest.approx(2 * 8 * 0.7 * 1.1)


def test_power_that_is_not_known_is_none_and_named(tmp_path: Path) -> None:
    more = "  head: {site: cloud, role: controller, machine: small}"
    found = _bill(tmp_path, "site: cloud, machine: node, count: 2", more=more)

    assert _pool(found, "head").power.kw is None
    assert found.totals.kw == pytest.approx(22)
    assert found.totals.kw_lacks == ("head",)
    assert found.totals.kg_co2_per_hour is None


def test_nodes_on_this_machine_are_free_and_draw_nothing_of_their_own() -> None:
    found = _example("local")

    assert {pool.holding for pool in found.pools} == {"free"}
    assert found.totals.hour.usd == 0
    assert found.totals.kw is None
    assert found.totals.kw_lacks == ()


@pytest.mark.parametrize(("throughput", "usd"), [(500, 36000 * 0.34), (250, None)])
def test_managed_storage_costs_what_its_kind_does_where_that_is_known(
    tmp_path: Path, throughput: int, usd: float | None
) -> None:
    more = (
        "storage: {fast: {type: lustre, mount: /l, site: cloud, capacity: 36000 GiB,"
        f" throughput: {throughput} MB/s/TiB}}}}"
    )
    (storage,) = _bill(tmp_path, "site: cloud, machine: node, count: 1", more=more).storage

    assert (storage.name, storage.gib) == ("fast", 36000)
    assert storage.usd_per_month == (None if usd is None else pytest.approx(usd))
    assert (storage.citation is None) == (usd is None)


def test_storage_that_exists_is_not_on_the_bill_and_a_bucket_has_no_size(tmp_path: Path) -> None:
    more = """storage:
  there: {type: lustre, mount: /l, site: cloud, existing: fs-1}
  bucket: {type: object, mount: /b, site: cloud, bucket: gs://made, create: true}
  old: {type: object, mount: /o, site: cloud, bucket: gs://old}"""
    (storage,) = _bill(tmp_path, "site: cloud, machine: node, count: 1", more=more).storage

    assert (storage.name, storage.gib, storage.usd_per_month) == ("bucket", None, None)


def test_the_hybrid_costs_its_gateway_in_the_cloud_until_jobs_spill() -> None:
    found = _example("hybrid")

    spill, gate = _pool(found, "spill"), _pool(found, "gate").fallback_list[0].usd_per_hour or 0
    assert (spill.nodes_now, spill.nodes) == (0, 16)
    assert [offer.market for offer in spill.fallback_list] == ["reservation", "spot", "on-demand"]
    assert found.totals.hour_now.usd == gate > 0
    assert found.totals.hour.usd == pytest.approx(
        gate + 16 * (spill.fallback_list[-1].usd_per_hour or 0)
    )
    assert found.own_unpriced == ("head", "train")
    assert [storage.name for storage in found.storage] == ["warm"]


def test_a_capacity_block_of_p5_is_compared_at_a_price_of_its_own_date() -> None:
    train = _pool(_example("aws-p5-slurm"), "train")

    block = next(offer for offer in train.markets if offer.market == "capacity-block")
    listed = next(offer for offer in train.markets if offer.market == "on-demand")
    assert block.usd_per_hour is not None
    assert not block.is_bound
    assert block.date != listed.date


def test_a_market_without_a_price_stays_unknown_among_bounds_of_others() -> None:
    train = _pool(_example("gcp-a3-mega-slurm"), "train")

    answer = {offer.market: (offer.usd_per_hour is None, offer.is_bound) for offer in train.markets}
    assert answer["capacity-block"] == (True, False)
    assert answer["spot"] == (False, True)
    assert train.is_bound


def test_a_superpod_of_one_s_own_has_power_and_no_price() -> None:
    found = _example("superpod-127")

    assert found.totals.hour.usd is None
    assert found.own_unpriced == ("head", "login", "pod")
    assert found.totals.kw == pytest.approx(127 * 10.2)
    assert found.totals.kw_lacks == ("head", "login")


def test_the_totals_of_sites_add_up_to_the_cluster_s() -> None:
    for name in ("hybrid", "aws-p5-slurm", "gcp-a3-mega-slurm"):
        found = _example(name)
        sites = sum(site.totals.hour.usd or 0 for site in found.sites)
        assert found.totals.hour.usd == pytest.approx(sites)
