"""The catalog: every machine type typed, sourced and dated; a user's file goes over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.schemas.catalog import CatalogError, load_catalog

_OWN = """\
apiVersion: gcluster/catalog/v1
machines:
  - name: our-h100
    sites: [bare-metal]
    gpu: {vendor: nvidia, model: H100, memory_gib: 80, count: 4}
    source: purchase order
    date: 2026-01-31
    price: {usd_per_hour: 12.5, source: internal rate, date: 2026-01}
"""


def test_the_machines_of_local_and_on_prem_clusters_are_there() -> None:
    machines = load_catalog().machines

    simulated = {name for name, machine in machines.items() if machine.simulated}
    assert {
        f"sim.{n}" for n in ("h100x8", "h200x8", "b200x8", "mi300x8", "gb200x4", "h100x1")
    } <= simulated
    assert {"hgx-h100-8", "hgx-h200-8", "hgx-b200-8", "mi300x-8", "dgx-h100"} <= set(machines)


def test_a_machine_is_simulated_when_its_name_says_so_and_only_then_local() -> None:
    for name, machine in load_catalog().machines.items():
        assert machine.simulated == name.startswith("sim.")
        assert ("local" in machine.sites) == machine.simulated
        assert ("bare-metal" in machine.sites) != machine.simulated
        assert machine.name == name


def test_a_simulated_name_counts_its_gpus() -> None:
    for name, machine in load_catalog().machines.items():
        if machine.simulated:
            assert machine.gpu is not None
            assert name == f"sim.{machine.gpu.model.removesuffix('X').lower()}x{machine.gpu.count}"


def test_what_is_not_known_is_none() -> None:
    board = load_catalog().machines["hgx-h100-8"]

    assert (board.cpu, board.memory_gib, board.nics, board.power_w, board.price) == (None,) * 5


def test_a_file_of_ones_own_adds_and_overrides(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(_OWN + _OWN.split("machines:\n")[1].replace("our-h100", "dgx-h100"))
    machines = load_catalog([path]).machines

    assert machines["our-h100"].gpu is not None
    assert machines["dgx-h100"].source == "purchase order"
    assert machines["sim.h100x8"] == load_catalog().machines["sim.h100x8"]


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
