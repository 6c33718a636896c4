"""Each cause is derived from what the tools of a machine print, as recorded from them.

unmunge's answers are of MUNGE 0.5.15, with another key, with clocks 600 s apart and without munged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.golden_files import CASES, read_cases
from tests.lifecycle.controller import HEAD

from gcluster.lifecycle.nodes.ssh import Answer, SshResult, SshSession
from gcluster.lifecycle.status.causes import causes_of, diagnose
from gcluster.lifecycle.status.conditions import Cause
from gcluster.lifecycle.status.node_facts import (
    ControllerFacts,
    NodeFacts,
    controller_facts,
    node_facts,
)
from gcluster.lifecycle.status.slurm import SchedulerReport, SchedulerView

RECORDED = read_cases(CASES / "causes.yaml")
WELL = ControllerFacts(host="head", units={"slurmctld": "active", "munge": "active"})


def _recorded(case: str) -> NodeFacts:
    state, _, reason = RECORDED[case]["node"].partition("|")
    return node_facts("gpu003", state, reason, RECORDED[case]["answer"])


@pytest.mark.parametrize("case", RECORDED)
def test_a_recorded_answer_is_reported_as_its_cause(case: str) -> None:
    expected, causes = RECORDED[case]["cause"], diagnose("demo", WELL, "", [_recorded(case)])
    if expected is None:
        assert causes == ()
        return
    (cause,) = causes
    assert (cause.kind, cause.host) == (expected[0], "gpu003")
    assert expected[1] in cause.summary
    assert cause.next_step


def test_a_node_that_failed_is_reported_with_what_becomes_of_its_jobs() -> None:
    dead = NodeFacts(host="gpu003", state="down*", unreachable="no route to host")
    (cause,) = diagnose("demo", WELL, "", [dead])
    assert cause.kind == "node-dead"
    assert "no route to host" in cause.summary
    assert "put back in line" in cause.summary


def _controller(**sections: str) -> ControllerFacts:
    return controller_facts("head", sections)


UP = "slurmctld active\nmunge active\n"
DBD = """\
sacctmgr: error: Sending PersistInit msg: Connection refused
sacctmgr: error: Problem talking to the database: Connection refused
exit 1
"""


@pytest.mark.parametrize(
    ("sections", "problem", "kinds"),
    [
        ({"units": UP}, "", []),
        ({"units": "slurmctld failed\nmunge active\n"}, "refused", ["slurmctld-down"]),
        ({"units": "slurmctld active\nmunge failed\n"}, "refused", ["munge-down"]),
        ({"units": UP}, "timed out", ["slurmctld-silent"]),
        ({"units": "slurmctld failed\nmunge active\n", "disks": "100% /var\n"}, "refused",
         ["disk-full"]),
        ({"units": UP, "dbd": DBD}, "", ["slurmdbd-down"]),
        ({"units": UP, "dbd": "exit 124\n"}, "", ["slurmdbd-down"]),
        ({"units": UP, "dbd": "sacctmgr: warning: slow\n"}, "", []),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_controller_is_reported_with_its_deepest_cause(
    sections: dict[str, str], problem: str, kinds: list[str]
) -> None:
    causes = diagnose("demo", _controller(**sections), problem, [])
    assert [cause.kind for cause in causes] == kinds
    assert all(cause.next_step and cause.host == "head" for cause in causes)


def test_the_database_s_last_words_are_reported() -> None:
    (cause,) = diagnose("demo", _controller(units=UP, dbd=DBD), "", [])
    assert "Problem talking to the database: Connection refused" in cause.summary


def test_a_controller_that_is_off_is_a_cause() -> None:
    (cause,) = diagnose("demo", None, "controller head: no route to host", [])
    assert cause.kind == "controller-off"


class Cluster(SshSession):
    """The double of nodes that answer what was recorded, and of a controller with a credential."""

    def __init__(self, folder: Path, **cases: str) -> None:
        """Take node -> case."""
        super().__init__(folder)
        self.cases = cases
        self.calls: list[tuple[str, str | None]] = []

    def run(self, host: Any, command: str, *, stdin: str | None = None, **_: Any) -> Answer:
        """Answer for one machine."""
        self.calls.append((host.name, stdin))
        assert "MUNGE:" not in command
        text = "MUNGE:AwQFAA:\n" if host.name == "head" else ""
        if host.name in self.cases:
            text = RECORDED[self.cases[host.name]]["answer"]
        return SshResult(returncode=0, stdout=text, stderr="")


NODES = [
    msgspec.structs.replace(HEAD, name=name, role="compute", pool="gpu")
    for name in ("gpu001", "gpu002", "gpu003")
]


def _look(session: Cluster, unreachable: dict[str, str], **states: str) -> tuple[Cause, ...]:
    report = SchedulerReport(view=SchedulerView(states=states), facts=WELL)
    return causes_of("demo", session, HEAD, report, NODES, unreachable)


def test_nothing_is_queried_while_all_is_well(tmp_path: Path) -> None:
    session = Cluster(tmp_path)
    assert _look(session, {}, gpu001="idle", gpu002="mixed") == ()
    assert session.calls == []


def test_only_unfit_nodes_are_queried_with_a_credential_on_standard_input(tmp_path: Path) -> None:
    session = Cluster(tmp_path, gpu002="munge-key")
    causes = _look(
        session, {"gpu003": "no route to host"}, gpu001="idle", gpu002="down*", gpu003="down*"
    )
    assert [cause.kind for cause in causes] == ["munge-key", "node-dead"]
    assert session.calls == [("head", None), ("gpu002", "MUNGE:AwQFAA:\n")]
