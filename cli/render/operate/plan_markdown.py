"""A plan as the comment on a pull request: what changes, how it disturbs, what it costs.

The same plan gives the same bytes: no times, no ids, no counts of jobs that run just now, so that
the comment of the next commit differs where the plan does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ....lifecycle.planning.changes import DISRUPTIONS, Plan, disruption_of
from ....schemas.diagnostics import Diagnostic
from ...console import Console
from ..quantities import plural
from .operations import repair_lines
from .plan import (
    cost,
    fallback_list_lines,
    fields,
    guarded,
    sections,
    totals,
    unreachable,
    upgrades,
)

_CONSOLE = Console()
_LONGEST = 60_000
"""Characters at most: a comment of GitHub holds 65,536, one of GitLab a million."""
_WORDS = {
    "in-place": "in place",
    "rolling": "rolling",
    "replace": "replaced",
    "destroy": "destroyed",
}


def plan_markdown(plan: Plan) -> str:
    """Return the comment. By its first line a pipeline finds the comment to write again."""
    steady = replace(plan, job_impact=None, steps=tuple(replace(s, jobs=None) for s in plan.steps))
    lines = [
        f"<!-- gcluster plan: {plan.cluster} -->",
        f"### gcluster plan: `{plan.cluster}`",
        "",
        *_summary(steady),
    ]
    lines += [f"> {line.strip()}" for line in guarded(steady, _CONSOLE)]
    lines += [""] if steady.guards else []
    lines += _folded("since the last up", [*upgrades(steady, _CONSOLE)][1:])
    lines += _folded("spec", [*fields(steady, _CONSOLE)][1:])
    for title, rows in sections(steady, _CONSOLE):
        lines += _folded(" ".join(title.split()), rows)
    lines += _folded("not reachable", [*unreachable(steady, _CONSOLE)])
    lines += _folded("repair queue", repair_lines(plan.cluster, plan.repairs, _CONSOLE)[1:])
    lines += _folded(
        "how machines are bought", [*fallback_list_lines(plan.fallback_lists, _CONSOLE)]
    )
    lines += _diagnostic_lines(plan.diagnostics)
    return _short("\n".join(lines).rstrip())


def _summary(plan: Plan) -> Iterator[str]:
    """Yield the table that a reader sees without opening anything."""
    if plan.is_empty:
        yield "Nothing to change: the cluster is as its spec says."
        yield ""
    yield "| | |"
    yield "| --- | --- |"
    if not plan.is_empty:
        yield f"| changes | {totals(plan)} |"
        yield f"| disruption | {_disruptions(plan)} |"
    yield f"| cost afterwards | {cost(plan)} |"
    yield ""


def _disruptions(plan: Plan) -> str:
    """Return "3 replaced, 62 steps rolling", the worst first."""
    things = Counter(disruption_of(change) for site in plan.sites for change in site.changes)
    steps: Counter[str] = Counter()
    for step in plan.steps:
        steps[step.disruption] += step.count
    lines = []
    for kind in reversed(DISRUPTIONS[1:]):
        for many, what in ((things[kind], "resource"), (steps[kind], "step")):
            lines += [f"{plural(many, what)} {_WORDS[kind]}"] if many else []
    return ", ".join(lines) or "none"


def _folded(title: str, rows: list[str]) -> Iterator[str]:
    """Yield a collapsed section; marks are at the start of lines, as in diffs."""
    if not rows:
        return
    yield f"<details><summary>{_escaped(title)}</summary>"
    yield ""
    yield "```diff"
    yield from (row.removeprefix("  ").replace("```", "'''") for row in rows)
    yield "```"
    yield ""
    yield "</details>"
    yield ""


def _diagnostic_lines(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    found = [
        f"{d.code} {'.'.join(str(key) for key in d.path) or d.file}: {d.summary}"
        for d in diagnostics
    ]
    yield from _folded(plural(len(found), "warning"), found)


def _escaped(text: str) -> str:
    return (
        text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("`", "&#96;")
    )


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    note = "Too long for a comment: `gcluster plan` shows all of it."
    fence, section = "\n```", "\n\n</details>"
    kept = text[: _LONGEST - len(f"{fence}{section}\n\n{note}")].rpartition("\n")[0]
    fence = fence if kept.count("```") % 2 else ""
    section = section if kept.count("<details>") > kept.count("</details>") else ""
    return f"{kept}{fence}{section}\n\n{note}"
