"""Fields that differ from what was applied, and how much each disturbs."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.planning.spec_fields import field_lines
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

_TEXT = """\
apiVersion: gcluster/v1
name: demo
sites: {lab: {provider: simulated}}
pools:
  head: {site: lab, role: controller}
  gpu: {site: lab, machine: sim.h100x8, count: 4, quorum: 3, tags: {team: nlp}}
scheduler: {type: slurm, partitions: {train: {pools: [gpu], max_time: 7d}}}
"""


def _spec(text: str) -> ClusterSpec:
    loaded = load_text(text, file="demo.yaml", check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


@pytest.mark.parametrize(
    ("old", "new", "path", "disruption", "values"),
    [
        ("count: 4", "count: 6", "pools.gpu.count", "none", ("4", "6")),
        ("count: 4", "count: 2", "pools.gpu.count", "destroy", ("4", "2")),
        ("count: 4", "count: {min: 0, max: 8}", "pools.gpu.count", "none", ("4", "")),
        ("quorum: 3", "quorum: 2", "pools.gpu.quorum", "none", ("3", "2")),
        ("sim.h100x8", "sim.h200x8", "pools.gpu.machine", "replace", ("sim.h100x8", "sim.h200x8")),
        ("team: nlp", "team: cv", "pools.gpu.tags.team", "in-place", ("nlp", "cv")),
        ("team: nlp", "team: nlp, cost: a", "pools.gpu.tags.cost", "in-place", ("", "a")),
        ("max_time: 7d", "max_time: 2d", "scheduler.partitions.train.max_time", "in-place",
         ("7d", "2d")),
        ("role: controller}", "role: controller, boot: {parameters: [iommu=pt]}}",
         "pools.head.boot.parameters", "rolling", ("", "")),
    ],
)  # fmt: skip
def test_a_field_that_differs_is_reported_with_its_policy(
    old: str, new: str, path: str, disruption: str, values: tuple[str, str]
) -> None:
    (line,) = field_lines(_spec(_TEXT), _spec(_TEXT.replace(old, new)))
    assert (line.path, line.disruption, (line.before, line.after)) == (path, disruption, values)


def test_a_pool_that_is_new_disturbs_nothing_and_one_that_goes_is_destroyed() -> None:
    more = _spec(_TEXT.replace("scheduler:", "  old: {site: lab, count: 1}\nscheduler:", 1))
    (added,) = field_lines(_spec(_TEXT), more)
    (gone,) = field_lines(more, _spec(_TEXT))
    assert (added.path, added.disruption) == ("pools.old", "none")
    assert (gone.path, gone.disruption) == ("pools.old", "destroy")


def test_a_site_of_another_provider_is_no_change_of_its_fields() -> None:
    other = _spec(_TEXT.replace("provider: simulated", "provider: local"))
    (line,) = field_lines(_spec(_TEXT), other)
    assert (line.path, line.disruption) == ("sites.lab", "destroy")


def test_layout_and_comments_are_no_change() -> None:
    assert field_lines(_spec(_TEXT), _spec(f"# why\n{_TEXT}")) == ()
