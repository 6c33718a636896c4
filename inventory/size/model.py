"""The shape of a transformer: its parameters and the arithmetic that a token costs.

N is a count of parameters, h the hidden size, L the layers, s the tokens of a sequence, V the
vocabulary. A multiplication and an addition are two operations (FLOP).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from ...schemas.catalog.model.machine import Date, Source
from ...schemas.spec.model import SpecModel
from ...schemas.structure.compose import read_data_file

Positive = Annotated[int, Meta(ge=1)]
_FILE = Path(__file__).parent / "data" / "models.yaml"
BACKWARD = 2
"""The backward pass multiplies twice what the forward pass does: by the weights, for the gradient
of the activations, and by the activations, for that of the weights (arXiv 2104.04473, appendix)."""


class Published(SpecModel, frozen=True):
    """Parameter count from an external source."""

    parameters: Positive
    digits: Positive
    """Digits of it that are printed."""
    source: Source


class Latent(SpecModel, frozen=True):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): ranks and sizes of a head."""

    kv_rank: Positive
    nope_dim: Positive
    rope_dim: Positive
    value_dim: Positive
    query_rank: Positive | None = None


class Model(SpecModel, frozen=True, kw_only=True):
    """A decoder: dense, or with experts in the place of feed-forward layers."""

    name: str
    hidden: Positive
    layers: Positive
    heads: Positive
    ffn: Positive
    """Width of a dense feed-forward layer."""
    vocab: Positive
    sequence: Positive
    """Tokens of the longest sequence that it was made for."""
    source: Source
    date: Date
    kv_heads: Positive | None = None
    """Fewer than heads: grouped-query attention. None: as many."""
    head_dim: Positive | None = None
    """None: hidden / heads."""
    kind: Literal["llama", "gpt"] = "llama"
    """gpt: LayerNorm, biases, learned positions, tied embeddings and two matrices a feed-forward
    layer. llama: RMSNorm, no biases, two embeddings, and three where it is gated."""
    gated: bool | None = None
    """Three matrices in a feed-forward layer (SwiGLU), not two. None: as the kind has it."""
    tied: bool | None = None
    """The output shares the embedding's matrix. None: as the kind has it."""
    learned_positions: bool = True
    """Of the kind gpt: an embedding of positions."""
    qkv_biases: bool = False
    qk_norms: bool = False
    embedding_norm: bool = False
    experts: Positive | None = None
    """Experts of a layer; None: dense."""
    experts_per_token: Positive = 1
    expert_ffn: Positive | None = None
    """Width of an expert; None: ffn."""
    shared_ffn: Annotated[int, Meta(ge=0)] = 0
    """Width of the experts that every token passes."""
    dense_layers: Annotated[int, Meta(ge=0)] = 0
    """The first layers, which have no experts."""
    latent: Latent | None = None
    published: Published | None = None

    @property
    def keys(self) -> int:
        """Width of the keys, and of the values, of a token."""
        return (self.kv_heads or self.heads) * self.dim

    @property
    def dim(self) -> int:
        """Width of a head."""
        return self.head_dim or self.hidden // self.heads

    @property
    def queries(self) -> int:
        """Width of the queries of a token."""
        return self.heads * self.dim

    @property
    def matrices(self) -> int:
        """Matrices of a feed-forward layer."""
        gated = self.kind == "llama" if self.gated is None else self.gated
        return 3 if gated else 2

    @property
    def is_tied(self) -> bool:
        """Whether embedding and output are one matrix."""
        return self.kind == "gpt" if self.tied is None else self.tied

    @property
    def moe_layers(self) -> int:
        """Layers with experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def attention_parameters(self) -> int:
        """Weights of one layer's attention, without biases."""
        h, low = self.hidden, self.latent
        if low is None:
            return h * self.queries * 2 + h * self.keys * 2
        head = low.nope_dim + low.rope_dim
        query = (
            h * low.query_rank + low.query_rank * self.heads * head
            if low.query_rank
            else h * self.heads * head
        )
        into = h * (low.kv_rank + low.rope_dim)
        out_of = low.kv_rank * self.heads * (low.nope_dim + low.value_dim)
        return query + into + out_of + self.heads * low.value_dim * h

    @property
    def expert_parameters(self) -> int:
        """Weights of one expert."""
        return self.matrices * self.hidden * (self.expert_ffn or self.ffn)

    @property
    def shared_parameters(self) -> int:
        """Weights that every token passes in a layer with experts: router and shared experts."""
        return self.matrices * self.hidden * self.shared_ffn + self.hidden * (self.experts or 0)

    @property
    def ffn_parameters(self) -> int:
        """Weights of one dense feed-forward layer."""
        return self.matrices * self.hidden * self.ffn

    @property
    def embedding_parameters(self) -> int:
        """Weights of one embedding of the vocabulary."""
        return self.vocab * self.hidden

    @property
    def parameters(self) -> int:
        """N: all weights.

        Of the kind gpt this is 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)), equation 2 of arXiv
        2104.04473, where the feed-forward layer is 4 h wide.
        """
        return (
            self.layers * (self.attention_parameters + self._small_parameters)
            + (self.layers - self.moe_layers) * self.ffn_parameters
            + self.moe_layers
            * (self.shared_parameters + (self.experts or 0) * self.expert_parameters)
            + self.embedding_parameters * (1 if self.is_tied else 2)
            + self._norm * (2 if self.embedding_norm else 1)
            + (self.sequence * self.hidden if self.kind == "gpt" and self.learned_positions else 0)
        )

    @property
    def active_parameters(self) -> int:
        """Weights that one token is multiplied by: the output's matrix too, the lookup not."""
        return self.layer_active_parameters * self.layers + self.embedding_parameters

    @property
    def layer_active_parameters(self) -> int:
        """The same of one layer, on average over all layers."""
        moe = self.shared_parameters + self.experts_per_token * self.expert_parameters
        dense = self.layers - self.moe_layers
        ffn = (self.moe_layers * moe + dense * self.ffn_parameters) // self.layers
        return self.attention_parameters + ffn

    @property
    def _norm(self) -> int:
        return self.hidden * (2 if self.kind == "gpt" else 1)

    @property
    def _small_parameters(self) -> int:
        """Norms and biases of one layer."""
        biases = 2 * self.queries + 2 * self.keys if self.qkv_biases else 0
        if self.kind == "gpt":
            biases = self.queries + 2 * self.keys + self.hidden + self.ffn + self.hidden
        elif biases:
            biases -= self.queries  # of queries, keys and values, not of the output
        norms = 2 * self._norm + (2 * self.dim if self.qk_norms else 0)
        low = self.latent
        return biases + norms + (low.kv_rank + (low.query_rank or 0) if low else 0)

    def attention_flops(self, sequence: int) -> float:
        """Forward FLOP of one token's attention scores in one layer, causal: 2 s x heads x width.

        Each token attends to s/2 others on average; scores and their weighted sum take 2 FLOP each
        for an element. Twice that where the other half isn't skipped.
        """
        low = self.latent
        if low is not None:
            return float(sequence * self.heads * (low.nope_dim + low.rope_dim + low.value_dim))
        return 2.0 * sequence * self.queries

    def flops_per_token(self, sequence: int, *, trained: bool = True) -> float:
        """FLOP of a token's forward and backward pass: 6 N + 6 L h s for a dense model.

        Args:
            sequence: s, tokens of a sequence; attention is causal.
            trained: whether the weights' gradients are made; with LoRA nearly all aren't.
        """
        linear = 2.0 * self.active_parameters * (1 + (BACKWARD if trained else 1))
        return linear + self.layers * self.attention_flops(sequence) * (1 + BACKWARD)

    def lora_parameters(self, rank: int) -> int:
        """Weights of adapters at all matrices of attention and feed-forward layers.

        rank x (rows + columns) for each matrix (LoRA, arXiv 2106.09685, section 4.1).
        """
        h, ffn = self.hidden, self.expert_ffn or self.ffn
        attention = 2 * (h + self.queries) + 2 * (h + self.keys)
        copies = (self.experts or 1) * self.moe_layers + (self.layers - self.moe_layers)
        return rank * (self.layers * attention + copies * self.matrices * (h + ffn))


class _Models(SpecModel, frozen=True):
    models: list[Model] = field(default_factory=list)


@lru_cache(maxsize=1)
def presets() -> dict[str, Model]:
    """Return the models that come with gcluster, by name."""
    found = read_data_file(_FILE, _Models)
    return {model.name: model for model in found.models}
