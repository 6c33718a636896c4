"""How long a training step takes: arithmetic, memory traffic, collectives, the pipeline's bubble.

A step of m micro-batches on p stages in v chunks takes (m + (p-1)/v) times what a micro-batch takes
on the fullest stage (arXiv 2104.04473, section 2.2), and then what of the gradients' exchange no
computation hides. A micro-batch of T tokens on one GPU takes

    FLOP of linear layers / (peak x efficiency x w / (w + half_width))
  + FLOP of attention / (peak in bf16 x attention(generation))
  + traffic x activation bytes / memory bandwidth
  + exposed share x collectives, each alpha + (n-1)/n S/B

where w is the geometric mean of the three sides of a layer's matrix products. The fitted numbers
are in data/constants.yaml, with how far they are off on runs they weren't fitted on.
"""

from __future__ import annotations

import msgspec

from .accelerator import Accelerator, Precision, Ring, gather_s, ring
from .constants import Fitted
from .layout import Layout
from .memory import (
    LOGIT_BYTES,
    WEIGHT_BYTES,
    left_bytes,
    score_bytes,
    stage_parameters,
)
from .model import BACKWARD, Model

_OPTIMIZER_TRAFFIC = 30
"""Bytes that Adam reads and writes for a parameter: gradients, three fp32 states twice, weights."""


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one step, by what they are spent on."""

    compute: float
    """Matrix products of linear layers and attention."""
    memory: float
    """Norms, activations and the optimizer: limited by the memory's bandwidth."""
    tensor: float
    """Collectives of TP."""
    context: float
    """Keys and values between the members of CP."""
    expert: float
    """AllToAll of experts, and routing to them."""
    pipeline: float
    """Activations between stages."""
    bubble: float
    """Stages that wait for others."""
    data: float
    """Gradients and weights between the members of DP."""
    jitter: float
    """Waiting for the slowest node."""
    input: float = 0.0
    """Waiting for tokens that storage has not delivered yet."""

    @property
    def total(self) -> float:
        """All of a step."""
        return sum(self.parts.values())

    @property
    def parts(self) -> dict[str, float]:
        """Seconds by name, the longest first."""
        found = {name: float(getattr(self, name)) for name in self.__struct_fields__}
        return dict(sorted(found.items(), key=lambda item: -item[1]))


class _MicroBatch(msgspec.Struct, frozen=True):
    """Seconds of one micro-batch in one layer of one GPU."""

    linear: float
    attention: float
    memory: float
    tensor: float
    context: float
    expert: float

    @property
    def total(self) -> float:
        return self.linear + self.attention + self.memory + self.tensor + self.context + self.expert


