"""The random runs of the model: processes that are killed, paused and lied to, in any order."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.schemas.spec import SimulatedSite
from gcluster.schemas.spec.sites import SimulatedFaults
from gcluster.schemas.spec.units import Duration

from .faults import Fault, faults
from .process_double import as_processes_of
from .spec import ELASTIC
from .world import World

_COUNTS = st.integers(1, 4)
_RATE = st.sampled_from([0.0, 0.0, 0.3])
_SOME = st.sets(st.sampled_from(ELASTIC), min_size=1).map(sorted)


class Runs(RuleBasedStateMachine):
    """One cluster's life. In the end the site's faults end, and everything must succeed."""

    counts: ClassVar[Counter[str]] = Counter()
    """How many runs there were, and what happened in them."""

    @initialize(
        seed=st.integers(0, 2**16),
        refused=_RATE,
        lost=_RATE,
        dead=_RATE,
        undeleted=_RATE,
        throttled=_RATE,
        lag=st.sampled_from([0, 0, 20]),
        latency=st.sampled_from([0, 3]),
        room=st.sampled_from([None, None, 3]),
    )
    def begin(  # each is one way to go wrong
        self,
        *,
        seed: int,
        refused: float,
        lost: float,
        dead: float,
        undeleted: float,
        throttled: float,
        lag: int,
        latency: int,
        room: int | None,
    ) -> None:
        """Draw the site's faults."""
        self.folder = Path(tempfile.mkdtemp(prefix="run-"))
        lab = SimulatedSite(
            latency=Duration(latency) if latency else None,
            max_nodes=room,
            faults=SimulatedFaults(
                seed=seed,
                create_failure_rate=refused,
                lost_response_rate=lost,
                boot_failure_rate=dead,
                delete_failure_rate=undeleted,
                throttle_rate=throttled,
                listing_lag=Duration(lag) if lag else None,
            ),
        )
        self.world = World(self.folder, lab)
        self._processes = as_processes_of(self.world)
        self._processes.__enter__()
        self.counts["runs"] += 1

    @rule(count=_COUNTS, fault=faults())
    def up(self, count: int, fault: Fault | None) -> None:
        """Bring it up, or to another size."""
        self.world.up(count, fault)

    @precondition(lambda self: self.world.began)
    @rule(fault=faults())
    def down(self, fault: Fault | None) -> None:
        """Take it down."""
        self.world.down(fault)

    @precondition(lambda self: self.world.began)
    @rule(names=_SOME, fault=faults())
    def grow(self, names: list[str], fault: Fault | None) -> None:
        """Rent nodes."""
        self.world.grow(names, fault)

    @precondition(lambda self: self.world.began)
    @rule(names=_SOME, fault=faults())
    def shrink(self, names: list[str], fault: Fault | None) -> None:
        """Give them back."""
        self.world.shrink(names, fault)

    @precondition(lambda self: self.world.machines.nodes)
    @rule(number=st.integers(0, 6))
    def lose(self, number: int) -> None:
        """A machine goes away by itself."""
        self.world.lose(number)

    @precondition(lambda self: self.world.machines.nodes)
    @rule(seconds=st.sampled_from([1, 15, 60]))
    def wait(self, seconds: int) -> None:
        """Time goes by."""
        self.world.now += seconds

    @precondition(lambda self: hasattr(self, "world"))
    @invariant()
    def the_laws_hold(self) -> None:
        """See `World.check`."""
        self.world.check()

    def teardown(self) -> None:
        """End the site's faults: the next `up` succeeds, the next `down` leaves nothing."""
        if not hasattr(self, "world"):
            return
        try:
            self.world.clear_up()
            assert self.world.up(2) is Exit.OK
            self.world.check()
            assert self.world.up(2) is Exit.OK
            assert self.world.down() is Exit.OK
            assert self.world.down() is Exit.OK
        finally:
            self.counts.update(self.world.happened)
            self._processes.__exit__(None, None, None)
            shutil.rmtree(self.folder, ignore_errors=True)
