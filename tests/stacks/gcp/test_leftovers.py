"""What is left of a site is found by its marks, whatever kind it is, and priced where known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gcp_cases import recorded, site_of, spec_of
from google_double import Google

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.gcp.api import GoogleError
from gcluster.stacks.gcp.leftovers import leftovers
from gcluster.stacks.gcp.plan.layout import site_plan
from gcluster.stacks.provider import Leftover

MACHINE = "a3-ultragpu-8g"
MINE = {"gcluster-cluster": "gib", "gcluster-site": "west"}
_PROJECT = "/compute/projects/acme-ml"


@pytest.fixture
def google() -> Iterator[Google]:
    double = Google("gib")
    double.fixed["/compute/projects/acme-ml/global/instanceTemplates"] = (200, {"items": []})
    yield double
    double.close()


def left(google: Google) -> tuple[Leftover, ...]:
    spec = spec_of(MACHINE)
    plan = site_plan(spec, site_of(spec), load_catalog())
    return leftovers(google.api(), plan, load_catalog())


def test_nothing_left_is_nothing(google: Google) -> None:
    assert left(google) == ()


def test_a_machine_is_left_with_its_price_and_one_of_another_site_is_not(google: Google) -> None:
    kind = "https://x/zones/us-central1-b/machineTypes/a3-ultragpu-8g"
    google.add("gib-west-train002", "us-central1-b", MINE, machineType=kind)
    google.add("gib-east-train002", "us-central1-b", MINE | {"gcluster-site": "east"})
    [found] = left(google)
    assert (found.kind, found.name, found.usd_per_hour) == ("node", "gib-west-train002", 84.81)
    assert not found.kept_data


def test_what_takes_no_labels_is_found_by_its_description(google: Google) -> None:
    ours, theirs = {"description": "gcluster gib/west"}, {"description": "gcluster gib/west-2"}
    google.fixed[f"{_PROJECT}/global/networks"] = (
        200, {"items": [{"name": "a"} | ours, {"name": "b"} | theirs, {"name": "default"}]},
    )  # fmt: skip
    google.fixed[f"{_PROJECT}/aggregated/subnetworks"] = (
        200, {"items": {"regions/us-central1": {"subnetworks": [{"name": "s"} | ours]},
                        "regions/us-east1": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}},
    )  # fmt: skip
    google.fixed["/iam/projects/acme-ml/serviceAccounts"] = (
        200, {"accounts": [{"name": "projects/p/serviceAccounts/n", "email": "n@p"} | ours]},
    )  # fmt: skip
    assert [(f.kind, f.name) for f in left(google)] == [
        ("identity", "n@p"),
        ("network", "a"),
        ("subnet", "s"),
    ]


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        ("addresses", "fixed-ip"),
        ("backendServices", "backend-service"),
        ("forwardingRules", "forwarding-rule"),
        ("healthChecks", "health-check"),
        ("instanceGroups", "instance-group"),
        ("targetTcpProxies", "proxy-target"),
    ],
)
def test_each_part_of_a_load_balancer_is_found_and_called_as_one_of_it_is(
    google: Google, kind: str, one: str
) -> None:
    part = {"name": "gib-west-api", "description": "gcluster gib/west"}
    google.fixed[f"{_PROJECT}/aggregated/{kind}"] = (
        200, {"items": {"regions/us-central1": {kind: [part]}}},
    )  # fmt: skip
    assert [(found.kind, found.name) for found in left(google)] == [(one, "gib-west-api")]


def test_data_is_reported_as_kept(google: Google) -> None:
    bucket = {"name": "acme-runs", "labels": MINE, "selfLink": "b/acme-runs"}
    google.fixed["/storage/b"] = (200, {"items": [bucket, {"name": "acme-other"}]})
    [found] = left(google)
    assert (found.kind, found.name, found.kept_data) == ("bucket", "acme-runs", True)
    assert found.usd_per_hour is None, "unknown is not 0"


def test_a_list_that_cannot_be_read_is_not_taken_for_nothing_left(google: Google) -> None:
    google.fixed[f"{_PROJECT}/global/firewalls"] = (403, {"error": {"message": "no", "code": 403}})
    with pytest.raises(GoogleError):
        left(google)


def test_everything_the_program_makes_and_that_can_be_marked_is_marked() -> None:
    unmarked = {
        "Bucket",  # by its label
        *("BucketIAMMember", "IAMMember", "IAMCustomRole"),  # go with their accounts
        *("RouterNat", "ResizeRequest", "RecordSet"),  # parts of a router, a group, a zone
        *("Connection", "Budget"),  # of the network; of the billing account
    }
    for machine in ("a3-megagpu-8g", MACHINE, "a4-highgpu-8g", "a4x-highgpu-4g"):
        spec = spec_of(machine)
        mark = f"gcluster {spec.name}/{site_of(spec)}"
        for resource in recorded(spec).resources:
            kind = resource.type.rpartition(":")[2]
            if resource.custom and kind not in unmarked and not resource.takes_tags:
                assert resource.inputs.get("description") == mark, resource.name
