"""Each figure of an answer with its formula and its source, and what holds a step up."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from ...schemas.catalog import Machine
from ...schemas.catalog.figures import cited
from .accelerator import accelerator, peaks
from .constants import Constants
from .memory import memory, stage_parameters
from .serving import (
    HEADROOM,
    Load,
    Replica,
    ServingConstants,
    ServingPlan,
    cache_bytes_per_token,
)
from .step_time import StepTime
from .training import Candidate, Plan, Workload, accuracy, joined, steps

_GIGA = 1e9
_ZERO = "ZeRO (arXiv 1910.02054), Megatron Core's distributed optimizer"
_KORTHIKANTI = "Korthikanti et al. 2022 (arXiv 2205.05198)"
_NARAYANAN = "Narayanan et al. 2021 (arXiv 2104.04473)"

MOVES = {
    "compute": "arithmetic: faster GPUs or --precision fp8 shorten it; a faster network doesn't",
    "memory": "the GPU's memory bandwidth: larger feed-forward layers, or GPUs with faster memory",
    "tensor": "collectives of TP on NVLink: a smaller TP, if it fits, or a larger micro-batch",
    "context": "keys and values between members of CP: a smaller CP, or shorter sequences",
    "expert": "routing and AllToAll of experts: a larger micro-batch, EP inside an NVLink domain",
    "pipeline": "activations between stages: fewer stages, or more bandwidth between nodes",
    "bubble": "stages that wait: a larger --batch, fewer stages, or more chunks of layers",
    "data": "gradients between nodes: a larger --batch, fewer GPUs, or a faster network",
    "jitter": "the slowest node: fewer, larger nodes",
    "input": "storage that delivers tokens more slowly than they are used: faster storage "
    "(--storage-read), a cache on the nodes, or data packed smaller",
}
"""Part of a step -> what it is and what would move it."""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """One figure."""

    what: str
    value: str
    formula: str
    source: str


def bottleneck(time: StepTime) -> str:
    """Return the part of a step that it pays most to shorten.

    Arithmetic where four fifths of the step are; else the longest of the rest.
    """
    parts = time.parts
    mostly = 0.8
    if parts["compute"] >= mostly * time.total:
        return "compute"
    return next(name for name in parts if name != "compute")


def explanation(
    work: Workload, machine: Machine, plan: Plan, constants: Constants
) -> list[Explained]:
    """Return every figure of a plan that has a layout, in the order in which they follow."""
    best, gpu = plan.best, joined(work, machine)
    if best is None or isinstance(gpu, str):
        return []
    return [
        Explained(what=what, value=value, formula=formula, source=source)
        for part in (
            _of_model(work),
            _of_memory(work, best),
            _of_machine(machine, work),
            _of_time(work, best, constants, gpu.generation),
            _of_run(work, plan, best, constants),
        )
        for what, value, formula, source in part
    ]


_Row = tuple[str, str, str, str]


def _of_model(work: Workload) -> Iterator[_Row]:
    model = work.model
    yield (
        "parameters",
        f"{model.parameters:,}",
        "sum of all matrices, norms and biases",
        f"{model.source}, {model.date}",
    )
    if model.experts:
        yield (
            "parameters of a token",
            f"{model.active_parameters:,}",
            f"{model.experts_per_token} of {model.experts} experts, without the embedding's lookup",
            model.source,
        )
    flops = model.flops_per_token(work.sequence, trained=work.method == "full")
    factor = "6" if work.method == "full" else "4"
    yield (
        "FLOP of a token",
        f"{flops / _GIGA:,.1f} G",
        f"{factor} N + 6 L h s, attention causal"
        + ("" if work.method == "full" else "; frozen weights have no gradients"),
        f"{_NARAYANAN}, appendix",
    )


def _of_memory(work: Workload, best: Candidate) -> Iterator[_Row]:
    layout = best.layout
    rank = work.lora_rank if work.method == "lora" else 0
    needed = memory(work.model, layout, work.sequence, lora_rank=rank)
    dense, experts = stage_parameters(work.model, layout)
    yield (
        "parameters of a GPU",
        f"{(dense + experts) / _GIGA:,.2f} G",
        "(fullest stage + embedding) / TP, experts / (TP x EP)",
        _NARAYANAN,
    )
    split = {
        "full": "16 B / (DP x CP) each: weights, gradients, optimizer",
        "optimizer": "2 B weights + 4 B gradients + 12 B optimizer / (DP x CP)",
    }[layout.sharding]
    if rank:
        split = f"2 B of each frozen weight; 18 B of each weight of the adapters (rank {rank})"
    yield (
        "weights, gradients, optimizer",
        (
            f"{needed.weights / _GIGA:.1f} + {needed.gradients / _GIGA:.1f} + "
            f"{needed.optimizer / _GIGA:.1f} GB"
        ),
        split,
        _ZERO,
    )
    kept = "inputs of layers, one layer again" if layout.recompute == "full" else "all of a layer"
    yield (
        "activations",
        f"{needed.activations / _GIGA:.1f} GB",
        f"{kept} x micro-batches in flight / (TP x CP), scores not kept (FlashAttention)",
        f"{_KORTHIKANTI}, equations 2 and 4.2.3",
    )
    if needed.gathered:
        yield (
            "gathered layers",
            f"{needed.gathered / _GIGA:.1f} GB",
            "two whole layers in bf16: one computes, one is fetched",
            _ZERO,
        )
    yield (
        "memory left free",
        f"{work.margin:.0%}",
        "CUDA's context, NCCL's buffers, fragmentation",
        "an assumption: --margin",
    )


def _of_machine(machine: Machine, work: Workload | None = None) -> Iterator[_Row]:
    gpu = accelerator(machine) if work is None else joined(work, machine)
    if isinstance(gpu, str) or machine.gpu is None:
        return
    peak = peaks()[gpu.gpu]
    tera = f"{peak.bf16:g} TFLOP/s in bf16" + ("" if peak.fp8 is None else f", {peak.fp8:g} in fp8")
    yield "peak of a GPU", tera, "dense, without sparsity", f"{peak.source}, {peak.date}"
    memory_of = cited(machine, "gpu.memory_gib")
    yield (
        "memory of a GPU",
        f"{gpu.memory / _GIGA:.1f} GB",
        f"{machine.gpu.memory_gib:g} GiB",
        f"{memory_of.source}, {memory_of.date}",
    )
    seen = work.measured if work is not None and work.measured is not None else None
    if seen is not None and seen.machine != machine.name:
        seen = None
    by_gate = "" if seen is None else f"certificate of {seen.cluster}, {seen.time}"
    if machine.nvlink is not None:
        link = cited(machine, "nvlink.busbw_gbytes_per_s")
        yield (
            "bandwidth inside a domain",
            f"{gpu.nvlink / _GIGA:g} GB/s",
            "measured bus bandwidth, else one direction of NVLink",
            by_gate if seen is not None and seen.inside else f"{link.source}, {link.date}",
        )
    if gpu.nic is not None:
        nics = cited(machine, "nics")
        yield (
            "bandwidth between nodes",
            f"{gpu.nic / _GIGA:g} GB/s a GPU",
            "AllReduce busbw / GPUs of a node"
            if seen is not None and seen.between
            else "line rate of the NICs / GPUs",
            by_gate if seen is not None and seen.between else f"{nics.source}, {nics.date}",
        )
    if gpu.leaf is not None and gpu.oversubscription > 1:
        yield (
            "links of a leaf to the spine",
            f"{gpu.oversubscription:g}:1",
            "groups that leave a leaf share its bandwidth / that",
            "--oversubscription, --leaf-nodes",
        )


def _of_time(
    work: Workload, best: Candidate, constants: Constants, generation: str
) -> Iterator[_Row]:
    fitted = constants.fitted
    known = fitted.efficiency(generation, work.precision)
    if known is not None:
        yield (
            "efficiency of large matrices",
            f"{known.share:.1%} of the peak",
            f"fitted on {known.runs} published runs"
            if known.runs
            else "no run in this precision: that of the other",
            constants.source,
        )
    layout = best.layout
    formulas = {
        "compute": "FLOP / (peak x efficiency x w / (w + half width)), attention apart",
        "memory": "traffic x activation bytes / memory bandwidth, and the optimizer's",
        "tensor": "4 pairs of AllGather and ReduceScatter a layer: alpha + (n-1)/n S/B",
        "context": "keys and values of the sequence, forward once and backward twice",
        "expert": "4 AllToAll a layer: alpha + (n-1)/n S/B, and a fitted time for routing",
        "pipeline": "2 x chunks x (alpha + S/B) a micro-batch",
        "bubble": f"(p-1)/(v m) of the rest: p {layout.pp}, v {layout.chunks}, "
        f"m {layout.micro_batches}; and uneven stages",
        "data": "gradients and weights, what no computation hides",
        "jitter": "fitted x log2(nodes)",
        "input": "bytes of a step's tokens / what storage delivers, beyond the step itself",
    }
    for part, seconds in best.time.parts.items():
        if seconds > 0:
            yield (
                f"step: {part}",
                f"{seconds:.3g} s, {seconds / best.time.total:.1%}",
                formulas[part],
                f"{_NARAYANAN}; {constants.source}",
            )
    yield (
        "MFU",
        f"{best.mfu:.1%}",
        "tokens/s x FLOP of a token / (GPUs x peak in the precision)",
        "PaLM (arXiv 2204.02311), appendix B, with causal attention",
    )


def _of_run(work: Workload, plan: Plan, best: Candidate, constants: Constants) -> Iterator[_Row]:
    risk, run, price = plan.reliability, plan.run, plan.price
    if risk is not None:
        yield (
            "failures",
            f"{risk.failures_per_day:.2g} a day",
            "GPUs x published interruptions a GPU and hour",
            risk.source,
        )
        yield (
            "interval of checkpoints",
            f"{risk.interval_s:,.0f} s",
            f"Daly's, checkpoints of {risk.checkpoint_s:.3g} s "
            + ("(an assumption)" if work.write is None else "(bytes / --storage-write)"),
            "Daly, Future Generation Computer Systems 22, 2006",
        )
        yield (
            "goodput",
            f"{risk.goodput:.1%}",
            "saving, half an interval again and 15 min of restart (an assumption) a failure",
            "Young 1974; Daly 2006",
        )
    if run is None:
        return
    off = accuracy(work.model, constants)
    yield (
        "days",
        f"{run.days:.1f}, from {run.days_at_least:.1f} to {run.days_at_most:.1f}",
        (
            f"{steps(work, best) or 0:,} steps / goodput; the range holds for eight of ten of "
            f"{off.runs} runs that nothing was fitted on"
        ),
        constants.source,
    )
    if price is not None and run.usd is not None:
        yield (
            "cost",
            f"${run.usd:,.0f}",
            f"{plan.nodes:,} x ${price.usd_per_hour:g} an hour, on demand"
            + (f", {price.region}" if price.region else ""),
            f"{price.source}, {price.date}",
        )


_POPE = "Pope et al. 2022, Efficiently Scaling Transformer Inference (arXiv 2211.05102)"
_DEEPSEEK = "DeepSeek-V3 technical report (arXiv 2412.19437), multi-head latent attention"


def serving_explanation(
    load: Load, machine: Machine, plan: ServingPlan, constants: ServingConstants
) -> list[Explained]:
    """Return every figure of a service's plan, in the order in which they follow."""
    one, gpu = plan.replica, accelerator(machine)
    if one is None or isinstance(gpu, str):
        return []
    rows = (*_of_copy(load, one), *_of_passes(load, machine, one, constants), *_of_load(load, plan))
    return [
        Explained(what=what, value=value, formula=formula, source=source)
        for what, value, formula, source in rows
    ]


