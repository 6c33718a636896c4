"""The program that starts jobs: spares, fewer nodes, hangs, the gate, and what the time was for."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "roles/slurm/files/job_launch"
DOUBLES = {
    "squeue": """\
# The job has the nodes that the file names; its newest step is the attempt that runs.
case $* in
*--steps*) echo "7.$(($(wc -l <calls) - 1)) attempt-$(($(wc -l <calls) - 1))" ;;
*) cat nodes ;;
esac""",
    "scontrol": """\
case "$1 $2" in
"show hostnames") echo "$3" | tr , '\\n' ;;
"show node") [ ! -e late ] || while [ ! -s calls ]; do sleep 0.1; done
    for name in $(echo "$3" | tr , ' '); do
        echo "NodeName=$name Arch=x86_64"
        echo "   NodeAddr=$(cat "address-$name" 2>/dev/null || echo 127.0.0.1) NodeHostName=$name"
    done ;;
"show config") echo "SlurmdPort = 9" ;;
"show job") echo "PreemptTime=None ExcNodeList=(null)"
    printf '   AdminComment=none\\n   Comment=data=warm gate-before=old \\n' ;;
"listpids 7."*) echo PID JOBID STEPID LOCALID GLOBALID
    [ ! -e pids ] || for pid in $(cat pids); do [ ! -d /proc/$pid ] || echo $pid 7 0 - -; done ;;
requeue*) echo "$*" >>requeued ;;
update*) echo "$*" >>requeued
    case $3 in NodeList=*) echo "${3#NodeList=}" >nodes ;; esac ;;
esac""",
    "sinfo": """\
