"""A machine type of the user's own: what runs goes on without the file that described it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.state import Applied, store_applied

from .sample_cluster import SampleCluster

_OWN = """\
apiVersion: gcluster/catalog/v1
machines:
  - name: ours
    sites: [simulated]
    cpu: {architecture: x86_64}
    simulated: true
    gpu: {vendor: nvidia, model: H100, memory_gib: 80, count: 4}
    source: purchase order
    date: 2026-11
"""


@pytest.fixture
def own(sample: SampleCluster) -> SampleCluster:
    """Return a trial whose compute nodes are of a type that only a file next to the spec has."""
    (sample.path.parent / "ours.yaml").write_text(_OWN, encoding="utf-8")
    text = sample.path.read_text(encoding="utf-8").replace("sim.h100x8", "ours")
    sample.path.write_text(f"{text}catalog: [ours.yaml]\n", encoding="utf-8")
    return sample


def test_it_comes_up_and_is_compiled_from_the_file(own: SampleCluster) -> None:
    assert own.up().exit_code is Exit.OK
    assert own.open(running=True).catalog.machines["ours"].gpu is not None


def test_it_is_taken_down_without_the_file(own: SampleCluster) -> None:
    own.up()
    (own.path.parent / "ours.yaml").unlink()

    assert own.down().exit_code is Exit.OK


def test_a_file_that_is_named_no_more_is_not_kept(own: SampleCluster) -> None:
    own.up()
    text = own.path.read_text(encoding="utf-8").replace("catalog: [ours.yaml]\n", "")
    own.path.write_text(text.replace("ours", "sim.h100x8"), encoding="utf-8")
    own.up(allow="pool:gpu")

    assert own.open(running=True).catalogs == {}


def test_a_spec_that_a_later_check_refuses_is_still_taken_down(sample: SampleCluster) -> None:
    sample.up()
    kept = sample.open(running=True)
    store_applied(kept.events, Applied(spec=kept.spec_text.replace("count: 3", "count: 200000")))

    assert sample.down().exit_code is Exit.OK


def test_a_file_that_is_not_there_stops_up_before_anything_is_made(own: SampleCluster) -> None:
    (own.path.parent / "ours.yaml").unlink()
    with pytest.raises(LifecycleError, match="does not exist") as caught:
        own.up()

    assert len(caught.value.diagnostics) == 1


def test_a_cloud_site_is_planned_with_a_machine_type_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(
        """\
apiVersion: gcluster/catalog/v1
machines:
  - name: p5.next
    sites: [aws]
    cpu: {architecture: x86_64}
    gpu: {vendor: nvidia, model: H100, memory_gib: 80, count: 8}
    fabric: efa-v2
    nics: [{kind: efa, count: 32, gbps: 100}]
    network_cards: 32
    source: private offer
    date: 2026-11
""",
        encoding="utf-8",
    )
    spec = tmp_path / "demo.yaml"
    spec.write_text(
        """\
apiVersion: gcluster/v1
name: demo
catalog: [ours.yaml]
sites:
  east:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {admin_cidrs: [192.0.2.0/24]}
pools:
  head: {site: east, role: controller, machine: m7i.4xlarge, public_address: true}
  gpu: {site: east, machine: p5.next, count: 2}
scheduler: {type: slurm}
""",
        encoding="utf-8",
    )
    plan = make_plan(open_cluster(str(spec)))

    assert plan.sites[0].unobserved
    assert [c.resource.name for c in plan.sites[0].changes if c.resource.pool == "gpu"]


def _keep(own: SampleCluster, catalog: bytes) -> None:
    """Have the state keep a catalog file as it is, as an earlier version would have."""
    kept = own.open(running=True)
    store_applied(kept.events, Applied(spec=kept.spec_text, catalogs={"00.yaml": catalog}))


_BEFORE_CPU = _OWN.replace("    cpu: {architecture: x86_64}\n", "").encode()


def test_a_kept_type_without_a_processor_is_read_as_the_version_that_kept_it_did(
    own: SampleCluster,
) -> None:
    own.up()
    _keep(own, _BEFORE_CPU)

    assert own.open(running=True).catalog.machines["ours"].cpu.architecture == "x86_64"
    assert own.down().exit_code is Exit.OK


def test_a_kept_catalog_that_this_version_can_t_read_is_named_with_what_to_do(
    own: SampleCluster,
) -> None:
    own.up()
    _keep(own, _OWN.replace("count: 4", "count: many").encode())

    with pytest.raises(LifecycleError) as refused:
        _ = own.open(running=True).catalog
    (message,) = refused.value.diagnostics
    assert (message.file, message.path[-1]) == ("00.yaml", "count")
    assert "that the state of trial keeps" in message.hint
