"""What keeps Kubernetes from coming up is said at once, with its code, before anything changes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.kubernetes.fitness import kubernetes_findings
from gcluster.schemas.diagnostics import Severity

from .spec import TEXT, hosts_of


def opened(tmp_path: Path, text: str = TEXT) -> Cluster:
    path = tmp_path / "cluster.yaml"
    path.write_text(text, encoding="utf-8")
    return open_cluster(str(path))


def errors(cluster: Cluster) -> list[tuple[str, str]]:
    found = kubernetes_findings(cluster, hosts_of(cluster.spec))
    return [(answer.code, answer.summary) for answer in found if answer.is_error]


def test_the_cluster_that_local_nodes_can_be_has_no_errors(tmp_path: Path) -> None:
    assert errors(opened(tmp_path)) == []


@pytest.mark.parametrize("version", ["1.35", '"1.35.4"', "auto"])
def test_the_bundles_version_may_be_requested(tmp_path: Path, version: str) -> None:
    text = f"{TEXT}software: {{kubernetes: {version}}}\n".replace(": 1.35}", ': "1.35"}')
    assert errors(opened(tmp_path, text)) == []


@pytest.mark.parametrize("version", ["1.34", "1.35.3", "1.35.40"])
def test_another_version_is_refused(tmp_path: Path, version: str) -> None:
    text = f'{TEXT}software: {{kubernetes: "{version}"}}\n'
    assert [code for code, _ in errors(opened(tmp_path, text))] == ["GC1001"]


def test_a_pod_network_that_the_bundle_lacks_is_refused(tmp_path: Path) -> None:
    text = TEXT.replace("kueue: false", "kueue: false\n  cni: cilium")
    assert ("GC1002", "the pod network cilium is not in the bundle of local nodes") in errors(
        opened(tmp_path, text)
    )


def test_an_image_that_the_bundle_lacks_is_named(tmp_path: Path) -> None:
    cluster = opened(tmp_path)
    at = cluster.kubernetes
    assert at is not None
    images = tuple(i for i in at.manifest.images if "/simulated-gpu:" not in i.reference)
    lacking = msgspec.structs.replace(at.manifest, images=images)
    cluster.__dict__["kubernetes"] = msgspec.structs.replace(at, manifest=lacking)
    found = errors(cluster)
    assert [code for code, _ in found] == ["GC1002"]
    assert "gcluster.local/k8s/simulated-gpu:1" in found[0][1]


def test_add_ons_that_local_nodes_go_without_are_a_note(tmp_path: Path) -> None:
    cluster = opened(tmp_path, TEXT.replace("  kueue: false\n", ""))
    (answer,) = kubernetes_findings(cluster, hosts_of(cluster.spec))
    assert (answer.code, answer.severity) == ("GC1003", Severity.NOTE)
    assert "kueue" in answer.summary


def test_machines_with_unpinned_add_ons_are_refused_with_each_add_on(
    root: Path,
) -> None:
    cluster = open_cluster(str(root / "examples" / "kubernetes-h200.yaml"))
    nobody = ClusterInventory(cluster=cluster.name, hosts=())
    codes = {answer.code for answer in kubernetes_findings(cluster, nobody) if answer.is_error}
    assert codes == {"GC619"}
