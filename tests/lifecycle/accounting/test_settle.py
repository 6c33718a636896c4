"""Accounts and windows are made what the spec says, once, and again after any interruption."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, DownShell, LocalShell

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.nodes.converge.stamps import CHANGED_HERE
from gcluster.lifecycle.nodes.ssh import Answer
from gcluster.lifecycle.scheduler.accounting.plan import AccountingPlan
from gcluster.lifecycle.scheduler.accounting.settle import accounting_plan, settle
from gcluster.lifecycle.status.observe import Observation
from gcluster.schemas.diagnostics import Diagnostic
from gcluster.schemas.load import load_text

DOUBLE = Path(__file__).with_name("slurm_double.py")
NOW = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp())
_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
users:
  - {name: ada, uid: 2001}
  - {name: alan, uid: 2002}
scheduler:
  type: slurm
"""
_TWO = """\
  qos: {urgent: {priority: 10, preempts: [low]}, low: {preemptible: requeue}}
  accounts: {lab: {gpu_quota: 8, users: [ada]}, nlp: {users: [alan]}}
"""
_ONE = """\
  accounts: {lab: {gpu_quota: 8, users: [ada]}}
"""
_WINDOW = """\
  maintenance: {patch: {start: "2027-01-15T06:00Z", duration: 2h}}
"""
CONFIGURED = {"slurm.configure": "x", "slurmdbd.configure": "x"}


class Controller:
    """A controller's Slurm: the commands are real processes, the database is a file."""

    def __init__(self, folder: Path) -> None:
        """Start with a new database and no jobs."""
        self.folder = folder
        folder.mkdir()
        self.session = LocalShell(folder / "bin")
        self.jobs()
        for program in ("sacctmgr", "squeue", "scontrol"):
            self.session.has(
                program, f'exec {sys.executable} -S -E {DOUBLE} {folder} {program} "$@"'
            )
        self.session.has("sudo", 'shift; exec "$@"')

    def jobs(self, *owners: str) -> None:
        """Have jobs: "user|account|qos"."""
        (self.folder / "jobs").write_text("".join(f"{owner}\n" for owner in owners))

    def settle(self, scheduler: str) -> tuple[Diagnostic, ...]:
        """Settle a spec; waiting takes no time and moves the clock alone."""
        cluster, slept = cluster_of(scheduler, self.folder), [float(NOW)]
        return settle(
            cluster, seen(), self.session, silent, clock=lambda: sum(slept), sleep=slept.append
        )

    def plan(self, scheduler: str) -> AccountingPlan | None:
        """Plan a spec."""
        return accounting_plan(cluster_of(scheduler, self.folder).spec, seen(), self.session, NOW)


def cluster_of(scheduler: str, folder: Path) -> Cluster:
    loaded = load_text(_SPEC + scheduler)
    assert loaded.spec is not None, loaded.diagnostics
    return Cluster(
        spec=loaded.spec, text="", spec_path=Path("a.yaml"), state_url=f"file://{folder}"
    )


def seen(stamps: dict[str, str] = CONFIGURED, **others: dict[str, str]) -> Observation:
    gpus = [
        Host(name=f"gpu00{n}", site="here", pool="gpu", role="compute", machine=None,
             address=f"192.0.2.1{n}", ssh=HEAD.ssh)
        for n in (1, 2)
    ]  # fmt: skip
    hosts = ClusterInventory(cluster="demo", hosts=(HEAD, *gpus))
    return Observation(
        sites=(),
        existing=hosts,
        desired=hosts,
        stamps={"head": stamps, **others},
        unreachable={},
        taken_at=0,
    )


@pytest.fixture
def head(tmp_path: Path) -> Controller:
    return Controller(tmp_path / "head")


def test_a_first_plan_has_each_change_and_settling_leaves_none(head: Controller) -> None:
    before = head.plan(_TWO)
    assert before is not None
    assert [words.partition(":")[0] for words in before.changes][:4] == [
        "add QOS gcluster-smoke",
        "add QOS low",
        "add QOS urgent",
        "modify account root",
    ]
    assert head.settle(_TWO) == ()
    assert head.plan(_TWO) == AccountingPlan()


