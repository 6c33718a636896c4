"""The cluster that the runs are about: one pool that is fixed, and one that comes and goes."""

from __future__ import annotations

from functools import lru_cache

from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

SPEC = """\
apiVersion: gcluster/v1
name: trial
sites:
  lab: {{provider: simulated}}
pools:
  head: {{site: lab, role: controller}}
  gpu: {{site: lab, machine: sim.h100x8, count: {count}, quorum: 1}}
  spill: {{site: lab, machine: sim.h100x8, count: {{min: 0, max: 2}}}}
scheduler: {{type: slurm}}
"""
ELASTIC = ("spill001", "spill002")


@lru_cache
def parsed(text: str) -> ClusterSpec:
    """Return a spec of this model."""
    spec = load_text(text, file="trial.yaml").spec
    assert spec is not None
    return spec
