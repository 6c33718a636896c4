"""Nodes behind a proxy get it before anything is fetched, and so do the tasks that fetch."""

from __future__ import annotations

import pytest

from gcluster.inventory.bare_metal import bare_metal_hosts
from gcluster.inventory.compile import CompiledCluster, compile_cluster
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.nodes.converge.pending import pending_steps
from gcluster.lifecycle.nodes.converge.playbook import plays
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

_PROXY = "http://10.20.0.3:3128"
_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites:
  hall:
    provider: bare-metal
    ssh: {user: ops}
    network: {cidr: 10.20.0.0/16}
    proxy: {https: "http://10.20.0.3:3128", no_proxy: [.example.edu]}
  annex: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.30.0.0/16}}
links: [{between: [hall, annex], via: routed}]
pools:
  head: {site: hall, role: controller, hosts: [{name: head01, address: 10.20.0.1}]}
  gpu: {site: hall, machine: dgx-h100, hosts: [{name: "gpu[1-2]", address: "10.20.1.[1-2]"}]}
  far: {site: annex, machine: dgx-h100, hosts: [{name: far1, address: 10.30.1.1}]}
scheduler: {type: SCHEDULER}
"""


def _compiled(scheduler: str = "slurm", text: str = _SPEC) -> CompiledCluster:
    spec = load_text(text.replace("SCHEDULER", scheduler)).spec
    assert spec is not None
    hosts = tuple(host for site in spec.sites for host in bare_metal_hosts(spec, site))
    inventory = ClusterInventory(cluster=spec.name, hosts=hosts)
    return compile_cluster(spec, inventory, load_catalog())


@pytest.mark.parametrize("pool", ["head", "gpu"])
def test_the_proxy_is_the_first_item_that_a_node_gets(pool: str) -> None:
    [group] = [group for group in _compiled().groups if group.name == pool]
    first = group.steps[0]

    assert first.key == "proxy.configure"
    assert first.variables["proxy_url"] == _PROXY
    near = first.variables["proxy_exceptions"]
    assert {"10.20.0.0/16", "10.30.0.0/16", "head01", "10.20.0.1", ".example.edu"} <= set(near)
    assert not {"gpu1", "10.20.1.1"} & set(near), "a node more would change all others"


def test_a_site_without_a_proxy_has_none() -> None:
    [group] = [group for group in _compiled().groups if group.name == "far"]

    assert group.environment == {}
    assert "proxy" not in {step.role for step in group.steps}


def test_pods_and_services_are_reached_without_it() -> None:
    [group] = [group for group in _compiled("kubernetes").groups if group.name == "gpu"]
    near = group.steps[0].variables["proxy_exceptions"]

    assert {"10.244.0.0/16", "10.96.0.0/12", ".svc", ".cluster.local"} <= set(near)


def test_tasks_on_those_nodes_run_with_it_and_on_the_others_without() -> None:
    found = plays(pending_steps(_compiled(), {}, {}), {})
    behind = [play for play in found if {"head01", "gpu1"} & set(play["hosts"].split(","))]
    others = [play for play in found if "far1" in play["hosts"].split(",")]

    assert behind
    assert others
    for play in behind:
        assert play["environment"]["https_proxy"] == _PROXY
        assert play["environment"]["HTTPS_PROXY"] == _PROXY
        assert "10.20.0.0/16" in play["environment"]["no_proxy"].split(",")
    assert not any("environment" in play for play in others)
