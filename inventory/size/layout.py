"""How a model is split over GPUs: every layout that a machine's NVLink domain and counts allow.

TP x CP x PP x DP GPUs. Tensor parallelism (TP) splits matrices and stays inside the NVLink domain;
context parallelism (CP) splits sequences, pipeline parallelism (PP) layers, data parallelism (DP)
batches. Expert parallelism (EP) splits experts over the members of DP x CP.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from .model import Model

Sharding: TypeAlias = Literal["optimizer", "full"]
"""What the members of a DP group hold a part of. optimizer: the optimizer's states (ZeRO-1, the
distributed optimizer of Megatron); full: weights and gradients too (ZeRO-3, FSDP)."""
Recompute: TypeAlias = Literal["none", "full"]
"""Activations that the backward pass makes again. none: none but the attention scores, by
FlashAttention; full: all within a layer (arXiv 2205.05198)."""

RECOMPUTED: tuple[Recompute, ...] = ("none", "full")
MICRO_BATCHES = (1, 2, 4, 8)
"""Sequences of a micro-batch that are tried."""
MOST_CHUNKS = 8
"""Most virtual stages on a GPU that are tried: more chunks shrink the bubble and send more."""
_BATCH_SLACK = 0.25
_LEAST_TOKENS = 1024
"""Least tokens of a sequence on one member of CP: below it attention has too little to do."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """One way to split a model and its batch."""

    tp: int = 1
    pp: int = 1
    cp: int = 1
    dp: int = 1
    ep: int = 1
    chunks: int = 1
    """Virtual stages of each GPU (interleaved 1F1B)."""
    micro_batch: int = 1
    """Sequences."""
    micro_batches: int = 1
    """m, of each pipeline in a step."""
    sharding: Sharding = "optimizer"
    recompute: Recompute = "none"
    flash: bool = True
    """Attention scores stay on the chip (FlashAttention) and don't go through memory."""
    fused: bool = True
    """Attention, norms, activations and loss are fused kernels for the GPU (cuDNN, Transformer
    Engine). Without: PyTorch's own, and FlashAttention in Triton, as in 2023."""
    sequence_parallel: bool = True
    """Norms and what is around them are split over TP too (arXiv 2205.05198, section 4.2.2)."""
    gathered_bytes: int = 2
    """Of a weight that members of DP gather; 1 where it is sent in FP8 (Megatron's
    fp8_param_gather)."""
    gradient_bytes: int = 4
    """Of a parameter: summed in fp32; 2 where they are summed in bf16."""
    optimizer_bytes: int = 12
    """Of a parameter: weights, momentum and variance in fp32; 10 where, of the weights, only the 16
    bits that bf16 lacks are kept (NeMo's distributed_fused_adam, store_param_remainders)."""

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return self.tp * self.pp * self.cp * self.dp

    @property
    def sequences(self) -> int:
        """Sequences of a step."""
        return self.dp * self.micro_batch * self.micro_batches

    @property
    def text(self) -> str:
        """Its text form: TP4 PP2 DP8."""
        parts = [("TP", self.tp), ("PP", self.pp), ("CP", self.cp), ("EP", self.ep)]
        shown = " ".join(f"{name}{size}" for name, size in parts if size > 1)
        return f"{shown} DP{self.dp}".strip()


def layouts(
    model: Model, *, gpus: int, domain: int, sequence: int, sequences: int
) -> Iterator[Layout]:
    """Yield every layout of a model on so many GPUs.

    Args:
        model: what is split.
        gpus: GPUs in all.
        domain: GPUs of an NVLink domain; TP stays within it.
        sequence: tokens of a sequence.
        sequences: sequences of a step, about: each member of DP has a whole number of them, and
            all together a quarter more at most.
    """
    for tp in _powers(min(domain, gpus, model.kv_heads or model.heads)):
        if gpus % tp or model.heads % tp or model.ffn % tp:
            continue
        for pp in _stages(model, gpus // tp):
            for cp in _powers(max(1, sequence // _LEAST_TOKENS)):
                if (gpus // tp // pp) % cp:
                    continue
                dp = gpus // (tp * pp * cp)
                own = max(1, round(sequences / dp))
                if own * dp > sequences * (1 + _BATCH_SLACK):
                    continue
                for ep in _experts(model, dp * cp):
                    yield from _batches(Layout(tp=tp, pp=pp, cp=cp, dp=dp, ep=ep), model, own)


def _batches(layout: Layout, model: Model, sequences: int) -> Iterator[Layout]:
    for size in MICRO_BATCHES:
        count = sequences // size
        if sequences % size or count < 1:
            continue
        chunks = _chunks(model, layout.pp, count)
        for recompute in RECOMPUTED:
            common = msgspec.structs.replace(
                layout,
                micro_batch=size,
                micro_batches=count,
                recompute=recompute,
                chunks=chunks,
            )
            yield common
            if layout.pp == 1 and layout.dp * layout.cp > 1:
                yield msgspec.structs.replace(common, sharding="full")


def _powers(most: int) -> Iterator[int]:
    """Yield 1, 2, 4 and so on."""
    size = 1
    while size <= most:
        yield size
        size *= 2


def _stages(model: Model, most: int) -> list[int]:
    """Return the numbers of pipeline stages that split the layers evenly enough."""
    return [
        stages
        for stages in range(1, min(most, model.layers) + 1)
        if most % stages == 0 and _is_even(model.layers, stages)
    ]


def _is_even(layers: int, stages: int) -> bool:
    """Return whether the fullest stage has at most a tenth more than its share."""
    return -(-layers // stages) * stages <= 1.1 * layers  # the tenth


def _experts(model: Model, members: int) -> list[int]:
    if not model.experts:
        return [1]
    return [
        size for size in _powers(model.experts) if members % size == 0 and model.experts % size == 0
    ]


def _chunks(model: Model, stages: int, micro_batches: int) -> int:
    """Return the most virtual stages: Megatron needs micro-batches in multiples of the stages."""
    if stages == 1 or micro_batches % stages:
        return 1
    of_one = -(-model.layers // stages)
    return max(size for size in range(1, min(MOST_CHUNKS, of_one) + 1) if of_one % size == 0)
