"""What runs on a node before and after each job, with doubles of the node's own programs."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.shell_double import write_double

LIBEXEC = Path(__file__).parents[2] / "roles/slurm/files/libexec"
FIT, UNFIT = '{\n "verdict": "fit"\n}\n', '{\n "verdict": "unfit"\n}\n'
WELL = "printf '0, None\\n1, None\\n'"


class Node:
    """A node whose programs are lines of shell."""

    def __init__(self, folder: Path) -> None:
        """Start with two GPUs that are well, no fabric daemon and no health check."""
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.folder = folder
        self.has("nvidia-smi", WELL)
        self.has("systemctl", "exit 1")

    @property
    def report(self) -> Path:
        """The health check's last report."""
        return self.folder / "report.json"

    def has(self, name: str, script: str) -> None:
        """Install a program."""
        path = self.programs / name
        write_double(path, script)

    def run(self, program: str, **more: str | None) -> subprocess.CompletedProcess[str]:
        """Run a program of the role; variables that are None aren't set."""
        environment = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "GCLUSTER_HEALTH": str(self.programs / "node-health"),
            "GCLUSTER_HEALTH_REPORT": str(self.report),
            "GCLUSTER_SCRATCH_BEGUN": str(self.folder / "begun"),
            "GCLUSTER_SHARED_MEMORY": str(self.folder / "shm"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SLURM_JOB_ID": "7",
            **more,
        }
        given = {name: value for name, value in environment.items() if value is not None}
        return subprocess.run(
            [LIBEXEC / program], env=given, capture_output=True, text=True, check=False
        )


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def looks(node: Node, report: str) -> None:
    """Have a health check that leaves this report, and a mark that it ran."""
    node.has("node-health", f"echo '{report}' > {node.report}; touch {node.folder}/looked")


def test_a_job_starts_on_a_node_that_is_well(node: Node) -> None:
    looks(node, FIT)
    assert node.run("job-prolog.py").returncode == 0
    assert (node.folder / "looked").exists()


def test_programs_are_found_though_slurmd_gives_no_search_path(node: Node) -> None:
    node.has("node-health", f"env > {node.folder}/given; echo '{FIT}' > {node.report}")
    assert node.run("job-prolog.py", PATH=None).returncode == 0
    assert "PATH=/usr/local/sbin:" in (node.folder / "given").read_text()


def test_a_report_of_the_last_minutes_is_accepted(node: Node) -> None:
    looks(node, FIT)
    node.report.write_text(FIT)
    assert node.run("job-prolog.py").returncode == 0
    assert not (node.folder / "looked").exists()


def test_an_old_report_is_not_accepted(node: Node) -> None:
    looks(node, UNFIT)
    node.report.write_text(FIT)
    an_hour_ago = time.time() - 3600
    os.utime(node.report, (an_hour_ago, an_hour_ago))
    assert node.run("job-prolog.py").returncode == 1


def test_no_job_starts_on_a_node_that_is_unfit(node: Node) -> None:
    looks(node, UNFIT)
    done = node.run("job-prolog.py")
    assert (done.returncode, "unfit" in done.stderr) == (1, True)


def test_no_job_starts_when_the_health_check_leaves_no_report(node: Node) -> None:
    node.has("node-health", "echo no disk; exit 1")
    done = node.run("job-prolog.py")
    assert (done.returncode, "no disk" in done.stderr) == (1, True)


@pytest.mark.parametrize("program", ["job-prolog.py", "job-epilog.py"])
def test_a_gpu_that_must_be_reset_keeps_jobs_away(node: Node, program: str) -> None:
    node.has("nvidia-smi", "printf '0, None\\n1, Reset\\n'")
    done = node.run(program)
    assert done.returncode == 1
    assert done.stderr == "GPU 1: the driver asks for Reset\n"


@pytest.mark.parametrize(
    "answer", [WELL, "printf '0, N/A\\n1, [N/A]\\n'", "echo 'Field is not valid'; exit 2"]
)
def test_gpus_that_are_well_or_whose_driver_does_not_report_block_nothing(
    node: Node, answer: str
) -> None:
    node.has("nvidia-smi", answer)
    assert node.run("job-epilog.py").returncode == 0


def test_a_fabric_s_daemon_that_is_down_is_started_first(node: Node) -> None:
    node.has(
        "systemctl",
        f"case $1 in is-active) exit 3 ;; start) touch {node.folder}/started ;; esac",
    )
    assert node.run("job-prolog.py").returncode == 0
    assert (node.folder / "started").exists()


def test_no_job_starts_without_the_fabric_s_daemon(node: Node) -> None:
    node.has("systemctl", 'case "$1" in is-enabled) ;; *) exit 1 ;; esac')
    done = node.run("job-prolog.py")
    assert (done.returncode, "receive daemon" in done.stderr) == (1, True)


