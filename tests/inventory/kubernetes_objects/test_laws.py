"""Laws of the compiled queues: they hold for any tree of accounts, QOS and partitions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gcluster.inventory.accounting.desired import desired_accounting
from gcluster.inventory.accounting.records import SMOKE_QOS
from gcluster.inventory.compile.kubernetes_objects.accounts import (
    SMOKE_PRIORITY,
    allowed_qos,
    default_qos,
    memberships,
    priority_classes,
    quotas,
    workload_priority_classes,
)
from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts, capacity, quantity
from gcluster.inventory.compile.kubernetes_objects.queues import (
    ROOT_COHORT,
    cluster_queues,
    cohorts,
    flavors,
    local_queues,
)
from gcluster.inventory.compile.kubernetes_objects.tree import kubernetes_files
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.spec import ClusterSpec

from .compiled import facts_of

POOLS = {
    "head": {"site": "here", "role": "controller"},
    "one": {"site": "here", "machine": "sim.h100x8", "count": 2},
    "two": {"site": "here", "machine": "sim.mi300x8", "count": 3},
    "three": {"site": "here", "machine": "sim.h100x1", "count": 4},
}
COMPUTE = sorted(set(POOLS) - {"head"})
GPUS = {"one": 2 * 8, "two": 3 * 8, "three": 4}
"""GPUs of each pool at its largest, counted by hand."""
QOS, ACCOUNTS, USERS = ("a", "b", "c"), ("x", "y", "z"), ("ada", "bob", "cat")


@st.composite
def schedulers(draw: st.DrawFn) -> dict[str, Any]:
    """Return a scheduler that passes the checks: no circles, preemption downwards."""
    priorities = draw(st.lists(st.integers(1, 10**6), min_size=3, max_size=3, unique=True))
    qos: dict[str, Any] = {}
    for name, priority in zip(QOS, sorted(priorities, reverse=True), strict=True):
        below = [other for other in QOS if other > name]
        qos[name] = {
            "priority": priority,
            "preempts": draw(st.lists(st.sampled_from(below), unique=True)) if below else [],
            "preemptible": "requeue",
        }
    accounts: dict[str, Any] = {}
    for index, name in enumerate(draw(st.lists(st.sampled_from(ACCOUNTS), unique=True))):
        before = list(accounts)[:index]
        requested = draw(st.lists(st.sampled_from(QOS), unique=True))
        accounts[name] = {
            "share": draw(st.integers(1, 100)),
            "parent": draw(st.sampled_from([None, *before])),
            "gpu_quota": draw(st.none() | st.integers(0, 40)),
            "users": draw(st.lists(st.sampled_from(USERS), unique=True)),
            "qos": requested,
            "default_qos": draw(st.sampled_from([None, *requested])),
        }
    names = draw(st.lists(st.sampled_from(("p", "q", "default")), unique=True))
    partitions = {
        name: {
            "pools": draw(st.lists(st.sampled_from(COMPUTE), min_size=1, unique=True)),
            "accounts": draw(st.lists(st.sampled_from(sorted(accounts)), unique=True))
            if accounts
            else [],
        }
        for name in names
    }
    return {"type": "kubernetes", "qos": qos, "accounts": accounts, "partitions": partitions}


def spec_of(scheduler: dict[str, Any]) -> ClusterSpec:
    """Return a spec with this scheduler."""
    written = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {"here": {"provider": "local"}},
        "pools": POOLS,
        "scheduler": scheduler,
        "users": [{"name": user, "uid": 2000 + n} for n, user in enumerate(USERS)],
    }
    return msgspec.convert(written, ClusterSpec)


def amounts(made: list[dict[str, Any]], key: str) -> Counter[tuple[str, str]]:
    """Return the sum of one kind of quota by (flavor, resource)."""
    total: Counter[tuple[str, str]] = Counter()
    for one in made:
        for group in one["spec"].get("resourceGroups", ()):
            for flavor in group["flavors"]:
                for resource in flavor["resources"]:
                    number = int(str(resource.get(key, "0")).removesuffix("Mi"))
                    total[flavor["name"], resource["name"]] += number
    return total


def _facts(scheduler: dict[str, Any]) -> KubernetesFacts:
    return facts_of(spec_of(scheduler))


@given(schedulers())
@settings(max_examples=40)
def test_all_quotas_together_are_what_exists(scheduler: dict[str, Any]) -> None:
    facts = _facts(scheduler)
    nominal = amounts([*cohorts(facts), *cluster_queues(facts)], "nominalQuota")
    for pool in facts.compute:
        for resource, amount in capacity(facts, pool).items():
            assert nominal[pool, resource] == amount
        gpus = sum(n for (flavor, name), n in nominal.items() if flavor == pool and "gpu" in name)
        assert gpus == GPUS[pool]


@given(schedulers())
@settings(max_examples=40)
def test_every_queue_leads_to_what_exists(scheduler: dict[str, Any]) -> None:
    facts = _facts(scheduler)
    known = {one["metadata"]["name"] for one in cohorts(facts)}
    queues = {one["metadata"]["name"]: one["spec"] for one in cluster_queues(facts)}
    made = {f["metadata"]["name"] for f in flavors(facts) if f["kind"] == "ResourceFlavor"}
    assert {one["spec"]["clusterQueue"] for one in local_queues(facts)} <= set(queues)
    for spec in queues.values():
        assert spec["cohortName"] in known
        assert {f["name"] for group in spec["resourceGroups"] for f in group["flavors"]} <= made
    for one in cohorts(facts):
        parent = one["spec"].get("parentName")
        assert parent in known if parent else one["metadata"]["name"] == ROOT_COHORT


@given(schedulers())
@settings(max_examples=40)
def test_all_users_can_submit_in_the_namespaces_of_their_accounts(
    scheduler: dict[str, Any],
) -> None:
    facts = _facts(scheduler)
    roles = {o["metadata"]["namespace"]: o for o in memberships(facts) if o["kind"] == "Role"}
    bound = {
        (one["metadata"]["namespace"], subject["name"])
        for one in memberships(facts)
        if one["kind"] == "RoleBinding"
        for subject in one["subjects"]
        if subject["kind"] == "User"
    }
    queued = {one["metadata"]["namespace"] for one in local_queues(facts)}
    for account, answer in facts.accounts.items():
        for user in answer.users:
            assert (account, user) in bound
        rules = [r for r in roles[account]["rules"] if "jobs" in r["resources"]]
        assert any("create" in rule["verbs"] for rule in rules)
        assert (account in queued) == bool(facts.partitions_of(account))
        assert default_qos(facts, account) in allowed_qos(facts, account)


@given(schedulers())
@settings(max_examples=40)
def test_the_order_of_priorities_is_slurms(scheduler: dict[str, Any]) -> None:
    facts = _facts(scheduler)
    slurms = {one.name: one.priority for one in desired_accounting(facts.spec).qos}
    pods = {o["metadata"]["name"]: o["value"] for o in priority_classes(facts)}
    waiting = {o["metadata"]["name"]: o["value"] for o in workload_priority_classes(facts)}
    assert pods.pop(SMOKE_PRIORITY) > max(pods.values())
    del slurms[SMOKE_QOS]
    assert pods == waiting == slurms


@given(schedulers())
@settings(max_examples=40)
def test_no_quota_of_a_part_is_above_that_of_what_it_is_part_of(
    scheduler: dict[str, Any],
) -> None:
    facts = _facts(scheduler)
    hard = {
        one["metadata"]["namespace"]: one["spec"]["hard"]
        for one in quotas(facts)
        if one["metadata"]["name"] == "gpus"
    }
    for account, answer in facts.accounts.items():
        limits = [facts.accounts[name].gpu_quota for name in facts.ancestors(account)]
        for limit in (one for one in limits if one is not None):
            assert all(int(amount) <= limit for amount in hard[account].values())
        if answer.gpu_quota is None and answer.parent is None:
            assert account not in hard


@given(schedulers(), st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_the_order_of_keys_in_the_spec_changes_no_byte(
    scheduler: dict[str, Any], random: Any
) -> None:
    shuffled = dict(scheduler)
    for key in ("qos", "accounts", "partitions"):
        pairs = list(scheduler[key].items())
        random.shuffle(pairs)
        shuffled[key] = dict(pairs)
    first, second = _facts(scheduler), _facts(shuffled)
    one = kubernetes_files(first.spec, first.inventory, load_catalog())
    assert kubernetes_files(second.spec, second.inventory, load_catalog()) == one


def test_memory_is_written_with_its_unit() -> None:
    assert (quantity("memory", 5), quantity("cpu", 5)) == ("5Mi", "5")
