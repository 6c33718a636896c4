"""What the controller runs, by a real shell and a scontrol that writes down its arguments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import cast

import pytest

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession, Unreachable
from gcluster.lifecycle.operations.burst.agent.scheduler import SchedulerRefused, SchedulerSilent
from gcluster.lifecycle.operations.burst.slurm import SlurmController

PROGRAMS = Path(__file__).parents[4] / "roles/slurm/files/libexec"
SCONTROL = """\
#!/bin/sh
echo "$*" >> "$LOG"
case "$*" in
  *"show node spill001"*) echo "NodeName=spill001 State=DOWN+CLOUD+POWERING_UP" ;;
  *"show node spill003"*) echo "NodeName=spill003 State=IDLE+CLOUD+POWERING_DOWN" ;;
  *"show node spill004"*) echo "NodeName=spill004 State=IDLE+CLOUD+DRAIN+POWERING_DOWN" ;;
  *busy*)
    [ -f "$LOG.tried" ] || { : > "$LOG.tried"; echo "Resource temporarily unavailable"; exit 1; } ;;
  *"show node"*) echo "NodeName=other State=DOWN+CLOUD+POWERED_DOWN" ;;
  *"show hostnames"*) printf 'spill001\\nspill002\\n' ;;
  *bad*) echo "Job is not pending" >&2; exit 1 ;;
