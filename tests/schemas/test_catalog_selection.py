"""Looking for machine types, and the figures of one with where each comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.schemas.catalog import Catalog, load_catalog
from gcluster.schemas.catalog.figures import figures, is_unverified
from gcluster.schemas.catalog.selection import MachineFilter, offers, unknown_words

_OWN = """\
apiVersion: gcluster/catalog/v1
providers:
  - name: gcp
    source: made up for the test
    date: 2026-11
    regions: [{name: moon1}, {name: moon2}]
machines:
  - name: a
    sites: [gcp]
    cpu: {architecture: x86_64}
    gpu: {vendor: nvidia, model: T1, memory_gib: 10, count: 8}
    nics: [{kind: gvnic, count: 2, gbps: 100}, {kind: gvnic, count: 1, gbps: 10, front_end: true}]
    zones: [moon1-a]
    markets: [on-demand, spot]
    prices:
      - {usd_per_hour: 80, region: moon1, source: S1, date: 2026-01}
      - {usd_per_hour: 8, market: spot, region: moon1, source: S2, date: 2026-02}
    source: S0
    date: 2026-11
    sources: {nics: {source: S3, date: 2026-03}, nics.0.gbps: {source: S4, date: 2026-04}}
    unverified: [nics.0.gbps, prices.1.usd_per_hour]
  - name: b
    sites: [gcp]
    cpu: {architecture: x86_64}
    gpu: {vendor: nvidia, model: T1, memory_gib: 40, count: 4}
    markets: [spot]
    prices:
      - {usd_per_hour: 20, market: on-demand, region: moon1, source: S1, date: 2026-01}
      - {usd_per_hour: 30, market: on-demand, region: moon2, source: S1, date: 2026-01}
    source: S0
    date: 2026-11
  - name: c
    sites: [bare-metal, simulated]
    cpu: {architecture: x86_64}
    cloud: oci
    gpu: {vendor: nvidia, model: T1, memory_gib: 20, count: 16}
    source: S0
    date: 2026-11
"""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    path = Path(tmp_path_factory.mktemp("catalog")) / "own.yaml"
    path.write_text(_OWN, encoding="utf-8")
    return load_catalog([path])


def _names(catalog: Catalog, wanted: MachineFilter, order: str | None = None) -> list[str]:
    return [offer.machine.name for offer in offers(catalog, wanted, order)]  # type: ignore[arg-type]  # words of the test


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (MachineFilter(gpu="t1"), ["a", "b", "c"]),
        (MachineFilter(gpu="8xT1"), ["a"]),
        (MachineFilter(gpu="t1", cloud="GCP"), ["a", "b"]),
        (MachineFilter(gpu="t1", cloud="oci"), ["c"]),
        (MachineFilter(gpu="t1", cloud="metal"), ["c"]),
        (MachineFilter(gpu="t1", market="spot"), ["a", "b"]),
        (MachineFilter(gpu="t1", market="on-demand"), ["a"]),
        (MachineFilter(gpu="t1", fabric="gib"), []),
    ],
)
def test_words_narrow_the_list(catalog: Catalog, wanted: MachineFilter, names: list[str]) -> None:
    assert _names(catalog, wanted) == names


def test_a_region_leaves_out_only_what_is_known_not_to_be_there(catalog: Catalog) -> None:
    assert _names(catalog, MachineFilter(gpu="t1", region="moon1")) == ["a", "b"]
    assert _names(catalog, MachineFilter(gpu="t1", region="moon2")) == ["b"]


def test_the_price_is_the_lowest_of_the_market_and_region(catalog: Catalog) -> None:
    def price(**words: str) -> dict[str, float | None]:
        found = offers(catalog, MachineFilter(gpu="t1", **words))  # type: ignore[arg-type]  # words
        return {o.machine.name: o.price.usd_per_hour if o.price else None for o in found}

    assert price() == {"a": 80, "b": 20, "c": None}
    assert price(region="moon2") == {"b": 30}
    assert price(market="spot") == {"a": 8, "b": None}


def test_the_price_of_a_gpu_is_a_part_of_the_node_s(catalog: Catalog) -> None:
    assert [o.usd_per_gpu_hour for o in offers(catalog, MachineFilter(gpu="t1"))] == [10, 5, None]


def test_front_end_nics_are_not_counted_as_fabric(catalog: Catalog) -> None:
    assert [o.fabric_gbps for o in offers(catalog, MachineFilter(gpu="8xt1"))] == [200]


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("price", ["b", "a", "c"]),
        ("gpus", ["c", "a", "b"]),
        ("memory", ["c", "b", "a"]),
        ("name", ["a", "b", "c"]),
    ],
)
def test_orders_put_what_is_not_known_last(catalog: Catalog, order: str, names: list[str]) -> None:
    assert _names(catalog, MachineFilter(gpu="t1"), order) == names


def test_simulated_machines_cost_nothing_and_still_come_last() -> None:
    found = offers(load_catalog(), MachineFilter(), "price")
    simulated = [offer.machine.simulated for offer in found]
    assert simulated == sorted(simulated)
    assert any(simulated)


@pytest.mark.parametrize(
    ("wanted", "option", "near"),
    [
        (MachineFilter(gpu="h10"), "gpu", "H100"),
        (MachineFilter(gpu="8xmi300"), "gpu", "MI300X"),
        (MachineFilter(cloud="amazon"), "cloud", None),
        (MachineFilter(fabric="infiniband-nrd"), "fabric", "infiniband-ndr"),
        (MachineFilter(region="us-eats-1"), "region", "us-east-1"),
    ],
)
def test_an_unknown_name_gets_the_nearest(
    wanted: MachineFilter, option: str, near: str | None
) -> None:
    (unknown,) = unknown_words(load_catalog(), wanted)
    assert (unknown.option, unknown.near) == (option, near)


def test_names_as_the_table_writes_them_are_known() -> None:
    for wanted in (
        MachineFilter(cloud="metal"),
        MachineFilter(fabric="ib-ndr"),
        MachineFilter(fabric="tcpxo"),
        MachineFilter(gpu="gb200", cloud="aws"),
    ):
        assert list(unknown_words(load_catalog(), wanted)) == []
        assert offers(load_catalog(), wanted)


def test_a_figure_has_the_closest_source(catalog: Catalog) -> None:
    found = {figure.path: figure for figure in figures(catalog.machines["a"])}

    assert (found["gpu.count"].source, found["gpu.count"].date) == ("S0", "2026-11")
    assert found["nics.1.count"].source == "S3"
    assert found["nics.0.gbps"].source == "S4"
    assert found["prices.1.usd_per_hour"].source == "S2"
    assert [path for path, figure in found.items() if figure.unverified] == [
        "nics.0.gbps",
        "prices.1.usd_per_hour",
    ]


def test_a_mark_on_a_part_marks_the_whole_and_the_other_way_round(catalog: Catalog) -> None:
    machine = catalog.machines["a"]
    assert is_unverified(machine, "nics")
    assert is_unverified(machine, "nics.0.gbps")
    assert not is_unverified(machine, "nics.1")
    assert not is_unverified(machine, "gpu")


def test_every_machine_of_the_catalog_shows_its_figures() -> None:
    for machine in load_catalog().machines.values():
        answer = figures(machine)
        assert answer
        assert all(figure.source and figure.date for figure in answer), machine.name
        marked = {figure.path for figure in answer if figure.unverified}
        for mark in machine.unverified:
            assert any(path == mark or path.startswith(f"{mark}.") for path in marked), mark
