"""The provider contract: one suite, every provider of the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from gcluster.stacks.provider import ProviderError, SiteEvent
from gcluster.stacks.registry import names, provider

from .conftest import CLOUDS
from .graph_comparison import agrees
from .ledger_double import Killed

if TYPE_CHECKING:
    from .conftest import Trial, Trials


def _marked(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.local) if name == "local" else name


every_provider = pytest.mark.parametrize(
    "kind", [_marked(name) for name in names() if name not in CLOUDS]
)
every_recorded = pytest.mark.parametrize("kind", [name for name in names() if name in CLOUDS])
every_maker = pytest.mark.parametrize("kind", [_marked("local"), "simulated"])


def _names_and_pools(trial: Trial) -> list[tuple[str, str]]:
    return [(host.name, host.pool) for host in trial.provider.hosts(trial.context)]


def _planned(trial: Trial) -> list[tuple[str, str]]:
    planned = trial.provider.planned_hosts(trial.context.spec, trial.context.site)
    return [(host.name, host.pool) for host in planned]


def test_each_provider_answers_to_its_name() -> None:
    assert [provider(name).name for name in names()] == list(names())


def test_an_unknown_provider_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ProviderError) as caught:
        provider("openstack")
    assert ", ".join(names()) in caught.value.diagnostics[0].hint


@pytest.mark.parametrize("kind", names())
def test_the_graph_is_the_same_for_the_same_spec_and_needs_nothing(
    kind: str, trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = trials.new(kind)
    spec, site = trial.context.spec, trial.context.site
    with monkeypatch.context() as without:
        without.setenv("PATH", "")  # no engine to ask
        first = msgspec.json.encode(trial.provider.graph(spec, site))
        again = msgspec.json.decode(msgspec.json.encode(spec), type=type(spec))
        assert msgspec.json.encode(trial.provider.graph(again, site)) == first
        keys = [r.key for r in trial.provider.graph(spec, site).resources]
    assert len(keys) == len(set(keys))


@every_recorded
def test_a_recorded_graph_holds_a_machine_or_a_set_of_them_for_every_pool(
    kind: str, trials: Trials
) -> None:
    trial = trials.new(kind)
    graph = trial.provider.graph(trial.context.spec, trial.context.site)
    assert (graph.provider, graph.site) == (kind, trial.context.site)
    assert {resource.pool for resource in graph.resources} >= {"head", "gpu"}
    assert [name for name, _ in _planned(trial)] == ["head", "gpu001", "gpu002"]


@every_recorded
def test_a_larger_pool_adds_to_a_recorded_graph_and_takes_nothing_away(
    kind: str, trials: Trials
) -> None:
    trial = trials.new(kind)
    larger = trial.with_count(3).spec
    before = {r.key for r in trial.provider.graph(trial.context.spec, trial.context.site).resources}
    after = {r.key for r in trial.provider.graph(larger, trial.context.site).resources}
    assert before <= after


@every_recorded
def test_a_recorded_program_is_the_same_bytes_again_and_agrees_with_its_preview(
    kind: str, trials: Trials
) -> None:
    trial = trials.new(kind)
    recorder = trial.provider
    first = recorder.record(trial.context.spec, trial.context.site)
    again = recorder.record(trial.context.spec, trial.context.site)
    preview = recorder.record(trial.context.spec, trial.context.site, preview=True)
    assert first.to_json() == again.to_json()
    assert agrees(first, preview), agrees(first, preview).differences


@every_provider
def test_the_hosts_after_apply_are_the_planned_ones(kind: str, trials: Trials) -> None:
    trial = trials.new(kind)
    trial.provider.apply(trial.context)
    assert _names_and_pools(trial) == _planned(trial)
    assert all(host.address for host in trial.provider.hosts(trial.context))


@every_provider
def test_a_second_apply_creates_nothing_and_a_preview_keeps_all(kind: str, trials: Trials) -> None:
    trial = trials.new(kind)
    trial.provider.apply(trial.context)
    before, told = trial.ids(), list(trial.ledger.entries)
    assert {c.effect for c in trial.provider.preview(trial.context)} == {"keep"}
    trial.provider.apply(trial.context)
    assert trial.ids() == before
    assert trial.ledger.entries == told


@every_maker
def test_every_creation_was_intended_before_and_recorded_after(kind: str, trials: Trials) -> None:
    trial = trials.new(kind)
    trial.provider.apply(trial.context)
    verbs: dict[str, list[str]] = {}
    for verb, place, _ in trial.ledger.entries:
        verbs.setdefault(place, []).append(verb)
    assert set(trial.ledger.existing.values()) == trial.ids()
    assert {tuple(told) for told in verbs.values()} == {("intend", "created")}


@every_maker
def test_no_node_is_made_when_its_intent_cannot_be_stored(kind: str, trials: Trials) -> None:
    trial = trials.new(kind)
    trial.ledger.dies_at = "intend"
    with pytest.raises(Killed):
        trial.provider.apply(trial.context)
    assert trial.ids() == set()


@every_provider
def test_apply_goes_on_after_being_killed_at_its_first_event(kind: str, trials: Trials) -> None:
    trial = trials.new(kind)

    def die(_: SiteEvent) -> None:
        raise Killed

    with pytest.raises(Killed):
        trial.provider.apply(msgspec.structs.replace(trial.context, emit=die))
    survivors = trial.ids()
    trial.provider.apply(trial.context)
    assert _names_and_pools(trial) == _planned(trial)
    assert survivors <= trial.ids()
    assert set(trial.ledger.existing.values()) == trial.ids()
    assert trial.ledger.open == {}


@every_maker
def test_what_was_created_but_not_recorded_is_found_by_its_token(kind: str, trials: Trials) -> None:
    trial = trials.new(kind)
    trial.ledger.dies_at = "created"
    with pytest.raises(Killed):
        trial.provider.apply(trial.context)
    survivors = trial.ids()
    assert survivors
    trial.provider.apply(trial.context)
    assert survivors <= trial.ids()
    assert set(trial.ledger.existing.values()) == trial.ids()
    assert trial.ledger.open == {}


@every_maker
def test_a_smaller_pool_loses_its_last_nodes_and_nothing_else(kind: str, trials: Trials) -> None:
    trial = trials.new(kind)
    trial.provider.apply(trial.context)
    before = {h.name: h.address for h in trial.provider.hosts(trial.context)}
    smaller = trial.with_count(1)
    effects = {c.resource.name: c.effect for c in trial.provider.preview(smaller)}
    assert [n for n, effect in effects.items() if effect != "keep"] == ["gpu002"]
    trial.provider.apply(smaller)
    after = {h.name: h.address for h in trial.provider.hosts(smaller)}
    assert after == {n: a for n, a in before.items() if n != "gpu002"}


@every_provider
def test_destroy_leaves_nothing_and_may_be_repeated(kind: str, trials: Trials) -> None:
    trial = trials.new(kind)
    trial.provider.apply(trial.context)
    trial.provider.destroy(trial.context)
    assert trial.provider.sweep(trial.context) == ()
    assert list(trial.context.workdir.iterdir()) == []
    assert trial.ledger.existing == {}
    trial.provider.destroy(trial.context)
    assert trial.provider.sweep(trial.context) == ()


@every_provider
def test_two_clusters_side_by_side_do_not_touch_each_other(kind: str, trials: Trials) -> None:
    one, other = trials.new(kind), trials.new(kind)
    one.provider.apply(one.context)
    other.provider.apply(other.context)
    assert not one.ids() & other.ids()
    before = _names_and_pools(other)
    one.provider.destroy(one.context)
    assert _names_and_pools(other) == before
    assert {c.effect for c in other.provider.preview(other.context)} == {"keep"}


@every_maker
def test_growing_twice_with_one_token_creates_once_and_apply_keeps_it(
    kind: str, trials: Trials
) -> None:
    trial = trials.new(kind)
    trial.provider.apply(trial.context)
    grown = trial.provider.grow(trial.context, "gpu", ["gpu101"], token="burst-1")  # noqa: S106
    assert [(h.name, h.pool) for h in grown.hosts] == [("gpu101", "gpu")]
    before = trial.ids()
    again = trial.provider.grow(trial.context, "gpu", ["gpu101"], token="burst-1")  # noqa: S106
    trial.provider.apply(trial.context)
    assert again == grown
    assert trial.ids() == before
    trial.provider.shrink(trial.context, ["gpu101"])
    assert _names_and_pools(trial) == _planned(trial)


@every_maker
def test_a_node_of_the_spec_cannot_be_given_back_as_elastic(kind: str, trials: Trials) -> None:
    trial = trials.new(kind)
    trial.provider.apply(trial.context)
    with pytest.raises(ProviderError):
        trial.provider.shrink(trial.context, ["gpu001"])
    assert _names_and_pools(trial) == _planned(trial)


def test_bare_metal_refuses_to_make_machines(trials: Trials) -> None:
    trial = trials.new("bare-metal")
    with pytest.raises(ProviderError) as caught:
        trial.provider.grow(trial.context, "gpu", ["gpu003"], token="t")  # noqa: S106
    assert "can't be made" in caught.value.diagnostics[0].summary