def test_a_plan_has_each_command_as_it_would_be_run(head: Controller) -> None:
    plan = head.plan(_TWO)
    assert plan is not None
    assert len(plan.exact) == len(plan.changes)
    assert all(line.split()[0] in {"sacctmgr", "scontrol"} for line in plan.exact)


def test_a_plan_for_a_controller_that_is_not_set_up_is_that_for_an_empty_database(
    head: Controller,
) -> None:
    spec = cluster_of(_TWO, head.folder).spec
    assert accounting_plan(spec, seen({}), DownShell(head.folder), NOW) == head.plan(_TWO)


def test_a_database_on_a_host_of_its_own_is_queried_too(head: Controller) -> None:
    head.settle(_TWO)
    apart = seen({"slurm.configure": "x"}, accounting={"slurmdbd.configure": "x"})
    spec = cluster_of(_TWO, head.folder).spec
    assert accounting_plan(spec, apart, head.session, NOW) == AccountingPlan()


@pytest.mark.parametrize("silent", ["head", "books"])
def test_accounts_that_can_not_be_queried_are_unknown_and_not_new(
    head: Controller, silent: str
) -> None:
    apart = _TWO + "  accounting: {pool: books}\n"
    text = _SPEC.replace("  gpu:", "  books: {site: here, role: login}\n  gpu:") + apart
    spec = load_text(text, check=False).spec
    assert spec is not None
    books = msgspec.structs.replace(HEAD, name="books", pool="books", role="login")
    before = seen({"slurm.configure": "x"})
    observation = msgspec.structs.replace(
        before,
        desired=ClusterInventory(cluster="demo", hosts=(*before.desired.hosts, books)),
        unreachable={silent: "timed out"},
    )
    plan = accounting_plan(spec, observation, head.session, NOW)
    assert plan is not None
    assert plan.changes == ()
    assert f"{silent}" in plan.problem
    assert "can't be reached: timed out" in plan.problem


def test_accounts_are_unknown_while_the_controller_is_new_and_the_database_is_not(
    head: Controller,
) -> None:
    spec = cluster_of(_TWO, head.folder).spec
    observation = seen({}, books={"slurmdbd.configure": "x"})
    plan = accounting_plan(spec, observation, DownShell(head.folder), NOW)
    assert plan == AccountingPlan(
        problem="head is not set up, so the database can't be queried through it"
    )


@pytest.mark.parametrize("unit", ["slurmctld", "slurmdbd", "mariadb"])
def test_accounts_are_unknown_while_a_daemon_is_stopped_and_it_is_not_waited_for(
    head: Controller, unit: str
) -> None:
    spec = cluster_of(_TWO, head.folder).spec
    stamps = CONFIGURED | {"slurmdbd.configure": f"{CHANGED_HERE}unit {unit}: enabled,inactive"}
    plan = accounting_plan(spec, seen(stamps), DownShell(head.folder), NOW)
    assert plan == AccountingPlan(problem=f"{unit} doesn't run on head: up starts it first")
    still = stamps | {"slurmdbd.configure": f"{CHANGED_HERE}unit {unit}: disabled,active"}
    assert accounting_plan(spec, seen(still), head.session, NOW) != plan


def test_the_second_controller_is_queried_while_the_first_is_off(head: Controller) -> None:
    requested: set[str] = set()

    class Watched(LocalShell):
        def run_many(
            self, hosts: Iterable[Host], command: str, *, timeout_s: float = 60
        ) -> dict[str, Answer]:
            requested.update(host.name for host in hosts)
            return super().run_many(hosts, command, timeout_s=timeout_s)

    before, second = seen(), msgspec.structs.replace(HEAD, name="head2")
    after = msgspec.structs.replace(
        before,
        desired=ClusterInventory(cluster="demo", hosts=(*before.desired.hosts, second)),
        stamps={"head2": CONFIGURED},
        unreachable={"head": "no route to host"},
    )
    cluster, watched = cluster_of(_TWO, head.folder), Watched(head.folder / "bin")

    answer = settle(cluster, after, watched, silent, clock=lambda: NOW, sleep=lambda _: None)

    assert (answer, requested) == ((), {"head2"})


