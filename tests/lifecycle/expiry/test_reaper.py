"""A cluster ends by itself: announced for its whole notice, and never while jobs run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.lifecycle.controller import HEAD, DownShell, LocalShell
from tests.lifecycle.kubernetes.spec import TEXT, spec_of
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.down.expiry import expiry_guard, reaper
from gcluster.lifecycle.down.expiry.announce import announce, notice, withdraw
from gcluster.lifecycle.down.expiry.jobs import Jobs
from gcluster.lifecycle.down.expiry.reaper import ReaperResult, reap_once
from gcluster.lifecycle.down.expiry.running_work import jobs_on
from gcluster.lifecycle.nodes.ssh import Answer
from gcluster.lifecycle.state import ExpiryAnnounced, Journal, acquire
from gcluster.schemas.catalog import load_catalog

BUDGET = "budget: {expires: 10h, notice: 2h}\n"
IDLE = "budget: {idle_shutdown: 3h, notice: 1h}\n"


class Kept:
    """A cluster that is looked after, with the hour and the jobs that the test says."""

    def __init__(self, sample: SampleCluster, budget: str) -> None:
        """Bring it up."""
        self.sample = sample
        self.budget(budget)
        sample.up()
        self.began = datetime.now(UTC)

    def budget(self, text: str) -> None:
        """Write the spec with another budget."""
        self.sample.write()
        with self.sample.path.open("a") as file:
            file.write(text)

    def look(self, hours: float, jobs: Jobs | None = None) -> ReaperResult:
        """Look so many hours after it began."""
        now = self.began + timedelta(hours=hours)
        return reap_once(self.sample.open(), silent, now=now, ask=lambda _: jobs or Jobs())

    def nodes(self) -> int:
        """Return how many nodes it has."""
        return len(self.sample.in_the_ledger())


@pytest.fixture
def kept(sample: SampleCluster) -> Kept:
    return Kept(sample, BUDGET)


def test_nothing_happens_long_before(kept: Kept) -> None:
    before = kept.sample.open().events.last
    assert kept.look(7).state == "none"
    assert kept.sample.open().events.last == before


def test_it_is_announced_then_removed_and_its_history_reports_why(kept: Kept) -> None:
    assert kept.look(8.05).state == "announced"
    assert (kept.look(9.9).state, kept.nodes()) == ("announced", 4)
    looked = kept.look(10.1)
    assert (looked.state, looked.exit_code, kept.nodes()) == ("removed", Exit.OK, 0)
    last = Journal(kept.sample.open().events).runs()[-1]
    assert (last.command, last.why) == ("down", "its time of 10h is up")


def test_what_is_announced_and_withdrawn_is_in_the_audit_file(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "audit.jsonl"
    monkeypatch.setenv("GCLUSTER_AUDIT", str(file))
    kept.look(9)
    kept.budget("budget: {expires: 20h, notice: 2h}\n")
    kept.look(9.5)
    answer = [json.loads(line)["what"] for line in file.read_text().splitlines()]
    assert answer == ["EndAnnounced", "EndWithdrawn"]


def test_one_that_was_not_checked_is_still_announced_for_its_whole_notice(kept: Kept) -> None:
    assert kept.look(30).state == "announced"
    assert (kept.look(31.9).state, kept.nodes()) == ("announced", 4)
    assert kept.look(32.1).state == "removed"


def test_it_stays_while_a_job_runs(kept: Kept) -> None:
    kept.look(9)
    looked = kept.look(12, Jobs(running=2))
    assert (looked.state, looked.exit_code, kept.nodes()) == ("kept", Exit.REFUSED, 4)
    assert "2 jobs run" in looked.words
    assert kept.look(13).state == "removed"


def test_it_stays_while_it_is_unknown_whether_jobs_run(kept: Kept) -> None:
    kept.look(9)
    looked = kept.look(12, Jobs(problem="head: no answer"))
    assert (looked.state, kept.nodes()) == ("kept", 4)


def test_it_stays_while_another_process_works_on_it(kept: Kept) -> None:
    kept.look(9)
    with (
        acquire(kept.sample.open().store, ["lab"], reason="smoke"),
        pytest.raises(LifecycleError) as error,
    ):
        kept.look(12)
    assert (error.value.exit_code, kept.nodes()) == (Exit.LOCKED, 4)


def test_more_time_withdraws_what_was_announced(kept: Kept) -> None:
    kept.look(9)
    kept.budget("budget: {expires: 20h, notice: 2h}\n")
    assert kept.look(9.5).state == "withdrawn"
    assert kept.look(12).state == "none"
    assert kept.look(18.1).state == "announced"
    assert kept.look(20.2).state == "removed"


def test_another_day_is_announced_again(kept: Kept) -> None:
    kept.look(9)
    kept.budget("budget: {expires: 11h, notice: 2h}\n")
    looked = kept.look(9.5)
    assert looked.state == "announced"
    assert kept.look(10.5).state == "announced"
    assert (kept.look(11.4).state, kept.look(11.6).state) == ("announced", "removed")


def test_an_idle_cluster_is_announced_and_a_job_keeps_it(sample: SampleCluster) -> None:
    kept = Kept(sample, IDLE)
    assert kept.look(5, Jobs(running=1)).state == "none"
    assert kept.look(7.5, Jobs(idle_s=2.5 * 3600)).state == "announced"
    assert kept.look(7.9, Jobs(waiting=1)).state == "withdrawn"
    assert kept.look(10.5, Jobs(idle_s=2.1 * 3600)).state == "announced"
    assert kept.look(11, Jobs(idle_s=2.6 * 3600)).state == "announced"
    assert kept.look(11.6, Jobs(idle_s=3.2 * 3600)).state == "removed"
    assert kept.nodes() == 0


def test_an_idle_cluster_whose_scheduler_is_silent_is_left_alone(sample: SampleCluster) -> None:
    kept = Kept(sample, IDLE)
    kept.look(2.5, Jobs(idle_s=2.5 * 3600))
    assert kept.look(9, Jobs(problem="no answer")).state == "kept"
    assert kept.nodes() == 4


def test_a_cluster_that_is_down_has_no_end(kept: Kept) -> None:
    kept.sample.down()
    assert kept.look(99).state == "none"


def test_a_second_life_has_its_own_time(kept: Kept) -> None:
    kept.look(9)
    kept.sample.down()
    kept.sample.up()
    assert kept.look(7).state == "none"


def test_up_refuses_what_is_due_and_takes_it_with_more_time(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.look(9)
    monkeypatch.setattr(expiry_guard, "utc_now", lambda: kept.began + timedelta(hours=12))
    kept.sample.write(count=4)
    with kept.sample.path.open("a") as file:
        file.write(BUDGET)
    with pytest.raises(LifecycleError) as error:
        kept.sample.up()
    assert [d.code for d in error.value.diagnostics] == ["GC1141"]
    assert kept.nodes() == 4
    kept.sample.write(count=4)
    with kept.sample.path.open("a") as file:
        file.write("budget: {expires: 30d}\n")
    assert kept.sample.up().exit_code is Exit.OK
    assert kept.look(12).state == "none"


def test_up_makes_nothing_that_has_expired_before_it_began(sample: SampleCluster) -> None:
    kept = Kept.__new__(Kept)
    kept.sample = sample
    kept.budget("budget: {expires_on: 2024-02-29}\n")
    with pytest.raises(LifecycleError, match="that is past") as error:
        sample.up()
    assert (error.value.exit_code, kept.nodes()) == (Exit.REFUSED, 0)


def test_no_test_is_begun_that_slurm_would_not_start_any_more(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.look(9)
    cluster = kept.sample.open()
    monkeypatch.setattr(expiry_guard, "utc_now", lambda: kept.began + timedelta(hours=10.7))
    expiry_guard.refuse_late_test(cluster, 15)
    monkeypatch.setattr(expiry_guard, "utc_now", lambda: kept.began + timedelta(hours=10.8))
    with pytest.raises(LifecycleError) as error:
        expiry_guard.refuse_late_test(cluster, 15)
    assert error.value.diagnostics[0].code == "GC1141"
    kept.budget("budget: {expires: 20h, notice: 2h}\n")
    kept.look(10.8)
    expiry_guard.refuse_late_test(kept.sample.open(), 15)


def test_nothing_is_announced_when_the_notice_can_not_be_written(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent_nodes(cluster: Cluster) -> ClusterInventory:
        return ClusterInventory(cluster=cluster.name, hosts=(HEAD,))

    monkeypatch.setattr(reaper, "existing_hosts", silent_nodes)
    monkeypatch.setattr(reaper, "SshSession", DownShell)
    with pytest.raises(LifecycleError) as error:
        kept.look(9)
    assert error.value.diagnostics[0].code == "GC1141"
    monkeypatch.undo()


ANNOUNCED = ExpiryAnnounced(
    kind="expires", due=4e9, earliest=4e9, why="it's $(touch /tmp/x) `id` over"
)
HOSTS = ClusterInventory(cluster="demo", hosts=(HEAD,))
SLURM = spec_of(f"{TEXT.partition('scheduler:')[0]}scheduler: {{type: slurm}}\n")
CATALOG = load_catalog()


class Written(LocalShell):
    """The double of a session that keeps what it would run."""

    def __init__(self, folder: Path) -> None:
        """Keep nothing yet."""
        super().__init__(folder)
        self.ran: list[str] = []

    def run_many(
        self, hosts: Iterable[Host], command: str, *, timeout_s: float = 60
    ) -> dict[str, Answer]:
        """Keep the command."""
        self.ran.append(command)
        return super().run_many(hosts, "true", timeout_s=timeout_s)


def test_a_notice_is_one_word_for_the_shell_and_shows_when_and_why(tmp_path: Path) -> None:
    session = Written(tmp_path)
    announce(SLURM, HOSTS, session, ANNOUNCED)
    assert len(session.ran) == 2
    assert "'\"'\"'" in session.ran[0]  # quoted, apostrophe and all
    assert "2096-10-02 07:06 UTC" in notice("demo", ANNOUNCED)
    assert "StartTime=2096-10-02T07:06:40" in session.ran[1]


def test_an_idle_cluster_gets_no_reservation(tmp_path: Path) -> None:
    session = Written(tmp_path)
    announce(SLURM, HOSTS, session, ExpiryAnnounced(kind="idle", due=1.0, earliest=2.0, why="w"))
    assert not any("reservation" in command for command in session.ran)


def test_withdrawing_twice_is_no_error(tmp_path: Path) -> None:
    session = Written(tmp_path)
    withdraw(SLURM, HOSTS, session)
    withdraw(SLURM, HOSTS, session)
    assert len(session.ran) == 4


def test_jobs_are_queried_in_one_exec_of_the_controller(tmp_path: Path) -> None:
    shell = LocalShell(tmp_path)
    shell.has("squeue", "echo RUNNING; echo PENDING")
    shell.has("scontrol", "echo 'NodeName=n1 LastBusyTime=5'")
    assert jobs_on(SLURM, HOSTS, shell, CATALOG) == Jobs(running=1, waiting=1)
    shell.has("squeue", "echo 'slurm_load_jobs error' >&2; exit 1")
    assert "slurm_load_jobs error" in jobs_on(SLURM, HOSTS, shell, CATALOG).problem


def test_a_failed_controller_is_reported(tmp_path: Path) -> None:
    assert "no route" in jobs_on(SLURM, HOSTS, DownShell(tmp_path), CATALOG).problem