def step_time(
    model: Model,
    layout: Layout,
    gpu: Accelerator,
    fitted: Fitted,
    *,
    sequence: int,
    precision: Precision,
    trained: bool = True,
) -> StepTime | str:
    """Return what a step takes, or why that is unknown.

    Args:
        model: what is trained.
        layout: how it is split; its GPUs are numbered TP first, then CP, DP and PP, as Megatron's
            order tp-cp-ep-dp-pp has them.
        gpu: one GPU of the machine, and its share of the links.
        fitted: numbers of the model.
        sequence: tokens of a sequence.
        precision: of linear layers.
        trained: whether all weights are; with LoRA their gradients aren't made.
    """
    known = fitted.efficiency(gpu.generation, precision)
    peak = gpu.peak(precision)
    if known is None or peak is None:
        return f"nothing is known of {gpu.gpu} in {precision}"
    groups = _Groups.of(layout, gpu)
    if groups is None:
        return "the speed of the NICs is not known"
    attention = gpu.bf16 * fitted.attention[gpu.generation]
    attention *= 1.0 if layout.fused else fitted.unfused_attention
    reached = _Reached(peak * known.share, attention, known.half_width)
    layer = _layer(
        model,
        layout,
        gpu=gpu,
        fitted=fitted,
        groups=groups,
        reached=reached,
        sequence=sequence,
        trained=trained,
    )
    tokens = sequence * layout.micro_batch / layout.cp
    head_flops = 2.0 * model.embedding_parameters * tokens / layout.tp * (1 + BACKWARD)
    head = head_flops / reached.linear(tokens, model.hidden, model.vocab / layout.tp)
    often = 1.0 if layout.fused else fitted.unfused_traffic
    logits = fitted.logits * often * LOGIT_BYTES * tokens * model.vocab / layout.tp / gpu.hbm
    fullest = -(-model.layers // layout.pp)
    even = (model.layers * layer.total + head + logits) / layout.pp
    stage = max(fullest * layer.total, even)
    waste = stage - even  # the fullest stage against the average: other stages wait
    share = model.layers / layout.pp
    sent = 2 * layout.chunks * _hop_s(groups.pipeline, sent_bytes(model, tokens, layout))
    sent *= fitted.exposed_network if layout.pp > 1 else 0.0
    count = layout.micro_batches
    bubble = (layout.pp - 1) / layout.chunks * (stage + sent) + count * waste
    data = _data_s(model, layout, groups, fitted, stage, trained=trained)
    dense, experts = stage_parameters(model, layout)
    split = dense / (layout.dp * layout.cp) + experts / max(1, layout.dp * layout.cp // layout.ep)
    update = _OPTIMIZER_TRAFFIC * split / gpu.hbm if trained else 0.0
    quiet = StepTime(
        compute=count * (share * (layer.linear + layer.attention) + head / layout.pp),
        memory=count * (share * layer.memory + logits / layout.pp) + update,
        tensor=count * share * layer.tensor,
        context=count * share * layer.context,
        expert=count * share * layer.expert,
        pipeline=count * sent,
        bubble=bubble,
        data=data,
        jitter=0.0,
    )
    nodes = max(1, layout.gpus // gpu.per_node)
    jitter = fitted.jitter * (nodes.bit_length() - 1) * quiet.total
    return msgspec.structs.replace(quiet, jitter=jitter)


class _Groups(msgspec.Struct, frozen=True):
    """What joins the members of each kind of group."""

    tensor: Ring
    context: Ring
    expert: Ring
    data: Ring
    pipeline: Ring
    in_node: tuple[bool, bool]
    """Whether groups of CP and EP stay inside a domain."""
    data_in_node: bool

    @classmethod
    def of(cls, layout: Layout, gpu: Accelerator) -> _Groups | None:
        """Return them; None: one leaves its node, and the NICs' speed is not known."""
        tp, cp, dp, ep = layout.tp, layout.cp, layout.dp, layout.ep
        found = [
            ring(gpu, tp, tp),
            ring(gpu, tp * cp, cp),
            ring(gpu, tp * ep, ep),
            ring(gpu, tp * cp * dp, cp * dp),
            ring(gpu, layout.gpus, 1),
        ]
        rings = [each for each in found if each is not None]
        if len(rings) < len(found):
            return None
        inside = (tp * cp <= gpu.domain, tp * ep <= gpu.domain)
        tensor, context, expert, data, pipeline = rings
        return cls(tensor, context, expert, data, pipeline, inside, tp * cp * dp <= gpu.domain)


class _Reached(msgspec.Struct, frozen=True):
    """FLOP/s of large matrices in the linear layers' precision, and of attention."""

    large: float
    attention: float
    half_width: float

    def linear(self, rows: float, inner: float, columns: float) -> float:
        """Return FLOP/s of a product of rows x inner by inner x columns."""
        width: float = (rows * inner * columns) ** (1 / 3)
        return self.large * width / (width + self.half_width)


def sent_bytes(model: Model, tokens: float, layout: Layout) -> float:
    """Return the bytes that one stage sends the next for so many tokens, from each GPU."""
    return WEIGHT_BYTES * tokens * model.hidden / layout.tp


def _hop_s(link: Ring, size: float) -> float:
    return link.latency + size / link.bandwidth if link.bandwidth else 0.0


def _layer(
    model: Model,
    layout: Layout,
    *,
    gpu: Accelerator,
    fitted: Fitted,
    groups: _Groups,
    reached: _Reached,
    sequence: int,
    trained: bool,
) -> _MicroBatch:
    """Return what one micro-batch takes in an average layer, forward and backward."""
    again = 1 if layout.recompute == "full" else 0
    passes = 1 + (BACKWARD if trained else 1) + again
    tokens = sequence * layout.micro_batch / layout.cp
    linear = _linear_s(model, layout, reached, fitted, tokens) * passes
    scores = model.attention_flops(sequence) * tokens / layout.tp * (1 + BACKWARD + again)
    attention = scores / (reached.attention)
    scored = score_bytes(model, sequence, flash=layout.flash) / layout.tp
    often = fitted.traffic * (1.0 if layout.fused else fitted.unfused_traffic)
    traffic = (often * left_bytes(model, layout) + fitted.scores * scored) * tokens
    whole = WEIGHT_BYTES * tokens * model.hidden
    tensor = (8 + 4 * again) * gather_s(groups.tensor, layout.tp, whole)
    keys = WEIGHT_BYTES * 2 * model.keys * sequence * layout.micro_batch / layout.tp
    context = (3 + again) * gather_s(groups.context, layout.cp, keys)
    routed = whole * model.experts_per_token / layout.tp * model.moe_layers / model.layers
    expert = (4 + 2 * again) * gather_s(groups.expert, layout.ep, routed if model.experts else 0)
    inside = {True: fitted.exposed_nvlink, False: fitted.exposed_network}
    return _MicroBatch(
        linear,
        attention,
        traffic * (3 + again) / 3 / gpu.hbm,
        fitted.exposed_nvlink * tensor,
        inside[groups.in_node[0]] * context,
        # nothing else can be computed while tokens are on their way to experts
        expert + fitted.expert_s * model.moe_layers / model.layers,
    )


def _linear_s(
    model: Model, layout: Layout, reached: _Reached, fitted: Fitted, tokens: float
) -> float:
    """Return the forward time of a layer's matrix products, experts apart."""
    tp, h = layout.tp, model.hidden
    moe = model.moe_layers / model.layers
    wide = max(model.ffn, model.queries) / tp
    every = model.attention_parameters + (1 - moe) * model.ffn_parameters
    every += moe * model.shared_parameters
    found = 2 * every * tokens / tp / reached.linear(tokens, h, wide)
    if model.experts:
        rows = tokens * model.experts_per_token * layout.ep / model.experts
        width = (model.expert_ffn or model.ffn) / tp
        flops = 2 * moe * model.experts_per_token * model.expert_parameters * tokens / tp
        found += flops / (reached.linear(rows, h, width) * fitted.experts)
    return found


def _data_s(
    model: Model,
    layout: Layout,
    groups: _Groups,
    fitted: Fitted,
    stage: float,
    *,
    trained: bool,
) -> float:
    """Return what of the exchange of gradients and weights no computation hides.

    With the optimizer split, gradients are reduced and weights gathered once a step, next to the
    last backward and the first forward pass. With everything split, each micro-batch gathers the
    weights twice and reduces the gradients once. Of what computation could hide, the fitted exposed
    share stays; of the rest everything.
    """
    members = layout.dp * layout.cp
    if members == 1:
        return 0.0
    dense, experts = stage_parameters(model, layout)
    copies = max(1, members // layout.ep)

    def all_of(size: float) -> float:
        own = gather_s(groups.data, members, size * dense)
        return own + (gather_s(groups.data, copies, size * experts) if experts else 0.0)

    if layout.sharding == "full":
        each = all_of(2 * layout.gathered_bytes) + (all_of(WEIGHT_BYTES) if trained else 0.0)
        exposed = fitted.exposed_sharded_nvlink if groups.data_in_node else fitted.exposed_sharded
        return layout.micro_batches * _uncovered(each, stage, exposed)
    if not trained:
        return 0.0  # adapters alone
    return _uncovered(
        all_of(layout.gradient_bytes + layout.gathered_bytes), stage, fitted.exposed_data
    )


def _uncovered(sent: float, computed: float, exposed: float) -> float:
    return max(0.0, sent - computed) + exposed * min(sent, computed)
