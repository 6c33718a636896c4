"""A budget's alarm is alike on all clouds: what it counts, when it fires, where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.pulumi_double.sites import CloudSite, cloud_sites

from gcluster.schemas.spec import Budget
from gcluster.stacks.pulumi.recording.graph import RecordedResource

ONE_OF_EACH = {site.cloud: site for site in reversed(cloud_sites())}
MONTH = Budget(max_usd_per_month=50000)
ALARMS = {("actual", 80), ("actual", 100), ("forecast", 100)}


def with_budget(site: CloudSite, budget: Budget) -> CloudSite:
    spec = msgspec.structs.replace(site.spec, budget=budget, owner="ops@example.edu")
    return msgspec.structs.replace(site, spec=spec)


def budgets(site: CloudSite, *kinds: str) -> list[dict[str, Any]]:
    def is_of(resource: RecordedResource) -> bool:
        return resource.type.rpartition(":")[2] in kinds and "udget" in resource.type

    found = [r.inputs for r in site.recorded().resources if is_of(r)]
    return [msgspec.to_builtins(inputs) for inputs in found]


def thresholds(cloud: str, site: CloudSite) -> set[tuple[str, float]]:
    if cloud == "oci":
        rules = budgets(site, "Rule")
        return {(r["type"].lower(), r["threshold"]) for r in rules}
    [budget] = budgets(site, "Budget")
    read: dict[str, Callable[[], set[tuple[str, float]]]] = {
        "aws": lambda: {(n["notificationType"], n["threshold"]) for n in budget["notifications"]},
        "azure": lambda: {
            (n["thresholdType"], n["threshold"]) for n in budget["notifications"].values()
        },
        "gcp": lambda: {
            (r["spendBasis"].replace("CURRENT", "ACTUAL"), r["thresholdPercent"] * 100)
            for r in budget["thresholdRules"]
        },
    }
    return {("forecast" if kind[0] in "fF" else "actual", share) for kind, share in read[cloud]()}


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp", "oci"])
def test_the_owner_is_reported_at_the_same_shares_of_the_month(cloud: str) -> None:
    assert thresholds(cloud, with_budget(ONE_OF_EACH[cloud], MONTH)) == ALARMS


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp", "oci"])
def test_a_ceiling_by_the_hour_is_a_month_of_730_hours(cloud: str) -> None:
    [budget] = budgets(with_budget(ONE_OF_EACH[cloud], Budget(max_usd_per_hour=100)), "Budget")
    assert "73000" in str(budget)


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp", "oci"])
def test_one_bill_has_one_alarm(cloud: str) -> None:
    site = with_budget(ONE_OF_EACH[cloud], MONTH)
    here = site.spec.sites[site.name]
    first = msgspec.structs.replace(site.spec, sites={"first": here, **site.spec.sites})
    assert budgets(msgspec.structs.replace(site, spec=first), "Budget") == []
    field = {"aws": "account", "azure": "subscription", "gcp": "project", "oci": "compartment"}
    elsewhere = msgspec.structs.replace(here, **{field[cloud]: "another"})
    other = msgspec.structs.replace(site.spec, sites={"first": elsewhere, **site.spec.sites})
    assert len(budgets(msgspec.structs.replace(site, spec=other), "Budget")) == 1
