"""What a cloud refuses without something else is made after it, whatever the engine does at once.

Resources that nothing joins are made in any order. The graphs are recorded from the real programs.
"""

from __future__ import annotations

import pytest
from tests.stacks.recorded_graph import Graph

from gcluster.stacks.pulumi.recording.graph import RecordedResource
from gcluster.stacks.registry import provider

from .test_file_systems import CLOUDS, spec_of

FILE_SYSTEM = {
    "aws": "LustreFileSystem",
    "gcp": "gcp:lustre/instance:Instance",
    "azure": "AmlFilesystem",
    "oci": "FileStorageLustreFileSystem",
}
GROUPS = {"aws": "securityGroupIds", "oci": "nsgIds"}
RULES = {
    "aws": ("SecurityGroupIngressRule", "SecurityGroupEgressRule"),
    "oci": ("NetworkSecurityGroupSecurityRule",),
}
GROUP_OF_RULE = {"aws": "securityGroupId", "oci": "networkSecurityGroupId"}
NETWORK = {"gcp": "Connection", "azure": "VirtualNetwork"}
"""What a file system is in where it has no group: Google's private services access; the
subnet of Azure's has no rules of its own."""


def graph_of(cloud: str) -> Graph:
    recorded = provider(cloud).record(spec_of(cloud, CLOUDS[cloud][2]), "here")
    assert recorded is not None
    return Graph(recorded)


def everything_before(graph: Graph, resource: RecordedResource) -> set[str]:
    """Return the names of all that is there when a resource is made."""
    found: set[str] = set()
    todo = [resource]
    while todo:
        todo = [n for r in todo for n in graph.needs(r) if n.name not in found]
        found |= {need.name for need in todo}
    return found


@pytest.mark.parametrize("cloud", sorted(RULES))
def test_a_file_system_is_made_when_all_rules_of_its_groups_are(cloud: str) -> None:
    graph = graph_of(cloud)
    system = graph.only(FILE_SYSTEM[cloud])
    groups = system.inputs[GROUPS[cloud]]
    assert isinstance(groups, list)
    rules = {
        rule.name
        for kind in RULES[cloud]
        for rule in graph.of_type(kind)
        if rule.inputs[GROUP_OF_RULE[cloud]] in groups
    }
    assert len(rules) >= 2
    assert rules <= everything_before(graph, system)


@pytest.mark.parametrize("cloud", sorted(NETWORK))
def test_a_file_system_is_made_when_its_network_lets_it_in(cloud: str) -> None:
    graph = graph_of(cloud)
    opened = {resource.name for resource in graph.of_type(NETWORK[cloud])}
    assert opened
    assert opened <= everything_before(graph, graph.only(FILE_SYSTEM[cloud]))
