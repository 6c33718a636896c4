"""Power of nodes, racks and halls is what is published, and what is assumed is said."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.size.power import BTU_PER_KWH, Hall, Power, power
from gcluster.schemas.catalog import load_catalog


def _power(name: str, nodes: int, hall: Hall = Hall(pue=1.0), **rest: float) -> Power:  # noqa: B008
    found = power(load_catalog().machines[name], nodes, hall=hall, **rest)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_a_dgx_h100_is_rated_at_10_2_kw_and_draws_8_4_while_training() -> None:
    found = _power("dgx-h100", 1)
    assert found.rated_kw == 10.2
    assert found.drawn_kw == pytest.approx(8.4, abs=0.05)  # arXiv 2412.08602
    assert found.basis == "catalog"


def test_a_rack_of_nvl72_draws_120_to_132_kw_and_is_cooled_by_liquid() -> None:
    found = _power("gb200-nvl72", 18)
    assert found.racks == 1
    assert 119 <= found.rack_kw <= 132
    assert found.cooling == "liquid"


def test_ten_thousand_h100_are_7_mw_of_gpus_and_nearly_13_of_nodes() -> None:
    found = _power("dgx-h100", 1250)
    assert found.gpus_kw == pytest.approx(7000)
    assert found.rated_kw == pytest.approx(12_750)
    assert found.btu_per_h == pytest.approx(12_750 * BTU_PER_KWH)


def test_a_clouds_machine_is_taken_for_the_vendors_node_with_its_gpus() -> None:
    found = _power("p5.48xlarge", 1)
    assert found.basis == "similar"
    assert found.rated_kw == 10.2


def test_the_hall_and_the_grid_are_the_users_to_report() -> None:
    found = _power("dgx-h100", 8, Hall(pue=1.2, rack_kw=22, kg_co2_per_kwh=0.4), days=10)
    assert found.hall_kw == pytest.approx(8 * 10.2 * 1.2)
    assert (found.racks, found.nodes_a_rack, found.cooling) == (4, 2, "air")
    assert found.kwh == pytest.approx(8 * 10.2 * 0.76 * 1.2 * 240)
    assert found.kg_co2 == pytest.approx((found.kwh or 0) * 0.4)


def test_a_cloud_has_its_own_pue_and_a_hall_of_ones_own_the_average() -> None:
    catalog = load_catalog()
    machine, facts = catalog.machines["p5.48xlarge"], catalog.providers["aws"]
    cloud = power(machine, 1, hall=Hall(), facts=facts, region="us-east-1")
    own = power(catalog.machines["dgx-h100"], 1, hall=Hall())
    assert cloud is not None
    assert own is not None
    assert (cloud.pue, own.pue) == (facts.pue, 1.56)


def test_of_a_machine_of_which_nothing_is_known_nothing_is_reported() -> None:
    machine = load_catalog().machines["dgx-h100"]
    assert machine.gpu is not None
    other = msgspec.structs.replace(machine.gpu, model="X1", power_w=None)
    bare = msgspec.structs.replace(machine, power_w=None, gpu=other)
    assert power(bare, 1, hall=Hall()) is None
    known = msgspec.structs.replace(bare, gpu=msgspec.structs.replace(other, power_w=500.0))
    found = power(known, 1, hall=Hall())
    assert found is not None
    assert (found.basis, found.rated_kw, found.drawn_kw) == ("gpus", 4.0, 4.0)


@given(st.integers(1, 5000), st.floats(1, 2), st.floats(1, 200))
def test_more_machines_and_a_worse_hall_never_draw_less(
    nodes: int, pue: float, rack_kw: float
) -> None:
    hall = Hall(pue=pue, rack_kw=rack_kw)
    less, more = _power("dgx-h100", nodes, hall), _power("dgx-h100", nodes + 1, hall)
    assert less.hall_kw < more.hall_kw
    assert less.racks <= more.racks
    assert less.racks * less.nodes_a_rack >= nodes
    assert less.hall_kw <= _power("dgx-h100", nodes, Hall(pue=pue + 0.1)).hall_kw