for word; do case $word in --nodes=*) names=${word#--nodes=} ;; esac; done
for node in $(echo "$names" | tr , ' '); do
    echo "$node $(cat "state-$node" 2>/dev/null || echo allocated)"
done
""",
    "scancel": 'kill "$(cat step)" 2>/dev/null; true',
}
"""Doubles of Slurm's commands, which keep their state in files of their folder."""


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"job_launch_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def slurm(tmp_path: Path) -> Path:
    """Return a folder with doubles, of a job on gpu001 to gpu003."""
    for name, text in DOUBLES.items():
        (tmp_path / name).write_text(f"#!/bin/bash\ncd {tmp_path}\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "nodes").write_text("gpu001,gpu002,gpu003\n", encoding="utf-8")
    (tmp_path / "calls").touch()
    return tmp_path


def run(slurm: Path, srun: str, *options: str, **more: str) -> tuple[int, str, list[str]]:
    """Run a job whose attempts are the lines of a double of srun.

    Returns exit status, log, and the nodes of each attempt.
    """
    head = f"#!/bin/bash\ncd {slurm}\n"
    own = """\
case $* in
*job-name=gate*) gate; exit ;;
*job-name=guard*) exit ;;
*job-name=gcluster*) while [ "$1" != "${1#-}" ]; do shift; done; exec "$@" ;;
esac
for word; do case $word in --nodelist=*) echo "${word#*=}" >>calls ;; esac; done
echo $$ >step
"""
    (slurm / "srun").write_text(head + more.pop("gate", "gate() { :; }") + "\n" + own + srun)
    (slurm / "srun").chmod(0o755)
    environment = {
        "PATH": f"{slurm}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "7",
        "SLURMD_NODENAME": "gpu001",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "20007",
        **more,
    }
    log = slurm / "log"
    with log.open("wb") as file:
        done = subprocess.run(
            [sys.executable, FOLDER / "launch.py", "run", *options, "--", "bash", "-c", "true"],
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=slurm,
            timeout=120,
            check=False,
        )
    text = log.read_text(encoding="utf-8")
    return done.returncode, text, (slurm / "calls").read_text(encoding="utf-8").splitlines()


LOSES = '[ "$(wc -l <calls)" -gt 1 ] || { echo gpu001,gpu003 >nodes; exit 1; }\necho trained'


def test_a_spare_takes_the_place_of_a_node_that_slurm_gave_up_and_no_restart_is_counted(
    slurm: Path,
) -> None:
    code, log, attempts = run(slurm, LOSES, "--nodes=2", "--spares=1")

    assert (code, attempts) == (0, ["gpu001,gpu002", "gpu001,gpu003"])
    assert "attempt 0 ended: gpu002 was lost" in log
    assert re.search(r"interruption 1 cost \d+ s: attempt 0 ended: gpu002 was lost", log)


def test_a_node_that_is_silent_is_lost_when_the_processes_of_the_others_have_ended(
    slurm: Path,
) -> None:
    """They print that they miss it, and srun waits for it: neither is progress."""
    (slurm / "address-gpu002").write_text("nowhere.invalid", encoding="utf-8")
    (slurm / "late").touch()  # where nodes are is known when the first attempt runs, and not before
    waits = '[ "$(wc -l <calls)" -gt 1 ] || while sleep 0.2; do echo aborted; done\necho trained'

    code, log, attempts = run(slurm, waits, "--nodes=2", "--spares=1")

    assert (code, attempts) == (0, ["gpu001,gpu002", "gpu001,gpu003"])
    assert "attempt 0 ended: gpu002 was lost" in log
    assert log.count("aborted") < 100, "five a second: srun itself gave up, after more than 30"


def test_a_job_that_may_shrink_goes_on_with_the_nodes_that_are_left(slurm: Path) -> None:
    code, log, attempts = run(slurm, LOSES, "--nodes=3", "--least=2")

    assert (code, attempts) == (0, ["gpu001,gpu002,gpu003", "gpu001,gpu003"])
    assert "gcluster: on 2 of 3 nodes" in log


def test_a_job_that_may_not_shrink_so_far_is_queued_again(slurm: Path) -> None:
    loses_two = "echo gpu001 >nodes; exit 1"
    _, log, attempts = run(slurm, loses_two, "--nodes=3", "--least=2")

    assert len(attempts) == 1
    assert log.splitlines()[-1] == "gcluster: queued again: too few of its nodes can be used"
    assert (slurm / "requeued").read_text() == "requeue 7\nupdate JobId=7 StartTime=now+5\n"


def test_a_node_that_was_drained_is_left_to_its_drain_where_a_spare_is_there(slurm: Path) -> None:
    fails = '[ "$(wc -l <calls)" -gt 1 ] || { echo draining >state-gpu001; exit 3; }'
    code, log, attempts = run(slurm, fails, "--nodes=2", "--spares=1", "--restarts=1")

    assert (code, attempts) == (0, ["gpu001,gpu002", "gpu002,gpu003"])
    assert "attempt 0 ended with exit code 3" in log
    assert "without gpu001 (draining)" in log


def test_a_failed_program_is_started_again_so_many_times_and_its_exit_code_is_kept(
    slurm: Path,
) -> None:
    code, log, attempts = run(slurm, "exit 3", "--nodes=3", "--restarts=2")

    assert (code, len(attempts)) == (3, 3)
    assert log.count("ended with exit code 3") == 3 + 2


HANGS = """\
[ "$(wc -l <calls)" = 1 ] || exit 0
python3 -c '
import time
def waits_for_ever():
    time.sleep(60)
waits_for_ever()' &
echo $! >pids
echo "step 1"
wait
"""


def test_a_job_that_prints_nothing_shows_its_stacks_and_is_started_again(slurm: Path) -> None:
    """Python's own faulthandler writes them: py-spy is on no PATH here."""
    code, log, attempts = run(slurm, HANGS, "--nodes=3", "--restarts=1", "--hang=1")

    assert (code, len(attempts)) == (0, 2)
    assert "nothing was printed for 1 s; its processes are at" in log
    assert "Fatal Python error: Aborted" in log
    assert "in waits_for_ever" in log
    assert "attempt 0 ended: it hung for 1 s" in log


def test_a_program_that_prints_while_it_hangs_is_judged_by_the_file_that_it_touches(
    slurm: Path,
) -> None:
    prints = """\
[ "$(wc -l <calls)" = 1 ] || exit 0
touch "$GCLUSTER_HEARTBEAT"
while :; do echo waiting; sleep 0.2; done
"""
    folder = slurm / "checkpoints"
    folder.mkdir()
    code, log, attempts = run(
        slurm, prints, "--nodes=3", "--restarts=1", "--hang=2", GCLUSTER_CHECKPOINTS=str(folder)
    )

    assert (code, len(attempts)) == (0, 2)
    assert "it hung for 2 s" in log


PAIRS = {("gpu001", "gpu002"): 1.0, ("gpu001", "gpu003"): 10.0, ("gpu002", "gpu003"): 1.2}


def measured(pairs: Mapping[tuple[str, str], float]) -> str:
    lines = (
        "@measure " + json.dumps({"pair": list(pair), "pair_bandwidth": speed, "wrong": 0})
        for pair, speed in pairs.items()
    )
    return "gate() {\ncat <<'EOF'\n" + "\n".join(lines) + "\nEOF\n}"


def test_a_node_that_the_gate_finds_slow_is_named_and_left_out(slurm: Path) -> None:
    options = ("--nodes=2", "--spares=1", "--gate=60")
    code, log, attempts = run(slurm, "echo trained", *options, gate=measured(PAIRS))

    assert (code, attempts) == (0, ["gpu001,gpu003"])
    assert "goodput" not in log, "of a command that ran once"
    assert "gate: gpu002 is slow: 1.20 GB/s, 10.00 in the middle" in log


def test_a_job_without_spares_gives_a_slow_node_back_and_excludes_it(slurm: Path) -> None:
    _, log, attempts = run(slurm, "echo trained", "--nodes=3", "--gate=60", gate=measured(PAIRS))

    assert (attempts, log.splitlines()[-1]) == (
        [],
        "gcluster: queued again: too few of its nodes can be used",
    )
    assert (slurm / "requeued").read_text().splitlines() == [
        "update JobId=7 Comment=data=warm gate-before=gpu002",
        "update JobId=7 ExcNodeList=gpu002",
        "requeue 7",
        "update JobId=7 StartTime=now+5",
    ]


def test_a_gate_without_a_result_keeps_no_job_from_starting(slurm: Path) -> None:
    code, log, attempts = run(
        slurm, "echo trained", "--nodes=3", "--gate=60", gate="gate() { exit 4; }"
    )

    assert (code, len(attempts)) == (0, 1)
    assert "gate: no result after 0 s (exit code 4); the job starts all the same" in log


def test_a_node_is_lost_when_it_is_silent_and_later_where_the_job_still_prints() -> None:
    nodes = loaded("nodes")
    watch = nodes.Watch([])
    now = time.monotonic()
    watch._silent_since = {"gpu002": now - 20, "gpu003": now - 5}  # noqa: SLF001

    assert watch.lost(["gpu001", "gpu002", "gpu003"], printed_at=now - 19) == ["gpu002"]
    assert watch.lost(["gpu001", "gpu002", "gpu003"], printed_at=now - 1) == []
    assert watch.lost(["gpu002"], printed_at=now - 10) == ["gpu002"], "others missed it, then ended"
    watch._silent_since["gpu002"] = now - 60  # noqa: SLF001
    assert watch.lost(["gpu002"], printed_at=now - 1) == ["gpu002"]


@pytest.mark.parametrize(("epilog", "after_s"), [("(null)", 5), ("/etc/slurm/epilog", 20)])
def test_a_job_leaves_lost_nodes_is_queued_again_and_only_then_has_a_time_to_start(
    monkeypatch: pytest.MonkeyPatch, epilog: str, after_s: int
) -> None:
    """Before, Slurm refuses the time; later, the program that would say it has been ended."""
    nodes, calls = loaded("nodes"), []
    answers = {
        "config": f"Epilog[0]               = {epilog}",
        "hostnames": "gpu001\ngpu002\ngpu003",
    }
    monkeypatch.setattr(nodes, "JOB", "7")
    monkeypatch.setattr(
        nodes, "output_of", lambda *words: calls.append(words) or answers.get(words[2], "")
    )
    monkeypatch.setattr(nodes.signal, "signal", lambda *words: calls.append(words))

    assert nodes.requeue(["gpu002"])

    assert [call for call in calls if call[1] not in ("show", "--noheader")] == [
        (
            *("env", "-u", "SLURM_JOB_ID", "-u", "SLURM_JOBID"),
            *("scontrol", "update", "JobId=7"),
            "NodeList=gpu001,gpu003",
        ),
        (signal.SIGTERM, signal.SIG_IGN),
        ("scontrol", "requeue", "7"),
        ("scontrol", "update", "JobId=7", f"StartTime=now+{after_s}"),
    ]


@pytest.mark.parametrize(
    ("answers_again", "listed"), [(False, ["allocated*", "down*"]), (True, ["allocated*"])]
)
def test_the_guard_queues_the_job_again_once_slurm_has_given_its_node_up_or_that_is_back(
    monkeypatch: pytest.MonkeyPatch, *, answers_again: bool, listed: list[str]
) -> None:
    nodes, left, requeued = loaded("nodes"), list(listed), []

    class Watch(nodes.Watch):  # type: ignore[misc, name-defined]
        def start(self) -> None:
            self._silent_since["gpu001"] = time.monotonic() - 60

    def pause(_: float) -> None:
        if answers_again:
            nodes.guarded._silent_since.clear()  # noqa: SLF001

    def states(_: object) -> dict[str, str]:
        return {"gpu001": left.pop(0)}

    monkeypatch.setattr(nodes, "guarded", Watch(["gpu001"]), raising=False)
    monkeypatch.setattr(nodes, "Watch", lambda _: nodes.guarded)
    monkeypatch.setattr(nodes, "states", states)
    monkeypatch.setattr(nodes.time, "sleep", pause)
    monkeypatch.setattr(nodes, "requeue", lambda: requeued.append(len(left)) or True)
    nodes.guarded.start()

    nodes.guard("gpu001")

    assert requeued == [0], "not before"


def test_a_job_s_nodes_are_looked_up_by_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = loaded("nodes")
    shown = "NodeName=gpu001 Arch=x86_64\n   NodeAddr=10.0.0.1 NodeHostName=gpu001\n\n"
    shown += "NodeName=gpu003 Arch=x86_64\n   NodeAddr=10.0.0.3 NodeHostName=gpu003\n"
    calls = []
    monkeypatch.setattr(nodes, "output_of", lambda *words: calls.append(words) or shown)

    found = nodes.addresses(["gpu001", "gpu002", "gpu003"])

    assert found == {"gpu001": "10.0.0.1", "gpu002": "gpu002", "gpu003": "10.0.0.3"}
    assert calls == [("scontrol", "show", "node", "gpu001,gpu002,gpu003")]


def start(at: float, saved: float = 0.0, nodes: int = 2) -> dict[str, object]:
    return {"at": at, "event": "start", "nodes": nodes, "saved": saved}


def test_what_counts_ends_with_the_checkpoint_that_was_resumed_from() -> None:
    journal = loaded("journal")
    events = [
        {"at": 0.0, "event": "begin", "nodes": 4},
        start(0),
        {"at": 10.0, "event": "first"},
        {"at": 60.0, "event": "stop", "cause": "gpu003 was lost"},
        start(65, saved=50.0),
        {"at": 70.0, "event": "first"},
        {"at": 80.0, "event": "stop", "cause": "it hung"},
        start(80, saved=50.0),  # the second saved nothing
        {"at": 90.0, "event": "first"},
        {"at": 100.0, "event": "stop", "done": True},
        {"at": 100.0, "event": "leave"},
    ]

    # 40 + 0 + 10 s on 2 of the 4 nodes that were paid for 100 s.
    assert journal.summary(events, 500.0) == [
        "gcluster: goodput 25%: 100 of 400 node seconds count",
        "gcluster: interruption 1 cost 20 s: gpu003 was lost",
        "gcluster: interruption 2 cost 20 s: it hung",
    ]


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_a_clock_that_jumps_makes_no_time_negative_and_no_goodput_above_one(jump: float) -> None:
    journal = loaded("journal")
    events = [
        {"at": 0.0, "event": "begin", "nodes": 2},
        start(0),
        {"at": 10.0 + jump, "event": "stop", "cause": "x"},
        start(12 + jump, saved=8.0),
        {"at": 20.0 + jump, "event": "stop", "done": True},
        {"at": 20.0 + jump, "event": "leave"},
    ]
    shown = "\n".join(journal.summary(events, 30.0))

    assert "-" not in shown
    assert all(int(word[:-2]) <= 100 for word in shown.split() if word.endswith("%:"))


def test_a_journal_that_was_cut_off_goes_on_and_a_lost_node_ends_what_was_paid(
    tmp_path: Path,
) -> None:
    journal = loaded("journal")
    file = tmp_path / ".journal-7"
    lines = [{"at": 1000.0, "event": "begin", "nodes": 2}, start(1000.0)]
    file.write_text("".join(json.dumps(each) + "\n" for each in lines) + '{"at": 10', "utf-8")
    os.utime(file, (1060.0, 1060.0))

    events = journal.Journal(file).events
    assert [each["event"] for each in events] == ["begin", "start", "leave"]
    assert journal.summary(events, 9999.0)[0].endswith("0 of 120 node seconds count")


def test_a_full_disk_costs_a_line_of_the_journal_and_not_the_job(tmp_path: Path) -> None:
    written = loaded("journal").Journal(tmp_path / "is-not-there" / ".journal-7")
    written.add("begin", nodes=2)
    written.touch()
    assert [each["event"] for each in written.events] == ["begin"]


@pytest.mark.parametrize(
    ("restarts", "attempt", "took_s", "refused"),
    [("1", 0, 33, True), ("1", 0, 60, False), ("1", 4, 1, False), ("0", 0, 1, False)],
)
def test_a_step_that_a_node_refuses_is_started_again(
    monkeypatch: pytest.MonkeyPatch, restarts: str, attempt: int, took_s: int, *, refused: bool
) -> None:
    """Tasks of other nodes ran: srun waits for their end by KillWait, 30 s, and two more."""
    monkeypatch.syspath_prepend(FOLDER)
    launch = loaded("launch")
    job = launch.Launch.__new__(launch.Launch)
    job.began, job.attempt = time.monotonic() - took_s, attempt
    monkeypatch.setenv("SLURM_RESTART_COUNT", restarts)
    assert job.was_refused() is refused
