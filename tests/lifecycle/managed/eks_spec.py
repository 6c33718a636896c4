"""Specs whose control plane a cloud runs."""

from __future__ import annotations

from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

EKS = """\
apiVersion: gcluster/v1
name: demo
sites:
  here:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}
pools:
  cpu: {site: here, machine: m7i.4xlarge, count: 2}
  door: {site: here, role: login, public_address: true}
scheduler: {type: kubernetes, control_plane: eks, kueue: false}
smoke: {allreduce: {image: "registry.example.edu/allreduce:1.4"}}
"""
IMAGE = 'smoke: {allreduce: {image: "registry.example.edu/allreduce:1.4"}}\n'


def spec_of(text: str = EKS, *, check: bool = True) -> ClusterSpec:
    """Return a spec that has no errors, of meaning only with `check`."""
    loaded = load_text(text, file="cluster.yaml", check=check)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec
