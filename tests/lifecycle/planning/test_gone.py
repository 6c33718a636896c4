"""Nodes of a cloud behind its program's resources: their guards hold as on any other site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from gcluster.lifecycle.cluster.open_site import OpenSite
from gcluster.lifecycle.planning.changes import RemovedNode, SitePlan
from gcluster.lifecycle.planning.guards import removed_nodes
from gcluster.lifecycle.planning.job_impact import removed_with
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.provider import Effect, Resource, ResourceChange
from gcluster.stacks.registry import provider as provider_named

EXAMPLES = Path(__file__).parents[3] / "examples"
CLOUDS = ("aws-p5-slurm", "gcp-a3-mega-slurm", "azure-ndv5-slurm", "oci-h100-slurm")


class Context:
    """The double of what a provider is given: the spec alone is used."""

    def __init__(self, spec: ClusterSpec) -> None:
        """Hold it."""
        self.spec = spec


def spec_of(text: str) -> ClusterSpec:
    spec = load_text(text, file="demo.yaml").spec
    assert spec is not None
    return spec


def lost(provider: Any, before: ClusterSpec, after: ClusterSpec, *changes: ResourceChange) -> Any:
    (name,) = after.sites
    site = OpenSite(name=name, provider=provider, context=cast("Any", Context(after)))
    gone = removed_with(site, changes, before)
    return removed_nodes([SitePlan(site=name, provider="", changes=changes, gone=gone)])


def change(effect: Effect, name: str) -> ResourceChange:
    return ResourceChange(effect=effect, resource=Resource(kind="Instance", name=name))


@pytest.mark.parametrize("example", CLOUDS)
def test_the_nodes_that_a_smaller_pool_loses_are_those_that_go(
    example: str,
) -> None:
    text = (EXAMPLES / f"{example}.yaml").read_text(encoding="utf-8")
    least = re.sub(r"count: (\d+)", lambda message: f"count: {int(message[1]) - 1}", text)
    before, after = spec_of(text), spec_of(least)
    (name, site), *_ = before.sites.items()
    provider = provider_named(site.provider)
    there, wanted = ({r.name for r in provider.graph(s, name).resources} for s in (before, after))
    changes = [change("delete" if one not in wanted else "update", one) for one in sorted(there)]
    hosts = [{h.name for h in provider.planned_hosts(spec, name)} for spec in (before, after)]
    found = lost(provider, before, after, *changes)
    assert {node.name for node in found} == hosts[0] - hosts[1]
    assert not any(node.replaced for node in found)


def test_in_a_cloud_that_can_free_it_a_skipped_machine_goes_and_the_others_stay_as_they_are() -> (
    None
):
    text = (EXAMPLES / "aws-p5-slurm.yaml").read_text(encoding="utf-8")
    before = spec_of(text)
    (pool,) = (name for name, pool in before.pools.items() if pool.count == 2)  # the example's
    after = spec_of(text.replace("count: 2", f"count: 1\n    skip: {pool}001"))
    (name,) = before.sites
    provider = provider_named("aws")
    was, now = ({r.key: r for r in provider.graph(s, name).resources} for s in (before, after))
    gone = was.keys() - now.keys()
    assert {key for key in gone if "001" not in key} == set()
    assert now.keys() <= was.keys()
    hosts = {host.name for host in provider.planned_hosts(after, name)} - {"head", "login"}
    assert hosts == {f"{pool}002"}


def test_a_controller_that_is_recreated_is_one_that_goes() -> None:
    spec = spec_of((EXAMPLES / "aws-p5-slurm.yaml").read_text(encoding="utf-8"))
    (name,) = spec.sites
    provider = provider_named("aws")
    (head,) = (
        resource
        for resource, bought in cast("Any", provider).purchases(spec, name).items()
        if bought.nodes == ("head",)
    )
    found = lost(provider, spec, spec, change("replace", head), change("update", "anything"))
    assert found == (RemovedNode(name="head", pool="head", replaced=True),)


def test_before_the_first_up_nothing_goes() -> None:
    spec = spec_of((EXAMPLES / "aws-p5-slurm.yaml").read_text(encoding="utf-8"))
    site = OpenSite(name="east", provider=provider_named("aws"), context=cast("Any", Context(spec)))
    assert removed_with(site, [change("delete", "anything")], None) == ()
