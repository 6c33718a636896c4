"""What expressions see is what the types say: every field is there, in base units, unknown null."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from tests.golden_files import case_names
from tests.schemas.validate_cases import Case, all_cases

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load, load_text
from gcluster.schemas.policies.facts import PLACES, Facts, shapes, written_shape
from gcluster.schemas.policies.policy import Kind
from gcluster.schemas.policies.shape import Shape

from .test_cases import CASE_FILE, spec_of

_ROOT = Path(__file__).parents[3]
_SPECS = sorted((_ROOT / "examples").rglob("*.yaml"))
_KINDS = get_args(Kind)


def _differences(value: Any, shape: Shape, where: str) -> list[str]:
    """Return where data has other fields than its shape says."""
    if isinstance(value, list) and shape.items is not None:
        return [d for item in value for d in _differences(item, shape.items, f"{where}[]")]
    if not isinstance(value, dict):
        return []
    if shape.fields is None and not shape.is_map:
        return [where]
    missing = [f"{where} lacks {name}" for name in shape.fields or {} if name not in value]
    for name, part in value.items():
        inner = shape.field(name)
        missing += (
            [f"{where}.{name}"] if inner is None else _differences(part, inner, f"{where}.{name}")
        )
    return missing


def _facts(path: Path) -> Facts | None:
    loaded = load(path)
    return None if loaded.spec is None else Facts(loaded.spec, load_catalog(loaded.catalogs))


@pytest.mark.parametrize("path", _SPECS, ids=lambda path: str(path.relative_to(_ROOT)))
def test_the_facts_of_a_spec_have_the_fields_that_expressions_are_checked_against(
    path: Path,
) -> None:
    facts = _facts(path)
    if facts is None:  # another file of an example, or a case whose spec is wrong on purpose
        assert path.name != "cluster.yaml"
        return
    _check_fields(facts)


@pytest.mark.parametrize("case", [c for c in all_cases() if c.name == "passes"], ids=str)
def test_the_facts_of_a_golden_case_have_the_same_fields(case: Case) -> None:
    with case.folder() as folder:
        facts = _facts(folder / "spec.yaml")
    assert facts is not None
    _check_fields(facts)


@pytest.mark.parametrize("case", case_names(CASE_FILE))
def test_the_facts_of_a_case_of_policies_have_the_same_fields(case: str) -> None:
    with spec_of(case) as spec:
        facts = _facts(spec)
    assert (facts is None) == (case == "spec-with-errors-is-not-judged")
    if facts is not None:
        _check_fields(facts)


def _check_fields(facts: Facts) -> None:
    for kind in _KINDS:
        expected = shapes(kind)
        for item in facts.items(kind):
            assert set(item.variables) == set(expected)
            for name, shape in expected.items():
                assert _differences(item.variables[name], shape, name) == []


def test_every_kind_of_item_is_a_part_of_the_spec() -> None:
    assert set(PLACES) == set(_KINDS) - {"cluster"}
    for kind in _KINDS:
        fields = written_shape(kind).fields
        assert fields


def test_fields_of_every_provider_and_type_are_there_for_each() -> None:
    site = shapes("site")["site"].fields
    storage = shapes("storage")["storage"].fields
    assert site is not None
    assert storage is not None
    assert {"provider", "region", "ssh", "runtime", "project", "name"} <= set(site)
    assert {"type", "mgs", "bucket", "import", "name", "site"} <= set(storage)


def test_sizes_are_bytes_times_are_seconds_and_shares_of_the_defaults_are_filled_in() -> None:
    loaded = load_text(
        "apiVersion: gcluster/v1\nname: demo\nsites: {lab: {provider: simulated, latency: 2m}}\n"
        "pools:\n  head: {site: lab, role: controller, memory: 2 GiB}\n"
        "  gpu: {site: lab, machine: sim.h100x8, count: 4}\n"
        "scheduler: {type: slurm, partitions: {main: {pools: [gpu], max_time: 1h}}}\n"
    )
    assert loaded.spec is not None
    facts = Facts(loaded.spec, load_catalog())
    (cluster,) = facts.items("cluster")
    head, gpu = (item.variables["pool"] for item in facts.items("pool"))

    assert cluster.variables["sites"][0]["latency"] == 120.0
    assert cluster.variables["partitions"][0]["max_time"] == 3600.0
    assert cluster.variables["cluster"]["smoke"]["allreduce"]["iterations"] == 5
    assert (head["memory"], head["count"], head["machine"]) == (
        2.0**31,
        {"min": 1, "max": 1},
        None,
    )
    assert (gpu["gpus"], gpu["cost"]["usd_per_hour"], gpu["market"]) == (32, 0.0, [])
    assert gpu["site"]["name"] == "lab"