esac
"""


class Shell:
    """A double of a session: a shell on this machine, with its own scontrol."""

    def __init__(self, folder: Path) -> None:
        """Put that scontrol before the others."""
        self.log = folder / "log"
        self.off: set[str] = set()
        self.execs: list[str] = []
        (folder / "bin").mkdir()
        scontrol = folder / "bin" / "scontrol"
        scontrol.write_text(SCONTROL)
        scontrol.chmod(0o755)
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        self.environment = os.environ | {"PATH": path, "LOG": str(self.log)}

    def run(self, host: Host, command: str, *, stdin: str, timeout_s: float) -> object:
        """Run it here."""
        self.execs.append(host.name)
        if host.name in self.off:
            return Unreachable(reason="no route to host")
        done = subprocess.run(
            ["sh", "-c", command], input=stdin, env=self.environment, timeout=timeout_s,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    @property
    def calls(self) -> list[str]:
        """Return the words of each scontrol."""
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def controller(shell: Shell, *names: str) -> SlurmController:
    hosts = [
        Host(
            name=name, site="lab", pool="head", role="controller", machine=None,
            address="10.0.0.1", ssh=SshTarget(user="root"),
        )
        for name in names or ("head",)
    ]  # fmt: skip
    return SlurmController(cast("SshSession", shell), hosts, {})


def test_addresses_are_reported_one_by_one(shell: Shell) -> None:
    controller(shell).place({"spill001": "10.1.0.1", "spill002": "10.1.0.2"})

    assert shell.calls == [
        "update NodeName=spill001 NodeAddr=10.1.0.1 NodeHostName=spill001",
        "update NodeName=spill002 NodeAddr=10.1.0.2 NodeHostName=spill002",
    ]


def test_nodes_that_are_given_up_are_down_with_the_reason(shell: Shell) -> None:
    controller(shell).give_up(["spill001", "spill002"], 'gcluster burst: no "p5"\nleft')

    assert shell.calls == [
        "update NodeName=spill[001-002] State=DOWN Reason=gcluster burst: no 'p5' left"
    ]


def test_a_node_on_its_way_is_powered_down_before_it_is_resumed(shell: Shell) -> None:
    controller(shell).forget(["spill001", "spill002"])

    assert [line for line in shell.calls if line.startswith("update")] == [
        "update NodeName=spill001 State=POWER_DOWN_FORCE",
        "update NodeName=spill001 State=RESUME",
        "update NodeName=spill002 State=RESUME",
    ]


def test_a_node_of_which_nothing_is_left_may_be_requested_at_once(shell: Shell) -> None:
    controller(shell).end_power_down(["spill001", "spill003"])

    assert [line for line in shell.calls if line.startswith("update")] == [
        "update NodeName=spill003 State=RESUME"
    ]


def test_a_node_that_was_drained_by_hand_stays_drained_when_it_is_gone(shell: Shell) -> None:
    controller(shell).end_power_down(["spill004"])

    assert not [line for line in shell.calls if line.startswith("update")]


def test_a_move_that_comes_while_slurm_schedules_the_job_is_tried_again(shell: Shell) -> None:
    controller(shell).move("12", "busy", "it has waited 31 min")

    assert len(shell.calls) == 2


def test_waiting_ends_with_a_request_or_with_its_time(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcluster.lifecycle.operations.burst.slurm.controller.SPOOL", str(tmp_path))
    controller(shell).wait(1)
    (tmp_path / "1-1-resume.request").write_text("resume")

    controller(shell).wait(3600)


def test_a_move_that_slurm_refuses_is_reported_with_its_message(shell: Shell) -> None:
    with pytest.raises(SchedulerRefused, match="head: Job is not pending"):
        controller(shell).move("12", "bad", "it has waited 31 min")

    assert shell.calls == [
        "update JobId=12 Partition=bad AdminComment=gcluster burst: it has waited 31 min"
    ]


def test_what_slurm_refuses_of_one_node_is_an_error_and_holds_up_no_other(shell: Shell) -> None:
    with pytest.raises(SchedulerRefused):
        controller(shell).place({"bad": "10.1.0.1", "spill001": "10.1.0.2"})

    assert shell.calls[-1] == "update NodeName=spill001 NodeAddr=10.1.0.2 NodeHostName=spill001"


def test_very_many_jobs_are_reported_in_several_execs(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcluster.lifecycle.operations.burst.slurm.controller._AT_ONCE", 2)

    controller(shell).annotate({str(number): "stays" for number in range(5)})

    assert (len(shell.execs), len(shell.calls)) == (3, 5)


def test_a_controller_that_does_not_answer_is_silent(shell: Shell) -> None:
    shell.off = {"head"}

    with pytest.raises(SchedulerSilent, match="no route to host"):
        controller(shell).observe()


def test_the_second_controller_is_queried_while_the_first_is_off(shell: Shell) -> None:
    shell.off = {"head1"}
    both = controller(shell, "head1", "head2")

    both.release(["spill001"])
    both.release(["spill002"])

    assert shell.execs == ["head1", "head2", "head2"]
    assert [line.split()[1] for line in shell.calls] == [
        "NodeName=spill001",
        "NodeName=spill002",
    ]


def test_a_request_of_another_name_is_not_removed(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("")

    controller(shell).remove_requests([f"../..{tmp_path}/kept"])

    assert (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("slurm-resume.sh", "resume"),
        ("slurm-suspend.sh", "suspend"),
        ("slurm-resume-failed.sh", "failed"),
    ],
)
def test_slurm_s_programs_leave_a_whole_request(
    program: str, kind: str, shell: Shell, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    environment = shell.environment | {"GCLUSTER_BURST_SPOOL": str(spool)}

    subprocess.run([PROGRAMS / program, "spill[001-002]"], env=environment, check=True)

    (request,) = spool.iterdir()
    assert request.name.endswith(f"-{kind}.request")
    calls, at, *nodes = request.read_text().splitlines()
    assert (calls, at.isdecimal(), nodes) == (kind, True, ["spill001", "spill002"])


def test_a_full_spool_leaves_no_half_request(shell: Shell, tmp_path: Path) -> None:
    environment = shell.environment | {"GCLUSTER_BURST_SPOOL": str(tmp_path / "gone")}

    done = subprocess.run(
        [PROGRAMS / "slurm-resume.sh", "spill[001-002]"],
        env=environment, check=False, capture_output=True,
    )  # fmt: skip

    assert done.returncode != 0
    assert not (tmp_path / "gone").exists()
