"""What people run on nodes without a scheduler is seen by the program that does run on nodes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.lifecycle.controller import HEAD, DownShell, LocalShell

from gcluster.lifecycle.scheduler.base import NodeUse, SchedulerSilent
from gcluster.lifecycle.scheduler.processes import HEAD as NOTICE_HEAD
from gcluster.lifecycle.scheduler.processes import LOOK, NOTICE, Processes, read_use

PS = """\
cat <<'END'
    0       1 root                             systemd
 2001     310 alice                            systemd
 2001     311 alice                            (sd-pam)
 2001     320 alice                            bash
 2001     321 alice                            tmux: server
 2001     330 alice                            python3
64999     340 unbound-dyn                      unbound
65534     350 nobody                           allreduce
1204311   360 EXAMPLE\\bob                      ray::IDLE
    0     900 root                             trainer
END"""


def _shell(folder: Path) -> LocalShell:
    shell = LocalShell(folder / "bin")
    shell.has("sudo", 'shift; exec "$@"')
    shell.has("ps", PS)
    shell.has("nvidia-smi", "echo 900")
    return shell


def test_programs_of_users_and_on_gpus_hold_a_node_and_idle_sessions_do_not(
    tmp_path: Path,
) -> None:
    use = Processes(_shell(tmp_path), [HEAD]).nodes([HEAD.name])[HEAD.name]
    assert use == NodeUse(
        out=False, jobs=("alice:python3[330]", "EXAMPLE\\bob:ray::IDLE[360]", "root:trainer[900]")
    )


def test_a_notice_takes_a_node_out_of_service_with_its_reason() -> None:
    assert read_use(f"notice {NOTICE_HEAD}fan broken\nend\n") == NodeUse(
        out=True, reason="fan broken"
    )
    assert LOOK.count(NOTICE) == 2


@pytest.mark.parametrize("text", ["", "process 2001 330 alice python3\n"])
def test_an_answer_that_was_cut_short_is_none(text: str) -> None:
    assert read_use(text) == NodeUse(out=False, silent=True)


def test_a_reason_with_quotes_reaches_the_notice_as_it_is(tmp_path: Path) -> None:
    shell = LocalShell(tmp_path / "bin")
    shell.has("sudo", f'shift; [ "$1" = sh ] && printf "%s" "$3" >{tmp_path}/line')
    shell.has("id", "echo 1000")
    Processes(shell, [HEAD]).drain([HEAD.name], "it's\nGPU 3")
    line = (tmp_path / "line").read_text(encoding="utf-8")
    assert shlex.split(line)[-2].endswith("it's GPU 3")


def test_a_node_without_an_answer_is_silent_or_an_error_where_programs_may_run(
    tmp_path: Path,
) -> None:
    shell = DownShell(tmp_path)
    assert Processes(shell, [HEAD]).nodes([HEAD.name])[HEAD.name].silent
    with pytest.raises(SchedulerSilent):
        Processes(shell, [HEAD], must_answer=True).nodes([HEAD.name])
    with pytest.raises(SchedulerSilent):
        Processes(shell, [HEAD]).drain([HEAD.name], "why")
