"""How many GPUs serve a model to a load: KV cache, prefill and decode by roofline, replicas, cost.

A replica is a model split over TP GPUs of one NVLink domain. A decode step of a batch of b
requests takes what reading the weights takes, or what its arithmetic takes, whichever is longer,
then reading the KV cache of all of them, the collectives of TP, and a fixed time a layer. With
continuous batching each request's prefill of P seconds comes between: with o tokens of output and
steps of t seconds a replica serves

    r = b / (o t + b P / p) requests a second, at t + b P / (p o) seconds a token.

A model that no node holds is split over nodes: TP inside each and p stages of layers, of which each
works for another b / p of the requests (PP), or TP over the nodes, whose AllReduces then go over
the NICs. The one that takes fewer GPUs counts.
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
from .accelerator import NIC_LATENCY_S, NVLINK_LATENCY_S, Accelerator, Precision, accelerator
from .model import Model
from .training import MARGIN, Lever, price_of

_FILE = Path(__file__).parent / "data" / "serving.yaml"
_BYTES = {"bf16": 2, "fp8": 1}
"""Of a weight, and of an element of the KV cache."""
HEADROOM = 0.8
"""Part of what replicas can do that the load may take on average: requests come by chance. An
assumption."""
_TAIL = 100.0
"""1 / (1 - 99%)."""
_MOST_BATCH = 4096
_MOST_STAGES = 8
"""Nodes of a replica that are tried."""
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
    """Requests at once, of all stages together."""
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
    pp: int = 1
    """Stages of layers, each on a node of its own."""

    @property
    def split(self) -> str:
        """How it is split: TP8 PP2."""
        return f"TP{self.tp}" + (f" PP{self.pp}" if self.pp > 1 else "")


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
    heads = tp if model.latent else min(tp, model.kv_heads or model.heads)  # the rest are copies
    cache = cache_bytes_per_token(model, precision) * context * batch / heads / memory
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
    """Return the fixed time of all layers, and their two AllReduces where the model is split.

    Over several nodes an AllReduce is one inside each node, and one of the shards between them.
    """
    fixed = model.layers * constants.layer_s
    if tp == 1:
        return fixed
    inside = min(tp, gpu.per_node)
    whole = 2.0 * tokens * model.hidden
    moved = 2 * (inside - 1) / inside * whole / gpu.nvlink
    latency = 2 * NVLINK_LATENCY_S
    if tp > inside and gpu.nic is not None:
        nodes = tp // inside
        moved += 2 * (nodes - 1) / nodes * whole / inside / gpu.nic
        latency += 2 * NIC_LATENCY_S
    return fixed + 2 * model.layers * (latency + moved)


def replica(
    load: Load,
    gpu: Accelerator,
    constants: ServingConstants,
    tp: int,
    *,
    pp: int = 1,
    most: int = _MOST_BATCH,
) -> Replica | float:
    """Return a replica of TP x PP GPUs with as large a batch as it can have, up to `most`.

    Where there is none: the bytes that each of its GPUs lacks; 0: it is too slow.
    """
    model = load.model
    size = _BYTES[load.precision]
    weights = size * model.parameters / tp / pp
    whole = load.input_tokens + load.output_tokens
    heads = tp if model.latent else min(tp, model.kv_heads or model.heads)  # the rest are copies
    one = cache_bytes_per_token(model, load.precision) * whole / heads / pp
    room = gpu.memory * (1 - load.margin) - weights
    if room < one:
        return one - room
    most = min(most, int(room / one))
    hop = NIC_LATENCY_S if pp > 1 else 0.0
    sent = 0.0 if pp == 1 or gpu.nic is None else 2.0 * model.hidden / tp / gpu.nic
    alone = prefill_s(
        model,
        gpu,
        constants,
        tp=tp,
        tokens=load.input_tokens,
        batch=1,
        precision=load.precision,
    ) + (pp - 1) * (hop + sent * load.input_tokens)

    def at(batch: int) -> tuple[float, float, float]:
        """Return requests a second, the first token's time and that of each further one."""
        step = decode_s(
            model,
            gpu,
            constants,
            tp=tp,
            context=load.input_tokens + load.output_tokens / 2,
            batch=math.ceil(batch / pp),
            precision=load.precision,
        ) + pp * (hop + sent * math.ceil(batch / pp))
        between = alone / pp  # from one prompt to the next, through any of the stages
        rate = batch / (load.output_tokens * step + batch * between)
        busy = HEADROOM * rate * between
        wait = between / (1 - busy) * max(0.0, math.log(_TAIL * busy)) if busy else 0.0
        return rate, alone + step + wait, step + batch * between / load.output_tokens

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
        pp=pp,
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
    for splits in (_in_node(load.model, gpu), _over_nodes(load.model, gpu)):
        for tp, pp in splits:
            one = replica(load, gpu, constants, tp, pp=pp)
            if isinstance(one, Replica):
                count = math.ceil(load.requests_per_s / (one.requests_per_s * HEADROOM))
                found.append((math.ceil(count * tp * pp / gpu.per_node), one))
            lacks.append(0.0 if isinstance(one, Replica) else one)
        if found:
            break  # a model that a node holds isn't split over several
    if not found:
        why = "no batch keeps the latencies: --ttft-ms, --tpot-ms"
        if all(lacks):
            why = f"the model lacks {min(lacks) / 1e9:,.1f} GB on each GPU of {_MOST_STAGES} nodes"
            if gpu.nic is None:
                why = f"the model lacks {min(lacks) / 1e9:,.1f} GB on each GPU of one node"
        return ServingPlan(machine=machine.name, why_not=why)
    nodes, best = min(
        found, key=lambda each: (each[0], each[1].tp * each[1].pp, each[1].per_token_s)
    )
    price = price_of(machine, region)
    usd = None if price is None else price.usd_per_hour * nodes
    served = load.requests_per_s * load.output_tokens * 3600
    return ServingPlan(
        machine=machine.name,
        replica=best,
        replicas=nodes * gpu.per_node // (best.tp * best.pp),
        nodes=nodes,
        price=price,
        usd_per_hour=usd,
        usd_per_million_tokens=None if usd is None else usd / served * 1e6,
    )