def test_a_node_without_gpus_takes_jobs(node: Node) -> None:
    (node.programs / "nvidia-smi").unlink()
    assert node.run("job-epilog.py").returncode == 0


def test_gpus_are_as_they_were_before_the_job(node: Node) -> None:
    node.has("nvidia-smi", f'echo "$*" >> {node.folder}/asked; {WELL}')
    assert node.run("job-epilog.py", SLURM_JOB_GPUS="2,3").returncode == 0
    requested = (node.folder / "asked").read_text().splitlines()
    assert "--id=2,3 --compute-mode=DEFAULT" in requested
    assert "--id=2,3 --reset-gpu-clocks" in requested


def test_a_job_without_gpus_sets_none_back(node: Node) -> None:
    node.has("nvidia-smi", f'echo "$*" >> {node.folder}/asked; {WELL}')
    node.run("job-epilog.py", SLURM_JOB_GPUS=None)
    assert "compute-mode" not in (node.folder / "asked").read_text()


def test_where_gpus_are_cut_into_slices_none_is_set_back(node: Node) -> None:
    node.has("nvidia-smi", f'echo "$*" >> {node.folder}/asked; {WELL}')
    slices = node.folder / "mig-slices.json"
    slices.touch()
    node.run("job-epilog.py", SLURM_JOB_GPUS="9", GCLUSTER_MIG_SLICES=str(slices))
    assert "compute-mode" not in (node.folder / "asked").read_text()


def test_shared_memory_goes_with_its_user_s_last_job_on_the_node(node: Node) -> None:
    user = os.getuid() or 2001  # root's own is never touched
    shm = node.folder / "shm"
    shm.mkdir()
    (shm / "nccl-a").write_text("x")
    os.chown(shm / "nccl-a", user, -1)
    for job in ("7", "8"):
        assert node.run("job-prolog.py", SLURM_JOB_ID=job, SLURM_JOB_UID=str(user)).returncode == 0
    node.run("job-epilog.py", SLURM_JOB_UID=str(user))
    assert (shm / "nccl-a").exists()  # job 8 is still here
    node.run("job-epilog.py", SLURM_JOB_ID="9", SLURM_JOB_UID=str(user + 1))
    assert (shm / "nccl-a").exists()  # another user's
    node.run("job-epilog.py", SLURM_JOB_ID="8", SLURM_JOB_UID=str(user))
    assert list(shm.iterdir()) == []


class Scratch:
    """A node whose jobs have a folder on its disks."""

    def __init__(self, node: Node) -> None:
        """Say the place and make it."""
        self.node = node
        self.place = node.folder / "local"
        self.place.mkdir()
        self.begun = node.folder / "run"
        (node.folder / "scratch.conf").write_text(f"# managed\n{self.place}\n")

    @property
    def jobs(self) -> set[str]:
        """The folders of jobs."""
        return {path.name for path in (self.place / "gcluster-jobs").glob("*")}

    def run(self, program: str, *words: str, job: str = "7") -> subprocess.CompletedProcess[str]:
        """Run a program as slurmd does, but as this user."""
        return subprocess.run(
            **self.call(program, *words, job=job), capture_output=True, text=True, check=False
        )

    def call(self, program: str, *words: str, job: str = "7") -> dict[str, Any]:
        """Return what to run, and in which environment."""
        environment = {
            "PATH": f"{self.node.programs}:{os.environ['PATH']}",
            "GCLUSTER_HEALTH": "/nowhere",
            "GCLUSTER_JOB_SCRATCH": str(self.node.folder / "scratch.conf"),
            "GCLUSTER_SCRATCH_BEGUN": str(self.begun),
            "GCLUSTER_SHARED_MEMORY": "/nowhere",
            "GCLUSTER_SCRATCH_OWNER": str(os.getuid()),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SLURM_JOB_ID": job,
            "SLURM_JOB_UID": str(os.getuid()),
            "SLURM_JOB_GID": str(os.getgid()),
        }
        return {"args": [LIBEXEC / program, *words], "env": environment}


@pytest.fixture
def scratch(node: Node) -> Scratch:
    return Scratch(node)


def test_a_job_s_folder_is_its_user_s_alone_and_goes_with_the_job(scratch: Scratch) -> None:
    assert scratch.run("job-prolog.py").returncode == 0
    (folder,) = (scratch.place / "gcluster-jobs").iterdir()
    assert (folder.name, folder.stat().st_mode & 0o777) == ("7", 0o700)
    (folder / "data").write_text("x")
    assert scratch.run("job-epilog.py").returncode == 0
    assert scratch.jobs == set()


