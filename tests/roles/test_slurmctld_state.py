"""What slurmctld keeps is carried whole, or not at all, and never replaced by what is older."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.shell_double import write_double

PROGRAM = Path(__file__).parents[2] / "roles/slurm/files/libexec/slurmctld-state.py"


class Controller:
    """A controller that keeps its queue in a folder; systemd and mounts are lines of shell."""

    def __init__(self, folder: Path) -> None:
        """Make one whose own disk has a queue, and a shared folder without one."""
        self.folder = folder
        self.own, self.shared = folder / "own", folder / "shared"
        # Outside of what is kept there: tar would read its own archive.
        self.kept = folder.with_name(f"{folder.name}-kept")
        for place in (self.own, self.shared):
            place.mkdir()
        (self.own / "hash.1").mkdir()
        (self.own / "hash.1/job.11").write_text("script")
        (self.own / "job_state").write_text("early")
        self.has("systemctl", f'echo "$*" >> {folder}/log')
        self.has("findmnt", f"echo {folder}")
        self.keeps(self.own)

    def has(self, name: str, script: str) -> None:
        """Install a program."""
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        write_double(path, script)

    def keeps(self, place: Path) -> None:
        """Write slurm.conf, as the role does once the queue is carried."""
        (self.folder / "slurm.conf").write_text(f"StateSaveLocation={place}\n")

    def run(
        self, *words: str | Path, program: Path = PROGRAM, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the program."""
        environment = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "GCLUSTER_SLURM_CONF": str(self.folder / "slurm.conf"),
            "GCLUSTER_SLURMCTLD_SEEN": str(self.folder / "seen"),
            "GCLUSTER_SLURMCTLD_BACKUPS": str(self.kept),
            **more,
        }
        return subprocess.run(
            [program, *words], env=environment, capture_output=True, text=True, check=False
        )

    def log(self) -> list[str]:
        """Return systemctl's calls, and clear them."""
        log = self.folder / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path)


def test_a_queue_that_comes_back_is_the_one_that_went_on(controller: Controller) -> None:
    assert controller.run("move", controller.shared).returncode == 0
    controller.keeps(controller.shared)
    (controller.shared / "job_state").write_text("late")
    (controller.shared / "hash.1/job.11").unlink()

    back = controller.run("move", controller.own)

    assert back.stdout.startswith("carried the queue")
    assert (controller.own / "job_state").read_text() == "late"
    assert not (controller.own / "hash.1/job.11").exists()
    controller.keeps(controller.own)
    assert controller.run("move", controller.own).stdout == ""


def test_an_outlived_queue_is_not_taken_up_where_the_shared_one_is_away(
    controller: Controller,
) -> None:
    controller.run("move", controller.shared)
    controller.keeps(controller.folder / "unmounted")
    refused = controller.run("move", controller.own)
    assert (refused.returncode, "has the one of before" in refused.stderr) == (1, True)
    assert (controller.own / "job_state").read_text() == "early"


def test_a_saved_queue_takes_its_cluster_id_from_the_database(controller: Controller) -> None:
    """The database of a new controller has another: slurmctld would refuse to start."""
    (controller.own / "clustername").write_text("demo|500")
    saved = controller.folder / "seed.tar.gz"
    subprocess.run(["tar", "-czf", saved, "-C", controller.own, "."], check=True)
    text = PROGRAM.read_text().replace("/var/lib/gcluster/slurm-state.tar.gz", str(saved))
    program = controller.folder / "bin/slurmctld-state.py"
    program.write_text(text)
    program.chmod(0o755)
    controller.has("chown", "true")
    controller.keeps(controller.shared)
    with (controller.folder / "slurm.conf").open("a") as conf:
        conf.write("AccountingStorageType=accounting_storage/slurmdbd\n")
    controller.run("take", program=program)
    assert (controller.shared / "job_state").read_text() == "early"
    assert (controller.shared / "clustername").read_text().strip() == "demo"


def test_a_queue_that_is_there_already_stays(controller: Controller) -> None:
    (controller.shared / "job_state").write_text("another controller's")
    assert controller.run("move", controller.shared).stdout == ""
    assert (controller.shared / "job_state").read_text() == "another controller's"
    assert controller.log() == []


