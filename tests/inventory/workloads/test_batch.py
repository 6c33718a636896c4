"""Workloads become scripts for sbatch: as reviewed, and as bash, sbatch and torchrun take them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.golden_files import GoldenFiles

from gcluster.inventory.workloads import batch_scripts
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load, load_text

CASES = Path(__file__).parents[2] / "cases" / "workloads"
SBATCH = frozenset(
    [
        "account",
        "chdir",
        "comment",
        "cpus-per-task",
        "exclusive",
        "gpus-per-node",
        "job-name",
        "mem",
        "no-kill",
        "nodes",
        "ntasks-per-node",
        "open-mode",
        "output",
        "partition",
        "qos",
        "requeue",
        "signal",
        "time",
    ]
)
"""Options that this compiler may write, each in sbatch(1) of Slurm 24.11."""
TORCHRUN = frozenset(
    [
        "nnodes",
        "nproc-per-node",
        "max-restarts",
        "rdzv-id",
        "rdzv-backend",
        "rdzv-endpoint",
        "rdzv-conf",
        "local-addr",
        "no-python",
    ]
)
"""Options of torch/distributed/run.py, PyTorch 2.6."""


@pytest.fixture(scope="module")
def scripts(root: Path) -> Mapping[str, str]:
    """Return the scripts of the example, by the workloads' names."""
    spec = load(root / "examples" / "training.yaml").spec
    assert spec is not None
    return batch_scripts(spec, load_catalog())


@pytest.mark.parametrize("name", ["fsdp", "gpt", "shrinks", "allreduce"])
def test_a_script_is_as_it_was_reviewed(
    name: str, scripts: Mapping[str, str], golden: GoldenFiles
) -> None:
    golden.check(CASES / f"{name}.sbatch", scripts[name])


def test_bash_reads_each_script_and_shellcheck_finds_nothing(
    scripts: Mapping[str, str], tmp_path: Path
) -> None:
    files = []
    for name, text in scripts.items():
        files.append(tmp_path / f"{name}.sh")
        files[-1].write_text(text, encoding="utf-8")
    checker = shutil.which("shellcheck")
    words = [checker] if checker else ["bash", "-n"]
    found = subprocess.run([*words, *files], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


def test_every_option_is_one_that_sbatch_or_torchrun_has(scripts: Mapping[str, str]) -> None:
    requested, given = set(), set()
    for text in scripts.values():
        lines = [line.strip() for line in text.splitlines()]
        requested |= {
            line[10:].partition("=")[0] for line in lines if line.startswith("#SBATCH --")
        }
        if "exec torchrun \\" in lines:
            start = lines.index("exec torchrun \\") + 1
            stop = next(i for i in range(start, len(lines)) if not lines[i].startswith("--"))
            given |= {line[2:].rstrip(" \\").partition("=")[0] for line in lines[start:stop]}

    assert requested <= SBATCH
    assert given <= TORCHRUN
    assert {"signal", "requeue", "no-kill", "cpus-per-task"} <= requested


COMMAND = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
scheduler: {type: slurm}
workloads:
  words:
    framework: command
    nodes: 1
    variables: {WORD: "it's $HOME"}
    command: %s
"""


def test_words_of_a_command_reach_the_program_as_they_are() -> None:
    words = ["a b", "it's", "$HOME", "`id`", '"', "NODE", "-x", "*", "\\"]
    spec = load_text(COMMAND % json.dumps(["printf", "%s\\n", *words])).spec
    assert spec is not None
    script = batch_scripts(spec, load_catalog())["words"]
    doubles = """\
srun() { for last; do :; done; bash -c "$last"; }
scontrol() { echo "NodeName=gpu001 NodeAddr=10.0.0.1 x"; }
export SLURM_JOB_ID=7 SLURMD_NODENAME=gpu001 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=1
"""
    found = subprocess.run(
        ["bash", "-c", doubles + script + 'echo "$WORD"'],
        capture_output=True,
        text=True,
        check=True,
    )

    assert found.stdout.splitlines() == words
    assert "export WORD='it'\"'\"'s $HOME'" in script


NOTICED = """\
apiVersion: gcluster/v1
name: lab
sites: {campus: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: campus, role: controller, hosts: mgmt01}
  train: {site: campus, machine: dgx-h100, hosts: "dgx[101-104]"}
storage: {scratch: {type: nfs, mount: /scratch, server: 10.0.0.9}}
scheduler: {type: slurm}
workloads:
  noticed:
    framework: command
    nodes: 1
    command: ["true"]
    checkpoint: {to: scratch, every: 15m}
"""
PROGRAMS = {
    "with 0": ("trap '(sleep 0.2); exit 0' USR1", "requeue 7"),
    "after saving": ("trap 'echo x >$GCLUSTER_CHECKPOINTS/step-1; exit 0' USR1", "requeue 7"),
    "with an error": ("trap 'exit 3' USR1", "requeue 7"),
    "gives way": ("trap 'echo x >$GCLUSTER_CHECKPOINTS/step-1; exit 0' USR1", "queued again"),
}
"""How a program ends after the notice -> the program, and the last line of the script."""


@pytest.mark.parametrize("case", PROGRAMS)
def test_a_job_whose_program_ends_during_the_notice_is_queued_again(
    case: str, tmp_path: Path
) -> None:
    """With 0 too: it may have saved before, and one that was done ends at once when it resumes."""
    program, last = PROGRAMS[case]
    spec = load_text(NOTICED).spec
    assert spec is not None
    script = batch_scripts(spec, load_catalog())["noticed"]
    doubles = f"""\
srun() {{ exec bash -c "{program}"'; kill -USR1 '$$'; while :; do sleep 0.05; done'; }}
scontrol() {{
  echo "$*" {"PreemptTime=2026-11-28T10:00:00" if case == "gives way" else "PreemptTime=None"}
  [ "$1" != requeue ] || kill -9 $$
}}
open() {{ mkdir -p "$2"; }}
export SLURM_JOB_ID=7 SLURMD_NODENAME=gpu001
"""
    for own, other in {
        '"$checkpoint" open': "open x",
        "checkpoint=/usr/local/libexec/gcluster/job-checkpoint.py": "checkpoint=true",
        "/scratch": str(tmp_path),
    }.items():
        script = script.replace(own, other)

    found = subprocess.run(
        ["bash", "-c", doubles + script], capture_output=True, text=True, timeout=20, check=False
    )

    words = found.stdout.replace(" PreemptTime=None", "").splitlines()
    assert words[-1].endswith(last), found
