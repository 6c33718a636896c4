"""Step times follow the formulas, and obey the laws that any network and pipeline obeys."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.size.accelerator import Accelerator, Ring, accelerator, gather_s, ring
from gcluster.inventory.size.constants import constants
from gcluster.inventory.size.layout import Layout
from gcluster.inventory.size.model import presets
from gcluster.inventory.size.step_time import StepTime, step_time
from gcluster.schemas.catalog import load_catalog

MODEL = presets()["llama-3-70b"]


def _gpu(name: str = "dgx-h100") -> Accelerator:
    found = accelerator(load_catalog().machines[name])
    assert isinstance(found, Accelerator)
    return found


def _time(layout: Layout, gpu: Accelerator, *, model: str = "llama-3-70b") -> StepTime:
    found = step_time(
        presets()[model], layout, gpu, constants().fitted, sequence=8192, precision="bf16"
    )
    assert isinstance(found, StepTime)
    return found


def test_the_figures_of_a_machine_are_those_of_the_catalog() -> None:
    gpu = _gpu()
    assert gpu.memory == 80 * 2**30
    assert gpu.nvlink == 480e9
    assert gpu.nic == 50e9
    assert gpu.domain == gpu.per_node == 8


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        ("m7i.xlarge", "no GPU"),
        ("sim.h100x8", "simulated"),
        ("mi300x-8", "MI300X"),
    ],
)
def test_what_is_not_known_of_a_machine_is_reported(machine: str, why: str) -> None:
    found = accelerator(load_catalog().machines[machine])
    assert isinstance(found, str)
    assert why in found


def test_an_allgather_takes_alpha_for_each_doubling_and_n_minus_1_nths_of_the_bytes() -> None:
    assert gather_s(Ring(100e9, 1e-5), 8, 8e9) == pytest.approx(3e-5 + 7 / 8 * 8e9 / 100e9)
    assert gather_s(Ring(100e9, 1e-5), 1, 8e9) == 0


def test_a_group_in_a_domain_uses_nvlink_and_one_beyond_it_all_nics_of_its_members() -> None:
    gpu = _gpu()
    inside, beyond, alone = ring(gpu, 8, 8), ring(gpu, 16, 16), ring(gpu, 64, 8)
    assert inside is not None
    assert inside.bandwidth == 480e9
    assert beyond is not None
    assert beyond.bandwidth == 8 * 50e9
    assert alone is not None
    assert alone.bandwidth == 50e9


def test_the_bubble_is_p_minus_1_of_v_m() -> None:
    layout = Layout(tp=8, pp=8, dp=1, micro_batches=32)
    plain, chunked = (
        _time(layout, _gpu()),
        _time(msgspec.structs.replace(layout, chunks=5), _gpu()),
    )
    rest = plain.compute + plain.memory + plain.tensor + plain.pipeline
    assert plain.bubble == pytest.approx(7 / 32 * rest, rel=0.02)
    assert chunked.bubble < plain.bubble / 3


def test_a_machine_without_known_nics_has_no_time_beyond_its_domain() -> None:
    gpu = msgspec.structs.replace(_gpu(), nic=None)
    found = step_time(
        MODEL, Layout(tp=8, dp=2), gpu, constants().fitted, sequence=8192, precision="bf16"
    )
    assert found == "the speed of the NICs is not known"


def test_llama_3_at_16384_gpus_takes_what_its_authors_measured() -> None:
    # arXiv 2407.21783, table 4: 400 TFLOP/s a GPU; this row was set apart from the fit
    layout = Layout(tp=8, pp=16, dp=128, chunks=4, micro_batches=16)
    found = _time(layout, _gpu(), model="llama-3-405b").total
    flops = presets()["llama-3-405b"].flops_per_token(8192) * 8192 * 2048
    assert flops / found / 16384 == pytest.approx(400e12, rel=0.1)


LAYOUTS = st.builds(
    Layout,
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4, 8]),
    cp=st.sampled_from([1, 2, 4]),
    dp=st.sampled_from([1, 2, 16, 64]),
    micro_batches=st.sampled_from([1, 8, 32]),
    sharding=st.sampled_from(["optimizer", "full"]),
    recompute=st.sampled_from(["none", "full"]),
)
MODELS = st.sampled_from(["llama-3-70b", "deepseek-v3", "gpt-3-175b"])


@given(LAYOUTS, MODELS, st.sampled_from(["nic", "nvlink", "hbm", "bf16"]), st.floats(1, 20))
def test_more_bandwidth_and_more_arithmetic_are_never_slower(
    layout: Layout, model: str, which: str, factor: float
) -> None:
    gpu = _gpu()
    better = msgspec.structs.replace(gpu, **{which: getattr(gpu, which) * factor})
    now = _time(layout, gpu, model=model).total
    assert _time(layout, better, model=model).total <= now * (1 + 1e-12)


@given(LAYOUTS, MODELS)
def test_no_part_of_a_step_is_negative_and_together_they_are_the_step(
    layout: Layout, model: str
) -> None:
    found = _time(layout, _gpu(), model=model)
    assert all(seconds >= 0 for seconds in found.parts.values())
    assert sum(found.parts.values()) == pytest.approx(found.total)


@given(LAYOUTS)
def test_recomputing_is_never_faster(layout: Layout) -> None:
    again = _time(msgspec.structs.replace(layout, recompute="full"), _gpu()).total
    assert again >= _time(msgspec.structs.replace(layout, recompute="none"), _gpu()).total


@given(
    ratio=st.floats(1, 8),
    leaf=st.integers(1, 64),
    more=st.floats(1, 4),
    members=st.sampled_from([2, 8, 64]),
    stride=st.sampled_from([1, 8, 16]),
)
def test_a_thinner_spine_is_never_faster_and_more_bandwidth_never_slower(
    ratio: float, leaf: int, more: float, members: int, stride: int
) -> None:
    def bandwidth(**changes: float) -> float:
        found = ring(msgspec.structs.replace(_gpu(), **changes), members * stride, members)
        assert found is not None
        return found.bandwidth

    thin = bandwidth(leaf=8 * leaf, oversubscription=ratio)
    assert thin <= bandwidth()
    assert thin <= bandwidth(leaf=8 * leaf, oversubscription=ratio, nic=50e9 * more)
    assert bandwidth(leaf=8 * leaf, oversubscription=1.0) == bandwidth()
    assert thin >= bandwidth() / ratio * 0.999


def test_below_one_leaf_a_thin_spine_is_not_used() -> None:
    thin = msgspec.structs.replace(_gpu(), leaf=32, oversubscription=4.0)
    inside, outside = ring(thin, 32, 4), ring(thin, 64, 8)
    assert inside is not None
    assert outside is not None
    assert inside == ring(_gpu(), 32, 4)
    # a member of each node of two leaves of four: the ring crosses once a leaf, an eighth of the
    # leaf's groups each have a quarter of its links
    assert outside.bandwidth == pytest.approx(50e9)
    assert ring(msgspec.structs.replace(thin, leaf=8), 64, 8) == Ring(50e9 / 4, outside.latency)


@given(factor=st.sampled_from([2.0, 4.0, 8.0]), pp=st.sampled_from([1, 4]))
def test_times_are_bytes_and_flop_over_rates_and_latencies_that_no_rate_changes(
    factor: float, pp: int
) -> None:
    """With A / k + L at k times every rate, one more k times shrinks the change k times."""
    layout = Layout(tp=8, pp=pp, dp=4, micro_batches=16)

    def at(times: float) -> float:
        gpu = _gpu()
        rates = {name: getattr(gpu, name) * times for name in ("bf16", "hbm", "nvlink", "nic")}
        return _time(layout, msgspec.structs.replace(gpu, **rates)).total

    first, second, third = at(1.0), at(factor), at(factor**2)
    assert (first - second) / (second - third) == pytest.approx(factor, rel=1e-3)
    assert third > 0
