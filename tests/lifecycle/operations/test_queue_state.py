"""A queue is saved whole, encrypted, and given back only where no job is lost by it.

The program of role slurm that does it on the controller runs here, with folders of its own and a
systemctl that writes down its calls.
"""

from __future__ import annotations

import base64
import gzip
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.lifecycle.controller import HEAD
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.nodes.ssh import Answer, SshResult, SshSession, Unreachable
from gcluster.lifecycle.operations import queue_state
from gcluster.lifecycle.operations.etcd_state import saved_objects
from gcluster.lifecycle.operations.queue_state import (
    WISH,
    bring_queue,
    restore_queue,
    save_queue,
    saved_queues,
)
from gcluster.lifecycle.status.conditions import QueueStatus
from gcluster.lifecycle.status.slurm import SchedulerReport, SchedulerView

PROGRAM = Path(__file__).parents[3] / "roles" / "slurm" / "files" / "libexec" / "slurmctld-state.py"
HOSTS = ClusterInventory(cluster="trial", hosts=(HEAD,))
NOBODY = ClusterInventory(cluster="trial", hosts=())
SYSTEMCTL = """\
echo "$*" >> {here}/log
case $1 in
  is-active) [ -f {here}/runs ] ;;
  stop) rm -f {here}/runs ;;
  start)
    [ ! -f {here}/broken ] || [ ! -d {here}/state.before ] || exit 1
    {program} take && touch {here}/runs ;;
esac"""
DUMP = base64.b64encode(gzip.compress(b"-- MariaDB dump 10.20")).decode()
DATABASE = """\
echo "$1" >> {here}/database
case $1 in
  print) echo '{dump}' ;;
  replace) rm {here}/lib/slurmdbd-replacement.sql.gz ;;
esac"""
"""The double of the program of role slurmdbd: it writes down its calls."""
ACCOUNTS = "scheduler: {type: slurm, accounts: {nlp: {share: 60}}}"


class Controller(SshSession):
    """A controller in a folder: its state, its programs, and whether it can be reached."""

    def __init__(self, here: Path, slurm: str = "24.11.5") -> None:
        """Make one whose slurmctld runs with an empty state."""
        here.mkdir()
        super().__init__(here)
        self.here, self.off = here, False
        self.jobs: tuple[int, int] | None = (0, 0)
        self.state = here / "state"
        self.state.mkdir()
        (here / "slurm.conf").write_text(f"StateSaveLocation={self.state}\n")
        (here / "runs").touch()
        (here / "bin").mkdir()
        self._write("slurmctld-state.py", PROGRAM.read_text())
        self._program(
            "systemctl", SYSTEMCTL.format(here=here, program=here / "bin/slurmctld-state.py")
        )
        self._program("slurmctld", f"echo slurm-wlm {slurm}")
        self._program("scontrol", "echo Slurmctld is UP")
        self._program("chown", ":")
        self._program("sudo", 'shift; exec "$@"')

    def has_database(self) -> None:
        """Install the double of what dumps and replaces the accounting database."""
        self._program("slurmdbd-restore.py", DATABASE.format(here=self.here, dump=DUMP))

    def database_calls(self) -> list[str]:
        """Return its calls."""
        return (self.here / "database").read_text().split()

    def _program(self, name: str, text: str) -> None:
        self._write(name, f"#!/bin/sh\n{text}\n")

    def _write(self, name: str, text: str) -> None:
        path = self.here / "bin" / name
        path.write_text(self._own(text))
        path.chmod(0o755)

    def _own(self, text: str) -> str:
        return (
            text.replace("/var/lib/gcluster", str(self.here / "lib"))
            .replace("/etc/slurm/slurm.conf", str(self.here / "slurm.conf"))
            .replace("/usr/local/libexec/gcluster/", f"{self.here}/bin/")
        )

    def holds(self, **files: str) -> None:
        """Write files of slurmctld's state."""
        for name, content in files.items():
            (self.state / name).write_text(content)

    def held(self) -> dict[str, str]:
        """Return the files of the state."""
        return {path.name: path.read_text() for path in self.state.iterdir()}

    def log(self) -> list[str]:
        """Return systemctl's calls."""
        return (self.here / "log").read_text().splitlines()

    def run(
        self, host: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Answer:
        """Run a command here."""
        assert host == HEAD
        if self.off:
            return Unreachable(reason="no route to host")
        environment = os.environ | {"PATH": f"{self.here}/bin:{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", "-c", self._own(command)],
            input=stdin or "", capture_output=True, text=True, env=environment,
            timeout=timeout_s, check=False,
        )  # fmt: skip
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


@pytest.fixture
def cluster(sample: SampleCluster) -> Any:
    """Give a cluster with a state."""
    cluster = sample.open()
    cluster.identify()
    return cluster


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    """Give a controller with 8 running and 200 pending jobs."""
    controller = Controller(tmp_path / "head")
    controller.holds(clustername="trial", job_state="208 jobs", heartbeat="now")
    controller.jobs = (8, 200)

    def report(session: Controller, _: Host) -> SchedulerReport:
        if session.jobs is None:
            return SchedulerReport(view=SchedulerView(problem="slurmctld does not answer"))
        running, pending = session.jobs
        queue = QueueStatus(running=running, pending=pending)
        return SchedulerReport(view=SchedulerView(queue=queue))

    monkeypatch.setattr(queue_state, "report_of", report)
    return controller


