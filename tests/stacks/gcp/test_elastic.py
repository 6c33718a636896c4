"""Elastic machines come by bulk calls, all or none, and go by their names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gcp_cases import site_of, spec_of
from google_double import Google

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.gcp.api import GoogleError
from gcluster.stacks.gcp.elastic import grow, request_id, shrink
from gcluster.stacks.gcp.hosts import host_of
from gcluster.stacks.gcp.plan.layout import SitePlan, site_plan
from gcluster.stacks.provider import ProviderError
from gcluster.stacks.pulumi.names import TOKEN

TOKEN_A, TOKEN_B = "3f0c-a", "3f0c-b"
BASE = {"gcluster-cluster": "gib", "gcluster-site": "west", "gcluster-pool": "train"}


@pytest.fixture
def google() -> Iterator[Google]:
    double = Google("gib")
    yield double
    double.close()


def plan_of(machine: str) -> SitePlan:
    spec = spec_of(machine)
    return site_plan(spec, site_of(spec), load_catalog())


PLAN = plan_of("a3-ultragpu-8g")
NAMES = ["train002", "train003"]


def grown(google: Google, names: list[str], token: str = TOKEN_A) -> list[str]:
    made = grow(google.api(), PLAN, PLAN.pool("train"), names, token)
    return [host_of(PLAN, machine) for machine in made]


def test_one_call_makes_all_machines_from_the_options_newest_template(google: Google) -> None:
    assert grown(google, NAMES) == NAMES
    [body] = google.bodies("bulkInsert")
    assert (body["count"], body["minCount"]) == ("2", "2")
    assert body["sourceInstanceTemplate"].endswith("-ffffff0")
    assert set(body["perInstanceProperties"]) == {"gib-west-train002", "gib-west-train003"}
    assert body["instanceProperties"]["labels"][TOKEN] == TOKEN_A
    [policy] = body["instanceProperties"]["resourcePolicies"]
    assert policy.endswith("gib-west-train-placement-1-1a2b3c4")


def test_the_same_token_makes_nothing_twice(google: Google) -> None:
    grown(google, NAMES)
    ids = {machine["id"] for machine in google.machines.values()}
    assert grown(google, NAMES) == NAMES
    assert {machine["id"] for machine in google.machines.values()} == ids
    assert len(google.bodies("bulkInsert")) == 1


def test_a_repeated_request_has_the_same_id_and_another_burst_another_one() -> None:
    assert request_id(TOKEN_A, "spot", "0") == request_id(TOKEN_A, "spot", "0")
    assert request_id(TOKEN_A, "spot", "0") != request_id(TOKEN_B, "spot", "0")
    assert len(request_id(TOKEN_A)) == 36, "Google wants a UUID"


def test_the_next_option_is_tried_when_the_first_has_no_capacity(google: Google) -> None:
    google.full.add("on-demand-us-central1-b")
    assert grown(google, NAMES) == NAMES
    purchase_options = [
        b["instanceProperties"]["labels"]["gcluster-option"] for b in google.bodies("bulkInsert")
    ]
    assert purchase_options == ["on-demand-us-central1-b", "spot-us-central1-b"]
    assert len(google.machines) == 2


def test_when_no_option_has_capacity_nothing_is_left_and_each_is_reported(google: Google) -> None:
    google.full |= {"on-demand-us-central1-b", "spot-us-central1-b"}
    with pytest.raises(ProviderError) as caught:
        grown(google, NAMES)
    assert [d.code for d in caught.value.diagnostics] == ["GC960", "GC960"]
    assert "us-central1-b" in caught.value.diagnostics[0].summary
    assert google.machines == {}


def test_a_option_that_runs_binds_the_others(google: Google) -> None:
    google.add("gib-west-train002", "us-central1-b",
               BASE | {"gcluster-option": "spot-us-central1-b", TOKEN: "earlier"})  # fmt: skip
    grown(google, ["train003"])
    [body] = google.bodies("bulkInsert")
    assert body["instanceProperties"]["labels"]["gcluster-option"] == "spot-us-central1-b"


def test_a_option_that_is_gone_from_the_fallback_list_lets_nothing_else_in(google: Google) -> None:
    google.add("gib-west-train002", "us-central1-b", BASE | {"gcluster-option": "reservation-x"})
    with pytest.raises(ProviderError) as caught:
        grown(google, ["train003"])
    assert "mixed: true" in caught.value.diagnostics[0].hint
    assert google.bodies("bulkInsert") == []


def test_a_missing_right_is_not_tried_on_the_next_option(google: Google) -> None:
    google.fixed["/compute/projects/acme-ml/global/instanceTemplates"] = (
        403,
        {"error": {"code": 403, "status": "PERMISSION_DENIED",
                   "message": "Required 'compute.instanceTemplates.list' permission"}},
    )  # fmt: skip
    with pytest.raises(GoogleError) as caught:
        grown(google, NAMES)
    assert caught.value.diagnostics[0].code == "GC962"
    assert google.bodies("bulkInsert") == []


def test_machines_of_two_nvlink_domains_are_two_calls_each_with_its_policy() -> None:
    plan = plan_of("a4x-highgpu-4g")
    google = Google("gib")
    option = "reservation-us-central1-a"
    labels = {"gcluster-cluster": "nvl72", "gcluster-site": "central", "gcluster-pool": "train"}
    template = {"selfLink": "t", "properties": {"labels": labels | {"gcluster-option": option}}}
    path = "/compute/projects/acme-ml/global/instanceTemplates"
    google.fixed[path] = (200, {"items": [template]})
    names = list(plan.pool("train").all_nodes()[16:20])
    made = grow(google.api(), plan, plan.pool("train"), names, TOKEN_A)
    google.close()
    assert [host_of(plan, machine) for machine in made] == names
    groups = {
        body["instanceProperties"]["resourcePolicies"][0].rpartition("/")[2]: len(
            body["perInstanceProperties"]
        )
        for body in google.bodies("bulkInsert")
    }
    assert groups == {"nvl72-1": 2, "nvl72-2": 2}


def test_what_an_earlier_call_of_a_failed_try_made_is_deleted(
    monkeypatch: pytest.MonkeyPatch, google: Google
) -> None:
    monkeypatch.setattr("gcluster.stacks.gcp.elastic.facts", _Limit)
    google.full.add("spot-us-central1-b")
    bulk = google.answer
    calls = iter(range(9))

    def second_fails(method: str, path: str, query: dict[str, str], body: object) -> object:
        if path.endswith("bulkInsert") and next(calls) == 1:
            google.full.add("on-demand-us-central1-b")
        return bulk(method, path, query, body)

    monkeypatch.setattr(google, "answer", second_fails)
    with pytest.raises(ProviderError):
        grown(google, NAMES)
    assert google.machines == {}


class _Limit:
    bulk_limit = 1


def test_shrinking_deletes_the_named_and_shows_their_ids(google: Google) -> None:
    grown(google, NAMES)
    ids = {name: machine["id"] for name, machine in google.machines.items()}
    assert shrink(google.api(), PLAN, ["train003"]) == {"train003": ids["gib-west-train003"]}
    assert list(google.machines) == ["gib-west-train002"]
    assert shrink(google.api(), PLAN, ["train003"]) == {}, "it may be repeated"


def test_a_machine_of_the_spec_cannot_be_given_back_as_elastic(google: Google) -> None:
    google.add("gib-west-train001", "us-central1-b", BASE | {"gcluster-host": "train001"})
    with pytest.raises(ProviderError) as caught:
        shrink(google.api(), PLAN, ["train001"])
    assert "belongs to the spec" in caught.value.diagnostics[0].summary
    assert list(google.machines) == ["gib-west-train001"]
