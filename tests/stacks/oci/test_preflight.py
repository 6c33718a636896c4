"""Preflight queries OCI concurrently, makes nothing, and says what it could not read."""

from __future__ import annotations

import pytest
from oci_cases import plan_of, spec_of
from oci_double import Oracle

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.stacks.oci.api import Api
from gcluster.stacks.oci.offers import offers
from gcluster.stacks.oci.preflight.questions import preflight

MACHINE = "BM.GPU.H100.8"


def findings_of(api: Api, machine: str = MACHINE, **pool: object) -> dict[str, list[Diagnostic]]:
    found: dict[str, list[Diagnostic]] = {}
    spec = spec_of(machine, **pool)
    for answer in preflight(api, spec, plan_of(machine, **pool), load_catalog()):
        found.setdefault(answer.code, []).append(answer)
    return found


def test_nothing_is_made(oracle: Oracle) -> None:
    findings_of(oracle.api())
    sent = {path for method, path, _ in oracle.calls if method != "GET"}
    assert sent == {"compute/computeCapacityReports"}


def test_a_limit_that_leaves_too_little_is_an_error_of_its_domain(oracle: Oracle) -> None:
    [answer] = findings_of(oracle.api())["GC972"]
    assert answer.severity is Severity.ERROR
    assert "gpu-h100-count leaves 8 gpu in availability domain 2" in answer.summary
    assert "need 16 more" in answer.summary


def test_machines_of_the_cluster_that_run_are_needed_no_more(oracle: Oracle) -> None:
    for name in ("train001", "train002"):
        oracle.add({"gcluster-pool": "train", "gcluster-host": name})
    found = findings_of(oracle.api())
    assert "GC972" not in found
    assert "GC974" not in found


def test_a_domain_out_of_capacity_is_a_warning(oracle: Oracle) -> None:
    message = [
        item
        for item in findings_of(oracle.api())["GC973"]
        if "out of host capacity" in item.summary
    ]
    assert message
    assert {item.severity for item in message} == {Severity.WARNING}


def test_a_reservation_with_too_little_left_is_an_error(oracle: Oracle) -> None:
    [answer] = findings_of(oracle.api())["GC974"]
    assert "has 1 BM.GPU.H100.8 free, 2 are still to be made" in answer.summary


def test_a_reservation_in_another_domain_is_an_error(oracle: Oracle) -> None:
    name = "GET compute/computeCapacityReservations/ocid1.capacityreservation.oc1.iad.h100"
    oracle.fixed[name] |= {"availabilityDomain": "Uocm:US-ASHBURN-AD-3"}
    message = [item.summary for item in findings_of(oracle.api())["GC974"]]
    assert any("is in Uocm:US-ASHBURN-AD-3, not Uocm:US-ASHBURN-AD-2" in text for text in message)


def test_a_network_that_does_not_fit_is_reported_part_by_part(oracle: Oracle) -> None:
    message = [item.summary for item in findings_of(oracle.api(), "BM.GPU.A100-v2.8")["GC976"]]
    assert any("is in ocid1.vcn.oc1.iad.other, not ocid1.vcn.oc1.iad.acme" in t for t in message)
    assert any("it allows no public addresses" in text for text in message)
    assert any("has 1 free addresses, the nodes need 3 more" in text for text in message)


def test_an_image_that_is_not_made_for_the_shape_is_reported(oracle: Oracle) -> None:
    [answer] = findings_of(oracle.api(), "BM.GPU.B200.8")["GC977"]
    assert "is not made for BM.GPU.B200.8" in answer.summary


def test_what_oci_does_not_answer_is_reported_as_unknown(oracle: Oracle) -> None:
    del oracle.fixed["POST compute/computeCapacityReports"]
    answer = findings_of(oracle.api())["GC970"]
    assert all(item.severity is Severity.WARNING for item in answer)
    assert any("not checked" in item.summary for item in answer)


def test_a_login_that_is_refused_is_one_warning_for_all(oracle: Oracle) -> None:
    oracle.logged_out = True
    found = findings_of(oracle.api())
    [answer] = found["GC970"]
    assert "not logged in to OCI" in answer.summary
    assert list(found) == ["GC970"]


def test_without_any_login_it_is_reported_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OCI_CLI_AUTH", raising=False)
    monkeypatch.delenv("OCI_CONFIG_FILE", raising=False)
    found = findings_of(Api("us-ashburn-1"))
    assert list(found) == ["GC970"]
    assert "oci session authenticate" in found["GC970"][0].hint


def test_offers_report_price_source_age_and_what_a_reservation_has_left(oracle: Oracle) -> None:
    plan = plan_of(MACHINE)
    reserved, listed = offers(oracle.api(), plan, plan.pool("train"), load_catalog())
    assert (reserved.available, listed.available) == (1, None)
    assert listed.usd_per_hour == 80  # the catalog's price
    assert "skypilot" in listed.source
