"""Priorities are added up as Slurm does: twelve jobs by hand, and the laws of the sum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.accounting.records import (
    Accounting,
    Association,
    AssociationKey,
    accounting,
)
from gcluster.inventory.priority import MAX_AGE_S, PendingJob, Scale, fair_tree, priority
from gcluster.schemas.spec.scheduler import PriorityWeights

CASE: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[1] / "cases/priority/twelve-jobs/case.yaml").read_text()
)
WEIGHTS = msgspec.convert(CASE["weights"], PriorityWeights)
SCALE = msgspec.convert(CASE["scale"], Scale)


def computed(answer: dict[str, Any]) -> int:
    job = PendingJob(
        nodes=answer["nodes"],
        cpus=answer["nodes"],
        tier=CASE["partitions"][answer["partition"]],
        qos=CASE["qos"][answer["qos"]],
        nice=answer.get("nice", 0),
        fair_share=1.0,
    )
    return priority(job, WEIGHTS, SCALE).total


@pytest.mark.parametrize("job", CASE["jobs"], ids=lambda job: job["name"])
def test_a_job_s_priority_is_the_one_computed_by_hand(job: dict[str, Any]) -> None:
    assert computed(job) == job["priority"]


def test_the_twelve_jobs_are_in_the_order_that_sprio_shows() -> None:
    by_priority = sorted(CASE["jobs"], key=computed, reverse=True)
    assert len(by_priority) == 12
    assert [job["name"] for job in by_priority] == CASE["order"]


def test_age_counts_up_to_the_longest_wait_that_counts() -> None:
    ages = (0, MAX_AGE_S / 2, MAX_AGE_S, 3 * MAX_AGE_S)
    weighted = [priority(PendingJob(age_s=age), WEIGHTS, SCALE).age for age in ages]
    assert weighted == [0, 500, 1000, 1000]


def test_without_any_qos_of_a_priority_none_counts() -> None:
    assert priority(PendingJob(qos=0), WEIGHTS, Scale(nodes=4, cpus=768)).qos == 0


@given(
    nice=st.integers(-(2**31), 2**31),
    share=st.floats(0, 1),
    nodes=st.integers(1, 4),
    age=st.floats(0, 1e8),
)
def test_a_priority_is_never_0_which_would_hold_the_job(
    nice: int, share: float, nodes: int, age: float
) -> None:
    job = PendingJob(nice=nice, fair_share=share, nodes=nodes, age_s=age)
    assert 1 <= priority(job, WEIGHTS, SCALE).total < 2**32


@given(first=st.floats(0, 1e7), more=st.floats(0, 1e7), nodes=st.integers(1, 4))
def test_waiting_longer_never_lowers_a_priority(first: float, more: float, nodes: int) -> None:
    job = PendingJob(age_s=first, nodes=nodes)
    later = msgspec.structs.replace(job, age_s=first + more)
    assert priority(later, WEIGHTS, SCALE).total >= priority(job, WEIGHTS, SCALE).total


def tree(*associations: Association) -> Accounting:
    found = {one.key: one for one in (Association(account="root"), *associations)}
    return accounting({}, found, {})


def key(account: str, user: str) -> AssociationKey:
    return AssociationKey(account, user, "")


TWO_ACCOUNTS = tree(
    Association(account="nlp", parent="root", share=60),
    Association(account="vision", parent="root", share=40),
    Association(account="nlp", user="ada"),
    Association(account="nlp", user="bob"),
    Association(account="vision", user="eve"),
)


def test_where_nothing_was_used_all_are_equal_and_first() -> None:
    assert set(fair_tree(TWO_ACCOUNTS, {}).values()) == {1.0}


def test_all_members_of_the_account_that_used_less_of_its_share_come_first() -> None:
    # nlp: 0.6 / (30/90) = 1.8, vision: 0.4 / (60/90) = 0.6; in nlp bob has used nothing, ada all.
    usage = {key("nlp", "ada"): 30.0, key("vision", "eve"): 60.0}
    assert fair_tree(TWO_ACCOUNTS, usage) == {
        key("nlp", "bob"): 3 / 4,
        key("nlp", "ada"): 2 / 4,
        key("vision", "eve"): 1 / 4,
    }


def test_accounts_that_are_equal_have_their_members_ranked_together() -> None:
    # 0.6 / 0.6 = 0.4 / 0.4 = 1: ada has used all of nlp (0.5), eve all of vision (1), bob nothing.
    usage = {key("nlp", "ada"): 60.0, key("vision", "eve"): 40.0}
    assert fair_tree(TWO_ACCOUNTS, usage) == {
        key("nlp", "bob"): 3 / 4,
        key("vision", "eve"): 2 / 4,
        key("nlp", "ada"): 1 / 4,
    }


@given(
    first=st.floats(0.001, 1e6),
    second=st.floats(0.001, 1e6),
    third=st.floats(0.001, 1e6),
)
def test_every_member_has_a_rank_of_its_own_or_shares_it(
    first: float, second: float, third: float
) -> None:
    usage = {key("nlp", "ada"): first, key("nlp", "bob"): second, key("vision", "eve"): third}
    factors = fair_tree(TWO_ACCOUNTS, usage)
    assert factors.keys() == TWO_ACCOUNTS.members.keys()
    assert all(0 < factor <= 1 for factor in factors.values())
