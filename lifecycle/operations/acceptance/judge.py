"""Evaluates an acceptance's results: against floors, peers and the previous acceptance.

Fails closed: a test without a result leaves the acceptance incomplete, and what a node lacks is
"not tested", never passed. Where no real hardware was measured (`stands_in`, nodes that share one
machine) figures are reported but not judged, only whether the data was right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Literal, TypeAlias

import msgspec

from ....schemas.derived.hostlist import expand, fold
from .record import Result
from .statistics import SCORE, Summary, outliers, scores, spread, summary_of
from .table import AcceptanceTest, Metric

Level: TypeAlias = Literal["fail", "remark"]
UNSTEADY = 0.10
"""Spread of repetitions, as share of the median, above which it is reported."""
SLOWER = 0.10
"""Share by which a figure may be worse than at the last acceptance."""
_NAMED = 8


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something against a target, or worth knowing of it."""

    level: Level
    test: str
    nodes: tuple[str, ...]
    text: str


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of one target over the repetitions."""

    target: str
    part: str
    values: tuple[float, ...]
    value: float
    """Median of the repetitions."""
    score: float
    """Modified z-score among the peers, positive where it is better; 0 where there are few."""
    spread: float
    """How far the repetitions are apart, as a share of the median."""
    before: float | None = None
    """The value at the last acceptance; None: it had none."""


class MetricSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one test over all targets."""

    metric: str
    title: str
    unit: str
    better: Literal["higher", "lower"]
    summary: Summary
    series: tuple[Series, ...]


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """A target without a result."""

    nodes: str
    """As a host range."""
    why: str


Gaps: TypeAlias = Mapping[tuple[str, str], Gap]
"""(test, target) -> why there is no result."""


class TestSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One test over all targets."""

    name: str
    title: str
    outcome: Literal["pass", "fail", "not tested", "missing"]
    tested: dict[str, str]
    """Target that has a result -> its nodes."""
    not_tested: dict[str, Gap]
    """Target -> why it couldn't be tested."""
    missing: dict[str, Gap]
    """Target -> why there is no result yet: busy, or stopped."""
    command: str
    stands_in: str
    floor: str
    """Where the constant floor comes from, or why there is none."""
    metrics: tuple[MetricSummary, ...]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """All tests, and what was found."""

    tests: tuple[TestSummary, ...]
    findings: tuple[Finding, ...]


def judge_results(  # noqa: PLR0917  # all that is known
    tests: Sequence[AcceptanceTest],
    results: Iterable[Result],
    not_tested: Gaps,
    missing: Gaps,
    before: Mapping[tuple[str, str, str, str], float],
    shared: frozenset[str],
    kinds: Mapping[str, str],
) -> Judged:
    """Return the summaries and findings.

    Args:
        tests: those of this acceptance, in order.
        results: what is stored.
        not_tested: what can't be tested.
        missing: what has no result yet.
        before: (test, metric, target, part) -> value at the last acceptance.
        shared: nodes that share one machine with others: their figures prove nothing.
        kinds: node -> machine type: only nodes of one type are peers.
    """
    by_test: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_test[result.test].append(result)
    found: list[Finding] = []
    summaries = [
        _judge_test(test, by_test[test.name], not_tested, missing, before, shared, kinds, found)
        for test in tests
    ]
    return Judged(tests=tuple(summaries), findings=tuple(found))


def _judge_test(  # noqa: PLR0917  # one row of the table with all that is known of it
    test: AcceptanceTest,
    results: list[Result],
    not_tested: Gaps,
    missing: Gaps,
    before: Mapping[tuple[str, str, str, str], float],
    shared: frozenset[str],
    kinds: Mapping[str, str],
    found: list[Finding],
) -> TestSummary:
    at = len(found)
    found += _said(test, results)
    metrics = tuple(
        summary
        for name in test.metrics
        if (summary := _judge_metric(test, name, results, before, shared, kinds, found))
    )
    without = {target: why for (name, target), why in missing.items() if name == test.name}
    untested = {target: why for (name, target), why in not_tested.items() if name == test.name}
    failed = any(finding.level == "fail" for finding in found[at:])
    one = results[-1] if results else None
    return TestSummary(
        name=test.name,
        title=test.title,
        outcome="fail" if failed else "missing" if without else "pass" if one else "not tested",
        tested={result.target: result.nodes for result in results},
        not_tested=untested,
        missing=without,
        command=one.command if one else "",
        stands_in=one.stands_in if one else "",
        floor=one.floor_reason if one else "",
        metrics=metrics,
    )


