"""The simulated site: faults that can be repeated, capacity, tokens."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stacks.conftest import SampleCluster, SampleSites

from gcluster.schemas.spec import SimulatedSite
from gcluster.schemas.spec.sites import SimulatedFaults
from gcluster.stacks.provider import ProviderError
from gcluster.stacks.simulated.cloud import Answer, Cloud, Order


def _orders(count: int) -> list[Order]:
    return [Order(f"gpu{n:03d}", "gpu", "compute", None, f"token-{n}") for n in range(count)]


def _cloud(folder: Path, site: SimulatedSite) -> Cloud:
    return Cloud(folder / "nodes.json", site, "demo", "1f")


def _with(sample: SampleCluster, site: SimulatedSite) -> SampleCluster:
    spec = msgspec.structs.replace(sample.context.spec, sites={"here": site})
    sample.context = msgspec.structs.replace(sample.context, spec=spec)
    return sample


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_the_same_seed_gives_the_same_faults(
    tmp_path_factory: pytest.TempPathFactory, seed: int, rate: float
) -> None:
    site = SimulatedSite(
        faults=SimulatedFaults(
            seed=seed, create_failure_rate=rate, lost_response_rate=rate, boot_failure_rate=rate
        )
    )

    def run() -> tuple[Answer, dict[str, bool]]:
        cloud = _cloud(tmp_path_factory.mktemp("site"), site)
        answer = cloud.create(_orders(20))
        return answer, {name: node.booted for name, node in cloud.list().items()}

    assert run() == run()


def test_a_token_that_was_used_before_creates_nothing_again(tmp_path: Path) -> None:
    cloud = _cloud(tmp_path, SimulatedSite())
    first = cloud.create(_orders(3))
    assert cloud.create(_orders(3)) == first
    assert len(cloud.list()) == 3


def test_a_lost_response_leaves_a_node_that_only_a_listing_shows(tmp_path: Path) -> None:
    cloud = _cloud(tmp_path, SimulatedSite(faults=SimulatedFaults(lost_response_rate=1)))
    answer = cloud.create(_orders(2))
    assert (answer.ids, answer.errors, set(answer.unclear)) == ({}, {}, {"gpu000", "gpu001"})
    assert set(cloud.list()) == {"gpu000", "gpu001"}


def test_two_processes_that_open_the_same_file_see_the_same_site(tmp_path: Path) -> None:
    _cloud(tmp_path, SimulatedSite()).create(_orders(2))
    assert set(_cloud(tmp_path, SimulatedSite()).list()) == {"gpu000", "gpu001"}
    stranger = Cloud(tmp_path / "nodes.json", SimulatedSite(), "demo", "another id")
    assert stranger.list() == {}


def test_apply_ends_complete_in_spite_of_faults_and_the_ledger_agrees(samples: SampleSites) -> None:
    faults = SimulatedFaults(
        seed=7, create_failure_rate=0.2, lost_response_rate=0.2, boot_failure_rate=0.1
    )
    sample = _with(samples.new("simulated"), SimulatedSite(faults=faults))
    sample.context = sample.with_count(40)
    sample.provider.apply(sample.context)
    assert len(sample.provider.hosts(sample.context)) == 41
    assert set(sample.ledger.existing.values()) == sample.ids()
    assert sample.ledger.open == {}
    assert sample.ledger.count("failed") > 0


def test_a_site_without_room_names_each_node_that_is_missing(samples: SampleSites) -> None:
    sample = _with(samples.new("simulated"), SimulatedSite(max_nodes=2))
    assert [d.code for d in sample.provider.preflight(sample.context)] == ["GC918"]
    with pytest.raises(ProviderError) as caught:
        sample.provider.apply(sample.context)
    assert [d.summary.split(":")[0] for d in caught.value.diagnostics] == ["node gpu002 is missing"]
    assert [h.name for h in sample.provider.hosts(sample.context)] == ["head", "gpu001"]
    assert sample.provider.offers(sample.context, "gpu")[0].available == 0


def test_nodes_that_never_boot_are_an_error_and_no_hosts(samples: SampleSites) -> None:
    faults = SimulatedFaults(boot_failure_rate=1)
    sample = _with(samples.new("simulated"), SimulatedSite(faults=faults))
    with pytest.raises(ProviderError, match="it was created, but it never answered"):
        sample.provider.apply(sample.context)
    assert sample.provider.hosts(sample.context) == ()


def test_five_thousand_nodes_take_a_handful_of_calls(samples: SampleSites) -> None:
    sample = samples.new("simulated")
    sample.context = sample.with_count(5000)
    sample.provider.apply(sample.context)
    assert len(sample.provider.hosts(sample.context)) == 5001
    assert len(sample.events) == 6
