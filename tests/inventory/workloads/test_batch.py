"""Workloads become scripts for sbatch: as reviewed, and as bash, sbatch and torchrun take them."""

from __future__ import annotations

import json
import os
import shlex
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
ROLE = Path(__file__).parents[3] / "roles/slurm/files"
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


def test_words_of_a_command_reach_the_program_as_they_are(tmp_path: Path) -> None:
    words = ["a b", "it's", "$HOME", "`id`", '"', "NODE", "-x", "*", "\\"]
    spec = load_text(COMMAND % json.dumps(["printf", "%s\\n", *words])).spec
    assert spec is not None
    script = batch_scripts(spec, load_catalog())["words"]
    found = run_script(script, tmp_path, srun='echo "$WORD"; exec bash -c "$last"')

    printed = [line for line in found.stdout.splitlines() if not line.startswith("gcluster:")]
    assert printed == ["it's $HOME", *words]
    assert "export WORD='it'\"'\"'s $HOME'" in script


def run_script(
    script: str, folder: Path, *, srun: str, preempted: str = "None"
) -> subprocess.CompletedProcess[str]:
    """Run a script with the programs of the nodes and doubles of Slurm's commands.

    Args:
        script: what sbatch would read.
        folder: empty; it takes the place of /scratch too.
        srun: lines of the double; $last is the program that srun starts.
        preempted: when the job gave way.
    """
    programs = folder / "gcluster"
    programs.mkdir()
    shutil.copytree(ROLE / "job_launch", programs / "job_launch")
    (programs / "job-checkpoint.py").symlink_to(ROLE / "libexec/job-checkpoint.py")
    doubles = {
        "srun": f"for last; do :; done; {srun}",
        "scontrol": 'case "$1 $2" in '
        "'show hostnames') echo gpu001;; 'show config') ;; "
        "'show node') echo NodeName=gpu001 NodeAddr=10.0.0.1 x;; "
        f"'show job') echo PreemptTime={preempted};; "
        '*) echo "$*" >&2; [ "$1" != requeue ] || kill -9 $PPID;; esac',
        "squeue": "case $* in *%T*) ;; *) echo gpu001;; esac",
        "sinfo": "echo gpu001 allocated",
        "scancel": "true",
    }
    for name, text in doubles.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    script = script.replace("/usr/local/libexec/gcluster", str(programs))
    return subprocess.run(
        ["bash", "-c", script.replace("/scratch", str(folder))],
        env={
            "PATH": f"{folder}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "7",
            "SLURMD_NODENAME": "gpu001",
            "SLURM_JOB_NODELIST": "gpu001",
            "SLURM_PROCID": "0",
            "SLURM_LOCALID": "0",
            "SLURM_NTASKS": "1",
        },
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


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
    "with 0": "trap '(sleep 0.2); exit 0' USR1",
    "after saving": "trap 'echo x >$GCLUSTER_CHECKPOINTS/step-1; exit 0' USR1",
    "with an error": "trap 'exit 3' USR1",
    "gives way": "trap 'echo x >$GCLUSTER_CHECKPOINTS/step-1; exit 0' USR1",
}
"""How a program ends after the notice -> the program."""


@pytest.mark.parametrize("case", PROGRAMS)
def test_a_job_whose_program_ends_during_the_notice_is_queued_again(
    case: str, tmp_path: Path
) -> None:
    """With 0 too: it may have saved before, and one that was done ends at once when it resumes."""
    spec = load_text(NOTICED).spec
    assert spec is not None
    script = batch_scripts(spec, load_catalog())["noticed"]
    found = run_script(
        script,
        tmp_path,
        srun=f"{PROGRAMS[case]}; kill -USR1 $PPID; while :; do sleep 0.05; done",
        preempted="2026-11-28T10:00:00" if case == "gives way" else "None",
    )

    assert found.stdout.splitlines()[-1] == "gcluster: queued again", found
    assert found.stderr == ("" if case == "gives way" else "requeue 7\n")


