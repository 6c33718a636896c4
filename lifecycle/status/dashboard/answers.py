"""What the page requests, by name: each is a set of known queries, answered as plain values.

A browser never sends PromQL: it names a board, a job, a node or a pool, and each of these is held
against what the cluster has before it becomes a label in a query.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from ....inventory.alerts import alert_rules
from ....inventory.dashboards import Board, Finding, boards, boards_of_pods, findings
from ..waste.kubernetes import NOW
from ..waste.now import SLURM, Now, read_now
from ..waste.prometheus import QueryPrometheus, Sample, instant, over_time

NOW_S, BOARD_S = 10.0, 20.0
"""How long an answer is kept: Prometheus scrapes every 15 s, however many pages are open."""
HOURS = (1, 6, 24, 168)
"""Of a board."""
_POINTS = 240
"""Of a line: one for each pixel or two of a chart."""
MOST_SERIES = 40
"""Of one query; more lines than that can't be distinguished."""
_JOB = re.compile(r"[0-9]{1,12}")
_OF_PODS = re.compile(r"[a-z0-9-]{1,63}/[a-z0-9.-]{1,253}")
"""Names of a namespace and of what made pods there: Kubernetes' DNS labels and subdomains."""
_ALERT = {
    "alerts": 'ALERTS{severity!="none"}',
    "since": 'ALERTS_FOR_STATE{severity!="none"}',
    "silent": 'up{job="node"} == 0',
}
_NO_PLACE = {"__name__", "alertname", "alertstate", "severity", "job", "cluster"}
"""Labels that don't say where."""
_NO_NAME = {"__name__", "job", "site", "cluster", "fstype"}


class UnknownError(Exception):
    """What was requested isn't there; the server answers 404."""


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """One alert that fires, or will if it lasts."""

    name: str
    severity: str
    state: str
    """firing or pending."""
    where: str
    node: str
    """"": of none."""
    since: float | None
    """Unix time in s."""
    means: str
    do: tuple[str, ...]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that holds, and where."""

    name: str
    title: str
    means: str
    unit: str
    places: tuple[tuple[str, float], ...]
    """Where, and the figure; the highest first."""
    more: int
    """Places that are left out."""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows of a cluster now."""

    now: Now
    alerts: tuple[Firing, ...]
    next: tuple[Found, ...]
    silent: tuple[str, ...]
    """Nodes that don't answer Prometheus."""


class Line(msgspec.Struct, frozen=True):
    """One line of a chart."""

    name: str
    values: tuple[float | None, ...]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A panel with its lines, which have the same times."""

    title: str
    unit: str
    times: tuple[float, ...]
    lines: tuple[Line, ...]
    """None: there is no data of it."""
    more: int
    """Lines that are left out."""


class Charts(msgspec.Struct, frozen=True, kw_only=True):
    """A board over a time."""

    title: str
    answers: str
    start: float
    """Unix time in s, as are `end` and the charts' times."""
    end: float
    charts: tuple[Chart, ...]
    slow: tuple[Found, ...] = ()
    """Of a job's board: why it may be slow."""


