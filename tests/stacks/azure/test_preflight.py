"""What is queried of Azure before `up`, against answers in the form of its REST reference."""

from __future__ import annotations

import json

import pytest

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.stacks.azure.offers import PRICES
from gcluster.stacks.azure.plan.layout import site_plan
from gcluster.stacks.azure.preflight.existing import check_registered
from gcluster.stacks.azure.preflight.questions import preflight

from .azure_double import SUBSCRIPTION, AzureDouble, fixture
from .recorded_cases import CASES, parsed

S = f"/subscriptions/{SUBSCRIPTION}"
COMPUTE = f"{S}/providers/Microsoft.Compute"
IMAGES = f"{COMPUTE}/locations/eastus/publishers"
CATALOG = load_catalog()
USAGES = f"{COMPUTE}/locations/eastus/usages"
SKUS = f"{COMPUTE}/skus"
HPC = f"{IMAGES}/microsoft-dsvm/artifacttypes/vmimage/offers/ubuntu-hpc/skus/2204/versions"
CANONICAL = (
    f"{IMAGES}/Canonical/artifacttypes/vmimage/offers/0001-com-ubuntu-server-jammy"
    "/skus/22_04-lts-gen2/versions"
)
FEATURE = f"{S}/providers/Microsoft.Features/providers/Microsoft.Compute/features/EncryptionAtHost"
VNET = f"{S}/resourceGroups/hub/providers/Microsoft.Network/virtualNetworks/spoke7"
NODES = f"{VNET}/subnets/nodes"


@pytest.fixture
def azure() -> AzureDouble:
    double = AzureDouble()
    double.answers = {
        S: "subscription.json",
        f"{S}/providers/Microsoft.Authorization/permissions": "permissions.json",
        USAGES: "usages.json",
        SKUS: "skus.json",
        HPC: "images.json",
        CANONICAL: "images.json",
        FEATURE: "feature.json",
    }
    for service in ("Compute", "Network", "ManagedIdentity", "Storage", "StorageCache"):
        double.answers[f"{S}/providers/Microsoft.{service}"] = "registered.json"
    return double


