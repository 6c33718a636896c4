"""Elastic growth and shrinking of scale sets, against a double of Azure's REST interface."""

from __future__ import annotations

import pytest

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.azure.api import refusals
from gcluster.stacks.azure.elastic import fill, grow, shrink, trim
from gcluster.stacks.azure.plan.layout import site_plan
from gcluster.stacks.azure.plan.types import PoolPlan
from gcluster.stacks.azure.scale_sets import ScaleSets
from gcluster.stacks.provider import ProviderError

from .azure_double import SUBSCRIPTION, AzureDouble, KilledError, ScaleSetDouble
from .recorded_cases import CASES, parsed, spec_of

TOKEN = "intent-7"  # noqa: S105  # an id


def pool(count: str = "{min: 2, max: 16}") -> PoolPlan:
    text = (CASES / "specs/Standard_ND96isr_H100_v5.yaml").read_text(encoding="utf-8")
    spec = parsed(text.replace("{min: 2, max: 16}", count))
    return site_plan(spec, "east", load_catalog()).pool("train")


@pytest.fixture
def azure() -> AzureDouble:
    return AzureDouble()


@pytest.fixture
def train(azure: AzureDouble) -> ScaleSetDouble:
    return azure.scale_set("train", 2)


def sets(azure: AzureDouble) -> ScaleSets:
    return ScaleSets(azure.api(), "research", "east")


def grown(azure: AzureDouble, *names: str, token: str = TOKEN, **more: int) -> dict[str, str]:
    return grow(sets(azure), pool(), list(names), token, **more)


