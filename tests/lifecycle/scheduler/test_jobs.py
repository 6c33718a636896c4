"""Jobs are queued, seen and followed through Slurm's own commands; answers as Slurm 24.11 gave."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, LocalShell

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.scheduler.workloads.follow import JobLog, follow
from gcluster.lifecycle.scheduler.workloads.jobs import Job, JobQueue, JobState

SHOW = """\
cat <<'END'
JobId=8 JobName=bash
   UserId=ada(2001) GroupId=ada(2001) MCS_label=N/A
   JobState={state} Reason={reason} Dependency=(null)
   Requeue=1 Restarts={restarts} BatchFlag=1 Reboot=0 ExitCode={code}
   RunTime=00:00:07 TimeLimit=1-00:00:00 TimeMin=N/A
   NodeList=gpu[001-002]
   BatchHost={host}
   NumNodes=2 NumCPUs=384 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=2,mem=4120000M,node=2,billing=2,gres/gpu=2
   AllocTRES=cpu=384,mem=4120000M,node=2,billing=384,gres/gpu=16
   StdErr={log}
   StdOut={log}
END"""
LIST = """\
cat <<'END'
7|hello|ada|COMPLETED|0:01|3|gpu[001-003]|main
9|a|b|ada|RUNNING|0:01|2|gpu[001-002]|main
10|sleep|ada|PENDING|0:00|2|(Resources)|main
END"""


@pytest.fixture
def shell(tmp_path: Path) -> LocalShell:
    """Give a controller whose squeue answers."""
    shell = LocalShell(tmp_path / "bin")
    shell.has("squeue", LIST)
    shell.has("sudo", 'shift; exec "$@"')
    return shell


def show(shell: LocalShell, log: Path | str = "", host: str = "gpu001", **words: str) -> None:
    known = {"state": "RUNNING", "reason": "None", "restarts": "0", "code": "0:0", **words}
    shell.has("scontrol", SHOW.format(log=log, host=host, **known))


def refusal(error: pytest.ExceptionInfo[LifecycleError]) -> tuple[str, str]:
    (found,) = error.value.diagnostics
    return found.code, found.summary


def test_a_script_reaches_sbatch_as_it_is_in_a_login_of_the_user(
    shell: LocalShell, tmp_path: Path
) -> None:
    shell.has("runuser", f'echo "$1 $2 $3 $4" > {tmp_path}/words; exec sh -c "$4"')
    shell.has("sbatch", f'[ "$*" = --parsable ] && cat > {tmp_path}/script && echo "17;research"')
    script = "#!/bin/bash\n#SBATCH --nodes=2\necho 'it''s'\n"

    assert JobQueue(shell, HEAD).submit(script, "ada") == "17"
    assert (tmp_path / "script").read_text(encoding="utf-8") == script
    assert (tmp_path / "words").read_text("utf-8") == "-l ada -c sbatch --parsable\n"


def test_no_job_is_queued_as_root_unless_root_is_named(shell: LocalShell) -> None:
    root = msgspec.structs.replace(HEAD, ssh=msgspec.structs.replace(HEAD.ssh, user="root"))
    shell.has("sbatch", "echo 18")
    with pytest.raises(LifecycleError) as error:
        JobQueue(shell, root).submit("#!/bin/sh\n", None)
    assert refusal(error)[0] == "GC1212"
    assert JobQueue(shell, root).submit("#!/bin/sh\n", "root") == "18"


def test_a_refusal_of_sbatch_is_shown_in_its_words(shell: LocalShell) -> None:
    words = (
        "sbatch: error: Batch job submission failed: Requested node configuration is not available"
    )
    shell.has("sbatch", f'echo "{words}" >&2; exit 1')
    with pytest.raises(LifecycleError) as error:
        JobQueue(shell, HEAD).submit("#!/bin/sh\n", None)
    assert refusal(error) == ("GC1213", f"the job was not queued: {words}")


def test_the_queue_is_read_line_by_line(shell: LocalShell) -> None:
    first, *_, last = JobQueue(shell, HEAD).jobs()
    assert first == Job(
        id="7",
        name="hello",
        user="ada",
        state="COMPLETED",
        elapsed="0:01",
        nodes="3",
        reason="gpu[001-003]",
        partition="main",
    )
    assert (last.id, last.state, last.reason) == ("10", "PENDING", "(Resources)")


@pytest.mark.parametrize("job", ["99", "x; reboot", "-1", ""])
def test_a_job_that_slurm_does_not_know_is_refused(shell: LocalShell, job: str) -> None:
    refused = "slurm_load_jobs error: Invalid job id specified"
    shell.has("scontrol", f'[ "$*" = "show job 99" ] && echo "{refused}" >&2; exit 1')
    with pytest.raises(LifecycleError) as error:
        JobQueue(shell, HEAD).state(job)
    assert refusal(error)[0] == "GC1214"


def test_a_job_is_followed_over_a_restart_on_another_node_to_its_end(
    shell: LocalShell, tmp_path: Path
) -> None:
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    first.write_bytes("step 1 é\n".encode()[:-2])
    show(shell, first)
    hosts = ClusterInventory(cluster="demo", hosts=(node("gpu001"), node("gpu002")))
    seen: list[str] = []
    text: list[str] = []

    def pause(_: float) -> None:
        turn = len([each for each in seen if each == "pause"])
        seen.append("pause")
        if turn == 0:
            first.write_bytes("step 1 é\nstep 2\n".encode())
        elif turn == 1:
            show(shell, "", "", state="PENDING", reason="BeginTime", restarts="1")
        elif turn == 2:
            second.write_text("step 2\n", encoding="utf-8")
            show(shell, second, "gpu002", restarts="1")
        else:
            second.write_text("step 2\nstep 3\n", encoding="utf-8")
            show(shell, second, "gpu002", state="COMPLETED", restarts="1")

    last = follow(
        JobQueue(shell, HEAD),
        JobLog(shell, hosts),
        "8",
        changed=lambda state: seen.append(f"{state.state} {state.restarts}"),
        printed=text.append,
        pause=pause,
    )

    assert [each for each in seen if each != "pause"] == [
        "RUNNING 0",
        "PENDING 1",
        "RUNNING 1",
        "COMPLETED 1",
    ]
    assert "".join(text) == "step 1 é\nstep 2\nstep 2\nstep 3\n"
    assert last == JobState(
        id="8",
        state="COMPLETED",
        reason="None",
        exit_code="0:0",
        restarts=1,
        elapsed="00:00:07",
        nodes=2,
        batch_host="gpu002",
        log=str(second),
        name="bash",
        user="ada",
        on=("gpu001", "gpu002"),
        gpus=16,
    )
    assert last.has_succeeded


@pytest.mark.parametrize("listed", ["", "(null)"])
def test_a_job_that_waits_has_no_nodes(shell: LocalShell, listed: str) -> None:
    shell.has(
        "scontrol",
        SHOW.format(
            state="PENDING", reason="None", restarts=0, code="0:0", host="", log=""
        ).replace("gpu[001-002]", listed),
    )
    assert JobQueue(shell, HEAD).state("8").on == ()


def node(name: str) -> Host:
    return msgspec.structs.replace(HEAD, name=name)