def everything(
    azure: AzureDouble, *changes: tuple[str, str], machine: str = "Standard_ND96isr_H100_v5"
) -> tuple[Diagnostic, ...]:
    text = (CASES / "specs" / f"{machine}.yaml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    spec = parsed(text)
    [site] = spec.sites
    api, plan = azure.api(), site_plan(spec, site, CATALOG)
    return preflight(api, spec, plan, CATALOG, fetch=azure.price_list)


def findings_of(
    azure: AzureDouble, *changes: tuple[str, str], machine: str = "Standard_ND96isr_H100_v5"
) -> tuple[Diagnostic, ...]:
    """Return the answers without prices, which are always there."""
    found = everything(azure, *changes, machine=machine)
    return tuple(finding for finding in found if finding.code != "GC989")


def only(findings: tuple[Diagnostic, ...]) -> Diagnostic:
    [finding] = findings
    return finding


def test_where_all_is_well_nothing_is_reported(azure: AzureDouble) -> None:
    assert findings_of(azure) == ()


def test_without_a_login_one_warning_names_all_that_was_not_queried(azure: AzureDouble) -> None:
    azure.refused = 401, {"error": {"code": "InvalidAuthenticationToken", "message": "no"}}
    finding = only(findings_of(azure))
    assert (finding.code, finding.severity) == ("GC991", Severity.WARNING)
    for what in ("quotas", "machine types", "the login's rights"):
        assert what in finding.detail
    assert "az login" in finding.hint


def test_a_question_without_an_answer_is_a_warning_and_the_others_count(
    azure: AzureDouble,
) -> None:
    del azure.answers[USAGES]
    finding = only(findings_of(azure))
    assert (finding.code, finding.severity) == ("GC992", Severity.WARNING)
    assert finding.summary.startswith("quotas: not checked")


@pytest.mark.parametrize(
    ("path", "what"),
    [
        (S, "the subscription"),
        (f"{S}/providers/Microsoft.Authorization/permissions", "the login's rights"),
        (f"{S}/providers/Microsoft.Network", "what the subscription is registered for"),
        (FEATURE, "what the subscription is registered for"),
        (USAGES, "quotas"),
        (f"{S}/resources", "quotas"),
        (SKUS, "machine types"),
        (HPC, "image microsoft-dsvm:ubuntu-hpc:2204:latest"),
    ],
)
def test_each_question_that_is_refused_is_named(azure: AzureDouble, path: str, what: str) -> None:
    azure.denied = {path}
    finding = only(findings_of(azure))
    assert (finding.code, finding.severity) == ("GC992", Severity.WARNING)
    assert finding.summary.startswith(f"{what}: not checked")
    assert "AuthorizationFailed" in finding.detail


def test_a_subscription_that_is_disabled_is_an_error(azure: AzureDouble) -> None:
    azure.answers[S] = {"state": "Disabled", "displayName": "old"}
    assert only(findings_of(azure)).summary == "subscription old is Disabled"


def test_rights_that_are_lacking_are_listed(azure: AzureDouble) -> None:
    granted = fixture("permissions.json")["value"][:1]
    below = f"{S}/providers/Microsoft.Authorization/permissions"
    azure.answers[below] = {"value": granted}
    finding = only(findings_of(azure))
    assert finding.code == "GC993"
    assert finding.detail == "Microsoft.Authorization/roleAssignments/write"
    assert "Role Based Access Control Administrator" in finding.hint


@pytest.mark.parametrize(
    ("limit", "severity"), [(1535, Severity.ERROR), (1536, Severity.WARNING), (1632, None)]
)
def test_a_quota_is_held_against_the_largest_size(
    azure: AzureDouble, limit: int, severity: Severity | None
) -> None:
    usages = fixture("usages.json")
    usages["value"][3] |= {"limit": limit, "currentValue": 96}
    azure.answers[USAGES] = usages
    found = findings_of(azure)
    assert [f.severity for f in found] == ([severity] if severity else [])
    assert all("standardNDSH100v5Family" in f.summary for f in found)


def test_machines_that_run_already_are_needed_no_more(azure: AzureDouble) -> None:
    usages = fixture("usages.json")
    usages["value"][3] |= {"limit": 1536, "currentValue": 192}
    azure.answers[USAGES] = usages
    assert (
        "1,344 of 1,536 vCPU are free, the pools still need 1,536"
        in only(findings_of(azure)).summary
    )
    azure.scale_set("train", 2)
    assert findings_of(azure) == ()


@pytest.fixture
def unlisted(azure: AzureDouble) -> AzureDouble:
    """Let the price list be empty."""
    azure.answers[PRICES] = {"Items": []}
    return azure


def test_prices_are_reported_with_their_source_and_a_catalog_that_is_off_is_a_warning(
    azure: AzureDouble,
) -> None:
    answer = {f.summary: f for f in everything(azure) if "ND96isr_H100" in f.summary}
    demand = answer["Standard_ND96isr_H100_v5 costs 98.32 USD an hour (on-demand)"]
    assert (demand.code, demand.severity) == ("GC989", Severity.NOTE)
    assert demand.detail == "Azure Retail Prices of eastus, queried now"
    [spot] = [f for summary, f in answer.items() if "41.50 USD an hour (spot)" in summary]
    assert "; the catalog " in spot.summary


def test_a_price_that_is_unknown_is_a_warning(unlisted: AzureDouble) -> None:
    answer = [f for f in everything(unlisted) if "ND96isr_H100" in f.summary]
    assert {f.severity for f in answer} == {Severity.WARNING}
    assert all("no price found for" in f.summary for f in answer)


def test_a_price_list_that_is_down_leaves_the_others_answered(azure: AzureDouble) -> None:
    def down(_url: str) -> bytes:
        raise OSError("no route")

    azure.price_list = down  # type: ignore[method-assign]
    found = everything(azure)
    assert {f.code for f in found} == {"GC992"}
    assert all("price list can't be reached: no route" in f.summary for f in found)


def test_the_quota_over_all_machine_types_counts_too(azure: AzureDouble) -> None:
    usages = fixture("usages.json")
    usages["value"][0]["limit"] = 1551
    azure.answers[USAGES] = usages
    assert "quota cores is 1,551 vCPU, the pools need 1,552" in only(findings_of(azure)).summary


def test_a_size_that_the_region_lacks_is_an_error(azure: AzureDouble) -> None:
    skus = fixture("skus.json")
    azure.answers[SKUS] = {"value": skus["value"][:1]}
    finding = only(findings_of(azure))
    assert finding.code == "GC995"
    assert finding.summary == 'pool "train": eastus has no Standard_ND96isr_H100_v5'


def test_a_zone_that_is_closed_to_the_subscription_is_an_error(azure: AzureDouble) -> None:
    change = ("    count: {min: 2", '    zones: ["2"]\n    count: {min: 2')
    finding = findings_of(azure, change)[0]
    assert finding.summary == (
        'pool "train": zone 2 of eastus has no Standard_ND96isr_H100_v5; zones with it: 1'
    )


def test_a_size_that_the_subscription_does_not_get_is_an_error(azure: AzureDouble) -> None:
    skus = fixture("skus.json")
    skus["value"][1]["restrictions"][0] |= {"type": "Location"}
    azure.answers[SKUS] = skus
    assert "this subscription gets no Standard_ND96isr_H100_v5" in only(findings_of(azure)).summary


def test_an_image_that_does_not_exist_is_an_error(azure: AzureDouble) -> None:
    azure.answers[HPC] = []
    finding = only(findings_of(azure))
    assert finding.code == "GC996"
    assert "microsoft-dsvm:ubuntu-hpc:2204:latest" in finding.summary


def test_a_customers_key_needs_encryption_at_host(azure: AzureDouble) -> None:
    azure.answers[FEATURE] = {"properties": {"state": "NotRegistered"}}
    finding = only(findings_of(azure))
    assert finding.code == "GC998"
    assert "az feature register" in finding.hint


def test_a_service_that_is_not_registered_is_an_error(azure: AzureDouble) -> None:
    azure.answers[f"{S}/providers/Microsoft.StorageCache"] = {"registrationState": "NotRegistered"}
    assert "Microsoft.StorageCache" in only(findings_of(azure)).summary


def test_under_aks_its_services_must_be_registered_and_for_own_disks_that_of_extensions(
    azure: AzureDouble,
) -> None:
    kept = dict(azure.answers)
    for case, wanted in (("aks", []), ("aks-disks", ["KubernetesConfiguration"])):
        azure.answers = kept | {f"{S}/providers/Microsoft.ContainerService": "registered.json"}
        refused = f"{S}/providers/Microsoft.KubernetesConfiguration"
        azure.answers[refused] = {"registrationState": "NotRegistered"}
        text = (CASES / f"kubernetes/{case}.yaml").read_text(encoding="utf-8")
        spec = parsed(text.replace("00000000-0000-0000-0000-000000000001", SUBSCRIPTION))
        plan = site_plan(spec, "here", CATALOG)
        found = [one.summary for one in check_registered(azure.api(), plan)]
        assert [word for word in wanted if word not in "".join(found)] == []
        assert len(found) == len(wanted)


@pytest.fixture
def in_another_region(azure: AzureDouble) -> AzureDouble:
    """Answer for the site where everything exists, in another region."""
    here = {k.replace("/eastus/", "/westeurope/"): v for k, v in azure.answers.items()}
    group = f"{S}/resourceGroups/ml-cluster/providers/Microsoft.Authorization/permissions"
    server = CANONICAL.replace("/eastus/", "/westeurope/").replace(
        "0001-com-ubuntu-server-jammy/skus/22_04-lts-gen2", "ubuntu-24_04-lts/skus/server"
    )
    here |= {group: "permissions.json", NODES: "subnet.json", server: "images.json"}
    here[f"{VNET}/subnets/lustre"] = "subnet.json"
    usages = fixture("usages.json")
    usages["value"][2]["limit"] = 5000
    here[USAGES.replace("/eastus/", "/westeurope/")] = usages
    azure.answers = here
    return azure


GUEST = "Standard_D16s_v5"


def test_a_subnet_that_exists_must_have_room(in_another_region: AzureDouble) -> None:
    assert findings_of(in_another_region, machine=GUEST) == ()
    small = fixture("subnet.json")
    small["properties"]["addressPrefix"] = "10.9.0.0/28"
    in_another_region.answers[NODES] = small
    found = findings_of(in_another_region, machine=GUEST)
    assert {f.code for f in found} == {"GC997"}
    assert found[0].summary == "subnet nodes has 7 addresses left, batch may need 20 more"


def test_a_subnet_that_may_not_be_read_is_named(in_another_region: AzureDouble) -> None:
    in_another_region.denied = {NODES}
    answer = findings_of(in_another_region, machine=GUEST)
    assert {finding.code for finding in answer} == {"GC992"}
    assert answer[0].summary.startswith("subnet compute: not checked")


def test_a_reservation_that_may_not_be_read_is_named(in_another_region: AzureDouble) -> None:
    group = f"{S}/resourceGroups/held/providers/Microsoft.Compute/capacityReservationGroups/crg"
    in_another_region.denied = {f"{group}/capacityReservations"}
    change = ("placement: near", f"market: [{{reservation: {json.dumps(group)}}}]")
    finding = only(findings_of(in_another_region, change, machine=GUEST))
    assert finding.summary.startswith(f"reservation {group}: not checked")


@pytest.mark.parametrize(("least", "codes"), [(3, set()), (4, {"GC995"})])
def test_a_reservation_must_hold_what_is_always_there(
    in_another_region: AzureDouble, least: int, codes: set[str]
) -> None:
    group = f"{S}/resourceGroups/held/providers/Microsoft.Compute/capacityReservationGroups/crg"
    in_another_region.answers[f"{group}/capacityReservations"] = "reservations.json"
    changes = (
        ("min: 0", f"min: {least}"),
        ("placement: near", f"market: [{{reservation: {json.dumps(group)}}}]"),
    )
    assert {f.code for f in findings_of(in_another_region, *changes, machine=GUEST)} == codes
