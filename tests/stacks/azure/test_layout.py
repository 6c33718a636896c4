"""The plan of a site on Azure: decided from spec and catalog alone, or refused with a reason."""

from __future__ import annotations

import subprocess
import sys
from ipaddress import ip_network

import msgspec
import pytest

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.stacks.azure.plan.identifiers import ArmId, parse
from gcluster.stacks.azure.plan.layout import site_plan
from gcluster.stacks.azure.plan.types import OfferPlan, SitePlan
from gcluster.stacks.provider import ProviderError

from .recorded_cases import CASES, spec_of

CATALOG = load_catalog()
FIXED, ELASTIC = "Standard_ND96isr_H200_v5", "Standard_ND96isr_H100_v5"
SPREAD, GUEST, AMD = "Standard_D8s_v5", "Standard_D16s_v5", "Standard_ND96isr_MI300X_v5"
SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-000000000000"


def plan(machine: str, *changes: tuple[str, str]) -> SitePlan:
    text = (CASES / "specs" / f"{machine}.yaml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    spec = load_text(text, check=False).spec
    assert spec is not None
    [site] = spec.sites
    return site_plan(spec, site, CATALOG)


def test_the_subnets_divide_the_network_and_do_not_overlap() -> None:
    network = plan(ELASTIC).network
    cidrs = {subnet.name: subnet.cidr for subnet in network.subnets}
    assert cidrs == {
        "compute": "10.60.0.0/17", "storage": "10.60.128.0/18", "egress": "10.60.192.0/18",
    }  # fmt: skip
    assert sum(ip_network(c).num_addresses for c in cidrs.values()) == 2**16


@pytest.mark.parametrize(
    "cidr", ["172.16.0.0/16", "172.16.8.0/22", "172.0.0.0/8", "169.254.0.0/17"]
)
def test_addresses_that_azure_keeps_are_refused(cidr: str) -> None:
    with pytest.raises(ProviderError, match="overlaps"):
        plan(ELASTIC, ("10.60.0.0/16", cidr))


@pytest.mark.parametrize("cidr", ["0.0.0.0/0", "::/0"])
def test_ssh_is_never_opened_to_the_world(cidr: str) -> None:
    with pytest.raises(ProviderError, match="open SSH to the world"):
        plan(ELASTIC, ("192.0.2.0/24", f'"{cidr}"'))


def test_the_fallback_list_tries_every_zone_of_a_market_before_the_next_market() -> None:
    changed = plan(ELASTIC, ("    count: {min", '    zones: ["1", "2"]\n    count: {min'))
    assert changed.pool("train").offers == (
        OfferPlan(market="spot", zone="1", max_usd_per_hour=60),
        OfferPlan(market="spot", zone="2", max_usd_per_hour=60),
        OfferPlan(market="on-demand", zone="1"),
        OfferPlan(market="on-demand", zone="2"),
    )


@pytest.mark.parametrize("market", ["flex-start", "{flex_start: 2d}", "{capacity_block: cr-1}"])
def test_a_market_that_azure_lacks_is_refused(market: str) -> None:
    with pytest.raises(ProviderError, match="Azure has no"):
        plan(ELASTIC, ("{spot_max_usd_per_hour: 60}, on-demand", market))


@pytest.mark.parametrize(("count", "refused"), [(100, False), (101, True)])
def test_a_pool_on_infiniband_fits_into_one_placement_group(count: int, *, refused: bool) -> None:
    change = ("    count: 4", f"    count: {count}")
    if refused:
        with pytest.raises(ProviderError, match="holds 100 machines, not 101"):
            plan(FIXED, change)
    else:
        [part] = plan(FIXED, change).pool("train").sets
        assert part.count == count


def test_a_pool_without_fabric_is_in_as_many_scale_sets_as_hold_it() -> None:
    pool = plan(SPREAD, ("count: 120", "count: 2300")).pool("tokens")
    assert [(part.name, part.count) for part in pool.sets] == [
        ("tokens", 1000), ("tokens-set2", 1000), ("tokens-set3", 300),
    ]  # fmt: skip
    assert not pool.single_placement


@pytest.mark.parametrize(("count", "refused"), [(4, False), (101, True)])
def test_infiniband_of_a_machine_of_ones_own_is_one_placement_group(
    count: int, *, refused: bool
) -> None:
    """The catalog's own say their placement; one's own may not, and InfiniBand ended at a node."""
    own = msgspec.structs.replace(CATALOG.machines[FIXED], placement=None)
    catalog = msgspec.structs.replace(CATALOG, machines={**CATALOG.machines, FIXED: own})
    text = (CASES / "specs" / f"{FIXED}.yaml").read_text(encoding="utf-8")
    spec = load_text(text.replace("    count: 4", f"    count: {count}"), check=False).spec
    assert spec is not None
    [site] = spec.sites
    if refused:
        with pytest.raises(ProviderError, match="holds 100 machines, not 101"):
            site_plan(spec, site, catalog)
    else:
        assert site_plan(spec, site, catalog).pool("train").single_placement


def test_infiniband_can_not_be_spread() -> None:
    with pytest.raises(ProviderError, match="InfiniBand only within one"):
        plan(FIXED, ("    count: 4", "    count: 4\n    placement: spread"))
    change = ("    count: 4", "    count: 4\n    placement: spread\n    fabric: ethernet")
    assert not plan(FIXED, change).pool("train").single_placement


@pytest.mark.parametrize(
    ("machine", "distribution", "sku"),
    [(FIXED, "ubuntu-24.04", "2404"), (AMD, "ubuntu-22.04", "2204-rocm")],
)
def test_gpus_decide_the_vendors_image(machine: str, distribution: str, sku: str) -> None:
    assert spec_of(machine).software.distribution == distribution
    assert plan(machine).pool("train").image.sku == sku


def test_an_arm_machine_gets_no_image_for_x86() -> None:
    text = (CASES / "specs/Standard_ND128isr_NDR_GB200_v6.yaml").read_text(encoding="utf-8")
    [image] = [line for line in text.splitlines() if line.strip().startswith("image:")]
    with pytest.raises(ProviderError, match="there is no vendor's image"):
        plan("Standard_ND128isr_NDR_GB200_v6", (image + "\n", ""))


def test_lustre_without_a_zone_is_refused() -> None:
    with pytest.raises(ProviderError, match="exactly one zone"):
        plan(ELASTIC, ('    zone: "1"\n', ""))


def test_import_and_export_are_of_one_container() -> None:
    with pytest.raises(ProviderError, match="one and the same container"):
        plan(ELASTIC, ("export: az://acmedatasets/train", "export: az://acmedatasets/out"))


def test_a_container_of_an_account_in_no_known_registry_is_refused() -> None:
    with pytest.raises(
        ProviderError, match="the resource group is not specified of the storage account"
    ):
        plan(ELASTIC, (", create: true", ""))


def test_a_key_by_its_address_alone_allows_no_login() -> None:
    text = (CASES / "specs" / f"{ELASTIC}.yaml").read_text(encoding="utf-8")
    [key] = [line for line in text.splitlines() if "kms_key" in line]
    with pytest.raises(ProviderError, match="by its address alone"):
        plan(ELASTIC, (key, "    kms_key: https://ml-keys.vault.azure.net/keys/disks"))


def test_a_name_without_a_resource_group_is_refused() -> None:
    with pytest.raises(ProviderError, match="is a name, and the site names no"):
        plan(
            GUEST,
            ("    resource_group: ml-cluster\n", ""),
            (", import: az://guestdata/raw/2026", ""),
        )


def test_a_budget_by_the_hour_is_a_month_of_730_hours() -> None:
    change = ("max_usd_per_month: 1200000", "max_usd_per_hour: 1600")
    budget = plan(ELASTIC, change).budget
    assert budget is not None
    assert budget.usd_per_month == 1600 * 730


def test_an_id_is_taken_apart_and_put_together_again() -> None:
    text = (
        f"{SUBSCRIPTION}/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/s"
    )
    found = parse(text)
    assert found == ArmId(
        subscription=SUBSCRIPTION.rpartition("/")[2],
        group="g",
        kind="Microsoft.Network/virtualNetworks/subnets",
        names=("v", "s"),
    )
    assert str(found) == text
    assert parse("v") is None
    assert parse(SUBSCRIPTION) is None


def test_the_plan_needs_no_sdk() -> None:
    code = (
        "import sys, gcluster.stacks.azure.plan.layout, gcluster.stacks.azure.provider\n"
        "heavy = {'pulumi', 'pulumi_azure_native', 'azure.mgmt.compute', 'azure.core'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
