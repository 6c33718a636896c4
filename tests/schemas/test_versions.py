"""Specs for other versions of the language than this gcluster reads."""

from __future__ import annotations

import pytest

from gcluster.schemas.load import API_VERSION, load_text

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites:
  lab: # the only one
    provider: simulated
    max_nodes: 8 # nodes
pools:
  head: {site: lab, role: controller}
  gpu: {site: lab, machine: sim.h100x8, count: 4}
scheduler: {type: slurm}
"""


@pytest.mark.parametrize("version", ["gcluster/v2", "gcluster/v17"])
def test_a_spec_for_a_newer_gcluster_gets_one_error(version: str) -> None:
    text = _SPEC.replace("gcluster/v1", version).replace("scheduler", "schedulers")
    loaded = load_text(text)
    assert [d.code for d in loaded.diagnostics] == ["GC026"]
    assert loaded.spec is None
    assert loaded.text == text


@pytest.mark.parametrize("version", ["v1", "gcluster", "gcluster/v0", "gcluster/v01", "1", "[]"])
def test_a_version_that_never_was_is_refused_with_the_right_one(version: str) -> None:
    found = load_text(_SPEC.replace("gcluster/v1", version)).diagnostics
    assert any(d.path == ("apiVersion",) and API_VERSION in d.summary for d in found)
    assert all(d.code != "GC026" for d in found)
