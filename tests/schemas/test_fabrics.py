"""Fabric classes of the catalog: complete, true to the machines, and below what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from gcluster.schemas.catalog import Calibration, Fabric, Machine, load_catalog
from gcluster.schemas.derived.floor import floor_gbytes_per_s
from gcluster.schemas.spec.pool import FabricClass

CATALOG = load_catalog()
FABRICS = dict(CATALOG.fabrics.items())
ON_A_FABRIC = {
    name: machine
    for name, machine in CATALOG.machines.items()
    if machine.fabric is not None and not machine.simulated
}
MEASURED = [
    (fabric, seen)
    for fabric in FABRICS.values()
    if fabric.floor is not None
    for seen in fabric.floor.calibrated_by
]


def test_every_class_that_a_spec_can_name_has_an_entry_and_no_other_has() -> None:
    assert set(FABRICS) == set(get_args(FabricClass))


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=lambda fabric: fabric.name)
def test_what_a_class_marks_as_unverified_or_sources_is_a_field_of_it(fabric: Fabric) -> None:
    for path in (*fabric.unverified, *fabric.sources):
        assert hasattr(fabric, path.partition(".")[0])


@pytest.mark.parametrize("machine", ON_A_FABRIC.values(), ids=lambda machine: machine.name)
def test_the_nics_of_a_machine_are_those_of_its_class(machine: Machine) -> None:
    fabric = FABRICS[machine.fabric or ""]

    if fabric.nic_kind is not None and machine.nics is not None:
        cards = [nic for nic in machine.nics if not nic.front_end]
        assert {nic.kind for nic in cards} == {fabric.nic_kind}
        if fabric.nic_gbps is not None and "nic_gbps" not in fabric.unverified:
            assert {nic.gbps for nic in cards} <= {fabric.nic_gbps, None}
    if fabric.providers:
        assert set(machine.sites) <= set(fabric.providers)


@pytest.mark.parametrize(
    ("fabric", "seen"), MEASURED, ids=[f"{f.name}-{s.nodes}-{s.size}" for f, s in MEASURED]
)
def test_no_floor_fails_a_cluster_that_was_measured(fabric: Fabric, seen: Calibration) -> None:
    figure = floor_gbytes_per_s(CATALOG.machines[seen.machine], fabric, seen.nodes)

    assert figure.gbytes_per_s is not None, figure.reason
    assert figure.gbytes_per_s <= seen.busbw_gbytes_per_s


def test_a_class_reports_that_it_has_no_floor_exactly_when_it_has_none() -> None:
    for fabric in FABRICS.values():
        assert (fabric.floor is None) == ("no floor" in " ".join((fabric.note or "").split()))


def test_networks_that_a_class_adds_have_the_class_s_mtu() -> None:
    for fabric in FABRICS.values():
        if fabric.extra_networks is not None:
            assert fabric.extra_networks.mtu == fabric.mtu
            assert fabric.providers == ["gcp"]


def test_the_tables_of_the_documentation_are_the_data() -> None:
    text = (Path(__file__).parents[2] / "docs" / "fabrics.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith("| ---")
    ]

    classes = {row[0]: row[1:] for row in rows if row[0] in FABRICS}
    floors = {row[0]: row[1:] for row in rows if row[0] in CATALOG.machines}
    assert classes == {name: _row(fabric) for name, fabric in FABRICS.items()}
    assert floors
    for name, written in floors.items():
        machine = CATALOG.machines[name]
        figures = [
            floor_gbytes_per_s(machine, FABRICS[machine.fabric or ""], nodes).gbytes_per_s
            for nodes in (1, 2, 16, 64)
        ]
        assert written == [f"{figure:.0f}" for figure in figures if figure is not None]


def _row(fabric: Fabric) -> list[str]:
    floor = fabric.floor
    return [
        fabric.nic_kind or "-",
        "-" if fabric.nic_gbps is None else f"{fabric.nic_gbps:g}",
        fabric.reach or "-",
        ", ".join(fabric.providers) or "any",
        fabric.plugin or "-",
        "-" if floor is None else f"{floor.factor:g} from {floor.from_size}",
    ]


OCI_NCCL = {
    "BM.GPU4.8": "GID_INDEX=3 TC=41 SL=0 QPS_PER_CONNECTION=4",
    "BM.GPU.A100-v2.8": "GID_INDEX=3 TC=41 SL=0 QPS_PER_CONNECTION=4",
    "BM.GPU.H100.8": "GID_INDEX=3 TC=41 SL=0 QPS_PER_CONNECTION=1 SPLIT_DATA_ON_QPS=0 TIMEOUT=22",
    "BM.GPU.H200.8": "GID_INDEX=3 TC=41 SL=0 QPS_PER_CONNECTION=1 SPLIT_DATA_ON_QPS=0 TIMEOUT=22",
    "BM.GPU.B200.8": "GID_INDEX=3 TC=41 SL=0 QPS_PER_CONNECTION=1 SPLIT_DATA_ON_QPS=0 TIMEOUT=22",
}
"""NCCL_IB_* that oracle-quickstart/oci-hpc (commit b5285a6) writes into /etc/nccl.conf by shape."""


@pytest.mark.parametrize(("shape", "written"), OCI_NCCL.items())
def test_oracles_machines_send_on_the_traffic_class_that_oracle_sets(
    shape: str, written: str
) -> None:
    environment = CATALOG.machines[shape].environment or {}

    assert {
        name.removeprefix("NCCL_IB_"): value
        for name, value in environment.items()
        if name.startswith("NCCL_IB_")
    } == dict(word.split("=") for word in written.split())
