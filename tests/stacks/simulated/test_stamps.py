"""Stamps of simulated nodes: what was written is read, and a node recreated has none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stacks.conftest import SampleCluster, SampleSites

from gcluster.stacks.simulated import stamps

hosts = st.sampled_from(["head", "gpu001", "gpu002"])
steps = st.dictionaries(st.sampled_from(["base.install", "slurm.join"]), st.text(max_size=5))


@given(st.lists(st.tuples(hosts, steps)))
def test_what_was_written_last_is_read(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, dict[str, str]]]
) -> None:
    context = SampleCluster("simulated", tmp_path_factory.mktemp("stamps")).context
    expected: dict[str, dict[str, str]] = {}
    for host, digests in written:
        stamps.write_stamps(context, {host: digests})
        expected.setdefault(host, {}).update(digests)
    assert stamps.read_stamps(context) == expected


def test_a_node_that_is_recreated_has_no_stamps(samples: SampleSites) -> None:
    sample = samples.new("simulated")
    sample.provider.apply(sample.context)
    for name in ("gpu001", "gpu002"):
        stamps.write_stamps(sample.context, {name: {"base.install": "1f"}})
    sample.provider.apply(sample.with_count(1))
    sample.provider.apply(sample.context)
    assert stamps.read_stamps(sample.context) == {"gpu001": {"base.install": "1f"}}
