"""The answer of `gcluster size` as text and as JSON: machines, layouts, what holds a step up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ....inventory.size.constants import Constants
from ....inventory.size.explanation import MOVES, Explained, bottleneck
from ....inventory.size.power import Power
from ....inventory.size.training import Candidate, Lever, Plan, Workload, accuracy
from ...console import Console, printable, wrap
from ..quantities import bandwidth, duration
from ..table import Column, tabulate

UNKNOWN = "–"  # noqa: RUF001  # the dash of tables; turned into "-" where there is no Unicode
_GIGA = 1e9
_OF_SEVERAL = 2
"""Layouts of each machine where there are several."""
_WIDTH = 100
PARTS = {
    "compute": "arithmetic",
    "memory": "memory traffic",
    "tensor": "TP collectives",
    "context": "CP exchange",
    "expert": "AllToAll of experts",
    "pipeline": "stage to stage",
    "bubble": "pipeline bubble",
    "data": "gradients",
    "jitter": "stragglers",
    "input": "waiting for storage",
}
_PLANS = (
    Column("MACHINE", right=False),
    Column("NODES"),
    Column("GPUS"),
    Column("LAYOUT", right=False),
    Column("GB/GPU", may_go=4),
    Column("MFU"),
    Column("TOKENS/s"),
    Column("DAYS"),
    Column("$/h", may_go=2),
    Column("COST"),
)
_LAYOUTS = (
    Column("LAYOUT", right=False),
    Column("MICRO-BATCH", right=False, may_go=3),
    Column("SPLIT", right=False, may_go=4),
    Column("RECOMPUTED", right=False, may_go=2),
    Column("GB/GPU"),
    Column("STEP"),
    Column("MFU"),
    Column("TOKENS/s"),
)
PLAN_TITLES = [column.title for column in _PLANS]
LAYOUT_TITLES = [column.title for column in _LAYOUTS]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """All of an answer."""

    work: Workload
    plans: list[Plan]
    constants: Constants
    explained: dict[str, list[Explained]] = msgspec.field(default_factory=dict)
    """Machine -> its figures, where they were requested."""
    power: dict[str, Power | None] = msgspec.field(default_factory=dict)
    """Machine -> what the machines of its plan draw."""
    written: dict[str, Any] | None = None
    """The spec that was written, and its cost."""
    room: dict[str, float] = msgspec.field(default_factory=dict)
    """Machine -> bytes that a layout may take of a GPU's memory."""
    levers: dict[str, list[Lever]] = msgspec.field(default_factory=dict)
    """Machine -> what moves a step of its best layout."""
    scaling: dict[str, list[tuple[int, float]]] = msgspec.field(default_factory=dict)
    """Machine -> GPUs and tokens a second."""


def answer_text(answer: Answer, console: Console) -> str:
    """Return the answer for people."""
    lines = [*_folded(headline(answer.work), console), ""]
    lines += _table(answer, console)
    for plan in answer.plans:
        about = [*_about(answer, plan, console)]
        if about:
            lines += ["", *about]
    about = [line for note in notes(answer) for line in _folded(note, console)]
    lines += ["", *(console.paint("faint", line) for line in about)] if about else []
    for machine, drawn in answer.power.items():
        if drawn is not None and machine in answer.explained:
            sources = "; ".join(map(printable, drawn.sources))
            lines += ["", *_folded(f"power of {printable(machine)}: {sources}", console)]
    for machine, rows in answer.explained.items():
        if rows:
            lines += ["", console.paint("strong", f"{printable(machine)}, figure by figure:")]
            lines += explained(rows, console)
    if answer.written is not None:
        lines += ["", *_written(answer.written, console)]
    text = console.plain("\n".join(lines))
    return text if console.unicode else text.replace(UNKNOWN, "-")


