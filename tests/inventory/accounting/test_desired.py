"""The accounting database that a spec describes."""

from __future__ import annotations

from gcluster.inventory.accounting.desired import desired_accounting, keeps_accounts
from gcluster.inventory.accounting.records import (
    ROOT,
    SMOKE_MEMBER,
    SMOKE_QOS,
    Association,
    QosRecord,
)
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
users: [{name: ada, uid: 2001}, {name: bob, uid: 2002}]
scheduler:
  type: slurm
"""


def spec_of(scheduler: str) -> ClusterSpec:
    loaded = load_text(_SPEC + scheduler)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def accounts(scheduler: str) -> dict[str, Association]:
    return desired_accounting(spec_of(scheduler)).accounts


_ALL = """\
  qos:
    urgent: {priority: 1000, preempts: [low], gpu_limit: 16, gpu_limit_per_user: 8, max_time: 90s}
    low: {priority: 1, preemptible: requeue, grace: 5m, max_jobs_per_user: 4}
  accounts:
    lab: {share: 3, gpu_quota: 16, qos: [low, urgent], users: [bob]}
    nlp: {parent: lab, users: [ada, bob]}
    open: {share: 2, default_qos: low}
"""


def test_a_cluster_without_qos_and_accounts_has_no_database() -> None:
    assert not keeps_accounts(spec_of(""))
    assert keeps_accounts(spec_of("  accounting: {}\n"))
    assert keeps_accounts(spec_of("  qos: {low: {}}\n"))


def test_a_qos_has_its_limits_in_slurm_s_units() -> None:
    qos = desired_accounting(spec_of(_ALL)).qos_by_name
    assert qos["urgent"] == QosRecord(
        name="urgent",
        priority=1000,
        preempts=("low",),
        gpu_limit=16,
        gpu_limit_per_user=8,
        max_time_min=2,
    )
    assert qos["low"] == QosRecord(
        name="low", priority=1, preempt_mode="requeue", grace_s=300, max_jobs_per_user=4
    )


def test_normal_is_there_whether_the_spec_names_it_or_not() -> None:
    assert desired_accounting(spec_of(_ALL)).qos_by_name["normal"].priority == 0
    named = spec_of("  qos: {normal: {priority: 7}}\n")
    assert desired_accounting(named).qos_by_name["normal"].priority == 7


def test_an_account_without_a_list_may_request_what_its_parent_s_may() -> None:
    made = accounts(_ALL)
    assert made["open"].qos == ("low", "normal", "urgent")
    assert made["nlp"].qos == made["lab"].qos == ("low", "urgent")


def test_the_qos_of_the_allreduce_has_no_limit_and_is_root_s_alone() -> None:
    limited = _ALL.replace("  qos:\n", "  qos:\n    normal: {gpu_limit_per_user: 1}\n")
    made = desired_accounting(spec_of(limited))
    assert made.qos_by_name[SMOKE_QOS] == QosRecord(name=SMOKE_QOS)
    assert [one.account for one in made.accounts.values() if SMOKE_QOS in one.qos] == [ROOT]


def test_a_job_that_requests_no_qos_gets_one_that_it_may_request() -> None:
    made = accounts(_ALL)
    assert {name: one.default_qos for name, one in made.items()} == {
        "root": "normal",
        "lab": "low",
        "nlp": "low",
        "open": "low",
    }


def test_accounts_have_their_place_share_and_quota() -> None:
    made = accounts(_ALL)
    assert (made["lab"].parent, made["lab"].share, made["lab"].gpu_quota) == ("root", 3, 16)
    assert made["nlp"].parent == "lab"


def test_a_user_of_several_accounts_is_charged_to_the_first_by_name() -> None:
    found = desired_accounting(spec_of(_ALL))
    assert found.default_accounts == ((SMOKE_MEMBER, ROOT), ("ada", "nlp"), ("bob", "lab"))
    assert [(key.account, key.user) for key in found.members] == [
        ("lab", "bob"),
        ("nlp", "ada"),
        ("nlp", "bob"),
        (ROOT, SMOKE_MEMBER),
    ]


def test_limits_without_accounts_hold_for_everyone() -> None:
    found = desired_accounting(spec_of("  qos: {low: {}}\n"))
    assert [(key.account, key.user) for key in found.members] == [
        ("everyone", "ada"),
        ("everyone", "bob"),
        (ROOT, SMOKE_MEMBER),
    ]
