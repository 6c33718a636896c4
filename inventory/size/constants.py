"""The step-time model's parameters, fitted to published runs, and its error."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from ...schemas.catalog.model.machine import Date
from ...schemas.spec.model import SpecModel
from ...schemas.structure.compose import read_data_file
from .accelerator import Precision

_FILE = Path(__file__).parent / "data" / "constants.yaml"
Share = Annotated[float, Meta(ge=0, le=1)]


class Efficiency(SpecModel, frozen=True):
    """What large matrices reach of a GPU's peak."""

    generation: str
    precision: Precision
    share: Annotated[float, Meta(gt=0, le=1)]
    half_width: Annotated[float, Meta(ge=0)]
    """Mean width of a matrix product at which half of the share is reached: a GPU that computes
    more for each byte of its memory needs wider ones."""
    runs: Annotated[int, Meta(ge=0)]
    """Published runs that it was fitted on; 0: there are none, and it is fp8's."""


class Fitted(SpecModel, frozen=True, kw_only=True):
    """The model's fitted parameters; each without a unit unless stated."""

    efficiencies: list[Efficiency]
    attention: dict[str, Annotated[float, Meta(gt=0, le=1)]]
    """Generation -> what attention reaches of the peak in bf16."""
    traffic: Annotated[float, Meta(ge=0)]
    """Times that what a layer leaves for the backward pass goes through memory."""
    unfused_traffic: Annotated[float, Meta(ge=1)]
    """Times that more without fused kernels."""
    unfused_attention: Annotated[float, Meta(gt=0, le=1)]
    """Share of the attention's speed that is reached without them."""
    scores: Annotated[float, Meta(ge=0)]
    """The same of attention scores, without FlashAttention."""
    logits: Annotated[float, Meta(ge=0)]
    """The same of the output's logits: softmax, loss and its gradient."""
    exposed_nvlink: Share
    """Part of the collectives inside an NVLink domain that no computation hides."""
    exposed_network: Share
    """Part of what goes between nodes that no computation hides, though there is enough of it."""
    exposed_data: Share
    """The same of gradients and weights that are exchanged once a step, next to the last backward
    and the first forward pass."""
    exposed_sharded: Share
    """The same of what FSDP gathers and reduces in every micro-batch, between nodes."""
    exposed_sharded_nvlink: Share
    """The same inside an NVLink domain."""
    jitter: Annotated[float, Meta(ge=0)]
    """What each doubling of the nodes adds to a step."""
    expert_s: Annotated[float, Meta(ge=0)]
    """Seconds that a layer with experts takes however few tokens there are: routing, sorting and
    many small kernels, forward and backward."""
    experts: Annotated[float, Meta(gt=0)]
    """Share of that efficiency that the many small products of experts reach."""

    def efficiency(self, generation: str, precision: Precision) -> Efficiency | None:
        """Return that of GPUs in a precision; None: nothing is known."""
        for each in self.efficiencies:
            if (each.generation, each.precision) == (generation, precision):
                return each
        return None


class Accuracy(SpecModel, frozen=True, kw_only=True):
    """How far predicted step times are from those of runs that no number was fitted on."""

    runs: int
    median: float
    """Of |predicted / published - 1|."""
    worst: float
    slow: float
    """In nine of ten runs a step took at most predicted / slow."""
    fast: float
    """In nine of ten runs a step took at least predicted / fast."""


class Constants(SpecModel, frozen=True, kw_only=True):
    """The file: what `python -m bench.size.fit --write` found."""

    date: Date
    source: str
    fitted: Fitted
    dense: Accuracy
    """Dense models, runs set apart."""
    experts: Accuracy
    """Mixtures of experts, runs set apart."""


@lru_cache(maxsize=1)
def constants() -> Constants:
    """Return the numbers that come with gcluster."""
    return read_data_file(_FILE, Constants)
