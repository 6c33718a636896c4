"""How many GPUs serve a model to a load: KV cache, prefill and decode by roofline, replicas, cost.

A replica is a model split over TP GPUs of one NVLink domain. A decode step of a batch of b
requests takes what reading the weights takes, or what its arithmetic takes, whichever is longer,
then reading the KV cache of all of them, the collectives of TP, and a fixed time a layer. With
continuous batching each request's prefill of P seconds comes between: with o tokens of output and
steps of t seconds a replica serves

    r = b / (o t + b P) requests a second, at t + b P / o seconds a token.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ...schemas.catalog import Machine, Price
from ...schemas.catalog.model.machine import Date
from ...schemas.spec.model import SpecModel
from ...schemas.structure.compose import read_data_file
from .accelerator import NVLINK_LATENCY_S, Accelerator, Precision, accelerator
from .model import Model
from .training import MARGIN, price_of

_FILE = Path(__file__).parent / "data" / "serving.yaml"
_BYTES = {"bf16": 2, "fp8": 1}
"""Of a weight, and of an element of the KV cache."""
HEADROOM = 0.8
"""Part of what replicas can do that the load may take on average: requests come by chance. An
assumption."""
_TAIL = 100.0
"""1 / (1 - 99%)."""
_MOST_BATCH = 4096
Share = Annotated[float, Meta(gt=0, le=1)]


class ServingConstants(SpecModel, frozen=True, kw_only=True):
    """Published runs of inference, and the model's error on those set apart."""

    date: Date
    source: str
    compute: dict[str, Share]
    """Precision -> what large batches reach of the peak."""
    bandwidth: Share
    """What reading weights and caches reaches of the memory's bandwidth."""
    layer_s: Annotated[float, Meta(ge=0)]
    """Seconds of a layer that no roofline explains: kernels, norms, sampling."""
    runs: int
    median: float
    worst: float


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What is served."""

    model: Model
    requests_per_s: float
    input_tokens: int
    output_tokens: int
    first_token_s: float
    """Most time to the first token that 99 of 100 requests may take."""
    per_token_s: float
    """Most time of each further token, on average."""
    precision: Precision = "bf16"
    margin: float = MARGIN


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """One copy of the model at the largest batch that keeps the latencies."""

    tp: int
    batch: int
    requests_per_s: float
    first_token_s: float
    """99 of 100 are faster."""
    per_token_s: float
    prefill_s: float
    weight_bytes: float
    """Of each GPU."""
    cache_bytes: float
    """Of each GPU, of the whole batch at full length."""
    limit: str
    """What keeps the batch from growing: memory, first token or per token."""


class ServingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One machine type."""

    machine: str
    replica: Replica | None = None
    replicas: int = 0
    nodes: int = 0
    why_not: str = ""
    price: Price | None = None
    usd_per_hour: float | None = None
    usd_per_million_tokens: float | None = None
    """Of output, at this load."""


@lru_cache(maxsize=1)
def serving_constants() -> ServingConstants:
    """Return the numbers that come with gcluster."""
    return read_data_file(_FILE, ServingConstants)


def cache_bytes_per_token(model: Model, precision: Precision) -> float:
    """Return the KV cache of a token: 2 x layers x KV heads x width, or layers x the latent."""
    low = model.latent
    width = low.kv_rank + low.rope_dim if low else 2 * model.keys
    return float(model.layers * width * _BYTES[precision])


def prefill_s(
    model: Model,
    gpu: Accelerator,
    constants: ServingConstants,
    *,
    tp: int,
    tokens: int,
    batch: int,
    precision: Precision,
) -> float:
    """Return the time of the first pass over `batch` prompts of so many tokens."""
    peak = (gpu.peak(precision) or gpu.bf16) * constants.compute[precision]
    linear = 2.0 * model.layer_active_parameters * model.layers * tokens * batch
    scores = model.layers * model.attention_flops(tokens) * tokens * batch
    arithmetic = (linear / peak + scores / (gpu.bf16 * constants.compute["bf16"])) / tp
    weights = _weights(model, precision, tokens * batch) / tp / (gpu.hbm * constants.bandwidth)
    return max(arithmetic, weights) + _rest(model, gpu, constants, tp, tokens * batch)


def decode_s(
    model: Model,
    gpu: Accelerator,
    constants: ServingConstants,
    *,
    tp: int,
    context: float,
    batch: int,
    precision: Precision,
) -> float:
    """Return the time of one step that gives each of `batch` requests a token."""
    peak = (gpu.peak(precision) or gpu.bf16) * constants.compute[precision]
    memory = gpu.hbm * constants.bandwidth
    arithmetic = 2.0 * model.active_parameters * batch / tp / peak
    weights = _weights(model, precision, batch) / tp / memory
    cache = cache_bytes_per_token(model, precision) * context * batch / tp / memory
    return max(arithmetic, weights) + cache + _rest(model, gpu, constants, tp, batch)


