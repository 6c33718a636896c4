"""Preflight queries Google concurrently, makes nothing, and says what it could not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from gcp_cases import site_of, spec_of
from google_double import Google

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.stacks.gcp.api import Api, GoogleError, Operation, Reply
from gcluster.stacks.gcp.offers import offers
from gcluster.stacks.gcp.plan.layout import site_plan
from gcluster.stacks.gcp.plan.names import found_by
from gcluster.stacks.gcp.preflight.questions import preflight

REGION = "/compute/projects/acme-ml/regions/us-central1"
ZONE = "/compute/projects/acme-ml/zones/us-central1-b"
RESERVATION = "/compute/projects/acme-ml/zones/us-central1-a/reservations/a3-mega"


@pytest.fixture
def google() -> Iterator[Google]:
    double = Google("gib")
    yield double
    double.close()


def findings_of(google: Google, machine: str = "a3-ultragpu-8g") -> dict[str, list[Diagnostic]]:
    spec = spec_of(machine)
    plan = site_plan(spec, site_of(spec), load_catalog())
    found: dict[str, list[Diagnostic]] = {}
    for diagnostic in preflight(google.api(), spec, plan, load_catalog()):
        found.setdefault(diagnostic.code, []).append(diagnostic)
    return found


def one(google: Google, code: str, machine: str = "a3-ultragpu-8g") -> Diagnostic:
    [found] = findings_of(google, machine)[code]
    return found


def test_nothing_is_made(google: Google) -> None:
    findings_of(google)
    posted = [path for method, path, _, _ in google.calls if method != "GET"]
    assert posted == ["/resources/projects/acme-ml:testIamPermissions"]


def test_a_quota_below_the_need_is_an_error_and_one_in_use_a_warning(google: Google) -> None:
    small, used = findings_of(google)["GC982"]
    assert small.severity is Severity.ERROR
    assert "NVIDIA_H200_GPUS in us-central1 is 32" in small.summary
    assert "need 64" in small.summary
    assert used.severity is Severity.WARNING
    assert "16 of 64 are in use" in used.summary


def test_a_quota_that_google_does_not_report_is_reported_as_unknown(google: Google) -> None:
    google.fixed[REGION] = (200, {"name": "us-central1", "quotas": []})
    unknown = findings_of(google)["GC982"]
    assert {found.severity for found in unknown} == {Severity.WARNING}
    assert "is not among those" in unknown[0].summary


def existing(google: Google, pool: str, count: int) -> None:
    """Let machines of the example's pool run."""
    spec = spec_of("a3-ultragpu-8g")
    plan = site_plan(spec, site_of(spec), load_catalog())
    for number in range(count):
        google.add(f"m{number}", "us-central1-b", {**found_by(plan), "gcluster-pool": pool})


def test_machines_that_run_already_are_needed_no_more(google: Google) -> None:
    full = [{"metric": "PREEMPTIBLE_NVIDIA_H200_GPUS", "limit": 64, "usage": 16}]
    google.fixed[REGION] = (200, {"name": "us-central1", "quotas": full})
    is_room = "PREEMPTIBLE_NVIDIA_H200_GPUS in us-central1:"
    [found] = [f for f in findings_of(google)["GC982"] if is_room in f.summary]
    assert "16 of 64 are in use, 64 more are needed" in found.summary
    existing(google, "train", 2)
    assert not [f for f in findings_of(google)["GC982"] if is_room in f.summary]


def test_missing_rights_are_listed(google: Google) -> None:
    google.fixed["/resources/projects/acme-ml:testIamPermissions"] = (
        200, {"permissions": ["compute.instances.create"]},
    )  # fmt: skip
    found = one(google, "GC981")
    assert "compute.networks.create" in found.detail.splitlines()
    assert "compute.instances.create" not in found.detail.splitlines()


def test_apis_that_are_not_enabled_are_reported_with_the_command_that_does_it(
    google: Google,
) -> None:
    assert "GC1183" not in findings_of(google)
    enabled = [
        {"name": f"projects/123/services/{name}.googleapis.com"} for name in ("compute", "dns")
    ]
    google.fixed["/usage/projects/acme-ml/services"] = (200, {"services": enabled})
    found = one(google, "GC1183")
    assert found.severity is Severity.ERROR
    assert found.hint == (
        "gcloud services enable iam.googleapis.com cloudresourcemanager.googleapis.com "
        "storage.googleapis.com billingbudgets.googleapis.com --project acme-ml"
    )
    query = next(query for _, path, query, _ in google.calls if path.startswith("/usage/"))
    assert query["filter"] == "state:ENABLED"


def test_a_zone_without_the_machine_type_is_an_error(google: Google) -> None:
    del google.fixed[f"{ZONE}/machineTypes/a3-ultragpu-8g"]
    found = one(google, "GC983")
    assert found.severity is Severity.ERROR
    assert "zone us-central1-b has no a3-ultragpu-8g" in found.summary