def test_a_controller_that_does_not_answer_is_waited_for_by_the_clock(head: Controller) -> None:
    requested = [0]

    class Slow(DownShell):
        def run_many(
            self, hosts: Iterable[Host], command: str, *, timeout_s: float = 60
        ) -> dict[str, Answer]:
            requested[0] += 1
            return super().run_many(hosts, command, timeout_s=timeout_s)

    cluster, slow = cluster_of(_TWO, head.folder), Slow(head.folder)
    (answer,) = settle(
        cluster, seen(), slow, silent, clock=lambda: NOW + 60 * requested[0], sleep=lambda _: None
    )

    assert (answer.code, requested) == ("GC925", [1])


def test_what_the_spec_has_no_more_goes(head: Controller) -> None:
    head.settle(_TWO)
    after = head.plan(_ONE)
    assert after is not None
    assert {words.split(":")[0] for words in after.changes} >= {
        "remove account nlp",
        "remove QOS urgent",
    }
    head.settle(_ONE)
    assert head.plan(_ONE) == AccountingPlan()


def test_a_user_with_a_job_stays_until_it_has_ended(head: Controller) -> None:
    head.settle(_TWO)
    head.jobs("alan|nlp|low")
    (waits, *_) = answer = head.settle(_ONE)
    assert {one.code for one in answer} == {"GC926"}
    assert waits.summary == "keep user alan of account nlp until a later run: 1 job"
    planned = head.plan(_ONE)
    assert planned is not None
    assert planned.changes == ()
    assert waits.summary in planned.held_back
    head.jobs()
    assert head.settle(_ONE) == ()
    assert head.plan(_ONE) == AccountingPlan()


def test_after_being_killed_at_any_change_it_continues(tmp_path: Path) -> None:
    whole = Controller(tmp_path / "whole").plan(_TWO)
    assert whole is not None
    for number in (0, len(whole.changes) // 2, len(whole.changes) - 1):
        head = Controller(tmp_path / f"killed-{number}")
        (head.folder / "killed").write_text(str(number))
        (answer,) = head.settle(_TWO)
        assert (answer.code, whole.changes[number] in answer.summary) == ("GC925", True)
        (head.folder / "killed").unlink()
        assert head.settle(_TWO) == ()
        assert head.plan(_TWO) == AccountingPlan()


def test_a_database_that_does_not_answer_is_reported_with_its_message(head: Controller) -> None:
    (head.folder / "fails").write_text("sacctmgr")
    (answer,) = head.settle(_TWO)
    assert answer.code == "GC925"
    assert "slurm_persist_conn_open: Connection refused" in answer.summary
    planned = head.plan(_TWO)
    assert planned is not None
    assert "Connection refused" in planned.problem


def test_a_cluster_without_accounts_is_not_held_up_by_a_silent_slurm(head: Controller) -> None:
    (head.folder / "fails").write_text("squeue")
    assert head.settle("") == ()
    assert head.plan("") is None


def test_a_window_is_reserved_once_and_goes_with_the_spec(head: Controller) -> None:
    assert head.settle(_WINDOW) == ()
    assert "ReservationName=gcluster-patch" in (head.folder / "windows").read_text()
    assert head.plan(_WINDOW) == AccountingPlan()
    assert head.settle("") == ()
    assert (head.folder / "windows").read_text() == ""


def test_others_s_reservation_is_left_alone(head: Controller) -> None:
    theirs = (
        "ReservationName=class StartTime=2027-01-02T06:00:00 EndTime=2027-01-02T07:00:00 "
        "Nodes=gpu001 "
    )
    (head.folder / "windows").write_text(theirs)
    head.settle(_WINDOW)
    head.settle("")
    assert (head.folder / "windows").read_text() == theirs


def test_a_plan_is_the_same_value_after_a_round_through_json(head: Controller) -> None:
    planned = head.plan(_TWO)
    assert msgspec.json.decode(msgspec.json.encode(planned), type=AccountingPlan) == planned