def _said(test: AcceptanceTest, results: Sequence[Result]) -> Iterator[Finding]:
    """Yield findings of the outputs themselves, once for all targets with the same finding."""
    alike: defaultdict[tuple[Level, str], dict[str, str]] = defaultdict(dict)
    for result in results:
        for failure in result.failures:
            alike["fail", failure][result.target] = result.nodes
        for remark in result.remarks:
            alike["remark", remark][result.target] = result.nodes
    for (level, text), targets in alike.items():
        nodes = tuple(dict.fromkeys(n for each in targets.values() for n in expand(each)))
        who = fold(targets) if test.scope == "node" else ", ".join(targets)
        yield Finding(level=level, test=test.name, nodes=nodes, text=f"{who}: {text}")


def _judge_metric(  # noqa: PLR0917  # as above
    test: AcceptanceTest,
    name: str,
    results: list[Result],
    before: Mapping[tuple[str, str, str, str], float],
    shared: frozenset[str],
    kinds: Mapping[str, str],
    found: list[Finding],
) -> MetricSummary | None:
    metric = test.metrics[name]
    values: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    stands_in, nodes_of = set(), {}
    for result in results:
        nodes_of[result.target] = tuple(expand(result.nodes))
        for figure in result.figures:
            if figure.metric == name:
                values[result.target, figure.part].append(figure.value)
                if result.stands_in or shared & set(nodes_of[result.target]):
                    stands_in.add((result.target, figure.part))
    if not values:
        return None
    sign = 1 if metric.better == "higher" else -1
    series = tuple(
        Series(
            target=target,
            part=part,
            values=tuple(each),
            value=median(each),
            score=0.0,
            spread=spread(each),
            before=before.get((test.name, name, target, part)),
        )
        for (target, part), each in values.items()
    )
    series, slow = _among_peers(test, series, metric, nodes_of, kinds)
    summary = summary_of([one.value for one in series])
    floor = next((result for result in results if result.floor and metric.floored), None)
    if floor is not None and floor.floor is not None:
        below = [one for one in series if one.value < floor.floor]
        known = {(one.target, one.part) for one in below}
        slow = [(one, _below(one, floor, metric.unit)) for one in below] + [
            each for each in slow if (each[0].target, each[0].part) not in known
        ]
    slow += [(one, _of_last(one, metric.unit)) for one in series if _is_slower(one, sign)]
    unsteady = [one for one in series if one.spread > UNSTEADY]
    real = [(one, text) for one, text in slow if (one.target, one.part) not in stands_in]
    if test.scope == "pairs":
        found += _blame(test, name, series, real)
    else:
        found += _by_target(test, name, nodes_of, real)
    if len(slow) > len(real):
        one, text = next(each for each in slow if (each[0].target, each[0].part) in stands_in)
        more = len(slow) - len(real) - 1
        others = f" and {more} more like it" if more else ""
        text = f"{name} of {_who(test, one)} {text}{others}: shown, not judged: it is no real one"
        found.append(Finding(level="remark", test=test.name, nodes=(), text=text))
    if unsteady:
        most = max(unsteady, key=lambda one: one.spread)
        text = f"{name} of {len(unsteady)} of {len(series)} varies by more than {UNSTEADY:.0%}"
        text += f" between repetitions, most that of {_who(test, most)} ({most.spread:.0%})"
        found.append(Finding(level="remark", test=test.name, nodes=(), text=text))
    return MetricSummary(
        metric=name,
        title=metric.title,
        unit=metric.unit,
        better=metric.better,
        summary=summary,
        series=series,
    )