def reserved(**more: object) -> dict[str, object]:
    kind = {"instanceProperties": {"machineType": "a3-megagpu-8g"}, "count": "4"}
    return {"name": "a3-mega", "status": "READY",
            "specificReservation": kind | {"inUseCount": "0"} | more}  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "is not in us-central1-a"),
        (reserved() | {"status": "CREATING"}, "is creating"),
        (reserved(instanceProperties={"machineType": "a3-highgpu-8g"}), "for a3-highgpu-8g"),
        (reserved(inUseCount="3"), "has 1 machines free, 2 are still to be made"),
        (reserved() | {"deploymentType": "DENSE"}, "is dense: its machines must be bound to it"),
        (reserved() | {"reservationMode": "CALENDAR"}, "is of calendar mode"),
        (
            reserved() | {"resourcePolicies": {"0": "https://x/resourcePolicies/near"}},
            "was made with placement policy near",
        ),
    ],
)
def test_a_reservation_that_does_not_fit_is_reported(
    google: Google, answer: dict[str, object] | None, says: str
) -> None:
    if answer is not None:
        google.fixed[RESERVATION] = (200, answer)
    assert says in one(google, "GC984", "a3-megagpu-8g").summary


def test_a_reservation_that_fits_is_not_mentioned_and_is_an_offer(google: Google) -> None:
    google.fixed[RESERVATION] = (200, reserved(inUseCount="1"))
    assert "GC984" not in findings_of(google, "a3-megagpu-8g")
    spec = spec_of("a3-megagpu-8g")
    plan = site_plan(spec, "central", load_catalog())
    now = datetime(2026, 11, 2, tzinfo=UTC)
    first, spot = offers(google.api(), plan, plan.pool("train"), load_catalog(), now=now)
    assert first.available == 3
    assert spot.available is None
    assert spot.usd_per_hour is None, "unknown is not 0"
    assert "no price" in spot.source


def test_a_price_has_its_source_and_age(google: Google) -> None:
    spec = spec_of("a3-ultragpu-8g")
    plan = site_plan(spec, "west", load_catalog())
    now = datetime(2026, 11, 2, tzinfo=UTC)
    demand, spot = offers(google.api(), plan, plan.pool("train"), load_catalog(), now=now)
    assert (demand.usd_per_hour, spot.usd_per_hour) == (84.81, 50.09)
    assert demand.age_s == 24 * 3600
    notes = [found for found in findings_of(google)["GC987"] if "a3-ultragpu-8g" in found.summary]
    assert {found.severity for found in notes} == {Severity.NOTE}
    assert all("2026-1" in found.detail for found in notes)


def test_an_image_that_is_gone_or_of_other_processors_is_an_error(google: Google) -> None:
    image = "/compute/projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64"
    google.fixed[image] = (200, {"status": "READY", "architecture": "ARM64"})
    assert "is for ARM64, the machines are x86_64" in one(google, "GC986").summary
    del google.fixed[image]
    assert "does not exist" in one(google, "GC986").summary


def test_what_exists_must_fit(google: Google) -> None:
    subnet = "/compute/projects/acme-net/regions/us-central1/subnetworks/gpu"
    google.fixed[subnet] = (200, {"network": "x/networks/other", "ipCidrRange": "10.0.0.0/30"})
    message = [found.summary for found in findings_of(google, "a2-ultragpu-8g")["GC985"]]
    assert any("is in x/networks/other" in summary for summary in message)
    assert any("has 0 addresses, the nodes need 3" in summary for summary in message)
    assert any("nodes@acme-ml.iam.gserviceaccount.com does not exist" in s for s in message)


def test_a_subnet_must_have_room_for_what_is_still_to_be_made(google: Google) -> None:
    subnet = "/compute/projects/acme-net/regions/us-central1/subnetworks/gpu"
    used = {"ipv4Utilizations": [{"totalAllocatedIp": "250", "totalFreeIp": "2"}]}
    answer = {"ipCidrRange": "10.0.0.0/24", "utilizationDetails": used}
    vpc = site_plan(spec_of("a2-ultragpu-8g"), "central", load_catalog()).network.vpc
    google.fixed[subnet] = (200, answer | {"network": vpc})
    [found] = [
        f for f in findings_of(google, "a2-ultragpu-8g")["GC985"] if "still need" in f.summary
    ]
    assert "has 2 free addresses, the nodes still need 3" in found.summary
    views = [query for _, path, query, _ in google.calls if path == subnet]
    assert views == [{"views": "WITH_UTILIZATION"}]
    used["ipv4Utilizations"][0]["totalFreeIp"] = "3"
    assert not [f for f in findings_of(google, "a2-ultragpu-8g")["GC985"] if "still" in f.summary]


def test_an_answer_that_cannot_be_read_is_a_warning_like_no_answer(google: Google) -> None:
    google.fixed[REGION] = (200, {"quotas": "none"})
    found = findings_of(google)["GC988"]
    assert "quota N2_CPUS: not checked, the answer can't be read" in found[0].summary


