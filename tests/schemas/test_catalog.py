"""The catalog: every figure typed, sourced and dated; a user's file goes over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest

import gcluster.schemas.catalog
from gcluster.schemas.catalog import (
    CatalogError,
    Fabric,
    Machine,
    ProviderFacts,
    load_catalog,
)
from gcluster.schemas.spec.sites import Site

_FOLDER = Path(str(gcluster.schemas.catalog.__file__)).parent
_CATALOG = load_catalog()
_PROVIDERS = {kind.__struct_config__.tag for kind in get_args(Site)}
_MUST_BE_THERE = (
    "p4d.24xlarge",
    "p4de.24xlarge",
    "p5.48xlarge",
    "p5e.48xlarge",
    "p5en.48xlarge",
    "p6-b200.48xlarge",
    "p6-b300.48xlarge",
    "p6e-gb200.36xlarge",
    "a2-ultragpu-8g",
    "a3-highgpu-8g",
    "a3-megagpu-8g",
    "a3-ultragpu-8g",
    "a4-highgpu-8g",
    "a4x-highgpu-4g",
    "Standard_ND96isr_H100_v5",
    "Standard_ND96isr_H200_v5",
    "Standard_ND96isr_MI300X_v5",
    "Standard_ND128isr_NDR_GB200_v6",
    "BM.GPU.H100.8",
    "hgx-h100-8",
    "hgx-h200-8",
    "hgx-b200-8",
    "mi300x-8",
    "dgx-h100",
    "gb200-nvl72",
    "sim.h100x8",
    "sim.h200x8",
    "sim.b200x8",
    "sim.mi300x8",
    "sim.gb200x4",
    "sim.h100x1",
)
_OWN = """\
apiVersion: gcluster/catalog/v1
machines:
  - name: our-h100
    sites: [bare-metal]
    cpu: {architecture: x86_64}
    gpu: {vendor: nvidia, model: H100, memory_gib: 80, count: 4}
    source: purchase order
    date: 2026-01-31
    prices: [{usd_per_hour: 12.5, source: internal rate, date: 2026-01}]
