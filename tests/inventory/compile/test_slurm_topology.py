"""The topology of nodes, as the files that Slurm reads, for layouts of sites.

`make test-roles` shows the same files (tests/cases/topology.yaml) to a real slurmctld.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jinja2
import msgspec
import pytest
import yaml
from tests.golden_files import CASES, GoldenFiles, case_names, read_cases

from gcluster.inventory.compile.node import node_facts
from gcluster.inventory.compile.slurm import topology
from gcluster.inventory.compile.slurm.elastic import placeholders
from gcluster.inventory.compile.slurm.topology import has_feature, slurm_release
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSoftware, ClusterSpec
from gcluster.schemas.spec.software import Software

sys.path.insert(0, str(Path(__file__).parent))
import golden as goldens

sys.path.pop(0)

CASE_FILE = CASES / "topology.yaml"
TEMPLATES = Path(__file__).parents[3] / "roles/slurm/templates"
NEWEST = "25.11.8"


def spec_of(case: str) -> ClusterSpec:
    loaded = load_text(read_cases(CASE_FILE)[case]["spec"])
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    return loaded.spec


def answer(case: str) -> Any:
    """Return role slurm's variable for a case."""
    spec, catalog = spec_of(case), load_catalog()
    inventory = goldens.inventory_of(spec)
    facts = node_facts(spec, catalog, inventory)
    hosts = [*inventory.with_role("compute"), *placeholders(spec)]
    controllers = [facts[name] for name, pool in spec.pools.items() if pool.role == "controller"]
    return topology.slurm_topology(spec, hosts, catalog, controllers)


def written(told_to_role: Any) -> str:
    """Return the file that the role writes."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    templates = jinja2.Environment(  # noqa: S701  # no HTML
        loader=loader,
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    name = f"topology.{told_to_role.get('format', 'conf')}.j2"
    return templates.get_template(name).render(slurm_managed="...", slurm_topology=told_to_role)


@pytest.mark.parametrize("case", case_names(CASE_FILE))
def test_a_layout_is_the_file_that_is_written_down(case: str, golden: GoldenFiles) -> None:
    golden.check_case(CASE_FILE, case, "conf", written(answer(case)))


@pytest.mark.parametrize("case", ["nvl72-racks", "leaves-below-units"])
def test_a_slurm_that_reads_yaml_gets_it(
    case: str, monkeypatch: pytest.MonkeyPatch, golden: GoldenFiles
) -> None:
    monkeypatch.setattr(topology, "slurm_release", lambda _: NEWEST)
    golden.check_case(CASE_FILE, case, "yaml", written(answer(case)))


def test_the_yaml_reports_what_the_other_file_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "slurm_release", lambda _: NEWEST)
    (result,) = yaml.safe_load(written(answer("nvl72-racks")))
    assert result["cluster_default"] is True
    assert result["block"]["block_sizes"] == [18, 36]
    assert result["block"]["blocks"][1] == {"block": "train-2", "nodes": "gpu[019-036]"}


def test_rails_are_no_switches_of_nodes() -> None:
    assert "mlx5" not in written(answer("hgx-units"))
    assert [group["name"] for group in answer("hgx-units")["groups"]] == ["su1", "su2"]


def test_nodes_of_a_cloud_in_no_placement_leave_it_flat() -> None:
    assert answer("hybrid-spread") == {"type": "flat"}


def test_a_machine_that_is_missing_moves_no_other_to_another_block() -> None:
    spec, catalog = spec_of("elastic-domains"), load_catalog()
    there = goldens.inventory_of(spec).with_role("compute")
    hosts = [*there[:4], *there[5:], *placeholders(spec)]
    result: Any = topology.slurm_topology(spec, hosts, catalog)
    assert [group["nodes"] for group in result["groups"]] == [
        "gpu[001-004,006-018]",
        "gpu[019-036]",
        "gpu[037-054]",
    ]


def test_the_oldest_slurm_of_the_controllers_counts() -> None:
    spec, catalog = spec_of("old-slurm"), load_catalog()
    head = node_facts(spec, catalog)["head"]
    release = slurm_release([head])
    assert release == "22.05.8"
    assert slurm_release([]) is None
    requested = msgspec.structs.replace(spec, software=ClusterSoftware(slurm=NEWEST))
    assert slurm_release([node_facts(requested, catalog)["head"], head]) == release
    assert slurm_release([node_facts(requested, catalog)["head"]]) == NEWEST
    pool = msgspec.structs.replace(spec.pools["head"], software=Software(slurm=NEWEST))
    beside = msgspec.structs.replace(spec, pools={**spec.pools, "head": pool})
    assert slurm_release([node_facts(beside, catalog)["head"]]) == NEWEST
    assert not has_feature(release, "topology/block")
    assert has_feature(None, "topology/block")
