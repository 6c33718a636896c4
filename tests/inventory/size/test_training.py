"""Layouts that fit, machines that are enough, and what they cost."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcluster.inventory.size.constants import constants
from gcluster.inventory.size.explanation import bottleneck, explanation
from gcluster.inventory.size.layout import layouts
from gcluster.inventory.size.model import presets
from gcluster.inventory.size.training import Measured, Plan, Workload, levers, plan, scaling
from gcluster.schemas.catalog import Machine, load_catalog

DAY = 86_400.0


def _machine(name: str) -> Machine:
    return load_catalog().machines[name]


def _work(name: str = "llama-3-8b", **changes: object) -> Workload:
    return Workload(model=presets()[name], sequence=4096, **changes)  # type: ignore[arg-type]


def _plan(work: Workload, machine: str = "p5.48xlarge", nodes: int | None = None) -> Plan:
    return plan(work, _machine(machine), constants(), nodes=nodes)


def test_every_layout_uses_all_gpus_and_keeps_tp_inside_the_domain() -> None:
    model = presets()["llama-3-405b"]
    found = [*layouts(model, gpus=1024, domain=8, sequence=8192, sequences=512)]
    assert len(found) == len(set(map(msgspec.json.encode, found))) > 100
    assert all(each.gpus == 1024 and each.tp <= 8 for each in found)
    assert all(512 * 0.5 <= each.sequences <= 512 * 1.25 for each in found)


def test_70b_does_not_fit_on_one_node_and_what_it_lacks_is_reported() -> None:
    found = _plan(_work("llama-3-70b"), nodes=1)
    assert found.best is None
    assert found.closest is not None
    assert found.closest.lacks > 10e9


def test_70b_is_fine_tuned_by_adapters_on_one_node_as_tp4_dp2() -> None:
    found = _plan(_work("llama-3-70b", method="lora", batch_tokens=2**19), nodes=1)
    assert "TP4 DP2" in {each.layout.text for each in found.fitting}


def test_without_a_number_the_fewest_machines_are_taken_that_fit() -> None:
    found = _plan(_work("llama-3-70b"))
    assert found.best is not None
    assert found.nodes > 1
    assert _plan(_work("llama-3-70b"), nodes=found.nodes - 1).best is None


def test_a_deadline_is_met_by_the_fewest_machines_that_are_tried() -> None:
    work = _work(tokens=1e12, deadline_s=30 * DAY)
    found = _plan(work)
    assert found.run is not None
    assert found.run.meets_deadline
    fewer = _plan(work, nodes=found.nodes - 1)
    assert fewer.run is not None
    assert not fewer.run.meets_deadline


def test_a_deadline_that_no_number_meets_is_missed_and_not_hidden() -> None:
    found = _plan(_work(tokens=1e15, deadline_s=DAY))
    assert found.run is not None
    assert found.run.meets_deadline is False


def test_a_board_whose_nics_are_not_known_is_sized_on_one_node_alone() -> None:
    assert "NICs" in _plan(_work(), "hgx-h100-8", nodes=2).why_not
    assert _plan(_work(), "hgx-h100-8", nodes=1).best is not None


def test_fp8_is_refused_where_a_gpu_has_no_units_for_it() -> None:
    assert "fp8" in _plan(_work(precision="fp8"), "p4de.24xlarge", nodes=1).why_not


def test_every_figure_of_a_plan_has_a_formula_and_a_source() -> None:
    work = _work("mixtral-8x7b", tokens=1e12)
    found = _plan(work)
    rows = explanation(work, _machine("p5.48xlarge"), found, constants())
    assert {"parameters", "activations", "step: compute", "MFU", "days", "cost"} <= {
        row.what for row in rows
    }
    assert all(row.value and row.formula and row.source for row in rows)


def test_arithmetic_holds_a_step_up_where_it_is_most_of_it() -> None:
    best = _plan(_work(), nodes=1).best
    assert best is not None
    assert bottleneck(best.time) == "compute"


def test_the_range_of_days_holds_what_is_predicted() -> None:
    for name in ("llama-3-8b", "mixtral-8x7b"):
        run = _plan(_work(name, tokens=1e12), nodes=16).run
        assert run is not None
        assert run.days_at_least <= run.days <= run.days_at_most


@given(st.sampled_from([40, 80, 141, 180]), st.floats(1.0, 3.0))
@settings(max_examples=20)
def test_more_memory_never_lets_fewer_layouts_fit(gib: int, factor: float) -> None:
    machine = _machine("p5.48xlarge")
    assert machine.gpu is not None
    small, large = (
        msgspec.structs.replace(
            machine, gpu=msgspec.structs.replace(machine.gpu, memory_gib=gib * each)
        )
        for each in (1.0, factor)
    )
    work = _work("llama-3-70b")
    less, more = (plan(work, each, constants(), nodes=4) for each in (small, large))
    assert less.fits <= more.fits
    if less.best is not None:
        assert more.best is not None
        assert less.best.tokens_per_s <= more.best.tokens_per_s


@given(st.floats(0.1, 1000), st.floats(1.0, 10.0))
@settings(max_examples=20)
def test_a_dearer_machine_never_makes_a_run_cheaper(usd: float, factor: float) -> None:
    machine = _machine("p5.48xlarge")
    work = _work(tokens=1e11)
    costs = []
    for rate in (usd, usd * factor):
        prices = [msgspec.structs.replace(machine.prices[0], usd_per_hour=rate)]
        run = plan(work, msgspec.structs.replace(machine, prices=prices), constants(), nodes=2).run
        assert run is not None
        assert run.usd is not None
        costs.append(run.usd)
    assert costs[0] <= costs[1]
    assert costs[1] == pytest.approx(costs[0] * factor)


def test_one_node_of_a_board_is_shown_though_it_is_late_where_more_cannot_be_sized() -> None:
    found = _plan(_work(tokens=1e13, deadline_s=DAY), "hgx-h100-8")
    assert found.nodes == 1
    assert found.run is not None
    assert found.run.meets_deadline is False


def test_storage_that_delivers_too_little_is_the_bottleneck_and_more_of_it_moves_the_step() -> None:
    fast, slow = _plan(_work(), nodes=4), _plan(_work(token_bytes=5000.0, read=1e9), nodes=4)
    assert fast.best is not None
    assert slow.best is not None
    assert fast.best.time.input == 0
    assert bottleneck(slow.best.time) == "input"
    assert slow.best.layout == fast.best.layout
    tokens = slow.best.layout.sequences * 4096
    assert slow.best.time.total == pytest.approx(tokens * 5000.0 / 1e9)
    work = _work(token_bytes=5000.0, read=1e9)
    found = levers(work, _machine("p5.48xlarge"), slow.best, constants())
    assert found[0].name == "storage, reading"
    assert found[0].half == pytest.approx(1.0)


def test_storage_that_takes_a_checkpoint_slowly_costs_goodput() -> None:
    slow, fast = (_plan(_work(tokens=1e12, write=write), nodes=4) for write in (1e8, 1e11))
    assert slow.reliability is not None
    assert fast.reliability is not None
    size = slow.reliability.checkpoint_bytes
    assert slow.reliability.checkpoint_s == pytest.approx(size / 1e8)
    assert slow.reliability.goodput < fast.reliability.goodput


def test_the_bandwidth_of_a_certificate_counts_for_its_machine_alone() -> None:
    seen = Measured(
        cluster="lab", time="2026-11-01", machine="p5.48xlarge", between=40e9, inside=None
    )
    work = _work("llama-3-70b")
    ours, theirs = (
        _plan(msgspec.structs.replace(work, measured=each), nodes=16) for each in (seen, None)
    )
    assert ours.best is not None
    assert theirs.best is not None
    assert ours.best.time.total > theirs.best.time.total
    other = msgspec.structs.replace(work, measured=seen)
    assert _plan(other, "dgx-h100", 16) == _plan(work, "dgx-h100", 16)


def test_a_thin_spine_makes_no_run_faster() -> None:
    work = _work("llama-3-70b")
    thin = msgspec.structs.replace(work, oversubscription=8.0, leaf_nodes=1)
    slow, fast = _plan(thin, nodes=16), _plan(work, nodes=16)
    assert slow.best is not None
    assert fast.best is not None
    assert slow.best.time.total > fast.best.time.total


def test_a_curve_of_scaling_rises_and_is_no_better_than_in_proportion() -> None:
    curve = scaling(_work(), _machine("p5.48xlarge"), constants(), 8)
    assert [gpus for gpus, _ in curve] == [16, 32, 64, 128, 256]
    rates = [rate / gpus for gpus, rate in curve]
    assert rates == sorted(rates, reverse=True)


def test_days_rates_and_prices_agree_in_their_units() -> None:
    found = _plan(_work(tokens=1e12), nodes=8)
    run, best, risk = found.run, found.best, found.reliability
    assert run is not None
    assert best is not None
    assert risk is not None
    assert best.tokens_per_s * risk.goodput * run.days * DAY == pytest.approx(1e12)
    assert run.usd == pytest.approx((found.usd_per_hour or 0) * run.days * 24)
    assert best.tokens_per_s * best.time.total == pytest.approx(best.layout.sequences * 4096)
