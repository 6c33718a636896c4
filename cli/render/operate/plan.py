"""A plan as a tree: sites, machines, purchase options, and the steps with their cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ....lifecycle.planning.changes import (
    Disruption,
    FallbackListView,
    OptionState,
    OptionView,
    Plan,
    SitePlan,
    StepChange,
)
from ....lifecycle.scheduler.accounting.plan import AccountingPlan
from ....schemas.derived.hostlist import fold
from ....stacks.provider import Effect, ResourceChange
from ...console import Console, Tone, pad, printable, width
from ..quantities import duration, plural, usd_per_hour
from .operations import repair_lines

_MARKS: dict[Effect, tuple[str, Tone]] = {
    "create": ("+", "good"),
    "update": ("~", "warning"),
    "replace": ("!", "error"),
    "delete": ("-", "error"),
}
_DISRUPTION: dict[Disruption, str] = {
    "none": "",
    "in-place": "in place",
    "rolling": "rolling",
    "replace": "replaces the node",
    "destroy": "destroys the node",
}
_STEP_MARKS: dict[Disruption, tuple[str, Tone]] = {
    "none": ("+", "good"),
    "in-place": ("~", "warning"),
    "rolling": ("~", "warning"),
    "replace": ("!", "error"),
    "destroy": ("!", "error"),
}
_BOOK_MARKS: dict[str, tuple[str, Tone]] = {
    "add": ("+", "good"),
    "reserve": ("+", "good"),
    "remove": ("-", "error"),
}
"""First word of a change of accounts or windows -> its mark; all others change something."""
_RIGHT = 76
"""Column where what is at the right of a heading ends."""


def plan_text(plan: Plan, console: Console) -> str:
    """Return the plan as text; says so where there is nothing to do."""
    lines = [*_body(plan, console)]
    if plan.is_empty:
        lines = [f"{plan.cluster} is as its spec says: nothing to change"]
    lines += fallback_list_lines(plan.fallback_lists, console)
    lines += [*upgrades(plan, console), *fields(plan, console), *guarded(plan, console)]
    lines += repair_lines(plan.cluster, plan.repairs, console)
    age = f"observed {duration(plan.observed_age_s)} ago"
    lines.append(console.paint("faint", f"afterwards {cost(plan)} · {age}"))
    return console.plain("\n".join(lines))


def cost(plan: Plan) -> str:
    """Return what the machines cost, and the worst case where that is another figure."""
    now = usd_per_hour(plan.usd_per_hour)
    if plan.worst_usd_per_hour == plan.usd_per_hour:
        return now
    if plan.worst_usd_per_hour is None:
        return f"{now}, worst case unknown"
    return f"{now}, at most {usd_per_hour(plan.worst_usd_per_hour)}"


def _body(plan: Plan, console: Console) -> Iterator[str]:
    for title, rows in sections(plan, console):
        yield title
        yield from rows
    yield from unreachable(plan, console)
    yield ""
    yield totals(plan)


def sections(plan: Plan, console: Console) -> Iterator[tuple[str, list[str]]]:
    """Yield (heading, lines) of each site, of nodes that belong to none, and of the accounts."""
    reported_pools: set[str] = set()
    for site in plan.sites:
        pools = {c.resource.pool for c in site.changes if c.resource.pool}
        reported_pools |= pools
        rows = [
            *_resources(plan.cluster, site, console),
            *_steps((s for s in plan.steps if s.pool in pools), console),
        ]
        title = _heading(site, console, empty=not rows)
        if site.unobserved:
            mark = console.paint("error", "!")
            message = f"not observed, all of it is shown as new: {printable(site.unobserved)}"
            rows.insert(0, f"  {mark} {message}")
        yield title, rows
    rest = [step for step in plan.steps if step.pool not in reported_pools]
    if rest:
        yield console.paint("strong", "nodes"), [*_steps(rest, console)]
    for title, kept in (
        ("accounts and maintenance windows", plan.accounting),
        ("objects of Kubernetes", plan.objects),
    ):
        rows = [] if kept is None else [*_accounting(kept, console)]
        if rows:
            yield console.paint("strong", title), rows
    if plan.kubernetes and any(step.step == "kubernetes.install" for step in plan.steps):
        yield console.paint("strong", "bundle"), [f"  {printable(plan.kubernetes)}"]


def upgrades(plan: Plan, console: Console) -> Iterator[str]:
    """Yield a line for each thing that another gcluster or software lock brings."""
    if not plan.upgrades:
        return
    yield console.paint("strong", "since the last up")
    for line in plan.upgrades:
        message = f"{line.before} → {line.after}" if line.before or line.after else "changed"
        yield f"  {console.paint('warning', '~')} {printable(line.what)}  {printable(message)}"


def fields(plan: Plan, console: Console) -> Iterator[str]:
    """Yield a line for each field of the spec that differs from what was applied."""
    if not plan.fields:
        return
    yield console.paint("strong", "spec")
    for field in plan.fields:
        mark, tone = _STEP_MARKS[field.disruption]
        values = f": {field.before or '…'} → {field.after or '…'}" if field.before else ""
        added = f": {field.after}" if field.after and not field.before else ""
        why = {"replace": "replaced", "destroy": "destroyed"}.get(
            field.disruption, _DISRUPTION[field.disruption]
        )
        yield _row(console.paint(tone, mark), f"{printable(field.path)}{values}{added}", why)


def guarded(plan: Plan, console: Console) -> Iterator[str]:
    """Yield who is hit, and what `up` does only when it is named."""
    job_impact = plan.job_impact
    if job_impact is not None and (job_impact.queue or job_impact.problem):
        affected = f" of {', '.join(job_impact.users)}" if job_impact.users else ""
        jobs = f"{plural(len(job_impact.jobs), 'job')}{affected} on nodes that are touched"
        summary = (
            job_impact.problem or f"{jobs}, {plural(job_impact.queue or 0, 'job')} in the queue"
        )
        yield f"  {console.paint('warning', '!')} {printable(summary)}"
    for guard in plan.guards:
        mark = console.paint("error", "!")
        yield f"  {mark} {printable(guard.reason)}: only with --allow {guard.thing}"
        if guard.hint:
            yield f"    {printable(guard.hint)}"


def unreachable(plan: Plan, console: Console) -> Iterator[str]:
    """Yield a line for each host that did not answer."""
    for host in plan.unreachable:
        mark = console.paint("error", "!")
        yield f"  {mark} {printable(host)} (what would run there is unknown)"


def _accounting(accounting: AccountingPlan, console: Console) -> Iterator[str]:
    """Yield what changes in the accounting of the scheduler, in the order it happens."""
    for words in accounting.changes:
        mark, tone = _BOOK_MARKS.get(words.partition(" ")[0], ("~", "warning"))
        yield f"  {console.paint(tone, mark)} {printable(words)}"
    for words in accounting.held_back:
        yield f"  {console.paint('faint', '=')} {printable(words)}"
    if accounting.problem:
        yield f"  {console.paint('error', '!')} unknown: {printable(accounting.problem)}"


def totals(plan: Plan) -> str:
    """Return "7 to create, 1 to delete; 62 steps on 5 nodes"."""
    effects = Counter(c.effect for site in plan.sites for c in site.changes)
    parts = [f"{n} to {effect}" for effect, n in effects.items() if effect != "keep"]
    things = ", ".join(parts) or "no machine changes"
    runs = sum(step.count for step in plan.steps)
    more = [f"{plural(runs, 'step')} to run"] if runs else []
    if plan.accounting is not None and plan.accounting.changes:
        more.append(f"{plural(len(plan.accounting.changes), 'change')} of accounts and windows")
    if plan.objects is not None and plan.objects.changes:
        more.append(f"{plural(len(plan.objects.changes), 'change')} of objects of Kubernetes")
    return "; ".join([things, *more])


def _heading(site: SitePlan, console: Console, *, empty: bool) -> str:
    title = f"site {site.site} ({site.provider})"
    new = sum(1 for c in site.changes if c.effect == "create")
    right = f"+ {plural(new, 'resource')}" if new else "nothing to change" if empty else ""
    gap = " " * max(2, min(_RIGHT, console.width) - width(title) - len(right))
    return f"{console.paint('strong', title)}{gap}{console.paint('good', right)}".rstrip()


def _resources(cluster: str, site: SitePlan, console: Console) -> Iterator[str]:
    """Yield one line for the changes of one effect, kind, pool and reason together.

    What every name of a cloud site starts with, the cluster and the site, is left out.
    """
    alike: dict[tuple[Effect, str, str, str], list[str]] = {}
    for change in site.changes:
        if change.effect != "keep":
            alike.setdefault(_likeness(change), []).append(
                change.resource.name.removeprefix(f"{cluster}-{site.site}-")
            )
    for (effect, kind, pool, reason), names in alike.items():
        mark, tone = _MARKS[effect]
        one = len(names) == 1
        many = f"{kind} {names[0]}" if one else f"{plural(len(names), kind)} {fold(names)}"
        where = f" (pool {pool})" if pool and pool not in names else ""
        yield _row(console.paint(tone, mark), f"{printable(many)}{where}", printable(reason))


def _likeness(change: ResourceChange) -> tuple[Effect, str, str, str]:
    resource = change.resource
    return change.effect, resource.kind, resource.pool or "", change.reason


def _steps(steps: Iterable[StepChange], console: Console) -> Iterator[str]:
    """Yield one line for the steps that run on the same nodes for the same reason."""
    alike: dict[tuple[str, str, str], list[StepChange]] = {}
    for step in steps:
        alike.setdefault((step.hosts, step.reason, _disruption(step)), []).append(step)
    for (hosts, reason, disruption), group in alike.items():
        mark, tone = _STEP_MARKS[group[0].disruption]
        names = [step.step for step in group]
        shown = names[0] if len(names) == 1 else f"{len(names)} steps {names[0]} … {names[-1]}"
        why = ", ".join(part for part in (disruption, printable(reason)) if part)
        yield _row(console.paint(tone, mark), f"{shown} on {hosts}", why)


def _disruption(step: StepChange) -> str:
    """Return "rolling: 8 at a time, waits for 3 jobs"."""
    if step.disruption != "rolling":
        return _DISRUPTION[step.disruption]
    if step.jobs is None:
        waits = ", waits for jobs"
    else:
        waits = f", waits for {plural(step.jobs, 'job')}" if step.jobs else ""
    return f"rolling: {step.at_once} at a time{waits}"


def _row(mark: str, what: str, why: str) -> str:
    return f"  {mark} {pad(what, 56)}   {why}".rstrip()


_FALLBACK_LIST_MARKS: dict[OptionState, tuple[str, Tone]] = {
    "stands": ("=", "good"),
    "next": ("+", "good"),
    "after": (" ", "faint"),
    "skipped": ("-", "warning"),
    "refused": ("!", "error"),
}


def fallback_list_lines(
    fallback_lists: Iterable[FallbackListView], console: Console
) -> Iterator[str]:
    """Yield the lines of each fallback list with more than one plain option."""
    lists = list(fallback_lists)
    several = {each.pool for each in lists if each.after}
    for fallback_list in lists:
        [only, *more] = fallback_list.purchase_options
        pool = printable(fallback_list.pool)
        if not more and not only.reason and only.buy_hours is None and pool not in several:
            continue
        how = "options may mix" if fallback_list.mixes else "all on one option"
        at = f" at {fallback_list.site}" if pool in several else ""
        title = f"how {pool} is bought{at} ({plural(fallback_list.count, 'node')}, {how})"
        if fallback_list.after:
            title = f"then at {fallback_list.site}, where {fallback_list.after} has none of {pool}"
        yield console.paint("strong", title)
        for option in fallback_list.purchase_options:
            mark, tone = _FALLBACK_LIST_MARKS[option.state]
            what = f"{pad(option.key, 32)} {pad(_price(option), 24)} {_state(option)}"
            yield f"  {console.paint(tone, mark)} {what}".rstrip()
        if fallback_list.note:
            yield f"    {printable(fallback_list.note)}"


def _price(option: OptionView) -> str:
    price = usd_per_hour(option.usd_per_hour)
    return f"at most {price}" if option.is_bound and option.usd_per_hour is not None else price


def _state(option: OptionView) -> str:
    words = {
        "stands": f"{option.nodes} on it",
        "next": f"requested next, for {option.nodes}",
        "after": "then this",
        "skipped": f"skipped: {option.reason}",
        "refused": f"refused: {option.reason}",
    }
    state = words[option.state]
    return printable(f"{purchase(option)}; {state}" if option.buy_hours is not None else state)


def purchase(option: OptionView) -> str:
    """Return what a capacity block costs: "24 h for $2,641.92, paid at once, not refundable".

    Behind it the block that is on offer, where the cloud was queried.
    """
    price = (
        "a price that is unknown" if option.usd_at_once is None else f"${option.usd_at_once:,.2f}"
    )
    which = f" ({option.offering})" if option.offering else ""
    return f"{option.buy_hours} h for {price}, paid at once, not refundable{which}"
