"""What `sacctmgr` and `squeue` print is read: the samples are of Slurm 24.11.5 with MariaDB."""

from __future__ import annotations

import pytest

from gcluster.inventory.accounting.desired import JobOwner
from gcluster.inventory.accounting.reading import (
    UnreadableAccountingError,
    association_query,
    read_accounting,
    read_jobs,
)
from gcluster.inventory.accounting.records import PARENT_SHARE, AssociationKey, QosRecord

QOS = """\
normal|0||cluster|00:00:00||||
low|1||requeue|00:05:00||||
urgent|1000|low|cluster|00:00:00|gres/gpu=256|gres/gpu=64|7-00:00:00|5
"""
ASSOCIATIONS = """\
root||||1||normal|
root||root||1|||
nlp|root|||60|cpu=8,gres/gpu=512|low,normal|low
nlp||ada||parent|||
nlp||bob||1|||
"""
USERS = "ada|nlp\nbob|nlp\nroot|root\nleft|\n"


def test_the_limits_of_a_qos_are_read() -> None:
    assert read_accounting(QOS, ASSOCIATIONS, USERS).qos_by_name["urgent"] == QosRecord(
        name="urgent",
        priority=1000,
        preempts=("low",),
        gpu_limit=256,
        gpu_limit_per_user=64,
        max_time_min=7 * 24 * 60,
        max_jobs_per_user=5,
    )


def test_grace_is_seconds_and_requeue_is_requeue() -> None:
    low = read_accounting(QOS, ASSOCIATIONS, USERS).qos_by_name["low"]
    assert (low.grace_s, low.preempt_mode) == (300, "requeue")


def test_of_an_account_s_limits_only_the_gpus_are_read() -> None:
    account = read_accounting(QOS, ASSOCIATIONS, USERS).accounts["nlp"]
    assert (account.share, account.gpu_quota, account.qos) == (60, 512, ("low", "normal"))


def test_a_share_of_the_parent_is_no_number() -> None:
    members = read_accounting(QOS, ASSOCIATIONS, USERS).members
    assert members[AssociationKey("nlp", "ada", "")].share == PARENT_SHARE


def test_the_user_root_and_users_without_an_account_are_left_out() -> None:
    found = read_accounting(QOS, ASSOCIATIONS, USERS)
    assert found.default_accounts == (("ada", "nlp"), ("bob", "nlp"))
    assert [key.user for key in found.members] == ["ada", "bob"]


def test_a_line_of_another_shape_is_no_guess() -> None:
    with pytest.raises(UnreadableAccountingError, match="expected 9 columns"):
        read_accounting("normal|0|\n", "", "")


def test_a_value_that_is_no_number_is_no_guess() -> None:
    with pytest.raises(UnreadableAccountingError, match="QOS normal"):
        read_accounting("normal|high||cluster|00:00:00||||\n", "", "")


def test_jobs_are_read_with_their_owners() -> None:
    assert read_jobs("ada|nlp|low\n") == (JobOwner(user="ada", account="nlp", qos="low"),)


def test_only_one_cluster_of_the_database_is_requested() -> None:
    assert "cluster=demo" in association_query("demo")