def test_tasks_learn_of_it(scratch: Scratch) -> None:
    assert scratch.run("task-prolog.sh").stdout == ""
    scratch.run("job-prolog.py")
    folder = scratch.place / "gcluster-jobs/7"
    assert scratch.run("task-prolog.sh").stdout.splitlines() == [
        f"export TMPDIR={folder}",
        f"export JOB_SCRATCH={folder}",
    ]


def test_what_a_job_left_on_a_node_that_went_down_is_swept_before_the_next(
    scratch: Scratch,
) -> None:
    scratch.run("job-prolog.py", job="5")
    (scratch.begun / "5").unlink()  # as a start of the node empties /run
    assert scratch.run("job-prolog.py").returncode == 0
    assert scratch.jobs == {"7"}


def test_a_job_keeps_its_folder_while_its_prolog_is_still_at_work(scratch: Scratch) -> None:
    began = scratch.node.folder / "began"
    scratch.node.has(
        "systemctl",
        f"touch {began}; while [ -e {began} ]; do sleep 0.05; done; exit 1",
    )
    with subprocess.Popen(**scratch.call("job-prolog.py", job="6")) as first:
        while not began.exists():
            assert first.poll() is None
            time.sleep(0.01)
        scratch.node.has("systemctl", "exit 1")
        assert scratch.run("job-prolog.py").returncode == 0
        began.unlink()
    assert scratch.jobs == {"6", "7"}


def test_no_mark_of_a_job_stays_behind(scratch: Scratch) -> None:
    scratch.run("job-prolog.py")
    assert [mark.name for mark in scratch.begun.iterdir()] == ["7"]
    scratch.run("job-epilog.py")
    assert list(scratch.begun.iterdir()) == []


def test_no_job_starts_without_the_disk_that_it_requested(scratch: Scratch) -> None:
    scratch.place.rmdir()
    done = scratch.run("job-prolog.py")
    assert (done.returncode, "is not there" in done.stderr) == (1, True)


def test_a_link_that_was_laid_by_others_is_not_followed(scratch: Scratch) -> None:
    elsewhere = scratch.node.folder / "elsewhere"
    elsewhere.mkdir()
    (scratch.place / "gcluster-jobs").symlink_to(elsewhere)
    done = scratch.run("job-prolog.py")
    assert (done.returncode, "not root's own folder" in done.stderr) == (1, True)
    assert list(elsewhere.iterdir()) == []


def test_without_a_place_there_is_no_scratch(scratch: Scratch) -> None:
    (scratch.node.folder / "scratch.conf").write_text("# managed\n\n")
    assert scratch.run("job-prolog.py").returncode == 0
    assert list(scratch.place.iterdir()) == []


def test_a_job_is_given_what_it_does_not_set_itself(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "nccl").write_text("# head\nNCCL_A=1;2,3\nNCCL_B=x\nLD_LIBRARY_PATH+=/plugin\n")
    text = (LIBEXEC.parents[2] / "nccl/files/libexec/job-environment.sh").read_text()
    script = text.replace("/etc/gcluster/job-environment.d", str(given))

    ran = subprocess.run(
        ["sh", "-c", script],
        env={"PATH": os.environ["PATH"], "NCCL_B": "mine", "LD_LIBRARY_PATH": "/mine"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.splitlines() == [
        "export NCCL_A=1;2,3",
        "export LD_LIBRARY_PATH=/plugin:/mine",
    ]


def test_jobs_get_the_rails_and_the_interface_that_the_node_has_and_else_the_list(
    node: Node,
) -> None:
    given = node.folder / "job-environment.d"
    given.mkdir()
    (given / "nccl").write_text(
        "NCCL_IB_HCA=@rails =mlx5_7\nNCCL_SOCKET_IFNAME=@interface ^docker,lo\nUCX=@rails\n"
    )
    rails = node.folder / "rails"
    program = Path(__file__).parents[2] / "roles/nccl/files/libexec/job-environment.sh"

    def exports() -> list[str]:
        where = {"GCLUSTER_JOB_ENVIRONMENT": str(given), "GCLUSTER_RAILS": str(rails)}
        path = {"PATH": f"{node.programs}:{os.environ['PATH']}"}
        output = subprocess.check_output(["sh", program], env=where | path, text=True)
        return [line.removeprefix("export ") for line in output.splitlines()]

    node.has("ip", "exit 2")
    assert exports() == ["NCCL_IB_HCA==mlx5_7", "NCCL_SOCKET_IFNAME=^docker,lo"]
    rails.write_text("mlx5_0\nmlx5_10\n")
    node.has("ip", "echo '192.0.2.1 via 10.0.0.1 dev bond0 src 10.0.0.5 uid 0 \\    cache'")
    assert exports() == [
        "NCCL_IB_HCA==mlx5_0,mlx5_10",
        "NCCL_SOCKET_IFNAME==bond0",
        "UCX==mlx5_0,mlx5_10",
    ]
