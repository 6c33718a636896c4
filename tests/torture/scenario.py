"""One seeded run: a cluster, two faults of the table, and the way back that the messages name."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path
from random import Random

from .cluster import TortureCluster
from .faults import FAULTS, Fault
from .invariants import HEALED, INVARIANTS, Step
from .process import Ended, Injection, go_on, run

VERBS = (
    ("up", 5), ("down", 3), ("status", 2), ("plan", 2), ("drift", 1), ("repair", 1), ("history", 1),
    ("ledger check", 1), ("state check", 2), ("state repair", 1), ("expire", 1),
)  # fmt: skip
"""Verb -> how often it is drawn, relatively."""
_CHANGE = {"up", "down", "repair", "state repair"}
_OBJECTS = ("format.json", "cluster.json", "applied", "events", "keyring", "secrets", "lock")
_COMMAND = re.compile(r"gcluster (?:state repair|unlock) [^,;()]+?(?= (?:lists|rebuilds)|[,;)]|$)")
TRIES = 10
"""Most commands that the way back may take."""


class BrokenError(AssertionError):
    """An invariant doesn't hold."""


class Scenario:
    """One run. Its report says what was done, so that a broken one can be read."""

    def __init__(self, seed: int, folder: Path, faults: tuple[Fault, ...] = FAULTS) -> None:
        """Draw nothing yet."""
        self.seed = seed
        self.report: list[str] = []
        self.happened: Counter[str] = Counter()
        self._draw = Random(seed)  # noqa: S311  # a random run, not a key
        self._faults = faults
        self._folder = folder
        self.cluster = TortureCluster(folder)
        self._damaged_objects: dict[str, bytes | None] = {}
        self._stopped: Ended | None = None

    def play(self) -> None:
        """Inject two faults, then follow the messages until it is well, and take it down.

        Raises:
            BrokenError: an invariant doesn't hold; the message has the report.
        """
        try:
            if self._draw.random() < 0.85:
                self._do("up", ())
            weights = [fault.weight for fault in self._faults]
            for fault in self._draw.choices(self._faults, weights, k=2):
                self._inject(fault)
            self._clear()
            self._heal("up")
            self._expect("up", 0)
            self._expect("status", 0)
            if self._do("state check", ()).code != 0:
                self._do("state repair", ())
            self._expect("state check", 0)
            self._heal("down")
            self._expect("down", 0)
            if self.cluster.nodes():
                self._break(HEALED, f"after down there are {sorted(self.cluster.nodes())}")
        finally:
            if self._stopped is not None:
                go_on(self._stopped, self._folder)
            shutil.rmtree(self._folder, ignore_errors=True)

    def _inject(self, fault: Fault) -> None:
        self.happened[fault.name] += 1
        names, weights = zip(*VERBS, strict=True)
        verb = self._draw.choices(names, weights)[0]
        if self._draw.random() < 0.3 and self.cluster.spec.exists() and verb == "up":
            self.cluster.write(count=self._draw.randint(1, 4))
        injections: tuple[Injection, ...] = ()
        what = fault.name
        if fault.between is not None:
            before = self.cluster.objects()
            hit = fault.between(self.cluster, self._draw)
            what += f" ({hit})"
            if hit in before and hit.startswith(_OBJECTS) and not self._is_tolerable(fault, hit):
                self._damaged_objects[hit] = self.cluster.content(hit)
        if fault.inject is not None:
            injections = (fault.inject(self._draw),)
        self._do(verb, injections, what, is_mute=fault.name.startswith("output"))
        if self._stopped is not None:
            self._let_others_work()

    @staticmethod
    def _is_tolerable(fault: Fault, key: str) -> bool:
        """Whether it can't be noticed: the last of a log, or what has no other record."""
        lone = key.startswith(("lock/", "secrets/", "keyring/", "format.json"))
        return fault.name.endswith("removed") and (lone or key.startswith("events/"))

    def _let_others_work(self) -> None:
        """Have others take the locks of a process that hangs, as its refusal says, and work."""
        stopped = self._stopped
        assert stopped is not None
        self._heal("up", raced=True)
        self._stopped = None
        ended = go_on(stopped, self._folder)
        self._judge(ended, is_raced=True)
        self.report.append(f"  went on: {ended.code}")

    def _clear(self) -> None:
        """Let nothing go wrong any more."""
        self.cluster.write(site="")

    def _heal(self, verb: str, *, raced: bool = False) -> None:
        """Do what the messages say until the command ends well."""
        for _ in range(TRIES):
            ended = self._do(verb, ())
            if ended.code == 0:
                return
            if raced and ended.code not in {0, 6, 1, 5}:
                return
            for command in self._named(ended):
                for further in self._named(self._run(command, ())):
                    self._run(further, ())
        if not raced:
            self._break(HEALED, f"{verb} is not well after {TRIES} tries")

    def _named(self, ended: Ended) -> list[tuple[str, ...]]:
        """Return the commands that the errors name, as they would be typed."""
        found: list[tuple[str, ...]] = []
        for hint in ended.hints:
            for command in _COMMAND.findall(hint):
                words = tuple(shlex.split(command)[1:])
                if words[:2] == ("state", "repair"):
                    words = (*words, "--yes")
                if words not in found:
                    found.append(words)
        return found

    def _expect(self, verb: str, code: int) -> None:
        ended = self._do(verb, ())
        if ended.code != code:
            self._break(HEALED, f"{verb} ends with {ended.code}: {ended.out}{ended.err}")

    def _do(
        self, verb: str, injections: tuple[Injection, ...], what: str = "", *, is_mute: bool = False
    ) -> Ended:
        words = [*verb.split(), str(self.cluster.spec)]
        words += ["--yes"] if verb in _CHANGE else []
        words += ["--allow", "pool:gpu"] if verb == "up" else []
        return self._run(tuple(words), injections, what, is_mute=is_mute)

    def _run(
        self,
        words: tuple[str, ...],
        injections: tuple[Injection, ...],
        what: str = "",
        *,
        is_mute: bool = False,
    ) -> Ended:
        ended = run((*words, "--format", "json"), self._folder, injections)
        message = "; ".join(f"{d.get('code')} {d.get('summary')}" for d in ended.diagnostics[:3])
        self.report.append(f"  {shlex.join(words)}: {ended.code} [{what}] {message}")
        self.happened["commands"] += 1
        self.happened["commands killed"] += ended.code is None and not ended.pid
        self._judge(ended, is_mute=is_mute)
        if ended.pid:
            self._stopped = ended
        if words[:2] == ("state", "repair") and "--yes" in words:
            self._repaired(ended, words)
        return ended

    def _repaired(self, ended: Ended, words: tuple[str, ...]) -> None:
        """Note what repair did; give up what only a backup had: there is none."""
        try:
            left = [item["key"] for item in json.loads(ended.out).get("left", [])]
        except ValueError:
            return
        if ended.code == 0:
            self._damaged_objects.clear()
        discard = [word for key in left for word in ("--discard", key)]
        if discard and "--discard" not in words:
            self._run((*words, *discard), ())

    def _judge(self, ended: Ended, *, is_raced: bool = False, is_mute: bool = False) -> None:
        raced = is_raced or self._stopped is not None or bool(ended.pid)
        inject = any(self.cluster.content(key) == was for key, was in self._damaged_objects.items())
        step = Step(ended, self.cluster, inject, raced, is_mute)
        for invariant in INVARIANTS:
            if broken := invariant.broken(step):
                self._break(invariant.name, f"{shlex.join(ended.words)}: {broken}")

    def _break(self, name: str, how: str) -> None:
        report = "\n".join(self.report)
        raise BrokenError(f"seed {self.seed}: {name}: {how}\n{report}")