class Answers:
    """Answers of one cluster's Prometheus, each kept for some seconds."""

    def __init__(self, cluster: str, query: QueryPrometheus, *, of_pods: bool = False) -> None:
        """Take the cluster's name and how to query its Prometheus; nothing is queried yet.

        Args:
            cluster: its name.
            query: queries its Prometheus.
            of_pods: under Kubernetes: a job is what made pods, NAMESPACE/NAME.
        """
        self.cluster, self.query, self._of_pods = cluster, query, of_pods
        self._boards = boards_of_pods() if of_pods else boards()
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, ...], tuple[float, bytes]] = {}
        self._names: dict[str, frozenset[str]] = {"node": frozenset(), "pool": frozenset()}
        if of_pods:
            self._names["job"] = frozenset()

    def overview(self) -> bytes:
        """Return an Overview as JSON. Raises LifecycleError (GC1198) without Prometheus."""
        return self._keep(("now",), NOW_S, self._overview)

    def board(self, name: str, hours: str, of: str) -> bytes:
        """Return Charts as JSON.

        Args:
            name: of a board.
            hours: back from now, one of HOURS.
            of: the pool, node or job of a board that has one, else "".

        Raises:
            UnknownError: there is no such board, time, pool, node or job.
            LifecycleError: Prometheus doesn't answer (GC1198).
        """
        board = self._boards.get(name)
        if board is None or hours not in {str(each) for each in HOURS}:
            raise UnknownError
        if board.variable in self._names and of not in self._names[board.variable]:
            self.overview()
        if not self._is_known(board, of):
            raise UnknownError
        return self._keep((name, hours, of), BOARD_S, lambda: self._charts(board, int(hours), of))

    def _is_known(self, board: Board, of: str) -> bool:
        if board.variable is None:
            return not of
        if board.variable == "job":
            known = _OF_PODS if self._of_pods else _JOB
            if known.fullmatch(of) is None:
                return False
        return board.variable not in self._names or of in self._names[board.variable]

    def _keep(
        self, key: tuple[str, ...], seconds: float, make: Callable[[], Overview | Charts]
    ) -> bytes:
        with self._lock:  # one query at a time: pages that wait get the same answer
            made, text = self._kept.get(key, (float("-inf"), b""))
            if time.monotonic() - made >= seconds:
                text = msgspec.json.encode(make())
                made = time.monotonic()
                fresh = {k: v for k, v in self._kept.items() if made - v[0] < BOARD_S}
                self._kept = fresh | {key: (made, text)}
            return text

    def _overview(self) -> Overview:
        at = time.time()
        now = read_now(self.cluster, self.query, at, queries=NOW if self._of_pods else SLURM)
        table = findings().next
        found = instant(self.query, _ALERT | {each.name: each.query for each in table}, at)
        self._names = {
            "node": frozenset(node.name for node in now.nodes),
            "pool": frozenset(node.pool for node in now.nodes),
        }
        if self._of_pods:
            self._names["job"] = frozenset(job.job for job in now.jobs)
        since = {_identity(each): each.value for each in found["since"]}
        alerts = [_firing(each, since.get(_identity(each))) for each in found["alerts"]]
        return Overview(
            now=now,
            alerts=tuple(sorted(alerts, key=lambda a: (a.state, a.severity, a.name, a.where))),
            next=tuple(_found(table, found)),
            silent=tuple(sorted(each.label("instance") for each in found["silent"])),
        )

    def _charts(self, board: Board, hours: int, of: str) -> Charts:
        end = float(int(time.time()))
        step = max(hours * 3600 / _POINTS, 15.0)
        queries = {
            f"{number} {legend}": _filled(query, board.variable, of)
            for number, panel in enumerate(board.panels)
            for legend, query in panel.queries.items()
        }
        series = over_time(self.query, queries, end - hours * 3600, end, step)
        charts = []
        for number, panel in enumerate(board.panels):
            lines = [
                (_legend(legend, each.labels), dict(each.points))
                for legend in panel.queries
                for each in series[f"{number} {legend}"]
            ]
            kept = sorted(lines, key=lambda line: -max(line[1].values(), default=0))[:MOST_SERIES]
            times = sorted({at for _, points in kept for at in points})
            charts.append(
                Chart(
                    title=panel.title,
                    unit=panel.unit,
                    times=tuple(times),
                    lines=tuple(
                        Line(name, tuple(_drawable(points.get(at)) for at in times))
                        for name, points in kept
                    ),
                    more=len(lines) - len(kept),
                )
            )
        slow: tuple[Found, ...] = ()
        if board.variable == "job" and not self._of_pods:  # its queries are of Slurm's jobs
            table = findings().slow
            holds = {each.name: _filled(each.query, "job", of) for each in table}
            slow = tuple(_found(table, instant(self.query, holds, end)))
        return Charts(
            title=board.title,
            answers=board.answers,
            start=end - hours * 3600,
            end=end,
            charts=tuple(charts),
            slow=slow,
        )


def _filled(query: str, variable: str | None, value: str) -> str:
    if variable is None:
        return query
    namespace, _, owner = value.partition("/")
    for name, text in {variable: value, "namespace": namespace, "owner": owner}.items():
        query = query.replace(f"${name}", text)
    return query


def _identity(sample: Sample) -> frozenset[tuple[str, str]]:
    """Return what an alert's two series have in common."""
    return frozenset(
        pair for pair in sample.labels.items() if pair[0] not in {"__name__", "alertstate"}
    )


def _firing(sample: Sample, since: float | None) -> Firing:
    name = sample.label("alertname")
    rule = alert_rules().get(name)
    return Firing(
        name=name,
        severity=sample.label("severity"),
        state=sample.label("alertstate"),
        where=_place(sample.labels, _NO_PLACE),
        node=sample.label("instance") or sample.label("node"),
        since=since,
        means="" if rule is None else rule.means,
        do=() if rule is None else rule.do,
    )


_MOST_PLACES = 50


def _found(table: Iterable[Finding], found: Mapping[str, list[Sample]]) -> Iterable[Found]:
    """Yield the findings that hold, in the table's order."""
    for each in table:
        places = sorted(
            ((_place(s.labels, _NO_NAME), s.value) for s in found[each.name]),
            key=lambda place: (-place[1], place[0]),
        )
        if places:
            yield Found(
                name=each.name,
                title=each.title,
                means=each.means,
                unit=each.unit,
                places=tuple(places[:_MOST_PLACES]),
                more=max(len(places) - _MOST_PLACES, 0),
            )


def _place(labels: Mapping[str, str], without: set[str]) -> str:
    """Return labels as people read them: the node first, "gpu 3" and "port 1" with their names."""
    first = [labels[name] for name in ("instance", "node") if name in labels]
    rest = [
        f"{name} {value}"
        for name, value in sorted(labels.items())
        if name not in {*without, "instance", "node", "pool"} and value
    ]
    return " · ".join([*first, *rest]) or labels.get("pool", "")


_LABEL = re.compile(r"\{\{(\w+)\}\}")


def _legend(legend: str, labels: Mapping[str, str]) -> str:
    """Return a series' name by its legend, as Grafana fills it in."""
    return _LABEL.sub(lambda found: labels.get(found[1], ""), legend).strip() or "all"


def _drawable(value: float | None) -> float | None:
    """Return a number that JSON has: neither NaN nor infinite."""
    return value if value is not None and abs(value) < float("inf") else None
