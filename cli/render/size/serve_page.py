"""The answer of `gcluster size serve` as a report: machines, fit, latency, what moves it."""

from __future__ import annotations

from collections.abc import Iterator

from ....inventory.size.serving import ServingPlan
from .page import Page, Part
from .plots import Cells, Curves, Stacks, Swing, Tornado
from .serve import TITLES, ServingAnswer, headline, notes, row

_GIGA = 1e9


def serve_page(answer: ServingAnswer) -> Page:
    """Return the report."""
    cells = Cells(TITLES, [row(plan) for plan in answer.plans])
    parts = [Part(title="Machines", cells=cells)]
    fitting = [plan for plan in answer.plans if plan.replica is not None]
    if fitting:
        parts.append(Part(title="Fit", plot=_fit(fitting)))
    for plan in answer.plans:
        parts += _of_plan(answer, plan)
    for machine, explained in answer.explanation.items():
        rows = [[each.what, each.value, each.formula, each.source] for each in explained]
        titles = ["figure", "value", "formula", "source"]
        parts.append(Part(title=f"{machine}, figure by figure", cells=Cells(titles, rows, (2, 3))))
    title = f"Serving {answer.load.model.name}"
    return Page(title=title, about=headline(answer.load), parts=parts, notes=[*notes(answer)])


def _fit(plans: list[ServingPlan]) -> Stacks:
    rows = []
    for plan in plans:
        one = plan.replica
        if one is not None:
            rows.append((f"{plan.machine}, {one.split}", [one.weight_bytes, one.cache_bytes]))
    return Stacks(
        label="GB on each GPU of a replica",
        names=["weights", "KV cache"],
        rows=rows,
        show=lambda value: f"{value / _GIGA:.1f} GB",
    )


def _of_plan(answer: ServingAnswer, plan: ServingPlan) -> Iterator[Part]:
    curve = answer.by_batch.get(plan.machine)
    if curve:
        yield Part(
            title=f"{plan.machine}: time of a token by batch",
            plot=Curves(
                label=f"{plan.machine}, one replica",
                x_name="requests of a batch",
                y_name="ms of a further token",
                series=[("predicted", [(float(b), 1000 * each) for b, _, each in curve])],
                show_x=lambda value: f"{value:,.0f}",
                show_y=lambda value: f"{value:.0f} ms",
                limit=("--tpot-ms", 1000 * answer.load.per_token_s),
            ),
        )
        yield Part(
            title=f"{plan.machine}: requests by batch",
            plot=Curves(
                label=f"{plan.machine}, one replica",
                x_name="requests of a batch",
                y_name="requests a second",
                series=[("predicted", [(float(b), rate) for b, rate, _ in curve])],
                show_x=lambda value: f"{value:,.0f}",
                show_y=lambda value: f"{value:.3g}",
            ),
        )
    swings = answer.swings.get(plan.machine)
    if swings:
        yield Part(
            title=f"{plan.machine}: what moves it",
            plot=Tornado(
                label="change of the GPUs that the load keeps busy",
                result="GPUs",
                swings=[
                    Swing(
                        name=each.name,
                        low="half",
                        high="double",
                        at_low=each.half,
                        at_high=each.double,
                    )
                    for each in swings
                ],
                show=lambda value: f"{value:+.0%}",
            ),
        )
