"""After a failed AllReduce, runs smaller ones until nodes, links or rails at fault are named."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ...inventory.hosts import Host
from ...schemas.catalog import Fabric
from ..cluster.progress import Reporter, StageProgress
from ..nodes.ssh import SshSession
from .bisect import Bisection, Fault, NodeSet
from .domains import bad_rails, rail_environment, rails_of
from .judging.verdict import Code, Expectation
from .launch import Launch
from .launching.job import JobRunner, SmokeRun
from .pairwise import Pair, pair_rounds, slow_parts, suspects

SLOWNESS: frozenset[Code] = frozenset({"below-floor", "dead-rail", "slow-rail"})
"""Faults that are located by comparing pairs."""

WORTH_SEARCHING: frozenset[Code] = frozenset(
    {
        "wrong-result",
        "below-floor",
        "missing-rank",
        "wrong-transport",
        "aborted",
        "truncated",
        "unreadable",
    }
)
"""Faults that one node, link or rail can cause; others are of the test's parameters."""

LONGEST_S = 900.0
"""Seconds after which no further round is begun."""

_PARALLEL = 16
_PAIR = 2


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found."""

    faults: tuple[Fault, ...]
    rails: tuple[str, ...] = ()
    """NICs that are at fault by themselves: "mlx5_3 on gpu007"; of two nodes it may be either."""
    rounds: int
    tests: int


class Search:
    """Locates the cause of one failed AllReduce."""

    def __init__(
        self,
        launch: Launch,
        failed: SmokeRun,
        runner: JobRunner,
        expect: Callable[[Launch], Expectation],
    ) -> None:
        """Take what failed, what runs the smaller ones, and what each of them must prove."""
        codes = {reason.code for reason in failed.verdict.reasons}
        self._only_slow = codes <= SLOWNESS
        self._was_slow = "below-floor" in codes
        self._launch = msgspec.structs.replace(
            launch, min_bytes=launch.max_bytes if self._only_slow else launch.min_bytes
        )
        self._runner = runner
        self._expect = expect
        self._tests = 0

    def locate(self, blocks: Iterable[Iterable[str]], report: Reporter, stage: str) -> Located:
        """Test parts of the nodes until the faults are named, or time or rounds run out.

        Slow parts are found by comparing pairs, since a floor of two nodes is NVLink's and not
        their network's; other failures by halving.
        """
        if self._only_slow and len(self._launch.nodes) > _PAIR:
            return self._compare_pairs(blocks, report, stage)
        plan = Bisection(self._launch.nodes, blocks)
        ends, rounds = time.monotonic() + LONGEST_S, 0
        while time.monotonic() < ends and (tests := plan.next_round()):
            rounds += 1
            detail = f"looking for the fault: round {rounds}, {len(tests)} parts"
            report(StageProgress(name=stage, done=rounds, total=0, detail=detail))
            plan.learn(self._test(rounds, tests))
        return Located(faults=plan.faults, rounds=rounds, tests=self._tests)

    def _compare_pairs(
        self, blocks: Iterable[Iterable[str]], report: Reporter, stage: str
    ) -> Located:
        ends, rounds = time.monotonic() + LONGEST_S, 0
        speeds: dict[Pair, float] = {}
        planned = list(pair_rounds(self._launch.nodes))
        first = len(planned)
        while planned and time.monotonic() < ends:
            pairs, rounds = planned.pop(0), rounds + 1
            detail = f"comparing pairs: round {rounds}, {len(pairs)} pairs"
            report(StageProgress(name=stage, done=rounds, total=0, detail=detail))
            runs = self._run_all(rounds, [frozenset(pair) for pair in pairs], apart=True)
            speeds |= {pair: _speed(runs[frozenset(pair)]) for pair in pairs}
            if rounds == first:
                planned = _again(speeds, self._launch.nodes)
        faults = slow_parts(speeds, blocks)
        open_ = (Fault(kind="undecided", nodes=self._launch.nodes),)
        return Located(faults=faults or open_, rounds=rounds, tests=self._tests)

    def rails(
        self, located: Located, hosts: tuple[Host, ...], session: SshSession, fabric: Fabric | None
    ) -> Located:
        """Test each NIC alone between two nodes of which one is at fault."""
        pair = _two_of(located.faults, self._launch.nodes)
        requested = [host for host in hosts if host.name in pair]
        names = rails_of(session, requested, fabric)
        if len(names) < _PAIR:
            return located
        speeds = {name: self._one_rail(name, pair, fabric) for name in names}
        at_fault = [f.nodes[0] for f in located.faults if f.kind == "node" and f.nodes[0] in pair]
        where = ", ".join(at_fault or pair)
        found = tuple(f"{name} on {where}" for name in bad_rails(speeds))
        return msgspec.structs.replace(located, rails=found, tests=self._tests)

    def _test(self, round_number: int, tests: tuple[NodeSet, ...]) -> dict[NodeSet, bool]:
        runs = self._run_all(round_number, tests)
        return {test: run.verdict.passed for test, run in runs.items()}

    def _run_all(
        self, round_number: int, tests: Sequence[NodeSet], *, apart: bool = False
    ) -> dict[NodeSet, SmokeRun]:
        def run(numbered: tuple[int, NodeSet]) -> SmokeRun:
            number, names = numbered
            return self._run(f"part-{round_number}-{number}", names, apart=apart)

        self._tests += len(tests)
        with ThreadPoolExecutor(min(_PARALLEL, len(tests))) as pool:
            return dict(zip(tests, pool.map(run, enumerate(tests, 1)), strict=True))

    def _one_rail(self, rail: str, pair: tuple[str, ...], fabric: Fabric | None) -> float | None:
        """Return the bus bandwidth over one NIC, None when anything but the floor failed."""
        self._tests += 1
        verdict = self._run(f"rail-{rail}", pair, rail_environment(rail, fabric)).verdict
        sound = all(reason.code == "below-floor" for reason in verdict.reasons)
        return verdict.busbw if sound else None

    def _run(
        self,
        label: str,
        names: Iterable[str],
        environment: tuple[tuple[str, str], ...] = (),
        *,
        apart: bool = False,
    ) -> SmokeRun:
        wanted = set(names)
        launch = msgspec.structs.replace(
            self._launch,
            nodes=tuple(name for name in self._launch.nodes if name in wanted),
            job=f"{self._launch.job}-{label}",
            label=f"{self._launch.label}-{label}",
            environment=environment,
            apart=apart and self._launch.can_split,
        )
        expected = self._expect(launch)
        if (
            apart or not self._was_slow
        ):  # pairs are compared; a search for wrong numbers must not stop at a slow run
            expected = msgspec.structs.replace(expected, floor=None)
        return self._runner.run(launch, expected)


def _two_of(faults: tuple[Fault, ...], nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first that is at fault, and another: the other end, else one without a fault."""
    if not faults:
        return nodes[:_PAIR]
    first, *others = faults[0].nodes
    named = {name for fault in faults for name in fault.nodes}
    sound = [name for name in nodes if name not in named]
    partner = others[:1] or sound[:1] or [name for name in nodes if name != first][:1]
    return (first, *partner)


def _speed(run: SmokeRun) -> float:
    """Return a pair's bus bandwidth in GB/s; 0 when anything but its speed or rails failed."""
    sound = all(reason.code in SLOWNESS for reason in run.verdict.reasons)
    return (run.verdict.busbw or 0.0) if sound else 0.0


def _again(speeds: Mapping[Pair, float], nodes: Sequence[str]) -> list[tuple[Pair, ...]]:
    """Return a round of the suspects, each with a good node that it was not tested with yet."""
    bad = suspects(speeds)
    met = {frozenset(pair) for pair in speeds}
    free = [node for node in nodes if node not in bad]
    pairs: list[Pair] = []
    for node in bad:
        partner = next((other for other in free if frozenset({node, other}) not in met), None)
        if partner is not None:
            free.remove(partner)
            pairs.append((node, partner))
    return [tuple(pairs)] if pairs else []