def _weights(model: Model, precision: Precision, tokens: int) -> float:
    """Return the bytes of weights that a pass reads: of experts those that some token goes to."""
    size = _BYTES[precision]
    if not model.experts:
        return float(size * model.parameters)
    missed = (1 - model.experts_per_token / model.experts) ** tokens
    experts = model.moe_layers * model.experts * model.expert_parameters
    return size * (model.parameters - experts * missed)


def _rest(
    model: Model, gpu: Accelerator, constants: ServingConstants, tp: int, tokens: int
) -> float:
    """Return the fixed time of all layers, and their two AllReduces where the model is split."""
    fixed = model.layers * constants.layer_s
    if tp == 1:
        return fixed
    moved = 2 * (tp - 1) / tp * 2.0 * tokens * model.hidden / gpu.nvlink
    return fixed + 2 * model.layers * (2 * NVLINK_LATENCY_S + moved)


def replica(load: Load, gpu: Accelerator, constants: ServingConstants, tp: int) -> Replica | float:
    """Return a replica of TP GPUs, or the bytes that each of them lacks; 0: it is too slow."""
    model = load.model
    size = _BYTES[load.precision]
    weights = size * model.parameters / tp
    whole = load.input_tokens + load.output_tokens
    one = cache_bytes_per_token(model, load.precision) * whole / tp
    room = gpu.memory * (1 - load.margin) - weights
    if room < one:
        return one - room
    most = min(_MOST_BATCH, int(room / one))
    alone = prefill_s(
        model,
        gpu,
        constants,
        tp=tp,
        tokens=load.input_tokens,
        batch=1,
        precision=load.precision,
    )

    def at(batch: int) -> tuple[float, float, float]:
        """Return requests a second, the first token's time and that of each further one."""
        step = decode_s(
            model,
            gpu,
            constants,
            tp=tp,
            context=load.input_tokens + load.output_tokens / 2,
            batch=batch,
            precision=load.precision,
        )
        rate = batch / (load.output_tokens * step + batch * alone)
        busy = HEADROOM * rate * alone
        wait = alone / (1 - busy) * max(0.0, math.log(_TAIL * busy)) if busy else 0.0
        return rate, alone + step + wait, step + batch * alone / load.output_tokens

    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        _, first, each = at(middle)
        if first <= load.first_token_s and each <= load.per_token_s:
            low = middle
        else:
            high = middle - 1
    if not low:
        return 0.0
    rate, first, each = at(low)
    limit = "memory"
    if low < most:
        limit = "first token" if at(low + 1)[1] > load.first_token_s else "per token"
    return Replica(
        tp=tp,
        batch=low,
        requests_per_s=rate,
        first_token_s=first,
        per_token_s=each,
        prefill_s=alone,
        weight_bytes=weights,
        cache_bytes=one * low,
        limit=limit,
    )


def serving_plan(
    load: Load, machine: Machine, constants: ServingConstants, region: str | None = None
) -> ServingPlan:
    """Return the replicas on a machine type that take fewest GPUs for a load."""
    gpu = accelerator(machine)
    if isinstance(gpu, str):
        return ServingPlan(machine=machine.name, why_not=gpu)
    if gpu.peak(load.precision) is None:
        why = f"a {gpu.gpu} has no units for {load.precision}"
        return ServingPlan(machine=machine.name, why_not=why)
    found: list[tuple[int, Replica]] = []
    lacks: list[float] = []
    tp = 1
    while tp <= min(gpu.domain, gpu.per_node, load.model.kv_heads or load.model.heads):
        one = replica(load, gpu, constants, tp)
        if isinstance(one, Replica):
            count = math.ceil(load.requests_per_s / (one.requests_per_s * HEADROOM))
            found.append((math.ceil(count * tp / gpu.per_node), one))
        elif one:
            lacks.append(one)
        tp *= 2
    if not found:
        why = "no batch keeps the latencies: --ttft-ms, --tpot-ms"
        if len(lacks) > 0 and tp > 1 and len(lacks) == tp.bit_length() - 1:
            why = f"the model lacks {min(lacks) / 1e9:,.1f} GB on each GPU of one node"
        return ServingPlan(machine=machine.name, why_not=why)
    nodes, best = min(found, key=lambda each: (each[0], each[1].tp))
    price = price_of(machine, region)
    usd = None if price is None else price.usd_per_hour * nodes
    served = load.requests_per_s * load.output_tokens * 3600
    return ServingPlan(
        machine=machine.name,
        replica=best,
        replicas=nodes * gpu.per_node // best.tp,
        nodes=nodes,
        price=price,
        usd_per_hour=usd,
        usd_per_million_tokens=None if usd is None else usd / served * 1e6,
    )