def _of_copy(load: Load, one: Replica) -> Iterator[_Row]:
    model = load.model
    size = {"bf16": 2, "fp8": 1}[load.precision]
    yield (
        "parameters",
        f"{model.parameters:,}",
        "sum of all matrices, norms and biases",
        f"{model.source}, {model.date}",
    )
    yield (
        "weights of a GPU",
        f"{one.weight_bytes / _GIGA:,.2f} GB",
        f"{size} B x parameters / TP{one.tp}",
        "parameters above",
    )
    heads = (
        f"layers x (latent {model.latent.kv_rank} + {model.latent.rope_dim}) x {size} B"
        if model.latent
        else f"2 x {model.layers} layers x {model.keys} (KV heads x width) x {size} B"
    )
    yield (
        "KV cache of a token",
        f"{cache_bytes_per_token(model, load.precision):,.0f} B",
        heads,
        _DEEPSEEK if model.latent else _POPE,
    )
    yield (
        "cache of a GPU",
        f"{one.cache_bytes / _GIGA:,.2f} GB",
        (
            f"cache of a token x {load.input_tokens + load.output_tokens} tokens x {one.batch} "
            f"requests / TP{one.tp}"
        ),
        f"at full length; memory left free {load.margin:.0%}, an assumption: --margin",
    )


