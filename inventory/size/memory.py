"""Bytes on the fullest GPU of a layout: weights, gradients, optimizer, activations, what is lost.

Mixed precision with Adam keeps of each trained parameter 2 bytes of weights, 4 of gradients (summed
in fp32) and 12 of optimizer states (fp32 weights, momentum, variance): 18 bytes. With the optimizer
split over d members 6 + 12/d (Megatron Core, distributed optimizer); with everything split 16/d,
where gradients are summed in the precision of the weights (ZeRO, arXiv 1910.02054, section 3).
"""

from __future__ import annotations

import msgspec

from .layout import Layout
from .model import Model

WEIGHT_BYTES = 2
ACTIVATION_BYTES = 2
LOGIT_BYTES = 6
"""Of an element of the output: bf16, and fp32 for the loss."""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one GPU."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    gathered: float
    """Of layers whose split weights are put together for a moment (FSDP)."""

    @property
    def total(self) -> float:
        """All of them."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.gathered


def memory(model: Model, layout: Layout, sequence: int, *, lora_rank: int = 0) -> Memory:
    """Return what the fullest pipeline stage holds on each of its GPUs.

    Args:
        model: what is trained.
        layout: how it is split.
        sequence: s, tokens of a sequence.
        lora_rank: of the adapters; then the weights are frozen, and have no gradients and no
            optimizer states. 0: all weights are trained.
    """
    dense, experts = stage_parameters(model, layout)
    members = layout.dp * layout.cp
    of_experts = max(1, members // layout.ep)
    if lora_rank:
        adapters = model.lora_parameters(lora_rank) / (layout.tp * layout.pp)
        held = WEIGHT_BYTES * (dense + experts)
        if layout.sharding == "full":
            held = WEIGHT_BYTES * (dense / members + experts / of_experts)
        return Memory(
            weights=held + WEIGHT_BYTES * adapters,
            gradients=layout.gradient_bytes * adapters,
            optimizer=layout.optimizer_bytes * adapters / members,
            activations=activation_bytes(model, layout, sequence),
            gathered=_gathered(model, layout),
        )
    if layout.sharding == "full":
        split = dense / members + experts / of_experts
        return Memory(
            weights=WEIGHT_BYTES * split,
            gradients=WEIGHT_BYTES * split,
            optimizer=layout.optimizer_bytes * split,
            activations=activation_bytes(model, layout, sequence),
            gathered=_gathered(model, layout),
        )
    return Memory(
        weights=WEIGHT_BYTES * (dense + experts),
        gradients=layout.gradient_bytes * (dense + experts),
        optimizer=layout.optimizer_bytes * (dense / members + experts / of_experts),
        activations=activation_bytes(model, layout, sequence),
        gathered=0.0,
    )


def stage_parameters(model: Model, layout: Layout) -> tuple[float, float]:
    """Return the parameters of a GPU on the first stage: those of every token, and experts."""
    layers = -(-model.layers // layout.pp)
    moe = min(layers, model.moe_layers)
    own = (
        layers * model.attention_parameters
        + (layers - moe) * model.ffn_parameters
        + moe * model.shared_parameters
    )
    copies = 2 if layout.pp == 1 and not model.is_tied else 1
    dense = (own + copies * model.embedding_parameters) / layout.tp
    experts = moe * (model.experts or 0) * model.expert_parameters / (layout.ep * layout.tp)
    return dense, experts


def _gathered(model: Model, layout: Layout) -> float:
    """Return the bytes of two layers, whole: the one that computes, the next that is fetched."""
    if layout.sharding != "full":
        return 0.0
    layer = model.attention_parameters + (
        model.shared_parameters + (model.experts or 0) * model.expert_parameters / layout.ep
        if model.experts
        else model.ffn_parameters
    )
    return 2 * WEIGHT_BYTES * layer / layout.tp


def layer_activation_bytes(model: Model) -> float:
    """Return the bytes that one token's forward pass leaves in one layer for the backward pass.

    34 h bytes for a GPT with feed-forward layers 4 h wide (arXiv 2205.05198, equation 2, without
    the attention scores, which FlashAttention makes again), of which 2 h are masks of dropout,
    which large models are trained without. Counted tensor by tensor, so that grouped queries, gated
    layers and experts are what they are:

        inputs of two norms, of attention and of the feed-forward layer   4 h
        queries and the output of attention                               2 x heads x width
        keys and values                                                   2 x kv heads x width
        gate, up and product (gated), or the two sides of GELU            3 or 2 x its width
    """
    low = model.latent
    if low is None:
        attention = 2 * model.queries + 2 * model.keys
    else:
        head = low.nope_dim + low.rope_dim
        attention = model.heads * (2 * head + 2 * low.value_dim) + low.kv_rank
    inner = model.matrices  # 3 tensors of a gated layer, 2 of another
    moe = model.moe_layers / model.layers
    routed = model.experts_per_token * (model.expert_ffn or model.ffn) + model.shared_ffn
    spread = model.experts_per_token * model.hidden  # each expert's input is a copy
    ffn = (1 - moe) * inner * model.ffn + moe * (inner * routed + spread)
    return ACTIVATION_BYTES * (4 * model.hidden + attention + ffn)


def score_bytes(model: Model, sequence: int, *, flash: bool) -> float:
    """Return the bytes of one token's attention scores in one layer: 5 x heads x s, or none.

    The softmax's result, its dropout mask and what the values are multiplied by (arXiv 2205.05198,
    equation 1); FlashAttention keeps none of them.
    """
    return 0.0 if flash else 5.0 * model.heads * sequence


def left_bytes(model: Model, layout: Layout) -> float:
    """Return the bytes of one token in one layer on each GPU of a TP group, scores apart.

    Without sequence parallelism the inputs of norms, of attention and of the feed-forward layer,
    and two masks of dropout, are whole on each: 10 h bytes of 34 h (arXiv 2205.05198, equation 2).
    """
    of_one = layer_activation_bytes(model)
    if layout.sequence_parallel:
        return of_one / layout.tp
    whole = ACTIVATION_BYTES * 4 * model.hidden
    return whole + 2 * model.hidden + (of_one - whole) / layout.tp


def activation_bytes(model: Model, layout: Layout, sequence: int) -> float:
    """Return the activations of the first stage, which holds those of most micro-batches.

    With 1F1B the first of p stages holds min(p, m) micro-batches, interleaved in v chunks 1 +
    (p-1)/(p v) times that; sequence parallelism splits all of them over TP (arXiv 2205.05198,
    sections 4.2 and 4.2.3). With full recomputation the input of each layer stays, 2 h bytes a
    token, and one layer is complete while it is recomputed. The output's logits belong to the last
    stage, which holds one micro-batch.
    """
    tokens = sequence * layout.micro_batch / layout.cp
    layers = -(-model.layers // layout.pp)
    scores = score_bytes(model, sequence, flash=layout.flash) / layout.tp
    whole = (left_bytes(model, layout) + scores) * tokens
    kept = ACTIVATION_BYTES * model.hidden * tokens
    kept /= layout.tp if layout.sequence_parallel else 1
    logits = LOGIT_BYTES * tokens * model.vocab / layout.tp
    per_micro_batch = layers * (whole if layout.recompute == "none" else kept)
    again = whole if layout.recompute == "full" else 0.0
    if layout.pp == 1:
        return per_micro_batch + again + logits
    held: float = min(layout.pp, layout.micro_batches)
    if layout.chunks > 1:
        held *= 1 + (layout.pp - 1) / (layout.pp * layout.chunks)
    first, last = held * per_micro_batch, per_micro_batch + logits
    return max(first, last) + again
