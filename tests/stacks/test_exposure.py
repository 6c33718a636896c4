"""A watched cluster's cloud lets in SSH from the administrators, and nothing to an exporter.

Inside the cluster's network all ports are open on each cloud, as MPI, EFA and Slurm need them:
there the exporters' certificates keep others out (roles node_exporter and dcgm_exporter).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import gcluster
from gcluster.inventory.compile.system.gpu_metrics import GPU_EXPORTER_PORT
from gcluster.inventory.compile.system.monitoring import EXPORTER_PORT
from gcluster.stacks.registry import clouds

CASES = Path(__file__).parents[1] / "cases/stacks"
STACKS = Path(gcluster.__path__[0]) / "stacks"
PORTS = (EXPORTER_PORT, GPU_EXPORTER_PORT, 9090, 9093)
ALL = (0, 65535)


class Door(NamedTuple):
    """One network, and the ports that it reaches."""

    source: str
    first: int
    last: int


def ports(text: str) -> tuple[int, int]:
    if text in {"*", ""}:
        return ALL
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def aws(rule: dict[str, Any]) -> Iterator[Door]:
    source = rule.get("cidrIpv4") or rule.get("cidrIpv6") or rule["referencedSecurityGroupId"]
    yield Door(source, *((rule["fromPort"], rule["toPort"]) if "toPort" in rule else ALL))


def gcp(rule: dict[str, Any]) -> Iterator[Door]:
    assert rule["direction"] == "INGRESS"
    for source in rule["sourceRanges"]:
        for allowed in rule["allows"]:
            for port in allowed.get("ports", ["*"]):
                yield Door(source, *ports(port))


def azure(group: dict[str, Any]) -> Iterator[Door]:
    for rule in group["securityRules"]:
        assert (rule["direction"], rule["access"]) == ("Inbound", "Allow")
        for source in rule["sourceAddressPrefixes"]:
            yield Door(source, *ports(rule["destinationPortRange"]))


def oci(rule: dict[str, Any]) -> Iterator[Door]:
    if rule["direction"] == "INGRESS":
        to = (rule.get("tcpOptions") or rule.get("udpOptions") or {}).get("destinationPortRange")
        yield Door(rule["source"], *((to["min"], to["max"]) if to else ALL))


READERS = {
    "aws": ("SecurityGroupIngressRule", aws),
    "gcp": ("Firewall", gcp),
    "azure": ("NetworkSecurityGroup", azure),
    "oci": ("NetworkSecurityGroupSecurityRule", oci),
}


def is_inside(source: str, cloud: str) -> bool:
    """Whether a source is a group of the cluster's, or on Google addresses of its networks."""
    if cloud != "gcp":
        return "SecurityGroup/" in source
    return source.startswith(("10.", "100.", "${GlobalAddress/"))


def test_every_cloud_is_looked_at_and_none_opens_more_where_it_is_watched() -> None:
    assert READERS.keys() == set(clouds())
    programs = [path for cloud in clouds() for path in (STACKS / cloud).rglob("*.py")]
    assert programs
    readers = [path for path in programs if "spec.monitoring" in path.read_text(encoding="utf-8")]
    assert readers == []


@pytest.mark.parametrize("cloud", sorted(READERS))
def test_administrators_reach_ssh_and_no_one_outside_reaches_an_exporter(cloud: str) -> None:
    kind, read = READERS[cloud]
    graph = json.loads((CASES / cloud / "graph.json").read_text(encoding="utf-8"))
    rules = [
        made.get("inputs", {})
        for made in graph["resources"]
        if made["type"].rpartition(":")[2] == kind and not made["type"].startswith("gcluster")
    ]
    doors = [door for rule in rules for door in read(rule)]
    outside = [door for door in doors if not is_inside(door.source, cloud)]

    assert {(door.first, door.last) for door in outside} == {(22, 22)}
    assert not any(door.first <= port <= door.last for door in outside for port in PORTS)