def _of_passes(
    load: Load, machine: Machine, one: Replica, constants: ServingConstants
) -> Iterator[_Row]:
    fitted = f"{constants.source}, {constants.date}"
    prefill = one.prefill_s
    step = one.per_token_s - one.batch * prefill / load.output_tokens
    yield from _of_machine(machine)
    yield (
        "prefill of a prompt P",
        f"{prefill * 1000:.4g} ms",
        (
            f"max(FLOP / ({constants.compute[load.precision]:.3g} of the peak), weights / "
            f"({constants.bandwidth:.0%} of the memory's bandwidth)) + layers x "
            f"{constants.layer_s * 1e6:.3g} us + AllReduces of TP"
        ),
        fitted,
    )
    yield (
        "decode step t",
        f"{step * 1000:.4g} ms",
        "max(weights / bandwidth, 2 N batch / peak) + cache read / bandwidth + layers + AllReduces",
        fitted,
    )
    yield (
        "time of a further token",
        f"{one.per_token_s * 1000:.4g} ms",
        f"t + batch P / {load.output_tokens} output tokens",
        "continuous batching (Yu et al. 2022, Orca): prefills of others come between",
    )
    yield (
        "requests of a replica",
        f"{one.requests_per_s:.4g}/s",
        f"batch {one.batch} / ({load.output_tokens} t + batch P)",
        "the same",
    )
    yield (
        "first token, p99",
        f"{one.first_token_s * 1000:,.4g} ms",
        f"P + t + P / (1 - u) x ln(100 u), u = {HEADROOM:.0%} x requests x P",
        "99 of 100 of an M/M/1 queue of prefills",
    )


def _of_load(load: Load, plan: ServingPlan) -> Iterator[_Row]:
    one = plan.replica
    if one is None:
        return
    yield (
        "replicas needed",
        f"{math.ceil(load.requests_per_s / (one.requests_per_s * HEADROOM)):,}",
        f"{load.requests_per_s:.4g} requests/s / ({HEADROOM:.0%} x requests of a replica)",
        "headroom for requests that come by chance: an assumption",
    )
    yield (
        "nodes",
        f"{plan.nodes:,}",
        f"replicas needed x TP{one.tp} GPUs in whole nodes: room for {plan.replicas:,}",
        "catalog",
    )
    if plan.price is not None and plan.usd_per_million_tokens is not None:
        yield (
            "$ of a million tokens",
            f"{plan.usd_per_million_tokens:,.4g}",
            (
                f"{plan.nodes:,} x ${plan.price.usd_per_hour:g} / ({load.requests_per_s:.4g} x "
                f"{load.output_tokens} x 3600) x 1e6"
            ),
            f"{plan.price.source}, {plan.price.date}",
        )