def test_a_copy_that_was_cut_off_is_recreated(controller: Controller) -> None:
    (controller.shared / "hash.1").mkdir()
    (controller.shared / "hash.1/job.11").write_text("scr")
    assert controller.run("move", controller.shared).returncode == 0
    assert (controller.shared / "hash.1/job.11").read_text() == "script"
    assert (controller.shared / "job_state").read_text() == "early"


def test_a_copy_that_fails_leaves_slurmctld_at_work_on_what_it_had(controller: Controller) -> None:
    controller.has("cp", "echo no space left >&2; exit 1")
    assert controller.run("move", controller.shared).returncode == 1
    assert controller.log() == ["stop slurmctld", "start slurmctld"]
    assert not (controller.shared / "job_state").exists()


def test_nothing_is_carried_to_a_file_system_that_is_not_there(controller: Controller) -> None:
    controller.has("findmnt", "echo /")
    refused = controller.run("move", controller.shared, controller.folder)
    assert (refused.returncode, "is not on" in refused.stderr) == (1, True)
    assert controller.log() == []
    controller.has("findmnt", f"echo {controller.folder}")
    assert controller.run("move", controller.shared, controller.folder).returncode == 0


def test_a_state_that_can_t_be_read_whole_is_not_given_out_as_one(controller: Controller) -> None:
    controller.has("tar", "echo archive; echo 'job_state: Input/output error' >&2; exit 2")
    broken = controller.run("save")
    assert (broken.returncode, "could not be read whole" in broken.stderr) == (1, True)
    assert controller.log() == ["is-active --quiet slurmctld", "stop slurmctld", "start slurmctld"]


def test_a_second_controller_starts_once_the_first_has_named_the_cluster(
    controller: Controller,
) -> None:
    named = controller.shared / "clustername"
    (controller.folder / "slurm.conf").write_text(
        f"SlurmctldHost=head01(10.0.0.1)\nSlurmctldHost=head02(10.0.0.2)\n"
        f"StateSaveLocation={controller.shared}\n"
    )
    controller.has("findmnt", f"echo {controller.folder}; touch {controller.folder}/began")

    def first_controller() -> None:
        while not (controller.folder / "began").exists():
            time.sleep(0.01)
        named.write_text("cluster|500")

    first = threading.Thread(target=first_controller)
    first.start()
    second = controller.run("check", controller.folder)
    first.join()
    assert (second.returncode, second.stderr) == (0, "")
    assert named.exists()


@pytest.mark.parametrize("first", ["head01", socket.gethostname().partition(".")[0]])
def test_a_controller_begins_alone_where_it_is_the_first_or_that_one_never_comes(
    controller: Controller, first: str
) -> None:
    conf = controller.folder / "slurm.conf"
    conf.write_text(f"SlurmctldHost={first}\nStateSaveLocation={controller.shared}\n")

    alone = controller.run("check", controller.folder, GCLUSTER_SLURM_NAME_LIMIT="0")
    assert alone.returncode == 0
    assert ("head01 has not named the cluster" in alone.stderr) == (first == "head01")


def test_what_another_version_would_write_again_is_kept_before_its_first_start(
    controller: Controller,
) -> None:
    kept = controller.kept
    (controller.own / "job_state").unlink()
    controller.has("slurmctld", "echo slurm-wlm 24.11.5")
    assert controller.run("before-upgrade").returncode == 0
    assert not kept.exists(), "there is no queue yet"
    (controller.own / "job_state").write_text("of 24.11")
    assert controller.run("before-upgrade").returncode == 0
    assert not kept.exists(), "it is the same version"

    controller.has("slurmctld", "echo slurm 25.11.8")
    done = controller.run("before-upgrade")

    assert (done.returncode, done.stderr) == (0, "")
    (archive,) = kept.iterdir()
    assert archive.name.startswith("24.11.5-")
    assert archive.name.endswith("-before-25.11.8.tar.gz")
    listed = subprocess.run(
        ["tar", "-tzf", archive], capture_output=True, text=True, check=True
    ).stdout
    assert "own/job_state" in listed
    assert "slurm.conf" in listed
    assert controller.run("before-upgrade").returncode == 0
    assert len(list(kept.iterdir())) == 1
