"""The plan of a site is made from spec and catalog alone, without any SDK."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
from gcp_cases import site_of, spec_from, spec_of

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.spec.sites import GcpNetwork
from gcluster.stacks.gcp.plan.fabric import fabric_range
from gcluster.stacks.gcp.plan.facts import facts
from gcluster.stacks.gcp.plan.layout import SitePlan, site_plan
from gcluster.stacks.gcp.plan.pools import reservation_name

RANGES = facts().fabric_ranges


def plan_of(spec: ClusterSpec) -> SitePlan:
    return site_plan(spec, site_of(spec), load_catalog())


def with_train(machine: str, **more: object) -> ClusterSpec:
    spec = spec_of(machine)
    train = msgspec.structs.replace(spec.pools["train"], **more)
    return msgspec.structs.replace(spec, pools=dict(spec.pools) | {"train": train})


def test_planning_imports_no_sdk() -> None:
    code = (
        "import sys, gcluster.stacks.gcp.plan.layout, gcluster.stacks.gcp.provider;"
        "print([m for m in ('pulumi', 'pulumi_gcp', 'google', 'requests') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_site_of_another_cloud_is_refused() -> None:
    spec = spec_from(
        """
apiVersion: gcluster/v1
name: x
sites: {here: {provider: local}}
pools: {head: {site: here, role: controller}}
scheduler: {type: slurm}
"""
    )
    with pytest.raises(TypeError, match="is of local"):
        site_plan(spec, "here", load_catalog())


def test_the_fallback_list_is_each_market_in_each_zone_in_order() -> None:
    spec = with_train("a3-ultragpu-8g", zones=["us-central1-b", "us-central1-c"])
    assert [option.key for option in plan_of(spec).pool("train").offers] == [
        "on-demand-us-central1-b",
        "on-demand-us-central1-c",
        "spot-us-central1-b",
        "spot-us-central1-c",
    ]


def test_two_reservations_in_one_zone_are_two_options() -> None:
    spec = spec_of("a3-megagpu-8g")
    [first, _] = spec.pools["train"].market
    spec = with_train("a3-megagpu-8g", market=[first, first])
    purchase_options = plan_of(spec).pool("train").offers
    assert [option.key for option in purchase_options] == [
        "reservation-us-central1-a",
        "reservation-us-central1-a-2",
    ]


def test_flex_start_without_a_time_runs_as_long_as_google_allows() -> None:
    [option] = plan_of(with_train("a4-highgpu-8g", market=["flex-start"])).pool("train").offers
    known = load_catalog().providers["gcp"].flex_start_seconds
    assert known is not None
    assert option.run_seconds == known[1]


def test_every_zone_of_a_pool_has_an_rdma_network_of_its_own() -> None:
    zones = ["us-central1-b", "us-central1-c"]
    plan = plan_of(with_train("a3-ultragpu-8g", zones=zones))
    rdma = [network for network in plan.fabric_networks if network.roce_zone]
    assert [network.roce_zone for network in rdma] == zones
    nics = {option.zone: option.interfaces[2].subnet for option in plan.pool("train").offers}
    assert nics == {zone: f"gib-rdma-{zone}-1" for zone in zones}


def test_addresses_of_a_fabric_stay_when_the_pool_grows_or_another_comes() -> None:
    def cidrs(spec: ClusterSpec) -> dict[str, str]:
        return {s.key: s.cidr for n in plan_of(spec).fabric_networks for s in n.subnets}

    small, large = (cidrs(with_train("a3-megagpu-8g", count=n)) for n in (1, 2000))
    assert small == large
    spec = spec_of("a3-megagpu-8g")
    other = msgspec.structs.replace(spec.pools["train"], machine="a3-ultragpu-8g")
    both = msgspec.structs.replace(spec, pools=dict(spec.pools) | {"other": other})
    assert small.items() <= cidrs(both).items()


@pytest.mark.parametrize(
    ("purchased", "chosen"),
    [
        ([], RANGES[0]),
        (["100.64.0.0/16"], RANGES[1]),
        (["100.0.0.0/8", "172.16.0.0/12"], RANGES[2]),
        (["fd00::/8"], RANGES[0]),
    ],
)
def test_a_fabrics_addresses_keep_clear_of_what_the_spec_names(
    purchased: list[str], chosen: str
) -> None:
    assert fabric_range(RANGES, purchased) == chosen


def test_two_fabrics_in_one_site_share_the_smaller_mtu() -> None:
    spec = spec_of("a3-megagpu-8g")
    other = msgspec.structs.replace(spec.pools["train"], machine="a3-ultragpu-8g")
    both = msgspec.structs.replace(spec, pools=dict(spec.pools) | {"other": other})
    assert plan_of(both).network.mtu == 8244
    site = msgspec.structs.replace(spec.sites["central"], network=GcpNetwork(mtu=1500))
    assert plan_of(msgspec.structs.replace(spec, sites={"central": site})).network.mtu == 1500


@pytest.mark.parametrize(("word", "makes"), [("none", 0), ("cluster", 1), ("spread", 1)])
def test_placement_is_what_the_spec_has(word: str, makes: int) -> None:
    pool = plan_of(with_train("a3-highgpu-8g", placement=word)).pool("train")
    assert pool.policies() == makes
    assert (pool.placement.spread_over is not None) is (word == "spread")


def test_a_machine_of_an_nvlink_domain_belongs_to_its_policy() -> None:
    pool = plan_of(spec_of("a4x-highgpu-4g")).pool("train")
    assert pool.policies() == 2
    assert [pool.policy_of(number) for number in (1, 18, 19, 36)] == [0, 0, 1, 1]


def test_a_boot_disk_is_as_large_as_the_pool_has() -> None:
    assert plan_of(spec_of("a3-highgpu-8g")).pool("train").disk_gib == facts().boot_disk_gib
    spec = spec_from(
        """
