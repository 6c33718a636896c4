"""Bytes of a GPU by precision, sharding, recomputation and schedule."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.size.layout import Layout
from gcluster.inventory.size.memory import (
    activation_bytes,
    layer_activation_bytes,
    memory,
    score_bytes,
    stage_parameters,
)
from gcluster.inventory.size.model import Model, presets

GPT = presets()["gpt-3-175b"]
LLAMA = presets()["llama-3-70b"]


def _states(layout: Layout, model: Model = LLAMA) -> float:
    found = memory(model, layout, 4096)
    return found.weights + found.gradients + found.optimizer


@pytest.mark.parametrize(
    ("dp", "bytes_of_one"),
    [(1, 18), (2, 6 + 12 / 2), (8, 6 + 12 / 8)],
)
def test_the_distributed_optimizer_takes_6_bytes_and_12_that_are_split(
    dp: int, bytes_of_one: float
) -> None:
    own = sum(stage_parameters(LLAMA, Layout()))
    assert _states(Layout(dp=dp)) == pytest.approx(bytes_of_one * own)


def test_fsdp_splits_16_bytes() -> None:
    own = sum(stage_parameters(LLAMA, Layout()))
    assert _states(Layout(dp=64, sharding="full")) == pytest.approx(16 / 64 * own)


def test_a_layer_of_a_gpt_leaves_34_h_bytes_less_the_masks_of_dropout() -> None:
    assert layer_activation_bytes(GPT) == (34 - 2) * GPT.hidden


def test_scores_are_5_a_s_bytes_a_token_where_flash_attention_does_not_save_them() -> None:
    assert score_bytes(GPT, 2048, flash=False) == 5 * GPT.heads * 2048
    assert score_bytes(GPT, 2048, flash=True) == 0


def test_the_first_stage_holds_as_many_micro_batches_as_there_are_stages() -> None:
    one = activation_bytes(GPT, Layout(tp=8, pp=8, micro_batches=64, recompute="none"), 2048)
    layers = GPT.layers / 8
    assert one == pytest.approx(8 * layers * layer_activation_bytes(GPT) * 2048 / 8)


def test_chunks_hold_more_by_the_formula_of_korthikanti() -> None:
    plain = Layout(tp=8, pp=8, micro_batches=64)
    chunked = msgspec.structs.replace(plain, chunks=3)
    grown = activation_bytes(GPT, chunked, 2048) / activation_bytes(GPT, plain, 2048)
    assert grown == pytest.approx(1 + 7 / (8 * 3))


def test_recomputing_layers_keeps_their_inputs_alone() -> None:
    layout = Layout(tp=8, pp=8, micro_batches=64, recompute="full")
    kept = 8 * GPT.layers / 8 * 2 * GPT.hidden * 2048 / 8
    again = layer_activation_bytes(GPT) * 2048 / 8
    assert activation_bytes(GPT, layout, 2048) == pytest.approx(kept + again)


def test_70b_are_140_gb_of_weights_and_a_quarter_of_them_on_each_gpu_of_tp4() -> None:
    found = memory(LLAMA, Layout(tp=4, dp=2), 4096, lora_rank=16)
    assert 2 * LLAMA.parameters == pytest.approx(141e9, rel=0.01)
    assert found.weights == pytest.approx(2 * LLAMA.parameters / 4, rel=0.01)
    assert found.total < 80 * 2**30


LAYOUTS = st.builds(
    Layout,
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4, 8]),
    cp=st.sampled_from([1, 2]),
    dp=st.sampled_from([1, 2, 16, 64]),
    micro_batches=st.sampled_from([8, 32]),
    recompute=st.sampled_from(["none", "full"]),
)


@given(LAYOUTS)
def test_more_gpus_of_any_kind_never_need_more_memory_each(layout: Layout) -> None:
    now = memory(LLAMA, layout, 8192).total
    for name in ("tp", "dp"):
        wider = msgspec.structs.replace(layout, **{name: 2 * getattr(layout, name)})
        assert memory(LLAMA, wider, 8192).total <= now


@given(LAYOUTS, st.sampled_from([1024, 4096, 16384]))
def test_longer_sequences_never_need_less_memory(layout: Layout, sequence: int) -> None:
    longer = memory(LLAMA, layout, 2 * sequence).total
    assert memory(LLAMA, layout, sequence).total <= longer


@given(LAYOUTS)
def test_recomputing_never_needs_more_than_the_output_of_one_layer_more(layout: Layout) -> None:
    less = memory(LLAMA, msgspec.structs.replace(layout, recompute="full"), 8192).total
    full = memory(LLAMA, msgspec.structs.replace(layout, recompute="none"), 8192).total
    one = layer_activation_bytes(LLAMA) * 8192 / layout.cp / layout.tp
    assert less <= full + one
