"""Replicas, latencies and cost of a service follow from bytes and bandwidths."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcluster.inventory.size.accelerator import Accelerator, accelerator
from gcluster.inventory.size.model import presets
from gcluster.inventory.size.serving import (
    HEADROOM,
    Load,
    Replica,
    ServingPlan,
    by_batch,
    cache_bytes_per_token,
    decode_s,
    replica,
    serving_constants,
    serving_plan,
    swings,
)
from gcluster.schemas.catalog import load_catalog

LLAMA = presets()["llama-3-70b"]
CONSTANTS = serving_constants()


def _load(**changes: object) -> Load:
    base = Load(
        model=LLAMA,
        requests_per_s=30.0,
        input_tokens=1000,
        output_tokens=300,
        first_token_s=2.0,
        per_token_s=0.05,
    )
    return msgspec.structs.replace(base, **changes)


def _gpu() -> Accelerator:
    found = accelerator(load_catalog().machines["dgx-h100"])
    assert isinstance(found, Accelerator)
    return found


def _plan(load: Load, machine: str = "p5.48xlarge") -> ServingPlan:
    return serving_plan(load, load_catalog().machines[machine], CONSTANTS)


def test_a_token_of_llama_3_70b_is_328_kb_of_cache_and_of_deepseek_v3_a_latent() -> None:
    assert cache_bytes_per_token(LLAMA, "bf16") == 80 * 2 * 8 * 128 * 2
    assert cache_bytes_per_token(presets()["deepseek-v3"], "bf16") == 61 * (512 + 64) * 2


def test_70b_does_not_fit_on_two_gpus_in_bf16_with_a_batch_and_does_in_fp8_on_one() -> None:
    lacks = replica(_load(), _gpu(), CONSTANTS, 1)
    assert isinstance(lacks, float)
    assert lacks > 50e9
    fits = replica(_load(precision="fp8"), _gpu(), CONSTANTS, 1)
    assert isinstance(fits, Replica)
    assert fits.weight_bytes + fits.cache_bytes <= 0.95 * 80 * 2**30


def test_latencies_are_kept_and_one_request_more_would_break_one_or_the_memory() -> None:
    found = replica(_load(), _gpu(), CONSTANTS, 4)
    assert isinstance(found, Replica)
    assert found.first_token_s <= 2.0
    assert found.per_token_s <= 0.05
    assert found.limit in {"memory", "first token", "per token"}


def test_the_nodes_are_enough_for_the_load_with_headroom() -> None:
    found = _plan(_load())
    assert found.replica is not None
    assert found.replicas * found.replica.requests_per_s * HEADROOM >= 30.0
    assert found.usd_per_hour == found.nodes * 55.04


def test_dollars_a_million_tokens_are_those_of_the_nodes_by_what_is_served() -> None:
    found = _plan(_load())
    assert found.usd_per_hour is not None
    assert found.usd_per_million_tokens == pytest.approx(
        found.usd_per_hour / (30 * 300 * 3600) * 1e6
    )


def test_what_fits_on_no_node_or_is_too_slow_is_reported() -> None:
    large = _load(model=presets()["llama-3-405b"])
    assert "on each GPU of one node" in _plan(large, "hgx-h100-8").why_not  # its NICs aren't known
    longer = msgspec.structs.replace(large, input_tokens=10**6, output_tokens=10**6)
    assert "on each GPU of 8 nodes" not in _plan(large).why_not
    assert _plan(longer).replica is None
    assert "latencies" in _plan(_load(per_token_s=1e-4)).why_not
    assert "fp8" in _plan(_load(precision="fp8"), "p4de.24xlarge").why_not


def test_a_model_of_experts_reads_few_of_them_for_one_request_and_all_for_many() -> None:
    model, gpu = presets()["mixtral-8x7b"], _gpu()
    one, many = (
        decode_s(model, gpu, CONSTANTS, tp=8, context=1, batch=batch, precision="bf16")
        for batch in (1, 256)
    )
    assert one < 0.8 * many


@given(st.sampled_from(["nvlink", "hbm", "bf16"]), st.floats(1, 10), st.integers(1, 512))
def test_more_bandwidth_is_never_slower(which: str, factor: float, batch: int) -> None:
    gpu = _gpu()
    better = msgspec.structs.replace(gpu, **{which: getattr(gpu, which) * factor})
    now, then = (
        decode_s(LLAMA, each, CONSTANTS, tp=4, context=1000, batch=batch, precision="bf16")
        for each in (gpu, better)
    )
    assert then <= now * (1 + 1e-12)


@given(st.floats(0.1, 500), st.floats(1, 5))
@settings(max_examples=25)
def test_more_load_and_stricter_latencies_never_take_fewer_nodes(
    rate: float, factor: float
) -> None:
    now = _plan(_load(requests_per_s=rate))
    assert now.nodes <= _plan(_load(requests_per_s=rate * factor)).nodes
    stricter = _plan(_load(requests_per_s=rate, per_token_s=0.05 / factor))
    assert stricter.replica is None or now.nodes <= stricter.nodes


def test_405b_in_bf16_takes_two_nodes_with_80_gb_gpus() -> None:
    """812 GB don't fit in 640: vLLM's docs and Meta's run it on two nodes of eight."""
    load = _load(model=presets()["llama-3-405b"], requests_per_s=0.5, per_token_s=0.2)
    found = serving_plan(load, load_catalog().machines["dgx-h100"], CONSTANTS)
    assert found.replica is not None
    assert found.nodes == 2
    assert found.replica.tp * found.replica.pp == 16
    assert found.replica.weight_bytes == pytest.approx(2 * load.model.parameters / 16)


def test_stages_serve_as_many_requests_and_each_token_takes_no_less_time() -> None:
    load, gpu = _load(first_token_s=60.0, per_token_s=60.0), _gpu()
    whole, staged = replica(load, gpu, CONSTANTS, 8), replica(load, gpu, CONSTANTS, 8, pp=2)
    assert isinstance(whole, Replica)
    assert isinstance(staged, Replica)
    assert staged.split == "TP8 PP2"
    assert staged.weight_bytes == whole.weight_bytes / 2
    assert staged.batch > 2 * whole.batch
    same = replica(load, gpu, CONSTANTS, 8, pp=2, most=whole.batch)
    assert isinstance(same, Replica)
    assert staged.requests_per_s > same.requests_per_s > whole.requests_per_s


def test_what_moves_a_service_has_the_right_sign() -> None:
    load, machine = _load(), load_catalog().machines["dgx-h100"]
    found = serving_plan(load, machine, CONSTANTS).replica
    assert found is not None
    moved = {each.name: each for each in swings(load, machine, CONSTANTS, found)}
    assert moved["its memory's bandwidth"].half > 0 > moved["its memory's bandwidth"].double
    assert moved["tokens of an answer"].half < 0 < moved["tokens of an answer"].double
    curve = by_batch(load, machine, CONSTANTS, found)
    assert [point[0] for point in curve] == sorted(point[0] for point in curve)
    assert [point[2] for point in curve] == sorted(point[2] for point in curve)
