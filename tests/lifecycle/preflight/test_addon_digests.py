"""Nothing unpinned is run: add-ons without digests are named, one by one."""

from __future__ import annotations

from pathlib import Path

from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts, kubernetes_facts
from gcluster.lifecycle.cluster.open_site import inventory
from gcluster.lifecycle.planning.preflight.offline import unknown_digests
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import Loaded, load
from gcluster.stacks.registry import provider

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools: {head: {site: here, role: controller}, gpu: {site: here, machine: sim.h100x8, count: 1}}
scheduler: {type: kubernetes, kueue: %s}
catalog: [addons.yaml]
"""
DIGEST = "sha256:" + "0" * 64
PINNED = f"""\
apiVersion: gcluster/catalog/v1
addons:
  - name: local-path-provisioner
    description: volumes on nodes
    kind: helm
    repository: https://charts.example.org
    chart: local-path-provisioner
    version: 0.0.33
    digest: {DIGEST}
    images: {{example.org/provisioner:1: {DIGEST}}}
    namespace: local-path-storage
    source: what was fetched
    date: 2026-11
"""
NOTHING = "apiVersion: gcluster/catalog/v1\n"


def _given(tmp_path: Path, kueue: str, catalog: str) -> tuple[KubernetesFacts, Loaded]:
    path = tmp_path / "demo.yaml"
    path.write_text(SPEC % kueue, encoding="utf-8")
    (tmp_path / "addons.yaml").write_text(catalog, encoding="utf-8")
    loaded = load(path)
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    known = load_catalog(loaded.catalogs)
    site = loaded.spec.sites["here"]
    planned = provider(site.provider, known).planned_hosts(loaded.spec, "here")
    return kubernetes_facts(loaded.spec, inventory(loaded.spec, planned), known), loaded


def test_an_add_on_without_a_digest_is_named_with_its_images(tmp_path: Path) -> None:
    facts, loaded = _given(tmp_path, "true", NOTHING)
    found = {one.summary for one in unknown_digests(facts, loaded)}
    assert (
        "add-on kueue: no digest is known of the chart or manifest itself, "
        "registry.k8s.io/kueue/kueue:v0.20.3"
    ) in found
    assert {one.code for one in unknown_digests(facts, loaded)} == {"GC619"}


def test_digests_of_ones_own_catalog_are_taken(tmp_path: Path) -> None:
    facts, loaded = _given(tmp_path, "false", PINNED)
    assert unknown_digests(facts, loaded) == ()
