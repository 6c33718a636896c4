"""What a spec takes of cloud quotas."""

from __future__ import annotations

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.cost.quotas import quota_needs
from gcluster.schemas.load import load_text

_SPEC = """apiVersion: gcluster/v1
name: demo
sites:
  room: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.77.0.0/16}}
  east:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}
links:
  - {between: [room, east], via: routed}
pools:
  head: {site: room, role: controller, hosts: head01}
POOLS
scheduler: {type: slurm}
"""


def _needs(*pools: str) -> dict[str, tuple[int, str, tuple[str, ...]]]:
    loaded = load_text(_SPEC.replace("POOLS", "\n".join(f"  {pool}" for pool in pools)))
    assert loaded.spec is not None, loaded.diagnostics
    found = quota_needs(loaded.spec, load_catalog())
    assert {(need.provider, need.region) for need in found} <= {("aws", "us-east-1")}
    return {need.code: (need.amount, need.unit, need.pools) for need in found}


def test_a_pool_takes_its_largest_size_of_the_quota_of_its_market() -> None:
    needs = _needs("train: {site: east, machine: p5.48xlarge, count: {min: 0, max: 16}}")

    assert needs == {"L-417A185B": (16 * 192, "vcpu", ("train",))}


def test_a_pool_of_several_markets_needs_the_quota_of_each() -> None:
    needs = _needs("train: {site: east, machine: p5.48xlarge, count: 2, market: [spot, on-demand]}")

    assert {code: amount for code, (amount, _, _) in needs.items()} == {
        "L-417A185B": 384,
        "L-C4BD4855": 384,
    }


def test_pools_of_one_region_add_up() -> None:
    needs = _needs(
        "a: {site: east, machine: p5.48xlarge, count: 2}",
        "b: {site: east, machine: p5.48xlarge, count: 3}",
    )

    assert needs == {"L-417A185B": (5 * 192, "vcpu", ("a", "b"))}


def test_capacity_blocks_and_existing_hosts_take_none() -> None:
    needs = _needs(
        "train: {site: east, machine: p5.48xlarge, count: 2, market: [{capacity_block: cr-0abc}]}",
        "dgx: {site: room, machine: dgx-h100, hosts: gpu1}",
    )

    assert needs == {}
