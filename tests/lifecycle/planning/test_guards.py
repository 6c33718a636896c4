"""What a plan may not do unless exactly that is named."""

from __future__ import annotations

import msgspec
import pytest
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.planning.changes import Guard, JobImpact, RemovedNode, SitePlan
from gcluster.lifecycle.planning.guards import guards, refuse_guarded, removed_nodes
from gcluster.lifecycle.planning.job_impact import read_job_impact
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.provider import Resource, ResourceChange

_TEXT = """\
apiVersion: gcluster/v1
name: demo
sites: {lab: {provider: simulated}}
pools:
  head: {site: lab, role: controller}
  door: {site: lab, role: login, count: 2}
  gpu: {site: lab, machine: sim.h100x8, count: 4}
scheduler: {type: slurm}
"""
_MADE = """\
storage:
  warm: {type: object, mount: /data, site: lab, bucket: s3://data, create: true}
  theirs: {type: object, mount: /theirs, site: lab, bucket: s3://theirs}
"""


def _spec(text: str = _TEXT) -> ClusterSpec:
    loaded = load_text(text, file="demo.yaml", check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def _existing(*gone: str) -> ClusterInventory:
    names = {
        "head": ("controller", ["head01"]),
        "door": ("login", ["door01", "door02"]),
        "gpu": ("compute", [f"gpu{number:03d}" for number in range(1, 5)]),
    }
    return ClusterInventory(
        cluster="demo",
        hosts=tuple(
            msgspec.convert(
                {"name": name, "pool": pool, "role": role, "site": "lab", "machine": None}
                | {"ssh": {"user": "root", "key": "k"}},
                Host,
            )
            for pool, (role, hosts) in names.items()
            for name in hosts
            if name not in gone
        ),
    )


def _gone(*names: str, replaced: bool = False) -> tuple[RemovedNode, ...]:
    return tuple(RemovedNode(name=n, pool=n.rstrip("0123456789"), replaced=replaced) for n in names)


def _things(
    *names: str,
    replaced: bool = False,
    job_impact: JobImpact | None = None,
    before: str = _TEXT,
    after: str = _TEXT,
    usd: tuple[float | None, float | None] = (None, None),
) -> list[str]:
    found = guards(
        before=_spec(before),
        after=_spec(after),
        gone=_gone(*names, replaced=replaced),
        existing=_existing(*(() if replaced else names)),
        job_impact=job_impact,
        usd_per_hour=usd,
    )
    return [guard.thing for guard in found]


@pytest.mark.parametrize(
    ("job_impact", "expected"),
    [
        (JobImpact(queue=3), ["controller:head01"]),
        (JobImpact(problem="head01: no route"), ["controller:head01"]),
        (JobImpact(queue=0), []),
        (None, []),
    ],
)
@pytest.mark.parametrize("replaced", [True, False])
def test_a_controller_whose_queue_may_hold_jobs_is_named(
    job_impact: JobImpact | None, expected: list[str], replaced: bool
) -> None:
    assert _things("head01", replaced=replaced, job_impact=job_impact) == expected


def test_the_last_login_nodes_are_named_and_one_of_two_is_not() -> None:
    assert _things("door01") == []
    assert _things("door01", "door02", replaced=True) == ["login:door[01-02]", "pool:door"]


def test_more_than_half_of_a_pool_is_named() -> None:
    assert _things("gpu001", "gpu002") == []
    assert _things("gpu001", "gpu002", "gpu003") == ["pool:gpu"]
    assert _things("gpu001", "gpu002", "gpu003", replaced=True) == ["pool:gpu"]


def test_storage_that_was_made_is_named_when_the_spec_drops_it_and_no_other() -> None:
    assert _things(before=_TEXT + _MADE) == ["storage:warm"]
    assert _things(before=_TEXT + _MADE, after=_TEXT + _MADE) == []


@pytest.mark.parametrize(
    ("job_impact", "expected"),
    [
        (JobImpact(queue=3), ["slices:gpu"]),
        (JobImpact(problem="head01: no route"), ["slices:gpu"]),
        (JobImpact(queue=0), []),
        (None, []),
    ],
)
def test_other_slices_under_jobs_are_named(
    job_impact: JobImpact | None, expected: list[str]
) -> None:
    def cut(slices: str) -> str:
        return _TEXT.replace("count: 4}", f"count: 4, gpus: {{mig_slices: {slices}}}}}")

    cases = [(_TEXT, cut("{1g.10gb: 7}")), (cut("{1g.10gb: 7}"), cut("{3g.40gb: 2}"))]
    for before, after in [*cases, *((after, before) for before, after in cases)]:
        assert _things(before=before, after=after, job_impact=job_impact) == expected
    same = cut("{1g.10gb: 2, 3g.40gb: 1}"), cut("{3g.40gb: 1, 1g.10gb: 2}")
    assert _things(before=same[0], after=same[1], job_impact=job_impact) == []


def test_a_dearer_worst_case_above_the_budget_is_named() -> None:
    after = f"{_TEXT}budget: {{max_usd_per_hour: 100}}\n"
    assert _things(after=after, usd=(90, 110)) == ["budget"]
    assert _things(after=after, usd=(None, 110)) == ["budget"]
    assert _things(after=after, usd=(110, 110)) == []
    assert _things(after=after, usd=(50, 99)) == []
    assert _things(after=after, usd=(50, None)) == []


def test_only_nodes_that_do_not_survive_count() -> None:
    def change(effect: str, kind: str = "node") -> ResourceChange:
        resource = Resource(kind=kind, name=f"{effect}-{kind}", pool="gpu")
        return msgspec.convert({"effect": effect, "resource": resource}, ResourceChange)

    effects = ("create", "update", "keep", "replace", "delete")
    changes = (*map(change, effects), change("delete", "volume"))
    site = SitePlan(site="lab", provider="simulated", changes=changes)
    assert [(g.name, g.replaced) for g in removed_nodes([site])] == [
        ("replace-node", True),
        ("delete-node", False),
    ]


def test_each_item_is_refused_by_its_own_name_until_it_is_named(sample: SampleCluster) -> None:
    plan = make_plan(sample.open())
    two = (Guard(thing="pool:a", reason="x"), Guard(thing="budget", reason="y"))
    plan = msgspec.structs.replace(plan, guards=two)
    with pytest.raises(LifecycleError) as caught:
        refuse_guarded(plan, {"pool:a", "pool:b"})
    assert caught.value.exit_code is Exit.REFUSED
    assert [diagnostic.hint for diagnostic in caught.value.diagnostics] == [
        "to do it: --allow budget"
    ]
    refuse_guarded(plan, {"pool:a", "budget"})


def test_each_guard_is_let_through_by_one_flag_that_lets_nothing_else_through(
    sample: SampleCluster,
) -> None:
    after = f"{_TEXT}budget: {{max_usd_per_hour: 100}}\n"
    found = guards(
        before=_spec(_TEXT + _MADE),
        after=_spec(after),
        gone=_gone("head01", "door01", "door02", "gpu001", "gpu002", "gpu003", replaced=True),
        existing=_existing(),
        job_impact=JobImpact(queue=3),
        usd_per_hour=(90, 110),
    )
    things = [guard.thing for guard in found]
    assert things == [
        "controller:head01", "storage:warm", "login:door[01-02]", "pool:door", "pool:gpu", "budget",
    ]  # fmt: skip
    plan = msgspec.structs.replace(make_plan(sample.open()), guards=found)
    for thing in things:
        with pytest.raises(LifecycleError) as caught:
            refuse_guarded(plan, {*things} - {thing})
        (message,) = caught.value.diagnostics
        assert message.hint == f"to do it: --allow {thing}"
    refuse_guarded(plan, {*things})


def test_most_of_a_pool_goes_only_when_it_is_named(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=1)
    with pytest.raises(LifecycleError, match="2 of 3 nodes of pool gpu would go at once"):
        sample.up()
    assert len(sample.in_the_provider()) == 4
    assert sample.up(allow="pool:gpu").exit_code is Exit.OK
    assert len(sample.in_the_provider()) == 2


def test_nodes_that_never_came_up_guard_nothing(sample: SampleCluster) -> None:
    sample.write(site=", faults: {seed: 1, boot_failure_rate: 1.0}")
    assert sample.up().failed_hosts
    sample.write(count=1)
    plan = make_plan(sample.open())
    assert [change.effect for site in plan.sites for change in site.changes].count("delete") == 2
    assert plan.guards == ()


def test_a_plan_shows_which_fields_of_the_spec_differ(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=4)
    (field,) = make_plan(sample.open()).fields
    assert (field.path, field.before, field.after) == ("pools.gpu.count", "3", "4")


def test_squeue_has_whose_jobs_are_on_the_nodes_in_question() -> None:
    lines = ["1|ann|gpu[001-002]", "2|bob|gpu003", "3|ann|", "4|cem|gpu002"]
    job_impact = read_job_impact(lines, {"gpu002", "gpu004"})
    assert (job_impact.queue, job_impact.jobs, job_impact.users) == (4, ("1", "4"), ("ann", "cem"))


def test_nodes_that_a_cloud_chooses_count_as_those_that_have_names() -> None:
    spec, two = _spec(), ("gpu003", "gpu004")
    found = {
        more: guards(
            before=spec,
            after=spec,
            gone=(),
            existing=_existing(*two),
            job_impact=None,
            usd_per_hour=(None, None),
            surplus={"gpu": more},
        )
        for more in (2, 3)
    }
    assert found[2] == ()
    assert [g.reason for g in found[3]] == ["3 of 5 nodes of pool gpu would go at once"]
