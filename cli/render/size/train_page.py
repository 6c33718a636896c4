"""The answer of `gcluster size train` as a report: machines, fit, scaling, what moves it."""

from __future__ import annotations

from collections.abc import Iterator

from ....inventory.size.training import Candidate, Lever, Misfit, Plan
from .page import Page, Part
from .plots import Cells, Curves, Stacks, Swing, Tornado
from .train import (
    LAYOUT_TITLES,
    PARTS,
    PLAN_TITLES,
    Answer,
    count,
    fits_text,
    headline,
    layout_row,
    notes,
    plan_row,
    power_text,
    step_text,
    why_not,
)

_GIGA = 1e9
_MOST_PARTS = 5
"""Parts of a step with a colour of their own."""
_MEMORY = ["weights", "gradients", "optimizer", "activations", "gathered layers"]


def train_page(answer: Answer) -> Page:
    """Return the report; plots are of the first machine where it fits."""
    rows = [plan_row(plan) for plan in answer.plans]
    parts = [Part(title="Machines", cells=Cells(PLAN_TITLES, rows))]
    for plan in answer.plans:
        parts += _of_plan(answer, plan)
    for machine, explained in answer.explained.items():
        cells = [[row.what, row.value, row.formula, row.source] for row in explained]
        titles = ["figure", "value", "formula", "source"]
        parts.append(Part(title=f"{machine}, figure by figure", cells=Cells(titles, cells, (2, 3))))
    return Page(
        title=f"Training {answer.work.model.name}",
        about=headline(answer.work),
        parts=parts,
        notes=[*notes(answer)],
    )


def _of_plan(answer: Answer, plan: Plan) -> Iterator[Part]:
    name = f"{plan.machine} x {plan.nodes:,}" if plan.nodes else plan.machine
    best = plan.best
    if best is None:
        text = [why_not(answer.work, plan)]
        yield Part(title=name, text=text, plot=_fit(answer, plan))
        return
    rows = [layout_row(each) for each in plan.fitting]
    yield Part(
        title=f"{name}: layouts",
        text=[f"{fits_text(plan)}."],
        cells=Cells(LAYOUT_TITLES, rows),
    )
    yield Part(title=f"{name}: fit by layout", plot=_fit(answer, plan))
    yield Part(title=f"{name}: a step", text=[step_text(best)], plot=_steps(plan))
    levers = answer.levers.get(plan.machine)
    if levers:
        yield Part(title=f"{name}: what would move a step", plot=_levers(levers))
    curve = answer.scaling.get(plan.machine)
    if curve and len(curve) > 1:
        yield Part(title=f"{name}: scaling", plot=_scaling(plan, curve))
    drawn = answer.power.get(plan.machine)
    if drawn is not None:
        yield Part(title=f"{name}: power and cooling", text=[power_text(drawn)])


def _fit(answer: Answer, plan: Plan) -> Stacks | None:
    shown: list[Candidate | Misfit] = [*plan.fitting]
    shown += [plan.closest] if plan.closest is not None else []
    if not shown:
        return None
    room = answer.room.get(plan.machine)
    return Stacks(
        label="GB on each GPU by layout, against what a GPU has",
        names=_MEMORY,
        rows=[
            (
                _name(each),
                [
                    each.memory.weights,
                    each.memory.gradients,
                    each.memory.optimizer,
                    each.memory.activations,
                    each.memory.gathered,
                ],
            )
            for each in shown
        ],
        show=lambda value: f"{value / _GIGA:.1f} GB",
        limit=("room", room) if room else None,
    )


def _steps(plan: Plan) -> Stacks:
    def most(name: str) -> float:
        return max(float(getattr(each.time, name)) for each in plan.fitting)

    shown = sorted(PARTS, key=most, reverse=True)[:_MOST_PARTS]
    rows = []
    for each in plan.fitting:
        parts = [float(getattr(each.time, name)) for name in shown]
        rows.append((_name(each), [*parts, max(0.0, each.time.total - sum(parts))]))
    return Stacks(
        label="seconds of a step by layout",
        names=[*(PARTS[name] for name in shown), "the rest"],
        rows=rows,
        show=lambda value: f"{value:.3g} s",
    )


def _name(each: Candidate | Misfit) -> str:
    layout = each.layout
    again = ", layers again" if layout.recompute == "full" else ""
    return f"{layout.text}, {layout.micro_batch} x {layout.micro_batches}{again}"


def _levers(levers: list[Lever]) -> Tornado:
    return Tornado(
        label="change of a step's time with half and double of each",
        result="time of a step",
        swings=[
            Swing(name=each.name, low="half", high="double", at_low=each.half, at_high=each.double)
            for each in levers
        ],
        show=lambda value: f"{value:+.1%}",
    )


def _scaling(plan: Plan, curve: list[tuple[int, float]]) -> Curves:
    first, rate = curve[0]
    ideal = [(float(gpus), rate / first * gpus) for gpus, _ in curve]
    return Curves(
        label=f"tokens a second on {plan.machine}",
        x_name="GPUs",
        y_name="tokens a second",
        series=[("predicted", [(float(g), r) for g, r in curve]), ("in proportion", ideal)],
        show_x=lambda value: f"{value:,.0f}",
        show_y=count,
    )
