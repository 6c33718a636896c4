"""The provider contract: one suite, every provider of the registry."""

from __future__ import annotations

import msgspec
import pytest

from gcluster.stacks.provider import ProviderError, SiteEvent
from gcluster.stacks.registry import names, provider

from .conftest import CLOUDS, SampleCluster, SampleSites
from .graph_comparison import agrees
from .ledger_double import Killed


def _marked(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.local) if name == "local" else name


every_provider = pytest.mark.parametrize(
    "kind", [_marked(name) for name in names() if name not in CLOUDS]
)
every_recorded = pytest.mark.parametrize("kind", [name for name in names() if name in CLOUDS])
every_maker = pytest.mark.parametrize("kind", [_marked("local"), "simulated"])


def _names_and_pools(sample: SampleCluster) -> list[tuple[str, str]]:
    return [(host.name, host.pool) for host in sample.provider.hosts(sample.context)]


def _planned(sample: SampleCluster) -> list[tuple[str, str]]:
    planned = sample.provider.planned_hosts(sample.context.spec, sample.context.site)
    return [(host.name, host.pool) for host in planned]


def test_each_provider_answers_to_its_name() -> None:
    assert [provider(name).name for name in names()] == list(names())


def test_an_unknown_provider_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ProviderError) as caught:
        provider("openstack")
    assert ", ".join(names()) in caught.value.diagnostics[0].hint


