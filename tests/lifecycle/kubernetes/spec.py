"""A local cluster under Kubernetes, loaded, with the hosts that it would have."""

from __future__ import annotations

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.kubernetes.objects import DesiredObjects, desired_objects
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.local import survey

TEXT = """\
apiVersion: gcluster/v1
name: trial
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
scheduler:
  type: kubernetes
  kueue: false
  qos: {low: {priority: 10, preemptible: cancel}, high: {priority: 1000, preempts: [low]}}
  accounts: {physics: {qos: [low, high], default_qos: low, gpu_quota: 16, users: [ada]}}
users: [{name: ada, uid: 2001}]
"""


def spec_of(text: str = TEXT) -> ClusterSpec:
    """Return a spec that has no errors."""
    loaded = load_text(text)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def hosts_of(spec: ClusterSpec) -> ClusterInventory:
    """Return its planned hosts."""
    return ClusterInventory(cluster=spec.name, hosts=survey.planned_hosts(spec, "here"))


def wanted_of(text: str = TEXT) -> DesiredObjects:
    """Return what its cluster is to have."""
    spec = spec_of(text)
    return desired_objects(spec, hosts_of(spec), load_catalog())