apiVersion: gcluster/v1
name: x
sites: {a: {provider: gcp, project: p, region: us-central1}}
pools: {head: {site: a, role: controller, disk: 1 TiB}}
scheduler: {type: slurm}
"""
    )
    pool = plan_of(spec).pool("head")
    assert pool.disk_gib == 1024
    assert pool.machine == facts().default_machine
    assert pool.offers[0].zone == "us-central1-a", "the region's first zone, where none is named"


@pytest.mark.parametrize("machine", ["a3-ultragpu-8g", "a4-highgpu-8g", "a4x-highgpu-4g", "c4-x"])
def test_newer_machines_boot_from_hyperdisk(machine: str) -> None:
    assert facts().disk_type(machine) == "hyperdisk-balanced"
    assert facts().disk_type("a3-megagpu-8g") == "pd-balanced"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("r", "r"),
        ("projects/p/reservations/r", "r"),
        ("projects/p/reservations/r/reservationBlocks/b", "r/reservationBlocks/b"),
        ("projects/other/reservations/r", "projects/other/reservations/r"),
        ("projects/p/zones/us-central1-a/reservations/r", "r"),
        (
            "https://x/compute/v1/projects/o/zones/z/reservations/r/reservationBlocks/b",
            "projects/o/reservations/r/reservationBlocks/b",
        ),
    ],
)
def test_a_reservation_is_named_as_affinities_require(written: str, value: str) -> None:
    assert reservation_name(written).value("p") == value


def test_a_bucket_is_made_by_one_site_only() -> None:
    spec = spec_of("a3-ultragpu-8g")
    sites = dict(spec.sites) | {"other": spec.sites["west"]}
    shared = {
        name: msgspec.structs.replace(storage, site=None) for name, storage in spec.storage.items()
    }
    both = msgspec.structs.replace(spec, sites=sites, storage=shared)
    made = [
        [bucket.name for bucket in site_plan(both, site, load_catalog()).buckets if bucket.create]
        for site in ("west", "other")
    ]
    assert made == [["runs"], []]
