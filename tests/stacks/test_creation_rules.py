"""Whatever order the engine takes, what a service wants first is there first.

Rules are lines of tests/cases/stacks/creation_rules.yaml with their sources. Each site of examples
and cases is replayed in adversarial orders, which its dependencies permit: names first, names last,
and one for each rule that puts off what must come first as long as it may.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.pulumi_double.clouds import InventedCloud
from tests.pulumi_double.replay import replay
from tests.pulumi_double.sites import CloudSite, cloud_sites

from gcluster.stacks.pulumi.recording.graph import RecordedResource

_FILE = Path(__file__).parents[1] / "cases/stacks/creation_rules.yaml"
RULES: list[dict[str, str]] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
SITES = cloud_sites()


def is_of(resource: RecordedResource, kind: str) -> bool:
    cloud, _, name = kind.partition(" ")
    package = "azure-native" if cloud == "azure" else cloud
    token = resource.type
    return token.startswith(f"{package}:") and name in {token, token.rpartition(":")[2]}


def joined(made: RecordedResource, first: RecordedResource, rule: dict[str, str]) -> bool:
    """Whether the two have in common what the rule says; "*" is anything of the site."""
    if "*" in {rule["by"], rule["with"]} and (rule["by"] == "*" or rule["by"] in made.inputs):
        return True
    theirs = _text(made.inputs.get(rule["by"]))
    if rule["with"] in {"id", "name"}:
        return f"/{first.name}." in theirs
    mine = first.inputs.get(rule["with"])
    return isinstance(mine, str) and mine in theirs


def _text(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()


def last(kind: str, kinds: dict[str, RecordedResource]) -> Callable[[list[str]], str]:
    """Return what picks anything before a resource of the kind."""
    return lambda ready: min(ready, key=lambda urn: (is_of(kinds[urn], kind), urn))


def broken(site: CloudSite, folder: Path) -> set[str]:
    graph = site.recorded()
    by_urn = {resource.urn: resource for resource in graph.resources}
    rules = [rule for rule in RULES if any(is_of(r, rule["made"]) for r in graph.resources)]
    orders = [min, max, *(last(rule["after"], by_urn) for rule in rules)]
    found: set[str] = set()
    for number, choose in enumerate(orders):
        cloud = InventedCloud(folder / f"{number}.json")
        order = [made.resource for made in replay(graph, cloud, choose)]
        place = {resource.urn: index for index, resource in enumerate(order)}
        found |= {
            f"{made.name} may be made before {first.name}: {rule['source']}"
            for rule in rules
            for made in order
            if is_of(made, rule["made"])
            for first in order
            if is_of(first, rule["after"]) and joined(made, first, rule)
            if place[first.urn] > place[made.urn]
        }
    return found


@pytest.mark.parametrize("site", SITES, ids=[site.id for site in SITES])
def test_what_a_service_needs_first_is_there_first(site: CloudSite, tmp_path: Path) -> None:
    assert broken(site, tmp_path) == set()


def test_each_rule_is_about_something_that_a_site_makes() -> None:
    made = [resource for site in SITES for resource in site.recorded().resources]
    for rule in RULES:
        for side in ("made", "after"):
            assert any(is_of(resource, rule[side]) for resource in made), rule
