"""The agent is killed (SIGKILL) at every write and at every call that changes something.

Each is hit before and after: after one is before the next, as what lies between only reads.

Then it is started again, and the book must close: every intent has an end, whatever was made was
removed, no token made two machines, and nothing is left. The scheduler is a double, the cloud is
the simulated one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.lifecycle.state import StateStore
from gcluster.stacks.simulated.cloud import Cloud

from .controller_double import ControllerDouble, ControllerState
from .harness import Harness

ALONE = "GCLUSTER_TESTS_ALONE"
"""Set where a test has its interpreter for itself."""
HELD = (
    (StateStore, ("put_new", "put")),
    (Cloud, ("create", "delete")),
    (
        ControllerDouble,
        ("remove_requests", "place", "give_up", "forget", "release", "move", "annotate"),
    ),
)
"""Every write of state and every call that changes something outside."""


def _two_jobs(folder: Path) -> Harness:
    """One job that spills and one that was sent there, so that moves and joint requests happen."""
    harness = Harness(folder)
    harness.submit("a", nodes=2, run_s=30)
    harness.submit("b", partition="spill", run_s=30)
    return harness


def _never_joins(folder: Path) -> Harness:
    harness = Harness(folder)
    harness.change(_mute_and_short)
    harness.submit("a", partition="spill", run_s=30)
    return harness


def _mute_and_short(reported: ControllerState) -> None:
    reported.mute, reported.resume_timeout = frozenset({"spill001"}), 40


def _faulty_cloud(folder: Path) -> Harness:
    """Refusals and lost answers, by the cloud's own faults."""
    faults = ", faults: {create_failure_rate: 0.3, lost_response_rate: 0.5, seed: 7}"
    harness = Harness(folder, cloud=faults)
    harness.change(lambda reported: setattr(reported, "step", 60.0))
    harness.submit("a", nodes=2, partition="spill", run_s=30)
    return harness


SCENARIOS = {"two jobs": _two_jobs, "never joins": _never_joins, "faulty cloud": _faulty_cloud}


def _in_a_fresh_interpreter(scenario: str) -> str:
    """Run a scenario's test there, where no thread of the state has run: forks of it would hang.

    Returns what it counted.
    """
    here = Path(__file__)
    test = f"{here}::test_wherever_it_is_killed_the_ledger_closes_and_nothing_is_left[{scenario}]"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", test],
        cwd=here.parents[4],
        env={**os.environ, ALONE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    counted = [line for line in done.stdout.splitlines() if line.startswith(f"{scenario}: killed")]
    assert (done.returncode, len(counted)) == (0, 1), done.stdout + done.stderr
    return counted[0]


def _in_a_child(body: Callable[[], None]) -> int:
    """Run in a process of its own; return its exit status, negative where a signal ended it."""
    child = os.fork()
    if child == 0:
        try:
            body()
            os._exit(0)
        except BaseException:  # noqa: BLE001  # reported by the exit status
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _kill_at(number: int) -> Callable[[], int]:
    """Have this process killed at the numbered point; return what counts them."""
    passed = 0

    def point() -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(method: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            point()
            return method(*args, **kwargs)

        return call

    for owner, names in HELD:
        for name in names:
            setattr(owner, name, around(getattr(owner, name)))
    return lambda: passed


def _tally(folder: Path) -> dict[str, Any]:
    reported: dict[str, Any] = Harness.opened(folder).tally()
    made = json.loads((folder / "made.json").read_text()) if (folder / "made.json").exists() else []
    reported["tokens"], reported["machines"] = len(set(made)), len(made)
    return reported


def _note_machines(folder: Path) -> None:
    """Have the simulated cloud write the token of each machine that it really makes to a file."""
    real = Cloud._create_one  # noqa: SLF001  # where a machine comes to be

    def create_one(self: Cloud, stored: Any, order: Any) -> str:
        before = order.name in stored.nodes
        answer = real(self, stored, order)
        if not before and order.name in stored.nodes:
            path = folder / "made.json"
            made = json.loads(path.read_text()) if path.exists() else []
            path.write_text(json.dumps([*made, order.token]))
        return answer

    Cloud._create_one = create_one  # type: ignore[method-assign]  # noqa: SLF001  # in a child only


@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_wherever_it_is_killed_the_ledger_closes_and_nothing_is_left(
    scenario: str, own_places: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if ALONE not in os.environ:
        events = _in_a_fresh_interpreter(scenario)
        with capfd.disabled():
            print(f"\n{events}")  # noqa: T201  # what `make prove-burst` shows
        return
    make = SCENARIOS[scenario]
    number, killed = 0, 0
    totals = dict.fromkeys(("intents", "machines", "deleted"), 0)
    while True:
        number += 1
        folder = own_places / f"{number}"

        def first(folder: Path = folder, number: int = number) -> None:
            harness = make(folder)
            _note_machines(folder)
            _kill_at(number)
            harness.run()

        def again(folder: Path = folder) -> None:
            _note_machines(folder)
            Harness.opened(folder).run()

        def judge(folder: Path = folder) -> None:
            (folder / "tally.json").write_text(json.dumps(_tally(folder)))

        status = _in_a_child(first)
        if status == -signal.SIGKILL:
            killed += 1
            assert _in_a_child(again) == 0, f"{scenario} {number}: {capfd.readouterr().err}"
        else:
            assert status == 0, f"{scenario} {number}: {capfd.readouterr().err}"
        assert _in_a_child(judge) == 0, capfd.readouterr().err
        reported = json.loads((folder / "tally.json").read_text())
        where = f"{scenario}, killed at point {number}: {reported}"
        assert (
            reported["open"],
            reported["existing"],
            reported["leftovers"],
            reported["live"],
        ) == (0, 0, 0, 0), where
        assert reported["machines"] == reported["tokens"], f"a token made two machines: {where}"
        assert reported["machines"] == reported["deleted"], where
        for key in totals:
            totals[key] += reported[key]
        if status == 0:
            break
    with capfd.disabled():
        print(  # noqa: T201  # what `make prove-burst` shows
            f"\n{scenario}: killed at each of {killed} points; intents {totals['intents']}, "
            f"machines {totals['machines']}, deletions {totals['deleted']}, left 0"
        )
    assert killed > 15