def test_a_queue_is_saved_while_slurmctld_is_stopped(
    cluster: Any, controller: Controller, sample: SampleCluster
) -> None:
    saved = save_queue(cluster, HOSTS, controller)
    assert (saved.running, saved.pending, saved.slurm) == (8, 200, "24.11")
    assert controller.log() == ["is-active --quiet slurmctld", "stop slurmctld", "start slurmctld"]
    assert saved_queues(cluster) == (saved,)
    stored = [path.read_bytes() for path in sample.state.rglob("*") if path.is_file()]
    assert not any(b"208 jobs" in content for content in stored)


def test_a_controller_that_fails_half_way_runs_again(cluster: Any, controller: Controller) -> None:
    controller._program("tar", "exit 2")  # noqa: SLF001  # a disk that fails
    with pytest.raises(LifecycleError) as caught:
        save_queue(cluster, HOSTS, controller)
    assert caught.value.diagnostics[0].code == "GC969"
    assert controller.log()[-1] == "start slurmctld"
    assert saved_queues(cluster) == ()


def test_a_new_controller_begins_with_the_queue_before_slurmctld_starts(
    cluster: Any, controller: Controller, tmp_path: Path
) -> None:
    save_queue(cluster, HOSTS, controller)
    result = restore_queue(cluster, NOBODY, controller, None)
    assert not result.restored
    new = Controller(tmp_path / "new")
    (new.here / "runs").unlink()
    bring_queue(cluster, HOSTS, new, silent)
    assert new.held() == {}
    assert cluster.store.get(WISH) is None
    new.run(HEAD, "systemctl start slurmctld")
    assert new.held() == {"clustername": "trial", "job_state": "208 jobs"}
    assert not (new.here / "lib" / "slurm-state.tar.gz").exists()


def test_a_controller_that_comes_back_with_its_own_queue_keeps_it(
    cluster: Any, controller: Controller
) -> None:
    save_queue(cluster, HOSTS, controller)
    controller.off = True
    assert not restore_queue(cluster, HOSTS, controller, None).restored
    controller.off = False
    controller.holds(job_state="a newer queue")
    bring_queue(cluster, HOSTS, controller, silent)
    controller.run(HEAD, "systemctl start slurmctld")
    assert controller.held()["job_state"] == "a newer queue"


def test_jobs_are_never_lost_unasked(cluster: Any, controller: Controller) -> None:
    save_queue(cluster, HOSTS, controller)
    with pytest.raises(LifecycleError, match="8 running and 200 pending") as caught:
        restore_queue(cluster, HOSTS, controller, None)
    assert caught.value.exit_code is Exit.REFUSED


def test_jobs_that_are_not_counted_are_not_lost_unasked_and_not_reported_as_none(
    cluster: Any, controller: Controller
) -> None:
    controller.jobs = None
    saved = save_queue(cluster, HOSTS, controller)
    assert (saved.running, saved.pending) == (None, None)
    controller.holds(job_state="another queue")
    with pytest.raises(LifecycleError, match="slurmctld does not answer: jobs") as caught:
        restore_queue(cluster, HOSTS, controller, None)
    assert caught.value.exit_code is Exit.REFUSED
    assert controller.held()["job_state"] == "another queue"


def test_a_running_controller_restores_the_queue_and_the_old_one_is_kept_next_to_it(
    cluster: Any, controller: Controller
) -> None:
    save_queue(cluster, HOSTS, controller)
    controller.holds(job_state="another queue")
    result = restore_queue(cluster, HOSTS, controller, None, discard=True)
    assert result.restored
    assert controller.held()["job_state"] == "208 jobs"
    before = controller.here / "state.before" / "job_state"
    assert before.read_text() == "another queue"


def test_a_restore_that_fails_leaves_queue_and_accounts_as_they_were(
    cluster: Any, controller: Controller
) -> None:
    save_queue(cluster, HOSTS, controller)
    controller.has_database()
    controller.holds(job_state="another queue")
    (controller.here / "broken").touch()
    with pytest.raises(LifecycleError, match="everything is as it was before"):
        restore_queue(cluster, HOSTS, controller, None, discard=True)
    assert controller.held()["job_state"] == "another queue"
    assert controller.log()[-1] == "start slurmctld"
    assert controller.database_calls() == ["undo"]


def test_accounts_are_saved_and_replaced_with_the_queue(
    sample: SampleCluster, controller: Controller
) -> None:
    sample.path.write_text(sample.path.read_text().replace("scheduler: {type: slurm}", ACCOUNTS))
    cluster = sample.open()
    cluster.identify()
    controller.has_database()
    saved = save_queue(cluster, HOSTS, controller)
    assert saved.accounts > 0
    assert controller.database_calls() == ["dump", "print"]
    assert restore_queue(cluster, HOSTS, controller, None, discard=True).accounts == "restored"
    assert controller.database_calls()[2:] == ["replace", "keep"]
    doomed = saved_objects(cluster.store)
    assert len([key for key in doomed if "-accounts" in key]) == 1


