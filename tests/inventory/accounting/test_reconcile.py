"""Whatever a database holds, the commands are taken one by one and make it what is desired."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import given, settings

from gcluster.inventory.accounting.desired import JobOwner
from gcluster.inventory.accounting.reading import read_accounting
from gcluster.inventory.accounting.reconcile import Reconciliation, reconcile
from gcluster.inventory.accounting.records import (
    Accounting,
    Association,
    QosRecord,
    accounting,
)

sys.path.insert(0, str(Path(__file__).parent))
import records
import slurmdb

sys.path.pop(0)

NEW = read_accounting(*slurmdb.Slurmdb().printed())


def filled(content: Accounting) -> slurmdb.Slurmdb:
    """Return a database that was new and holds this now."""
    database = slurmdb.Slurmdb()
    ran(database, reconcile(content, NEW, "demo"))
    return database


def ran(database: slurmdb.Slurmdb, plan: Reconciliation) -> Accounting:
    """Run the changes; return what the database then prints."""
    for change in plan.changes:
        database.run(change.command)
    return read_accounting(*database.printed())


@given(desired=records.databases(), before=records.databases())
@settings(max_examples=150, deadline=None)
def test_the_commands_make_any_database_what_is_desired(
    desired: Accounting, before: Accounting
) -> None:
    database = filled(before)
    assert ran(database, reconcile(desired, before, "demo")) == desired


@given(desired=records.databases(), before=records.databases(), jobs=records.jobs)
@settings(max_examples=150, deadline=None)
def test_with_jobs_the_result_is_what_was_reported_and_a_second_run_changes_nothing(
    desired: Accounting, before: Accounting, jobs: list[JobOwner]
) -> None:
    database = filled(before)
    plan = reconcile(desired, before, "demo", jobs)
    after = ran(database, plan)
    assert after == plan.result
    again = reconcile(desired, after, "demo", jobs)
    assert again.changes == ()
    assert again.held_back == plan.held_back


@given(desired=records.databases(), before=records.databases(), jobs=records.jobs)
@settings(max_examples=100, deadline=None)
def test_no_member_with_jobs_goes_and_no_qos_that_they_are_in(
    desired: Accounting, before: Accounting, jobs: list[JobOwner]
) -> None:
    result = reconcile(desired, before, "demo", jobs).result
    busy = {(job.account, job.user) for job in jobs}
    for key in before.members:
        if (key.account, key.user) in busy:
            assert key in result.members
    for name in {job.qos for job in jobs} & set(before.qos_by_name):
        assert name in result.qos_by_name


@given(desired=records.databases())
@settings(max_examples=100, deadline=None)
def test_what_is_as_desired_is_left_alone(desired: Accounting) -> None:
    assert reconcile(desired, desired, "demo").changes == ()


def _with(*associations: Association, default: str = "nlp") -> Accounting:
    root = Association(account="root", qos=("normal",), default_qos="normal")
    users = {one.user: default for one in associations if one.user}
    found = {one.key: one for one in (root, *associations)}
    return accounting({"normal": QosRecord(name="normal")}, found, users)


_NLP = Association(account="nlp", parent="root", qos=("normal",), default_qos="normal")


def test_a_plan_has_each_change_as_text() -> None:
    account = Association(
        account="nlp",
        parent="root",
        share=60,
        gpu_quota=512,
        qos=("normal",),
        default_qos="normal",
    )
    member = Association(account="nlp", user="ada")
    made, joined = reconcile(_with(account, member), _with(), "demo").changes
    assert made.words == (
        "add account nlp: part of root, share 60, at most 512 GPUs together, QOS normal, "
        "by default normal"
    )
    assert joined.words == "add user ada to account nlp"


def test_a_command_is_a_list_and_no_shell_line() -> None:
    plan = reconcile(_with(_NLP, Association(account="nlp", user="ada")), _with(_NLP), "demo")
    assert [change.command for change in plan.changes] == [
        (
            "sacctmgr", "--immediate", "--quiet", "add", "user",
            "name=ada", "cluster=demo", "account=nlp",
        ),
    ]  # fmt: skip


def test_a_user_with_jobs_stays_and_the_plan_reports_why() -> None:
    member = Association(account="nlp", user="ada")
    jobs = [JobOwner(user="ada", account="nlp", qos="normal")] * 2
    plan = reconcile(_with(), _with(_NLP, member), "demo", jobs)
    assert plan.changes == ()
    assert [held.words for held in plan.held_back] == [
        "keep user ada of account nlp until a later run: 2 jobs",
        "keep account nlp until a later run: ada is in it",
    ]


def test_without_jobs_the_same_user_goes_and_the_account_after() -> None:
    member = Association(account="nlp", user="ada")
    plan = reconcile(_with(), _with(_NLP, member), "demo")
    assert [change.words for change in plan.changes] == [
        "remove user ada from the database",
        "remove account nlp",
    ]


def test_a_thousand_users_are_a_handful_of_commands() -> None:
    members = [Association(account="nlp", user=f"u{number:04}") for number in range(1000)]
    plan = reconcile(_with(_NLP, *members), _with(_NLP), "demo")
    assert len(plan.changes) == 5
    assert plan.changes[0].words.endswith("and 192 more to account nlp")


def test_limits_that_a_member_was_given_by_hand_are_removed() -> None:
    by_hand = Association(
        account="nlp", user="ada", gpu_quota=3, qos=("normal",), default_qos="normal", share=7
    )
    plan = reconcile(
        _with(_NLP, Association(account="nlp", user="ada")), _with(_NLP, by_hand), "demo"
    )
    assert [change.settings for change in plan.changes] == [
        (
            ("fairshare", "1"),
            ("grptres", "gres/gpu=-1"),
            ("qos", ""),
            ("defaultqos", "-1"),
        )
    ]