def _in_node(model: Model, gpu: Accelerator) -> list[tuple[int, int]]:
    """Return TP and PP of replicas inside one node."""
    most = min(gpu.domain, gpu.per_node, model.kv_heads or model.heads)
    return [(2**n, 1) for n in range(most.bit_length())]


def _over_nodes(model: Model, gpu: Accelerator) -> list[tuple[int, int]]:
    """Return TP and PP of replicas over nodes: stages, or TP over all of their GPUs."""
    if gpu.nic is None:
        return []
    tp = _in_node(model, gpu)[-1][0]
    stages = [(tp, pp) for pp in range(2, _MOST_STAGES + 1)]
    wide = gpu.per_node
    across = [(wide * nodes, 1) for nodes in (2, 4, 8) if not model.heads % (wide * nodes)]
    return [*stages, *across]


def by_batch(
    load: Load, machine: Machine, constants: ServingConstants, found: Replica
) -> list[tuple[int, float, float]]:
    """Return batch, requests a second and seconds of a further token, whatever the latencies."""
    gpu = accelerator(machine)
    if isinstance(gpu, str):
        return []
    free = msgspec.structs.replace(load, first_token_s=math.inf, per_token_s=math.inf)
    most = replica(free, gpu, constants, found.tp, pp=found.pp)
    last = most.batch if isinstance(most, Replica) else found.batch
    points = []
    for batch in sorted(
        {1, found.batch, last, *(max(1, round(last * n / 8)) for n in range(1, 9))}
    ):
        one = replica(free, gpu, constants, found.tp, pp=found.pp, most=batch)
        if isinstance(one, Replica):
            points.append((one.batch, one.requests_per_s, one.per_token_s))
    return points


def swings(
    load: Load, machine: Machine, constants: ServingConstants, found: Replica
) -> list[Lever]:
    """Return how the GPUs that the load keeps busy change with half and double of each."""
    gpu = accelerator(machine)
    if isinstance(gpu, str):
        return []

    def busy(changed: Load, other: Accelerator) -> float:
        one = replica(changed, other, constants, found.tp, pp=found.pp)
        return changed.requests_per_s / one.requests_per_s if isinstance(one, Replica) else math.nan

    now = busy(load, gpu)

    def of_load(name: str, factor: float) -> float:
        value = type(getattr(load, name))(max(1e-9, getattr(load, name) * factor))
        return busy(msgspec.structs.replace(load, **{name: value}), gpu) / now - 1

    def of_gpu(names: tuple[str, ...], factor: float) -> float:
        scaled = {name: (getattr(gpu, name) or 0.0) * factor for name in names}
        return busy(load, msgspec.structs.replace(gpu, **scaled)) / now - 1

    rows = [
        Lever(name=title, half=of_load(name, 0.5), double=of_load(name, 2.0))
        for title, name in (
            ("tokens of a prompt", "input_tokens"),
            ("tokens of an answer", "output_tokens"),
            ("time of a further token", "per_token_s"),
            ("time to the first token", "first_token_s"),
        )
    ]
    rows += [
        Lever(name=title, half=of_gpu(names, 0.5), double=of_gpu(names, 2.0))
        for title, names in (
            ("arithmetic of a GPU", ("bf16", "fp8")),
            ("its memory's bandwidth", ("hbm",)),
            ("its memory", ("memory",)),
            ("NVLink", ("nvlink",)),
        )
    ]
    known = [each for each in rows if not math.isnan(each.half) and not math.isnan(each.double)]
    moving = [each for each in known if max(abs(each.half), abs(each.double)) >= _LEAST_CHANGE]
    return sorted(moving, key=lambda each: -max(abs(each.half), abs(each.double)))


_LEAST_CHANGE = 0.0005