def test_a_queue_that_fails_brings_the_accounts_of_another_host_back_too(
    sample: SampleCluster, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = msgspec.structs.replace(HEAD, name="books", pool="books", role="login")
    text = sample.path.read_text().replace(
        "pools:\n", "pools:\n  books: {site: lab, role: login}\n"
    )
    there = ACCOUNTS.replace("}}}", "}}, accounting: {pool: books}}")
    sample.path.write_text(text.replace("scheduler: {type: slurm}", there))
    cluster = sample.open()
    cluster.identify()
    run, requested = controller.run, []

    def on_either(host: Host, command: str, **words: Any) -> Answer:
        if host == HEAD:
            return run(host, command, **words)
        requested.append(command.rpartition(" ")[2])
        return SshResult(returncode=0, stdout=DUMP if requested[-1] == "print" else "", stderr="")

    monkeypatch.setattr(controller, "run", on_either)
    hosts = ClusterInventory(cluster="trial", hosts=(HEAD, books))
    save_queue(cluster, hosts, controller)
    (controller.here / "broken").touch()
    with pytest.raises(LifecycleError, match="everything is as it was before"):
        restore_queue(cluster, hosts, controller, None, discard=True)
    assert [word for word in requested if word.isalpha()] == ["dump", "print", "replace", "undo"]


def test_the_second_controller_takes_the_queue_up_while_the_first_is_off(
    cluster: Any, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = msgspec.structs.replace(HEAD, name="head0")
    both = ClusterInventory(cluster="trial", hosts=(first, HEAD))
    off = Unreachable(reason="no route to host")

    def answer(hosts: Any, command: str, **_: Any) -> dict[str, Answer]:
        return {h.name: controller.run(h, command) if h == HEAD else off for h in hosts}

    monkeypatch.setattr(controller, "run_many", answer)
    save_queue(cluster, both, controller)
    controller.holds(job_state="another queue")
    assert restore_queue(cluster, both, controller, None, discard=True).restored
    assert controller.held()["job_state"] == "208 jobs"


def test_the_newest_is_taken_unless_one_is_named(cluster: Any, controller: Controller) -> None:
    first = save_queue(cluster, HOSTS, controller)
    controller.holds(job_state="later")
    second = save_queue(cluster, HOSTS, controller)
    assert {one.id for one in saved_queues(cluster)} == {first.id, second.id}
    restore_queue(cluster, HOSTS, controller, first.id, discard=True)
    assert controller.held()["job_state"] == "208 jobs"
    with pytest.raises(LifecycleError, match="no saved queue"):
        restore_queue(cluster, HOSTS, controller, "20200101T000000Z-000000")


def test_nothing_saved_is_reported(cluster: Any, controller: Controller) -> None:
    with pytest.raises(LifecycleError, match="was saved"):
        restore_queue(cluster, HOSTS, controller, None)


def test_an_older_slurm_is_refused_the_state_of_a_newer_one(
    cluster: Any, controller: Controller
) -> None:
    save_queue(cluster, HOSTS, controller)
    controller._program("slurmctld", "echo slurm-wlm 23.11.4")  # noqa: SLF001  # an older one
    with pytest.raises(LifecycleError, match=r"Slurm 23.11 can't read the state of 24.11"):
        restore_queue(cluster, HOSTS, controller, None, discard=True)


def test_queues_go_with_the_cluster(cluster: Any, controller: Controller) -> None:
    save_queue(cluster, HOSTS, controller)
    restore_queue(cluster, NOBODY, controller, None)
    doomed = saved_objects(cluster.store)
    assert WISH in doomed
    assert {*doomed} - {WISH} == {*cluster.store.list(queue_state.PREFIX)}
    for key in doomed:
        cluster.store.delete(key)
    assert saved_queues(cluster) == ()
    assert cluster.store.get(WISH) is None


def test_a_queue_is_carried_to_another_folder_once(controller: Controller) -> None:
    shared = controller.here / "shared"
    shared.mkdir()
    program = f"/usr/local/libexec/gcluster/slurmctld-state.py move {shared}"
    first = controller.run(HEAD, program)
    assert isinstance(first, SshResult)
    assert first.stdout.startswith("carried the queue")
    assert (shared / "job_state").read_text() == "208 jobs"
    assert controller.log() == ["stop slurmctld"]
    again = controller.run(HEAD, program)
    assert isinstance(again, SshResult)
    assert (again.returncode, again.stdout) == (0, "")


def test_slurmctld_does_not_start_where_the_shared_file_system_is_missing(
    controller: Controller,
) -> None:
    output = controller.run(HEAD, "/usr/local/libexec/gcluster/slurmctld-state.py check /nowhere")
    assert isinstance(output, SshResult)
    assert output.returncode == 1
    assert "another controller may be writing the state there" in output.stderr
