"""The answer of `gcluster size serve` as text: replicas, latencies, nodes and $ a token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ....inventory.size.explanation import Explained
from ....inventory.size.serving import (
    HEADROOM,
    Load,
    ServingConstants,
    ServingPlan,
    cache_bytes_per_token,
)
from ....inventory.size.training import Lever
from ...console import Console, printable, wrap
from ..table import Column, tabulate
from .train import UNKNOWN, count, explained

_GIGA = 1e9
_WIDTH = 100
_COLUMNS = (
    Column("MACHINE", right=False),
    Column("NODES"),
    Column("REPLICAS", right=False),
    Column("BATCH"),
    Column("REQ/s", may_go=3),
    Column("FIRST p99"),
    Column("PER TOKEN"),
    Column("$/h", may_go=2),
    Column("$/1M OUT"),
)
TITLES = [column.title for column in _COLUMNS]
_LIMITS = {
    "memory": "memory for the KV cache",
    "first token": "the time to the first token",
    "per token": "the time of each further token",
}


class ServingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All of an answer."""

    load: Load
    plans: list[ServingPlan]
    constants: ServingConstants
    explanation: dict[str, list[Explained]] = {}
    """Machine -> its figures, where they are requested."""
    by_batch: dict[str, list[tuple[int, float, float]]] = {}
    """Machine -> batch, requests a second and seconds of a further token, of a replica."""
    swings: dict[str, list[Lever]] = {}
    """Machine -> how the GPUs that the load keeps busy change."""
    written: dict[str, Any] | None = None
    """The spec that was written, and its cost."""


def serving_text(answer: ServingAnswer, console: Console) -> str:
    """Return the answer for people."""
    found = tabulate(_COLUMNS, [row(plan) for plan in answer.plans], console).lines
    lines = [
        *_folded(headline(answer.load), console),
        "",
        console.paint("strong", found[0]),
        *found[1:],
        "",
    ]
    for note in notes(answer):
        lines += _folded(note, console)
    for machine, rows in answer.explanation.items():
        if rows:
            lines += ["", console.paint("strong", f"{printable(machine)}, figure by figure:")]
            lines += explained(rows, console)
    text = console.plain("\n".join(lines))
    return text if console.unicode else text.replace(UNKNOWN, "-")


def headline(load: Load) -> str:
    """Return what is served."""
    model = load.model
    cache = cache_bytes_per_token(model, load.precision)
    size = {"bf16": 2, "fp8": 1}[load.precision] * model.parameters / _GIGA
    return (
        f"{printable(model.name)}: {count(model.parameters)} parameters, {size:,.0f} GB in "
        f"{load.precision}, {cache / 1000:,.0f} kB of KV cache a token; "
        f"{load.requests_per_s:.3g} requests/s of {load.input_tokens:,} + {load.output_tokens:,} "
        f"tokens; first token within {load.first_token_s * 1000:,.0f} ms (p99), "
        f"{load.per_token_s * 1000:,.0f} ms a token"
    )


def row(plan: ServingPlan) -> list[str]:
    """Return the cells of a machine."""
    one = plan.replica
    if one is None:
        return [printable(plan.machine), *[UNKNOWN] * 8]
    usd, per = plan.usd_per_hour, plan.usd_per_million_tokens
    return [
        printable(plan.machine),
        f"{plan.nodes:,}",
        f"{plan.replicas:,} x {one.split}",
        f"{one.batch:,}",
        f"{one.requests_per_s * plan.replicas:,.3g}",
        f"{one.first_token_s * 1000:,.0f} ms",
        f"{one.per_token_s * 1000:.1f} ms",
        UNKNOWN if usd is None else f"{usd:,.2f}",
        UNKNOWN if per is None else f"{per:,.2f}",
    ]


def notes(answer: ServingAnswer) -> Iterator[str]:
    """Yield what is to be known of each machine, and how far to trust it."""
    for plan in answer.plans:
        one = plan.replica
        if one is None:
            yield f"{printable(plan.machine)}: {plan.why_not}"
            continue
        price = ""
        if plan.price is not None:
            where = f" in {printable(plan.price.region)}" if plan.price.region else ""
            price = (
                f"; ${plan.price.usd_per_hour:g} an hour on demand{where} "
                f"({printable(plan.price.source)}, {plan.price.date})"
            )
        yield (
            f"{printable(plan.machine)}: {one.weight_bytes / _GIGA:,.1f} GB of weights and "
            f"{one.cache_bytes / _GIGA:,.1f} GB of cache on each GPU, prefill "
            f"{one.prefill_s:.2g} s; what keeps the batch from growing is "
            f"{_LIMITS[one.limit]}{price}"
        )
    off = answer.constants
    if any(plan.replica for plan in answer.plans):
        yield (
            f"REQ/s is what all replicas can do; the load may take {HEADROOM:.0%} of it. On "
            f"{off.runs} published runs that nothing was fitted on, times are off by "
            f"{off.median:.0%} in the median and {off.worst:.0%} at worst (docs/size.md)"
        )
    if answer.written is not None:
        total = answer.written["usd_per_hour"]
        costs = "" if total is None else f", ${total:,.2f}/h with its controller (gcluster cost)"
        yield f"wrote {printable(answer.written['path'])}{costs}"


def _folded(text: str, console: Console) -> list[str]:
    return wrap(text, min(console.width, _WIDTH), rest="  ")