def test_megatron_saves_while_it_trains_where_that_is_requested(root: Path) -> None:
    text = (root / "examples/training.yaml").read_text(encoding="utf-8")
    before, after = text.split("  gpt:\n")
    after = after.replace("every: 15m}", "every: 15m, async: true}", 1)
    spec = load_text(f"{before}  gpt:\n{after}").spec
    assert spec is not None
    scripts = batch_scripts(spec, load_catalog())
    assert [name for name, script in scripts.items() if "--async-save" in script] == ["gpt"]


@pytest.mark.parametrize(
    ("gate", "options"),
    [
        ("allreduce", ["--gate=120"]),
        ("{before: allreduce}", ["--gate=120"]),
        ("{after: allreduce}", ["--gate-after=120"]),
        ("{before: allreduce, after: allreduce}", ["--gate=120", "--gate-after=120"]),
    ],
)
def test_a_gate_is_before_a_job_or_after_it_as_written(gate: str, options: list[str]) -> None:
    written = COMMAND.replace("count: 2", "count: 4").replace("nodes: 1", f"nodes: 4, gate: {gate}")
    written = written.replace("nodes: 4, gate", "nodes: 4\n    gate")
    spec = load_text(written % '["true"]').spec
    assert spec is not None
    script = batch_scripts(spec, load_catalog())["words"]
    assert [word for word in script.split() if word.startswith("--gate")] == options


FOLDERS = (
    "/work/llm:/work/llm,/scratch:/scratch,/usr/local/libexec/gcluster:/usr/local/libexec/gcluster"
    ":ro,/opt/data:/opt/data,/local:/local"
)
APPTAINER = ("apptainer", "exec", "--nv", "--rocm", "--bind", "--cwd")
"""What may start a container of Apptainer: its cmd/internal/cli/action_flags.go at 00e9b038."""


@pytest.mark.parametrize("machine", ["dgx-h100", "mi300x-8"])
def test_a_workload_with_a_sif_runs_in_apptainer_with_its_folders(machine: str) -> None:
    written = NOTICED.replace("dgx-h100", machine).replace(
        "    nodes: 1\n",
        "    nodes: 1\n    chdir: /work/llm\n    sif: /scratch/train.sif\n"
        "    mounts: [/opt/data]\n",
    )
    written = written.replace("{type: slurm}", "{type: slurm, job_scratch: /local}")
    spec = load_text(written).spec
    assert spec is not None
    script = batch_scripts(spec, load_catalog())["noticed"]
    start = script.index("  apptainer exec ")
    words = shlex.split(script[start:].replace("\\\n", " "))
    assert words[:7] == [
        "apptainer",
        "exec",
        "--nv" if machine == "dgx-h100" else "--rocm",
        f"--bind={FOLDERS}",
        "--cwd=/work/llm",
        "/scratch/train.sif",
        "bash",
    ]
    assert {word.partition("=")[0] for word in words[:5]} <= set(APPTAINER)
    assert "--container-image" not in script


SAVES = (
    'folder=$GCLUSTER_CHECKPOINTS_LOCAL/step-1; mkdir "$folder"; echo x >"$folder/model"; '
    '/usr/local/libexec/gcluster/job_launch/parts.py send "$folder"; exit %d'
)


@pytest.mark.parametrize("code", [0, 3])
def test_what_is_on_a_node_s_own_disks_is_moved_before_its_program_ends(
    code: int, tmp_path: Path
) -> None:
    written = NOTICED.replace('["true"]', json.dumps(["sh", "-c", SAVES % code]))
    written = written.replace("{type: slurm}", "{type: slurm, job_scratch: /local}")
    written = written.replace("every: 15m}", "every: 15m, local_first: true}")
    spec = load_text(written).spec
    assert spec is not None
    script = batch_scripts(spec, load_catalog())["noticed"]
    found = run_script(
        script, tmp_path, srun=f'export JOB_SCRATCH="{tmp_path}/disk"; exec bash -c "$last"'
    )

    assert found.returncode == code, found
    assert "gcluster: step-1 is complete in " in found.stdout
    saved = tmp_path / "checkpoints" / "noticed" / "step-1"
    assert (saved / "model").read_text() == "x\n"
    assert (saved / "MANIFEST.json").exists()
    assert list((tmp_path / "disk" / "checkpoints").glob("step-*")) == []
