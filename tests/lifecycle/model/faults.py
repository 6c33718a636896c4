"""What goes wrong with a process of the model, and when: at one moment of its writes and calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from hypothesis import strategies as st

from gcluster.lifecycle.cluster.outcome import failure

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from .world import World

Wrong: TypeAlias = Literal[
    "killed", "killed elsewhere", "store is away", "answer is lost", "paused"
]
"""killed: by SIGKILL, and others on this machine can see it. killed elsewhere: others can't see it.
store is away: a write is refused. answer is lost: it was done, and the process gets an error.
paused: others take its lock and work; then it goes on."""
_EARLY, LATEST = 15, 35
"""Most processes have so few moments; none has more than these."""


class Killed(BaseException):
    """What a dead process gets from everything that it still tries."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, at the numbered moment of a process."""

    at: int
    wrong: Wrong
    then_up: int | None = None
    """While it is paused: how many nodes another `up` requests; None: another `down` runs."""


def faults() -> SearchStrategy[Fault | None]:
    """Return a strategy for a fault, or none."""
    kinds: list[Wrong] = ["killed", "killed elsewhere", "store is away", "answer is lost", "paused"]
    fault = st.builds(
        Fault,
        at=st.integers(1, _EARLY) | st.integers(1, LATEST),
        wrong=st.sampled_from(kinds),
        then_up=st.none() | st.integers(1, 4),
    )
    return st.one_of(fault, fault, fault, st.none())


class Process:
    """One process: it passes moments, and may end or lose its locks at one of them."""

    def __init__(self, world: World, number: int, fault: Fault | None) -> None:
        """Begin to run."""
        self.number = number
        self.is_dead = False
        self.is_known_dead = False
        self.has_lost_its_lock = False
        self.overtaken_at: int | None = None
        """The last event that others wrote while it was paused."""
        self.calls = 0
        """Machines that it requested."""
        self.passed = 0
        """Moments at which something could have gone wrong."""
        self._world = world
        self._fault = fault

    def raise_if_killed(self) -> None:
        """Raise Killed where the process is dead: nothing that it does is seen any more."""
        if self.is_dead:
            raise Killed

    def end(self, *, known: bool) -> None:
        """Be killed."""
        self.is_dead, self.is_known_dead = True, known
        raise Killed

    def before(self, what: str) -> None:
        """Pass the moment before a write ("write") or a call."""
        wrong = self._moment()
        if wrong == "paused":
            self._let_others_work()
        if wrong == "store is away" and what == "write":
            raise failure("GC901", "the store is away")

    def after(self, what: str) -> None:
        """Pass the moment after it."""
        wrong = self._moment()
        if wrong == "paused":
            self._let_others_work()
        if wrong == "answer is lost" and what == "write":
            raise failure("GC901", "the answer got lost")

    def _moment(self) -> Wrong | None:
        self.raise_if_killed()
        self.passed += 1
        fault = self._fault
        if fault is None or fault.at != self.passed:
            return None
        if fault.wrong in {"killed", "killed elsewhere"}:
            self.end(known=fault.wrong == "killed")
        return fault.wrong

    def _let_others_work(self) -> None:
        assert self._fault is not None
        self._world.take_over(self, self._fault.then_up)
        self.raise_if_killed()