def _among_peers(
    test: AcceptanceTest,
    series: Sequence[Series],
    metric: Metric,
    nodes_of: Mapping[str, tuple[str, ...]],
    kinds: Mapping[str, str],
) -> tuple[tuple[Series, ...], list[tuple[Series, str]]]:
    """Return the series with their scores, and those that are worse than their peers.

    Peers are of one machine type; blocks are compared with blocks, since the whole is slower by
    nature.
    """
    groups: defaultdict[object, list[int]] = defaultdict(list)
    for place, one in enumerate(series):
        nodes = _pair(one) if test.scope == "pairs" else nodes_of[one.target]
        machines = tuple(sorted({kinds.get(node, "") for node in nodes}))
        groups[machines, one.target.startswith("block ")].append(place)
    scored, slow = list(series), []
    for places in groups.values():
        values = [series[place].value for place in places]
        sign = 1 if metric.better == "higher" else -1
        for place, score in zip(places, scores(values), strict=True):
            scored[place] = msgspec.structs.replace(series[place], score=sign * score)
        peers = summary_of(values)
        for at in outliers(values, metric.better):
            one = scored[places[at]]
            slow.append((one, _of_peers(one, peers, metric.unit)))
    return tuple(scored), slow


_Slow: TypeAlias = Sequence[tuple[Series, str]]


def _by_target(
    test: AcceptanceTest, name: str, nodes_of: Mapping[str, tuple[str, ...]], slow: _Slow
) -> Iterator[Finding]:
    """Yield one failure for each target: its worst part comes first, the others are counted."""
    alike: defaultdict[str, list[tuple[Series, str]]] = defaultdict(list)
    for one, text in slow:
        alike[one.target].append((one, text))
    for target, several in alike.items():
        one, text = several[0]
        parts = {each.part for each, _ in several} - {one.part}
        more = f", and {len(parts)} more of its parts" if parts else ""
        text = f"{name} of {_who(test, one)} {text}{more}"
        yield Finding(level="fail", test=test.name, nodes=nodes_of[target], text=text)


def _blame(
    test: AcceptanceTest, name: str, series: Sequence[Series], slow: _Slow
) -> Iterator[Finding]:
    """Yield whose fault slow pairs are: a node's that is slow with most of its partners, else both.

    Once a node is named, its pairs are no longer held against its partners.
    """
    met = Counter(end for one in series for end in _ends(one))
    left = list(slow)
    while left:
        bad = Counter(end for one, _ in left for end in _ends(one))
        (node, rail), count = bad.most_common(1)[0]
        if count < 2 or 2 * count <= met[node, rail]:  # noqa: PLR2004  # one slow pair is a link
            break
        mine = [each for each in left if (node, rail) in _ends(each[0])]
        worst, text = mine[0]
        who = f"{node} {rail}".strip()
        often = f"is bad with {count} of {met[node, rail]} partners"
        text = f"{name} of {who} {often}: {_who(test, worst)} {text}"
        yield Finding(level="fail", test=test.name, nodes=(node,), text=text)
        left = [each for each in left if (node, rail) not in _ends(each[0])]
    for one, text in left:
        link = f"{name} of {_who(test, one)} {text}"
        yield Finding(level="fail", test=test.name, nodes=_pair(one), text=link)


def _ends(one: Series) -> tuple[tuple[str, str], ...]:
    """Return the two nodes of a pair, each with the rail it was measured on."""
    first, second, *rail = one.part.split()
    return (first, " ".join(rail)), (second, " ".join(rail))


def _who(test: AcceptanceTest, one: Series) -> str:
    if test.scope != "pairs":
        return f"{one.target} {one.part}".strip()
    first, second, *rail = one.part.split()
    return " ".join([first, "and", second, *rail])


def _pair(one: Series) -> tuple[str, ...]:
    return tuple(one.part.split()[:2])


def _below(one: Series, floor: Result, unit: str) -> str:
    return f"is {one.value:.4g} {unit}, the floor is {floor.floor:.4g} ({floor.floor_reason})"


def _of_peers(one: Series, summary: Summary, unit: str) -> str:
    share = one.value / summary.median - 1 if summary.median else 0
    beyond = f", score {one.score:.1f} beyond {SCORE:g}" if abs(one.score) > SCORE else ""
    return (
        f"is {one.value:.4g} {unit}, {share:+.0%} from the median {summary.median:.4g} "
        f"of {summary.count}{beyond}"
    )


def _of_last(one: Series, unit: str) -> str:
    return f"is {one.value:.4g} {unit} and was {one.before:.4g} at the last acceptance"


def _is_slower(one: Series, sign: int) -> bool:
    if not one.before:
        return False
    worse = sign * (one.before - one.value) / abs(one.before)
    return worse > max(SLOWER, one.spread)
