"""What would stop `up` is checked at every site, shown by `plan`, and stops `up` at the start."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lifecycle.sample_cluster import SampleCluster, tree

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.planning.preflight.obstacles import preflight_of
from gcluster.schemas.diagnostics import Severity
from gcluster.stacks import aws

FULL = ", max_nodes: 2"
CLOUDS = """\
apiVersion: gcluster/v1
name: demo
owner: ops@example.edu
sites:
  east: {provider: aws, region: us-east-1, zone_id: use1-az4, network: {cidr: 10.40.0.0/16}}
  room: {provider: simulated}
pools:
  head: {site: room, role: controller}
  gpu: {site: east, machine: p5.48xlarge, count: 2}
links:
  - {between: [east, room], via: routed, latency: 0.001s}
scheduler: {type: slurm}
"""


@pytest.fixture
def clouds(own_places: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a spec of two sites, on a machine where not logged in to a cloud."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(own_places / "nothing"))
    path = own_places / "cluster.yaml"
    path.write_text(CLOUDS, encoding="utf-8")
    return path


def test_a_site_with_room_has_nothing_to_report(sample: SampleCluster) -> None:
    [lab] = preflight_of(sample.open())
    assert (lab.site, lab.provider, lab.diagnostics) == ("lab", "simulated", ())


def test_an_obstacle_is_reported_under_its_site(sample: SampleCluster) -> None:
    sample.write(site=FULL)
    [lab] = preflight_of(sample.open())
    assert [diagnostic.code for diagnostic in lab.diagnostics] == ["GC918"]


def test_up_is_refused_before_anything_is_made_or_kept(sample: SampleCluster) -> None:
    sample.write(site=FULL)
    with pytest.raises(LifecycleError) as refused:
        sample.up()
    assert refused.value.exit_code is Exit.REFUSED
    assert [diagnostic.code for diagnostic in refused.value.diagnostics] == ["GC918"]
    assert "spec.yaml" not in tree(sample.state), "what was applied before still counts"
    assert sample.in_the_ledger() == {}


def test_without_a_login_the_plan_is_and_what_is_unknown_is_listed(clouds: Path) -> None:
    cluster = open_cluster(str(clouds))
    east, room = make_plan(cluster).sites
    assert "Vpc" in {change.resource.kind for change in east.changes}
    assert room.unobserved == ""
    requested, other = preflight_of(cluster)
    [message] = requested.diagnostics
    assert (message.code, message.severity) == ("GC970", Severity.WARNING)
    assert "quota L-417A185B" in message.detail
    assert other.diagnostics == ()


def test_without_the_extra_the_plan_shows_nodes_and_names_the_extra(
    clouds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws, "MODULES", ("a_module_that_is_not_there",))
    cluster = open_cluster(str(clouds))
    east, _ = make_plan(cluster).sites
    assert [change.resource.key for change in east.changes] == ["node/gpu001", "node/gpu002"]
    assert "pip install 'gcluster[aws]'" in east.unobserved
    requested, _ = preflight_of(cluster)
    [message] = requested.diagnostics
    assert (message.code, message.severity) == ("GC967", Severity.WARNING)
    assert message.summary.startswith("nothing of this site was checked")
    assert message.hint == "pip install 'gcluster[aws]'"
