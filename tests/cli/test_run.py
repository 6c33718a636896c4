"""`gcluster run`: which job it queues, and what it prints when it no longer follows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
import yaml

from gcluster.cli.operate import run as verb
from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.scheduler.workloads.jobs import JobQueue, JobState

TRAINING = str(Path(__file__).parents[2] / "examples/training.yaml")
KUBERNETES = """
apiVersion: gcluster/v1
name: lab
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
scheduler: {type: kubernetes, kueue: false}
workloads:
  ddp: {framework: torchrun, nodes: 2, image: "registry.example.edu/train:1", script: train.py}
"""
DONE = JobState(
    id="7",
    state="COMPLETED",
    reason="None",
    exit_code="0:0",
    restarts=0,
    elapsed="00:00:01",
    nodes=1,
    batch_host="gpu001",
    log="",
)


class Queue(JobQueue):
    """A double of Slurm's queue: what it was given is job 7."""

    scripts: ClassVar[list[tuple[str, str | None]]] = []

    def __init__(self, *_: object) -> None:
        """It is reached without a controller."""

    def submit(self, script: str, user: str | None) -> str:
        """Keep it."""
        self.scripts.append((script, user))
        return "7"


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Have jobs queued in the double, and followed by a function."""
    Queue.scripts.clear()

    def put(follow: Any) -> None:
        for name, double in {
            "open_queue": Queue,
            "existing_hosts": lambda _: None,
            "follow_job": follow,
        }.items():
            monkeypatch.setattr(verb, name, double)

    return put


def test_a_dry_run_prints_what_compile_writes_and_queues_nothing(
    run: Callable[..., Any], queued: Callable[[Any], None], tmp_path: Path
) -> None:
    queued(None)
    shown = run("run", TRAINING, "fsdp", "--dry-run")
    run("compile", TRAINING, "--out", str(tmp_path / "out"))
    assert shown.stdout == (tmp_path / "out/workloads/fsdp.sbatch").read_text(encoding="utf-8")
    assert Queue.scripts == []


def test_a_job_is_queued_and_followed_to_its_end(
    run: Callable[..., Any], queued: Callable[[Any], None], spec: Path
) -> None:
    queued(lambda *_, **__: DONE)
    done = run("run", str(spec), "--nodes", "3", "--user", "ada", "--", "python", "train.py")
    assert done.exit_code == 0, done.stderr
    ((script, user),) = Queue.scripts
    assert user == "ada"
    assert "#SBATCH --nodes=3\n" in script
    assert "exec python train.py\n" in script


def test_a_job_that_failed_ends_the_verb_with_1(
    run: Callable[..., Any], queued: Callable[[Any], None], spec: Path
) -> None:
    failed = msgspec.structs.replace(DONE, state="FAILED")
    queued(lambda *_, **__: failed)
    assert run("run", str(spec), "--user", "ada", "--", "false").exit_code == 1


def test_interrupted_it_reports_that_the_job_goes_on_and_suggests_no_second_one(
    run: Callable[..., Any], queued: Callable[[Any], None], spec: Path
) -> None:
    def interrupted(*_: object, **__: object) -> JobState:
        raise KeyboardInterrupt

    queued(interrupted)
    done = run("run", str(spec), "--user", "ada", "--", "sleep", "9")
    assert done.exit_code == 130
    output = done.stdout + done.stderr
    assert f"job 7 goes on   gcluster logs {spec} 7 -f" in output
    assert "run it again" not in output


def test_under_kubernetes_a_dry_run_prints_what_compile_writes(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    spec = tmp_path / "lab.yaml"
    spec.write_text(KUBERNETES, encoding="utf-8")
    shown = run("run", str(spec), "ddp", "--dry-run")
    assert shown.exit_code == 0, shown.stderr
    run("compile", str(spec), "--out", str(tmp_path / "out"))
    written = (tmp_path / "out/workloads/ddp.yaml").read_text(encoding="utf-8")
    assert shown.stdout == written
    assert "kind: Job\n" in written


def _command_of(shown: Any) -> dict[str, Any]:
    assert shown.exit_code == 0, shown.stderr
    job: dict[str, Any] = list(yaml.safe_load_all(shown.stdout))[-1]
    return job


def test_under_kubernetes_a_command_is_a_job_of_its_image_each_by_its_own_name(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    spec = tmp_path / "lab.yaml"
    spec.write_text(KUBERNETES, encoding="utf-8")
    words = ("--nodes", "2", "--image", "a.example/b:1", "--dry-run", "--", "/bin/Train.py", "it's")
    job, other = (_command_of(run("run", str(spec), *words)) for _ in range(2))
    assert job["spec"]["completions"] == 2
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "a.example/b:1"
    assert "exec /bin/Train.py 'it'\"'\"'s'\n" in container["command"][2]
    assert re.fullmatch(r"train-py-[0-9a-f]{6}", job["metadata"]["name"])
    assert job["metadata"]["name"] != other["metadata"]["name"]
    assert job["metadata"]["labels"]["gcluster.local/command"] == "true"


@pytest.mark.parametrize(
    ("accounts", "words", "code", "what"),
    [
        ("{nlp: {}}", (), "GC1216", "--image"),
        ("{nlp: {}, vision: {}}", ("--image", "a.example/b:1"), "GC1216", "--account nlp, vision"),
        ("{nlp: {}}", ("--image", "a.example/b:1", "--nodes", "3"), "GC1202", "the command"),
        ("{nlp: {}}", ("--image", "a.example/b:1", "--account", "x"), "GC515", "the command"),
        ("{nlp: {}}", ("--image", "no image", "--account", "nlp"), "GC0", "no image"),
    ],
)
def test_a_command_is_held_against_the_checks_of_workloads(  # noqa: PLR0917  # of one table
    run: Callable[..., Any],
    tmp_path: Path,
    accounts: str,
    words: tuple[str, ...],
    code: str,
    what: str,
) -> None:
    spec = tmp_path / "lab.yaml"
    text = KUBERNETES.replace("kueue: false", f"kueue: false, accounts: {accounts}")
    text = text.replace("nodes: 2,", "nodes: 2, account: nlp,")
    spec.write_text(text, encoding="utf-8")
    refused = run("run", str(spec), *words, "--dry-run", "--", "true")
    assert refused.exit_code in {Exit.USAGE, Exit.SPEC}, refused.stdout
    assert code in refused.stderr
    assert what in refused.stderr


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("nothing",), "GC1211", "allreduce"),
        ((), "GC1211", "allreduce"),
        (("fsdp", "--nodes", "3"), "GC1216", "after --"),
        (("fsdp", "--", "true"), "GC1216", "leave out one"),
        (("--nodes", "3", "--gpus", "4", "--", "true"), "GC1216", "keep one"),
        (("--time", "soon", "--", "true"), "GC1216", "soon"),
    ],
)
def test_words_that_name_no_job_are_refused(
    run: Callable[..., Any], words: tuple[str, ...], code: str, hint: str
) -> None:
    done = run("run", TRAINING, *words)
    assert done.exit_code == 64, done.stdout
    assert code in done.stderr
    assert hint in done.stderr