def test_one_call_raises_the_capacity_and_names_the_machines(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    assert grown(azure, "train101", "train102") == {"train101": "2", "train102": "3"}
    assert train.calls == ["capacity 2 -> 4"]
    assert train.tags["gcluster-names-0"] == "train001..002:0 train101..102:2"


def test_the_tags_of_the_cluster_stay(azure: AzureDouble, train: ScaleSetDouble) -> None:
    before = dict(train.tags)
    grown(azure, "train101")
    assert before.items() <= train.tags.items()
    assert not [key for key in train.tags if key.startswith("gcluster-intent-")]


def test_the_same_token_queries_once(azure: AzureDouble, train: ScaleSetDouble) -> None:
    first = grown(azure, "train101", "train102")
    assert grown(azure, "train101", "train102") == first
    assert train.calls == ["capacity 2 -> 4"]


@pytest.mark.parametrize("stage", ["before", "after"])
def test_those_who_is_killed_continues_with_the_same_token(
    azure: AzureDouble, train: ScaleSetDouble, stage: str
) -> None:
    train.interrupt = stage
    with pytest.raises(KilledError):
        grown(azure, "train101", "train102")
    assert grown(azure, "train101", "train102") == {"train101": "2", "train102": "3"}
    assert train.calls == ["capacity 2 -> 4"]


def test_another_growth_adds_to_the_first(azure: AzureDouble, train: ScaleSetDouble) -> None:
    grown(azure, "train101")
    grown(azure, "train102", token="intent-8")  # noqa: S106  # an id
    assert train.capacity == 4 - 0
    assert train.tags["gcluster-names-0"] == "train001..002:0 train101..102:2"


def test_a_growth_left_by_a_killed_process_is_not_taken_for_ones_own(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    train.interrupt = "after"
    with pytest.raises(KilledError):
        grown(azure, "train101")
    assert grown(azure, "train102", token="intent-8") == {"train102": "3"}  # noqa: S106  # an id
    assert grown(azure, "train101") == {"train101": "2"}


def test_a_change_by_others_is_seen_and_not_overwritten(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    train.rival = True
    assert grown(azure, "train101") == {"train101": "2"}
    assert train.calls == ["capacity 2 -> 3"]


def test_without_room_for_all_nothing_stays_and_azures_words_are_reported(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    train.room = 1
    with pytest.raises(ProviderError) as caught:
        grown(azure, "train101", "train102", "train103")
    [finding] = caught.value.diagnostics
    assert finding.code == "GC960"
    assert "AllocationFailed" in finding.detail
    assert set(train.numbers) == {"0", "1"}
    assert train.capacity == 2
    assert train.tags["gcluster-names-0"] == "train001..002:0"


def test_with_a_minimum_what_came_is_kept(azure: AzureDouble, train: ScaleSetDouble) -> None:
    train.room = 2
    got = grown(azure, "train101", "train102", "train103", least=2)
    assert got == {"train101": "2", "train102": "3"}
    assert train.capacity == 4, "the capacity that no machine stands for is taken back"


def test_a_machine_that_does_not_start_is_taken_away(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    train.breaks = {"3"}
    assert grown(azure, "train101", "train102", least=1) == {"train101": "2"}
    assert set(train.numbers) == {"0", "1", "2"}


def test_after_a_failure_the_same_token_may_request_again(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    train.room = 0
    with pytest.raises(ProviderError):
        grown(azure, "train101")
    train.room = None
    assert grown(azure, "train101") == {"train101": "2"}


def test_a_pool_never_grows_beyond_its_maximum(azure: AzureDouble, train: ScaleSetDouble) -> None:
    with pytest.raises(ProviderError, match="may have 16 machines, not 17"):
        grown(azure, *(f"train{n}" for n in range(101, 116)))
    assert train.calls == []


def test_shrinking_ends_the_named_machines_and_no_others(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    grown(azure, "train101", "train102", "train103")
    assert shrink(sets(azure), pool(), ["train102"]) == {"train102": "3"}
    assert train.calls[-1] == "delete 3"
    assert train.tags["gcluster-names-0"] == "train001..002:0 train101:2 train103:4"
    assert shrink(sets(azure), pool(), ["train102"]) == {}


def test_a_number_that_is_used_again_belongs_to_the_new_name(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    grown(azure, "train101", "train102")
    shrink(sets(azure), pool(), ["train101"])
    assert grown(azure, "train109", token="intent-9") == {"train109": "2"}  # noqa: S106  # an id
    assert train.tags["gcluster-names-0"] == "train001..002:0 train102:3 train109:2"


def test_a_machine_of_the_spec_is_not_given_back(azure: AzureDouble, train: ScaleSetDouble) -> None:
    with pytest.raises(ProviderError, match="train001 belongs to the spec"):
        shrink(sets(azure), pool(), ["train101", "train001"])
    assert train.calls == []


def test_a_smaller_fixed_pool_loses_its_last_machines(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    train.numbers = {"0": "Succeeded", "4": "Succeeded", "7": "Succeeded"}
    train.capacity = 3
    fill(sets(azure), pool("3"), "train")
    trim(sets(azure), pool("2"))
    assert train.calls == ["delete 7"]
    assert train.tags["gcluster-names-0"] == "train001:0 train002:4"


def test_a_machine_that_was_not_named_is_used_before_more_are_requested(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    train.numbers["2"] = "Succeeded"
    train.capacity = 3
    assert grown(azure, "train101", "train102") == {"train101": "2", "train102": "3"}
    assert train.calls == ["capacity 3 -> 4"]


def test_a_machine_that_was_not_named_goes_before_azure_would_choose(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    train.numbers["9"] = "Succeeded"
    train.capacity = 3
    trim(sets(azure), pool("2"))
    assert train.calls == ["delete 9"]


def test_an_elastic_pool_is_raised_to_what_is_always_there(
    azure: AzureDouble, train: ScaleSetDouble
) -> None:
    grown(azure, "train101")
    train.delete(["1"])
    fill(sets(azure), pool(), "train")
    assert train.tags["gcluster-names-0"] == "train001..002:0 train101:2"
    assert train.capacity == 3


def test_scale_sets_of_other_sites_are_left_alone(azure: AzureDouble) -> None:
    azure.scale_set("train", 2, **{"gcluster-site": "west"})
    assert sets(azure).parts == ()


def test_a_login_that_has_expired_reports_what_to_do(azure: AzureDouble) -> None:
    azure.refused = 401, {"error": {"code": "ExpiredAuthenticationToken", "message": "expired"}}
    with pytest.raises(ProviderError) as caught:
        sets(azure)
    assert caught.value.diagnostics[0].code == "GC963"
    assert "az login" in caught.value.diagnostics[0].hint


def test_an_answer_of_another_form_is_no_traceback(azure: AzureDouble) -> None:
    images = "locations/eastus/publishers/P/artifacttypes/vmimage/offers/O/skus/S/versions"
    below = f"/subscriptions/{SUBSCRIPTION}"
    azure.answers |= {
        f"{below}/providers/Microsoft.Compute/{images}": {"value": []},
        f"{below}/resources": {"value": "signed out"},
    }
    api = azure.api()
    with pytest.raises(ProviderError, match="can't be read"), refusals():
        api.compute.virtual_machine_images.list("eastus", "P", "O", "S")
    with pytest.raises(ProviderError, match="can't be read"):
        list(api.tagged("gcluster-cluster", "research"))


def test_azure_is_queried_where_the_engines_provider_queries_it(
    azure: AzureDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARM_METADATA_HOSTNAME", "arm.example")
    azure.answers["/metadata/endpoints"] = {
        "resourceManager": "https://manager.example/",
        "authentication": {"audiences": ["https://manager.example/"], "loginEndpoint": ""},
    }
    assert list(azure.api().tagged("gcluster-cluster", "research")) == []
    assert azure.hosts == {"arm.example", "manager.example"}


def test_a_host_that_describes_no_azure_is_named(
    azure: AzureDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARM_METADATA_HOSTNAME", "arm.example")
    azure.answers["/metadata/endpoints"] = {"portal": "https://portal.example"}
    with pytest.raises(ProviderError) as caught:
        sets(azure)
    assert caught.value.diagnostics[0].code == "GC966"
    assert "ARM_METADATA_HOSTNAME: arm.example" in caught.value.diagnostics[0].summary


def test_another_azure_than_the_public_one_is_refused_by_the_name_that_was_given(
    azure: AzureDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's provider would send `public` by its own default, and make it there."""
    monkeypatch.setenv("ARM_ENVIRONMENT", "usgovernment")
    with pytest.raises(ProviderError, match="ARM_ENVIRONMENT is usgovernment"):
        sets(azure)
    assert azure.hosts == set()
    monkeypatch.setenv("ARM_ENVIRONMENT", "Public")
    assert list(azure.api().tagged("gcluster-cluster", "research")) == []


def test_the_example_is_elastic() -> None:
    assert spec_of("Standard_ND96isr_H100_v5").pools["train"].is_elastic