@pytest.mark.parametrize("kind", names())
def test_the_graph_is_the_same_for_the_same_spec_and_needs_nothing(
    kind: str, samples: SampleSites, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = samples.new(kind)
    spec, site = sample.context.spec, sample.context.site
    with monkeypatch.context() as without:
        without.setenv("PATH", "")  # no engine to query
        first = msgspec.json.encode(sample.provider.graph(spec, site))
        again = msgspec.json.decode(msgspec.json.encode(spec), type=type(spec))
        assert msgspec.json.encode(sample.provider.graph(again, site)) == first
        keys = [r.key for r in sample.provider.graph(spec, site).resources]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("kind", names())
def test_a_provider_keeps_the_stamps_of_just_the_hosts_on_which_nothing_runs(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)
    planned = sample.provider.planned_hosts(sample.context.spec, sample.context.site)
    noted = {host.name: {"base.install": "1f"} for host in planned if not host.is_real}
    if noted:
        sample.provider.keep_stamps(sample.context, noted)
    assert sample.provider.kept_stamps(sample.context, [h.name for h in planned]) == noted


@every_recorded
def test_a_recorded_graph_holds_a_machine_or_a_set_of_them_for_every_pool(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)
    graph = sample.provider.graph(sample.context.spec, sample.context.site)
    assert (graph.provider, graph.site) == (kind, sample.context.site)
    assert {resource.pool for resource in graph.resources} >= {"head", "gpu"}
    assert [name for name, _ in _planned(sample)] == ["head", "gpu001", "gpu002"]


@every_recorded
def test_a_larger_pool_adds_to_a_recorded_graph_and_takes_nothing_away(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)
    larger = sample.with_count(3).spec
    before = {
        r.key for r in sample.provider.graph(sample.context.spec, sample.context.site).resources
    }
    after = {r.key for r in sample.provider.graph(larger, sample.context.site).resources}
    assert before <= after


@every_recorded
def test_a_recorded_program_is_the_same_bytes_again_and_agrees_with_its_preview(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)
    recorder = sample.provider
    first = recorder.record(sample.context.spec, sample.context.site)
    again = recorder.record(sample.context.spec, sample.context.site)
    preview = recorder.record(sample.context.spec, sample.context.site, preview=True)
    assert first.to_json() == again.to_json()
    assert agrees(first, preview), agrees(first, preview).differences


@every_provider
def test_the_hosts_after_apply_are_the_planned_ones(kind: str, samples: SampleSites) -> None:
    sample = samples.new(kind)
    sample.provider.apply(sample.context)
    assert _names_and_pools(sample) == _planned(sample)
    assert all(host.address for host in sample.provider.hosts(sample.context))


@every_provider
def test_a_second_apply_creates_nothing_and_a_preview_keeps_all(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)
    sample.provider.apply(sample.context)
    before, answer = sample.ids(), list(sample.ledger.entries)
    assert {c.effect for c in sample.provider.preview(sample.context)} == {"keep"}
    sample.provider.apply(sample.context)
    assert sample.ids() == before
    assert sample.ledger.entries == answer


@every_maker
def test_every_creation_was_intended_before_and_recorded_after(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)
    sample.provider.apply(sample.context)
    verbs: dict[str, list[str]] = {}
    for verb, place, _ in sample.ledger.entries:
        verbs.setdefault(place, []).append(verb)
    assert set(sample.ledger.existing.values()) == sample.ids()
    assert {tuple(answer) for answer in verbs.values()} == {("intend", "created")}


@every_maker
def test_no_node_is_made_when_its_intent_cannot_be_stored(kind: str, samples: SampleSites) -> None:
    sample = samples.new(kind)
    sample.ledger.dies_at = "intend"
    with pytest.raises(Killed):
        sample.provider.apply(sample.context)
    assert sample.ids() == set()


@every_provider
def test_apply_continues_after_being_killed_at_its_first_event(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)

    def die(_: SiteEvent) -> None:
        raise Killed

    with pytest.raises(Killed):
        sample.provider.apply(msgspec.structs.replace(sample.context, emit=die))
    survivors = sample.ids()
    sample.provider.apply(sample.context)
    assert _names_and_pools(sample) == _planned(sample)
    assert survivors <= sample.ids()
    assert set(sample.ledger.existing.values()) == sample.ids()
    assert sample.ledger.open == {}


@every_maker
def test_what_was_created_but_not_recorded_is_found_by_its_token(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)
    sample.ledger.dies_at = "created"
    with pytest.raises(Killed):
        sample.provider.apply(sample.context)
    survivors = sample.ids()
    assert survivors
    sample.provider.apply(sample.context)
    assert survivors <= sample.ids()
    assert set(sample.ledger.existing.values()) == sample.ids()
    assert sample.ledger.open == {}


@every_maker
def test_a_smaller_pool_loses_its_last_nodes_and_nothing_else(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)
    sample.provider.apply(sample.context)
    before = {h.name: h.address for h in sample.provider.hosts(sample.context)}
    smaller = sample.with_count(1)
    effects = {c.resource.name: c.effect for c in sample.provider.preview(smaller)}
    assert [n for n, effect in effects.items() if effect != "keep"] == ["gpu002"]
    sample.provider.apply(smaller)
    after = {h.name: h.address for h in sample.provider.hosts(smaller)}
    assert after == {n: a for n, a in before.items() if n != "gpu002"}


@every_provider
def test_destroy_leaves_nothing_and_may_be_repeated(kind: str, samples: SampleSites) -> None:
    sample = samples.new(kind)
    sample.provider.apply(sample.context)
    sample.provider.destroy(sample.context)
    assert sample.provider.sweep(sample.context) == ()
    assert list(sample.context.workdir.iterdir()) == []
    assert sample.ledger.existing == {}
    sample.provider.destroy(sample.context)
    assert sample.provider.sweep(sample.context) == ()


@every_provider
def test_two_clusters_side_by_side_do_not_touch_each_other(kind: str, samples: SampleSites) -> None:
    one, other = samples.new(kind), samples.new(kind)
    one.provider.apply(one.context)
    other.provider.apply(other.context)
    assert not one.ids() & other.ids()
    before = _names_and_pools(other)
    one.provider.destroy(one.context)
    assert _names_and_pools(other) == before
    assert {c.effect for c in other.provider.preview(other.context)} == {"keep"}


@every_maker
def test_growing_twice_with_one_token_creates_once_and_apply_keeps_it(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)
    sample.provider.apply(sample.context)
    grown = sample.provider.grow(sample.context, "gpu", ["gpu101"], token="burst-1")  # noqa: S106
    assert [(h.name, h.pool) for h in grown.hosts] == [("gpu101", "gpu")]
    before = sample.ids()
    again = sample.provider.grow(sample.context, "gpu", ["gpu101"], token="burst-1")  # noqa: S106
    sample.provider.apply(sample.context)
    assert again == grown
    assert sample.ids() == before
    sample.provider.shrink(sample.context, ["gpu101"])
    assert _names_and_pools(sample) == _planned(sample)


@every_maker
def test_a_node_of_the_spec_cannot_be_given_back_as_elastic(
    kind: str, samples: SampleSites
) -> None:
    sample = samples.new(kind)
    sample.provider.apply(sample.context)
    with pytest.raises(ProviderError):
        sample.provider.shrink(sample.context, ["gpu001"])
    assert _names_and_pools(sample) == _planned(sample)


def test_bare_metal_refuses_to_make_machines(samples: SampleSites) -> None:
    sample = samples.new("bare-metal")
    with pytest.raises(ProviderError) as caught:
        sample.provider.grow(sample.context, "gpu", ["gpu003"], token="t")  # noqa: S106
    assert "can't be made" in caught.value.diagnostics[0].summary
