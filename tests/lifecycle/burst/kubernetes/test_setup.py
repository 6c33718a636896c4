"""What the agent works on under Kubernetes: shapes from the compiler, and who is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.objects import desired_objects
from gcluster.lifecycle.operations.burst.agent.run import refuse_without_pools
from gcluster.lifecycle.operations.burst.agent.setup import elastic_pools, spillings
from gcluster.lifecycle.operations.burst.kubernetes.shapes import elastic_shapes
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.local.survey import planned_hosts

LOCAL = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu:
    site: here
    machine: sim.h100x8
    count: {min: 1, max: 3}
    kubernetes: {labels: {example.edu/rack: r1}, taints: [{key: example.edu/own, value: x}]}
scheduler: {type: kubernetes, kueue: false, suspend_after: 5m, gpu: {time_slices: 2}}
"""
EKS = """\
apiVersion: gcluster/v1
name: demo
sites:
  east:
    {provider: aws, region: us-east-1, zone_id: use1-az4, network: {admin_cidrs: [192.0.2.0/24]}}
pools:
  own: {site: east, machine: m7i.4xlarge, count: 2, kubernetes: {system: true}}
  train: {site: east, machine: p5.48xlarge, count: {min: 0, max: 4}}
scheduler: {type: kubernetes, control_plane: eks}
smoke: {allreduce: {image: registry.example.edu/allreduce:1.4}}
"""


def _spec(text: str) -> ClusterSpec:
    found = load_text(text, file="demo.yaml").spec
    assert found is not None
    return found


def test_a_node_that_comes_is_like_the_fixed_ones_of_its_pool() -> None:
    spec, catalog = _spec(LOCAL), load_catalog()
    hosts = ClusterInventory(cluster="demo", hosts=planned_hosts(spec, "here"))
    fixed = desired_objects(spec, hosts, catalog).nodes["gpu001"]
    found = elastic_shapes(spec, hosts, catalog)
    assert list(found) == ["gpu002", "gpu003"]
    assert found["gpu002"].marks == fixed
    assert found["gpu002"].devices == {"nvidia.com/gpu": 16}


def test_pools_have_the_spec_s_idle_time_and_no_job_spills() -> None:
    spec, catalog = _spec(LOCAL), load_catalog()
    [pool] = elastic_pools(spec, catalog)
    assert (pool.pool, pool.nodes, pool.idle_s) == ("gpu", ("gpu002", "gpu003"), 300.0)
    assert pool.overdue_s == 0  # nothing but the agent gives nodes back
    assert spillings(spec, catalog) == ()


@pytest.mark.parametrize(
    ("text", "applied", "code"), [(EKS, True, "GC1031"), (LOCAL, False, "GC908")]
)
def test_who_has_nothing_to_bring_nodes_for_is_refused(text: str, applied: bool, code: str) -> None:
    cluster = SimpleNamespace(
        spec=_spec(text), name="demo", was_applied=applied, spec_path="x", catalog=load_catalog()
    )
    with pytest.raises(LifecycleError) as refused:
        refuse_without_pools(cast("Any", cluster))
    assert refused.value.diagnostics[0].code == code