def test_one_question_that_fails_leaves_the_others_answered(google: Google) -> None:
    refusal = {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "no quota for you"}}
    google.fixed[REGION] = (403, refusal)
    found = findings_of(google)
    assert "quota N2_CPUS: not checked" in found["GC988"][0].summary
    assert "no quota for you" in found["GC988"][0].detail
    assert "GC987" in found


PROJECT = "/compute/projects/acme-ml"
IMAGES = "/compute/projects/ubuntu-os-cloud/global/images/family"


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/resources/projects/acme-ml:testIamPermissions", "the login's rights"),
        (REGION, "quota NVIDIA_H200_GPUS"),
        (REGION, "what is left of quota NVIDIA_H200_GPUS"),
        (PROJECT, "quota GPUS_ALL_REGIONS"),
        (f"{ZONE}/machineTypes/a3-ultragpu-8g", "a3-ultragpu-8g in us-central1-b"),
        (
            f"{IMAGES}/ubuntu-2404-lts-amd64",
            "image projects/ubuntu-os-cloud/global/images/family/ubuntu-2",
        ),
    ],
)
def test_each_question_that_is_refused_is_named(google: Google, path: str, what: str) -> None:
    google.fixed[path] = (403, {"error": {"status": "PERMISSION_DENIED", "message": "you may not"}})
    message = [found.summary for found in findings_of(google)["GC988"]]
    assert any(summary.startswith(what) and "not checked" in summary for summary in message)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/compute/projects/acme-net/regions/us-central1/subnetworks/gpu", "the subnet"),
        (
            "/iam/projects/-/serviceAccounts/nodes@acme-ml.iam.gserviceaccount.com",
            "service account nodes@",
        ),
    ],
)
def test_what_exists_and_may_not_be_read_is_named(google: Google, path: str, what: str) -> None:
    google.fixed[path] = (403, {"error": {"status": "PERMISSION_DENIED", "message": "you may not"}})
    message = [found.summary for found in findings_of(google, "a2-ultragpu-8g")["GC988"]]
    assert any(summary.startswith(what) for summary in message)


def test_an_account_of_another_owner_with_the_name_of_ours_is_refused(google: Google) -> None:
    spec = spec_of("a3-ultragpu-8g")
    plan = site_plan(spec, site_of(spec), load_catalog())
    account = plan.names("node", kind="service-account")
    email = f"{account}@acme-ml.iam.gserviceaccount.com"
    path = f"/iam/projects/acme-ml/serviceAccounts/{email}"
    google.fixed[path] = (200, {"email": email, "description": plan.names.description})
    assert "GC985" not in findings_of(google)  # a killed run of this site made it
    google.fixed[path] = (200, {"email": email, "description": "of the web shop"})
    assert one(google, "GC985").summary == f"service account {email} exists, and is not gcluster's"


def test_a_reservation_that_may_not_be_read_is_named(google: Google) -> None:
    google.fixed[RESERVATION] = (403, {"error": {"status": "PERMISSION_DENIED", "message": "no"}})
    message = [found.summary for found in findings_of(google, "a3-megagpu-8g")["GC988"]]
    assert any(summary.startswith("reservation projects/acme-ml") for summary in message)


class ExpiredLogin:
    """A login that has ended."""

    def request(self, *_: object, **__: object) -> Reply:
        """Refuse, in the words of google-auth."""
        raise GoogleError("could not find default credentials: Your default credentials were not")


def test_without_a_login_one_warning_reports_what_is_not_known() -> None:
    spec = spec_of("a3-ultragpu-8g")
    plan = site_plan(spec, "west", load_catalog())
    api = Api("acme-ml", login=ExpiredLogin())
    found, *prices = preflight(api, spec, plan, load_catalog())
    assert {price.code for price in prices} == {"GC987"}, "the catalog's, which need no login"
    assert (found.code, found.severity) == ("GC980", Severity.WARNING)
    assert "quota NVIDIA_H200_GPUS" in found.detail
    assert "gcloud auth application-default login" in found.hint


def test_a_busy_google_is_queried_again(google: Google) -> None:
    plain, times = google.answer, iter(range(9))

    def busy(method: str, path: str, query: dict[str, str], body: object) -> object:
        return (503, {}) if next(times) < 2 else plain(method, path, query, body)

    google.answer = busy  # type: ignore[method-assign, assignment]
    api = google.api()
    path = "projects/acme-ml/zones/us-central1-b/machineTypes/n2-standard-8"
    assert api.call(Operation, path).name == "n2-standard-8"


@pytest.mark.parametrize(
    "make", [lambda api: api.call(Operation, "x"), lambda api: next(api.pages(Operation, "x"))]
)
def test_a_google_that_is_not_there_is_an_error_and_no_traceback(
    make: Callable[[Api], object],
) -> None:
    import requests  # noqa: PLC0415  # only here

    gone = {"compute": "http://127.0.0.1:1"}
    with pytest.raises(GoogleError) as caught:
        make(Api("acme-ml", login=requests.Session(), services=gone))
    assert "can't be reached" in caught.value.diagnostics[0].summary
