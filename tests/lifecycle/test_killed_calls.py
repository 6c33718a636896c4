"""Killed after any call to the world, `up`, growth, shrinking and `down` end the same.

The world is the site's interface, the state's store and the nodes' stamps. After its end the
process does nothing more, as after kill -9: but that its lock is found to be a dead process's,
which here, in one process, its release simulates. After one call is before the next.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.down.down import down
from gcluster.lifecycle.state import StateStore
from gcluster.stacks.simulated import stamps
from gcluster.stacks.simulated.cloud import Cloud

from .sample_cluster import SampleCluster

MOST = 120
"""More calls than any of these commands makes."""
CALLS = (
    (Cloud, "list"),
    (Cloud, "create"),
    (Cloud, "delete"),
    (StateStore, "put_new"),
    (StateStore, "put"),
    (StateStore, "delete"),
    (stamps, "_append"),
)


class Killed(BaseException):
    """What is raised where a process would be killed."""


class Killer:
    """Ends the process at its n-th call to the world; afterwards every call ends it again."""

    def __init__(self, patch: pytest.MonkeyPatch, number: int) -> None:
        """Wrap every call."""
        self._left = number
        self.dead = False
        for owner, name in CALLS:
            patch.setattr(owner, name, self._around(getattr(owner, name)))

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def around(*args: Any, **kwargs: Any) -> Any:
            if any(isinstance(a, str) and a.startswith("lock/") for a in args):
                return call(*args, **kwargs)
            if self.dead:
                raise Killed
            result = call(*args, **kwargs)
            self.dead = self.dead or self._left == 0
            self._left -= 1
            if self.dead:
                raise Killed
            return result

        return around


def _is_killed(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], number: int) -> bool:
    """Run a command that is ended at a call; return whether it was: it may make fewer calls."""
    with monkeypatch.context() as patch:
        killer = Killer(patch, number)
        try:
            act()
        except Killed:
            return True
        return killer.dead


def _assert_whole(sample: SampleCluster, nodes: int) -> None:
    there = sample.in_the_provider()
    names = ["lab/node/head", *(f"lab/node/gpu{n:03d}" for n in range(1, nodes + 1))]
    assert sorted(there) == sorted(names)
    assert sample.in_the_ledger() == there
    assert sample.open().ledger.open_intents() == ()
    assert {node for node, steps in sample.stamps().items() if steps} == {
        name.rpartition("/")[2] for name in names
    }
    assert not sample.up(answer=False).changed


@pytest.mark.parametrize("run", ["up", "grow", "shrink"])
def test_killed_at_every_call_up_ends_the_same(
    own_places: Path, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    start, end = {"up": (0, 2), "grow": (1, 3), "shrink": (3, 1)}[run]
    for number in range(MOST):
        sample = SampleCluster(own_places / f"{number}" / "cluster.yaml")
        if start:
            sample.write(count=start)
            sample.up()
        sample.write(count=end)

        def act(sample: SampleCluster = sample) -> object:
            return sample.up(allow="pool:gpu")

        killed = _is_killed(monkeypatch, act, number)
        sample.up(allow="pool:gpu")
        _assert_whole(sample, end)
        if run != "shrink":
            assert sample.created_ever() == 1 + end, "nothing was made twice"
        if not killed:
            assert number > 8, "every call was tried"
            return
    pytest.fail("up never ended")


def test_killed_at_every_call_down_leaves_nothing_when_it_is_reported_again(
    own_places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MOST):
        sample = SampleCluster(own_places / f"{number}" / "cluster.yaml")
        sample.write(count=2)
        sample.up()

        def act(sample: SampleCluster = sample) -> object:
            return sample.down()

        killed = _is_killed(monkeypatch, act, number)
        again = down(sample.open(running=True), silent, confirm=lambda _: True)
        assert again.exit_code is Exit.OK
        assert sample.in_the_provider() == sample.in_the_ledger() == {}
        assert sample.open(running=True).ledger.open_intents() == ()
        if not killed:
            assert number > 6, "every call was tried"
            return
    pytest.fail("down never ended")