"""


def _entries() -> Iterator[tuple[str, Machine | Fabric | ProviderFacts]]:
    for kind in ("machines", "families", "fabrics", "providers"):
        for name, entry in getattr(_CATALOG, kind).items():
            yield f"{kind}/{name}", entry


def _fields(entry: object) -> dict[str, object]:
    if isinstance(entry, dict):
        return entry
    assert isinstance(entry, msgspec.Struct)
    return msgspec.structs.asdict(entry)


def _at(entry: object, path: str) -> object:
    """Return the value at a dotted path; LookupError when there is none."""
    for step in path.split("."):
        entry = entry[int(step)] if isinstance(entry, list) else _fields(entry)[step]
        if entry is None:
            raise LookupError(path)
    return entry


@pytest.mark.parametrize("name", _MUST_BE_THERE)
def test_the_types_that_users_build_clusters_of_are_there(name: str) -> None:
    assert _CATALOG.machines[name].gpu is not None


def test_every_file_is_named_after_its_one_entry() -> None:
    for label, entry in _entries():
        assert label.endswith(f"/{entry.name}")
    for kind in ("machines", "fabrics", "providers"):
        files = sorted(path.stem for path in (_FOLDER / kind).rglob("*.yaml"))
        assert files == sorted(getattr(_CATALOG, kind)), kind


@pytest.mark.parametrize(("label", "entry"), list(_entries()), ids=lambda value: str(value)[:40])
def test_sources_and_marks_lead_to_figures_that_are_there(
    label: str, entry: Machine | Fabric | ProviderFacts
) -> None:
    for path in [*entry.sources, *entry.unverified]:
        assert _at(entry, path) not in ([], {}), f"{label}: {path}"


def test_a_path_to_nothing_would_be_found() -> None:
    with pytest.raises(LookupError):
        _at(_CATALOG.machines["hgx-h100-8"], "cpu.vcpus")


def test_every_entry_and_every_price_reports_where_it_comes_from_and_when() -> None:
    for label, entry in _entries():
        assert entry.source.strip(), label
        assert entry.date >= "2024", label
    for machine in _CATALOG.machines.values():
        for price in machine.prices:
            assert price.source.strip(), machine.name
            assert price.date >= "2024", machine.name


def test_machines_name_providers_of_the_spec_and_fabrics_of_the_catalog() -> None:
    for machine in _CATALOG.machines.values():
        assert set(machine.sites) <= _PROVIDERS, machine.name
        assert machine.fabric is None or machine.fabric in _CATALOG.fabrics, machine.name
    assert set(_CATALOG.providers) <= _PROVIDERS


def test_the_nics_of_a_machine_are_of_the_kind_and_speed_of_its_fabric() -> None:
    for machine in _CATALOG.machines.values():
        fabric = _CATALOG.fabrics[machine.fabric] if machine.fabric else None
        if fabric is None or not fabric.rdma:
            continue
        cards = [nic for nic in machine.nics or () if not nic.front_end]
        assert {nic.kind for nic in cards} == {fabric.nic_kind}, machine.name
        if fabric.nic_gbps is not None:
            assert {nic.gbps for nic in cards} == {fabric.nic_gbps}, machine.name


def test_rails_that_are_named_are_as_many_as_the_machine_has() -> None:
    named = [nic for m in load_catalog().machines.values() for nic in m.nics or () if nic.devices]
    assert named
    assert [nic for nic in named if len(set(nic.devices)) != nic.count or nic.front_end] == []


def test_gpus_are_sold_in_markets_of_their_provider() -> None:
    for machine in _CATALOG.machines.values():
        if machine.gpu is None:
            continue
        for site in set(machine.sites) & set(_CATALOG.providers):
            sold = set(_CATALOG.providers[site].markets)
            assert set(machine.markets or ()) <= sold, machine.name
            priced = {price.market for price in machine.prices}
            assert priced <= set(machine.markets or ()), machine.name


def test_prices_and_zones_are_in_regions_of_the_provider() -> None:
    for machine in _CATALOG.machines.values():
        for site in set(machine.sites) & set(_CATALOG.providers):
            regions = _CATALOG.providers[site].regions
            names = {region.name for region in regions}
            listed = {zone for region in regions for zone in region.zones}
            assert {price.region for price in machine.prices} <= {None, *names}, machine.name
            for zone in machine.zones or ():
                begins = any(zone.startswith(f"{name}-") for name in names)
                assert zone in listed or begins, f"{machine.name}: {zone}"


def test_a_machine_is_simulated_when_its_name_matches_and_only_then_local() -> None:
    for name, machine in _CATALOG.machines.items():
        assert machine.simulated == name.startswith("sim.")
        assert ("local" in machine.sites) == machine.simulated


def test_a_simulated_name_counts_its_gpus() -> None:
    for name, machine in _CATALOG.machines.items():
        if machine.simulated:
            assert machine.gpu is not None
            assert name == f"sim.{machine.gpu.model.removesuffix('X').lower()}x{machine.gpu.count}"


def test_controllers_of_clouds_have_machines_without_a_gpu() -> None:
    plain = [machine for machine in _CATALOG.machines.values() if machine.gpu is None]
    assert {"aws", "gcp", "azure", "oci"} <= {site for machine in plain for site in machine.sites}


def test_what_is_not_known_is_none() -> None:
    board = _CATALOG.machines["hgx-h100-8"]

    assert (board.cpu.vcpus, board.memory_gib, board.nics, board.power_w) == (None,) * 4
    assert board.price() is None


def test_lustre_steps_are_those_of_the_service() -> None:
    offers = _CATALOG.providers["aws"].lustre
    steps = {
        offer.throughput_mb_per_s_per_tib: offer.step_gib
        for offer in offers
        if offer.efa and offer.deployment == "persistent-2"
    }
    assert steps == {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
    assert all(offer.minimum_gib % offer.step_gib == 0 for offer in offers)


def test_a_file_of_ones_own_adds_and_overrides(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(_OWN + _OWN.split("machines:\n")[1].replace("our-h100", "dgx-h100"))
    machines = load_catalog([path]).machines

    assert machines["our-h100"].gpu is not None
    assert machines["dgx-h100"].source == "purchase order"
    assert machines["sim.h100x8"] == _CATALOG.machines["sim.h100x8"]
    assert _CATALOG.machines["dgx-h100"].source != "purchase order"


@pytest.mark.parametrize(
    ("right", "wrong", "summary"),
    [
        ("memory_gib: 80", "memory: 80", "unknown key"),
        ("count: 4", "count: four", "expected a whole number"),
        ("    source: purchase order\n", "", 'missing key "source"'),
    ],
)
def test_a_wrong_file_is_located(tmp_path: Path, right: str, wrong: str, summary: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(_OWN.replace(right, wrong))
    with pytest.raises(CatalogError, match=summary) as caught:
        load_catalog([path])

    assert caught.value.diagnostics[0].file == str(path)
    assert caught.value.diagnostics[0].span is not None


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="does not exist"):
        load_catalog([tmp_path / "none.yaml"])