def plan_document(answer: Answer) -> dict[str, Any]:
    """Return the answer for programs: every figure in its base unit."""
    off = accuracy(answer.work.model, answer.constants)
    return {
        "workload": answer.work,
        "parameters": answer.work.model.parameters,
        "flops_per_token": answer.work.model.flops_per_token(
            answer.work.sequence, trained=answer.work.method == "full"
        ),
        "plans": [
            {
                **_plan_json(plan),
                "power": answer.power.get(plan.machine),
                "levers": answer.levers.get(plan.machine, []),
            }
            for plan in answer.plans
        ],
        "accuracy": off,
        "explanation": answer.explained or None,
        "spec": answer.written,
    }


def _plan_json(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(plan)
    for candidate, plain in zip(plan.fitting, found["fitting"], strict=True):
        plain["time"]["total"] = candidate.time.total
        plain["memory"]["total"] = candidate.memory.total
        plain["bottleneck"] = bottleneck(candidate.time)
        plain["layout"]["gpus"] = candidate.layout.gpus
    return found


def headline(work: Workload) -> str:
    """Return what is trained."""
    model = work.model
    size = f"{printable(model.name)}: {count(model.parameters)} parameters"
    if model.experts:
        size += f", {count(model.active_parameters)} of them for a token"
    what = "all weights trained" if work.method == "full" else f"LoRA of rank {work.lora_rank}"
    run = "" if work.tokens is None else f", {count(work.tokens)} tokens"
    until = "" if work.deadline_s is None else f" within {duration(work.deadline_s)}"
    return (
        f"{size}, {2 * model.parameters / _GIGA:,.0f} GB of weights in bf16; "
        f"{what} in {work.precision}, {work.sequence:,} tokens a sequence, "
        f"{count(work.batch_tokens)} a step{run}{until}"
    )


def _table(answer: Answer, console: Console) -> list[str]:
    rows = [plan_row(plan) for plan in answer.plans]
    found = tabulate(_PLANS, rows, console).lines
    return [console.paint("strong", found[0]), *found[1:]]


def plan_row(plan: Plan) -> list[str]:
    """Return the cells of a machine."""
    best, run = plan.best, plan.run
    begin = [printable(plan.machine), f"{plan.nodes:,}", f"{plan.gpus:,}"]
    if best is None:
        none = "not known" if plan.why_not else "none fits"
        return [*begin, none, *[UNKNOWN] * 6]
    days = UNKNOWN
    if run is not None:
        days = f"{_days(run.days)} ({_days(run.days_at_least)}..{_days(run.days_at_most)})"
    cost = UNKNOWN if run is None or run.usd is None else f"${run.usd:,.0f}"
    return [
        *begin,
        best.layout.text,
        f"{best.memory.total / _GIGA:.1f}",
        f"{best.mfu:.0%}",
        count(best.tokens_per_s),
        days,
        UNKNOWN if plan.usd_per_hour is None else f"{plan.usd_per_hour:,.2f}",
        cost,
    ]


def _days(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004  # three figures


def _about(answer: Answer, plan: Plan, console: Console) -> Iterator[str]:
    """Yield what is to be known of one machine's plan."""
    nodes = f" x {plan.nodes:,}" if plan.nodes else ""
    yield console.paint("strong", f"{printable(plan.machine)}{nodes}")
    best = plan.best
    if best is None:
        yield from _folded(why_not(answer.work, plan), console, indent=2)
        return
    shown = plan.fitting if len(answer.plans) == 1 else plan.fitting[:_OF_SEVERAL]
    found = tabulate(_LAYOUTS, [layout_row(each) for each in shown], console, indent=2)
    yield from found.lines
    yield from _folded(fits_text(plan), console, indent=2)
    yield from _folded(step_text(best), console, indent=2)
    moved = answer.levers.get(plan.machine, [])
    if moved:
        yield from _folded(f"a step with twice as much: {levers_text(moved)}", console, indent=2)
    run, risk = plan.run, plan.reliability
    if run is not None and run.meets_deadline is False:
        late = "too late: no number that was tried is in time" if plan.nodes > 1 else "too late"
        yield console.paint("error", f"  {late}")
    elif (
        run is not None
        and answer.work.deadline_s
        and run.days_at_most * 86_400 > (answer.work.deadline_s)
    ):
        yield "  in time by the expected days; at the slow end of the range it is not"
    if risk is not None:
        yield from _folded(
            f"failures: one in {duration(risk.hours_between * 3600)}; a checkpoint of "
            f"{risk.checkpoint_bytes / _GIGA:,.0f} GB every {duration(risk.interval_s)} "
            f"({bandwidth(risk.write_bytes_per_s / _GIGA)} to write it in "
            f"{risk.checkpoint_s:.3g} s); goodput {risk.goodput:.1%}; "
            f"{risk.spare_nodes:,} spare node{'' if risk.spare_nodes == 1 else 's'}",
            console,
            indent=2,
        )
    drawn = answer.power.get(plan.machine)
    yield from _folded(
        "power: not known" if drawn is None else power_text(drawn), console, indent=2
    )


_BASES = {
    "catalog": "",
    "similar": ", as the vendor's own node with these GPUs",
    "gpus": ", the GPUs alone: the rest of a node is not known",
}


def power_text(found: Power) -> str:
    """Return "power: 734 kW rated (GPUs 403 kW), ..."."""
    gpus = "" if found.gpus_kw is None else f" (GPUs {_kw(found.gpus_kw)})"
    text = (
        f"power: {_kw(found.rated_kw)} rated{_BASES[found.basis]}{gpus}, about "
        f"{_kw(found.drawn_kw)} while training; {_kw(found.hall_kw)} for the hall at PUE "
        f"{found.pue:g}; {found.btu_per_h:,.0f} BTU/h; {found.racks:,} rack"
        f"{'' if found.racks == 1 else 's'} of {found.nodes_a_rack} node"
        f"{'' if found.nodes_a_rack == 1 else 's'}, {found.rack_kw:.1f} kW each: {found.cooling}"
    )
    if found.kwh is not None:
        text += f"; {found.kwh / 1000:,.3g} MWh for the run"
        co2 = found.kg_co2
        text += ", CO2e unknown (--co2)" if co2 is None else f", {co2 / 1000:,.3g} t CO2e"
    return text


def _kw(value: float) -> str:
    return f"{value / 1000:.3g} MW" if value >= 1000 else f"{value:.3g} kW"  # noqa: PLR2004  # k


def layout_row(each: Candidate) -> list[str]:
    """Return the cells of a layout."""
    layout = each.layout
    chunks = f" x {layout.chunks} chunks" if layout.chunks > 1 else ""
    split = {"full": "all states (FSDP)", "optimizer": "optimizer (ZeRO-1)"}[layout.sharding]
    return [
        layout.text,
        f"{layout.micro_batch} x {layout.micro_batches}{chunks}",
        split if layout.dp * layout.cp > 1 else UNKNOWN,
        "layers" if layout.recompute == "full" else "scores",
        f"{each.memory.total / _GIGA:.1f}",
        f"{each.time.total:.3g} s",
        f"{each.mfu:.1%}",
        count(each.tokens_per_s),
    ]


def step_text(best: Candidate) -> str:
    """Return what a step is spent on, and what would shorten it."""
    least = 0.005
    parts = [
        f"{PARTS[name]} {seconds / best.time.total:.0%}"
        for name, seconds in best.time.parts.items()
        if seconds / best.time.total >= least
    ]
    held = bottleneck(best.time)
    return (
        f"a step of {best.time.total:.3g} s: {', '.join(parts)}. What holds it up is {MOVES[held]}"
    )


def levers_text(levers: list[Lever]) -> str:
    """Return how a step's time changes with twice of each."""
    least = 0.005
    shown = [each for each in levers if abs(each.double) >= least]
    return ", ".join(f"{each.name} {each.double:+.0%}" for each in shown) or "nothing moves it"


def fits_text(plan: Plan) -> str:
    """Return how many layouts fit, and the order of those that are shown."""
    return (
        f"{plan.fits:,} of {plan.tried:,} layouts fit; these are the fastest, of those that differ "
        "by less than the model's error the least split first"
    )


def why_not(work: Workload, plan: Plan) -> str:
    """Return why nothing fits."""
    if plan.why_not:
        return plan.why_not
    closest = plan.closest
    if closest is None:
        return "no layout: the batch has fewer sequences than there are groups of GPUs; --batch"
    needed = closest.memory
    advice = "More nodes or GPUs with more memory help"
    if work.method == "full":
        advice += ", or --method lora"
    return (
        f"none of {plan.tried:,} layouts fits. The closest, {closest.layout.text} with "
        f"{'layers' if closest.layout.recompute == 'full' else 'scores'} recomputed, lacks "
        f"{closest.lacks / _GIGA:,.1f} GB on each GPU: weights {needed.weights / _GIGA:,.1f}, "
        f"gradients {needed.gradients / _GIGA:,.1f}, optimizer {needed.optimizer / _GIGA:,.1f}, "
        f"activations {(needed.activations + needed.gathered) / _GIGA:,.1f} GB, and "
        f"{work.margin:.0%} is left free. {advice}"
    )


def notes(answer: Answer) -> Iterator[str]:
    """Yield how far to trust it, and where prices are from."""
    off = accuracy(answer.work.model, answer.constants)
    kind = "mixtures of experts" if answer.work.model.experts else "dense models"
    if any(plan.best for plan in answer.plans):
        yield (
            f"how far to trust it: on {off.runs} published runs of {kind} that nothing was fitted "
            f"on, step times are off by {off.median:.0%} in the median and {off.worst:.0%} at "
            f"worst; the range of days holds for eight of ten (docs/size.md)"
        )
    if any(plan.run is not None for plan in answer.plans):
        yield ("days and cost include failures, restarts and checkpoints (goodput)")
    priced = [plan for plan in answer.plans if plan.best is not None and plan.price is not None]
    yield from (
        f"price of {printable(plan.machine)}: ${plan.price.usd_per_hour:g} an hour on demand"
        + (f" in {printable(plan.price.region)}" if plan.price.region else "")
        + f" ({printable(plan.price.source)}, {plan.price.date})"
        for plan in priced
        if plan.price is not None
    )
    unpriced = [p.machine for p in answer.plans if p.best is not None and p.price is None]
    if unpriced:
        yield (f"no price is known of {', '.join(map(printable, unpriced))}")
    seen = answer.work.measured
    if seen is not None:
        figures = [
            f"{value / _GIGA:.4g} GB/s {where}"
            for value, where in ((seen.between, "between nodes"), (seen.inside, "inside a node"))
            if value is not None
        ]
        yield (
            f"of {printable(seen.machine)} counts what the gate of {printable(seen.cluster)} "
            f"measured on {printable(seen.time)}: {', '.join(figures)} (AllReduce busbw)"
        )


def explained(rows: list[Explained], console: Console) -> list[str]:
    """Return the table of figures with their formulas and sources."""
    columns = (
        Column("FIGURE", right=False),
        Column("VALUE", right=False),
        Column("FORMULA", right=False, wraps=True),
        Column("SOURCE", right=False, wraps=True),
    )
    cells = [[row.what, row.value, row.formula, printable(row.source)] for row in rows]
    return tabulate(columns, cells, console).lines


def _written(written: dict[str, Any], console: Console) -> list[str]:
    total = written["usd_per_hour"]
    costs = "" if total is None else f", ${total:,.2f}/h with its controller (gcluster cost)"
    return _folded(f"wrote {printable(written['path'])}{costs}", console)


def _folded(text: str, console: Console, indent: int = 0) -> list[str]:
    begin = " " * indent
    return wrap(text, min(console.width, _WIDTH), first=begin, rest=f"{begin}  ")


def count(value: float) -> str:
    """Return "70.6B", "1.4T", "578k", "512": three figures, as models and tokens are counted."""
    for unit, factor in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor * 0.9995:
            return f"{value / factor:.3g}{unit}"
    return f"{value:.3g}"
