"""The phases of `up`: their order is what docs/up.md shows, and one that sets a result ends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.kubernetes.phases import KUBERNETES_PHASES
from gcluster.lifecycle.scheduler.phases import SLURM_PHASES
from gcluster.lifecycle.up.phase import Phase, SchedulerPhases, UpResult, UpState, run_phases
from gcluster.lifecycle.up.up import before_lock, under_lock

RESULT = UpResult(
    cluster="demo",
    changed=True,
    failed_hosts={},
    verdict=None,
    certificate_path=None,
    exit_code=Exit.OK,
)


def rows(scheduler: SchedulerPhases) -> list[str]:
    """Return the table of docs/up.md for a scheduler's own phases."""
    own = {
        phase.name for field in scheduler.__struct_fields__ for phase in getattr(scheduler, field)
    }
    return [
        f"| {'**' if phase.name in own else ''}{phase.name}{'**' if phase.name in own else ''} "
        f"| {phase.resume} |"
        for phase in (*before_lock(scheduler), *under_lock(scheduler))
    ]


@pytest.mark.parametrize("scheduler", [SLURM_PHASES, KUBERNETES_PHASES])
def test_the_page_on_up_lists_the_phases_in_order(root: Path, scheduler: SchedulerPhases) -> None:
    page = (root / "docs" / "up.md").read_text(encoding="utf-8")
    assert "\n".join(rows(scheduler)) in page


@pytest.mark.parametrize("scheduler", [SLURM_PHASES, KUBERNETES_PHASES])
def test_phases_have_names_of_their_own(scheduler: SchedulerPhases) -> None:
    names = [phase.name for phase in (*before_lock(scheduler), *under_lock(scheduler))]
    assert len(names) == len(set(names))


def test_only_wanted_phases_run_and_a_result_is_the_end() -> None:
    state = UpState(cluster=cast("Any", None), report=print, confirm=lambda _: True)
    ran: list[str] = []

    def finish(state: UpState) -> None:
        ran.append("second")
        state.result = RESULT

    run_phases(
        (
            Phase("first", lambda _: ran.append("first"), "", lambda _: False),
            Phase("second", finish, ""),
            Phase("third", lambda _: ran.append("third"), ""),
        ),
        state,
    )
    assert ran == ["second"]
    assert state.result is RESULT
