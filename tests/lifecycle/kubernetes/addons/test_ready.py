"""What a bundle lacks of an add-on's images is said before anything is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.lifecycle.controller import LocalShell
from tests.lifecycle.publisher import digest

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.bundle.check import refuse_incomplete
from gcluster.lifecycle.bundle.kubernetes import RequiredKubernetes
from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.addons.ready import ready
from gcluster.lifecycle.status.observe import Observation
from gcluster.schemas.stack.bundle import BundledFile, BundledImage, BundleManifest

from .lab import NEEDED, SPEC, hosts_of, write

RELEASED = RequiredKubernetes(versions=frozenset({"1.35"}), architectures=frozenset({"amd64"}))
PINNED = "sha256:" + "1" * 64
NAMED, MORE = "example.org/manager:1", "rancher/helper:2"
FOLDER = "files/addons"


def manifest(name: str) -> bytes:
    """Return an add-on whose pod runs an image of the catalog and one more."""
    run = [{"name": f"c{n}", "image": image} for n, image in enumerate((NAMED, MORE))]
    made = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}}
    return json.dumps(made | {"spec": {"containers": run}}).encode()


def known(name: str) -> dict[str, Any]:
    """Return what the catalog says of it."""
    return {
        "name": name, "description": "small", "kind": "manifests", "version": "1.0.0",
        "repository": f"https://example.org/{name}.yaml", "digest": digest(manifest(name)),
        "images": {NAMED: PINNED}, "namespace": f"{name}-system", "source": "here",
        "date": "2026-11",
    }  # fmt: skip


def bundle(*images: str) -> BundleManifest:
    """Return a bundle with the add-ons' manifests and these images."""
    return BundleManifest(
        cluster="lab",
        key_fingerprint="0" * 40,
        key="",
        files=tuple(
            BundledFile(
                source="addons",
                role="kubernetes",
                url="",
                path=f"{FOLDER}/{name}-1.0.0.yaml",
                size=1,
                sha256="0" * 64,
            )
            for name in (*NEEDED, "widgets")
        ),
        images=tuple(
            BundledImage(role="kubernetes", reference=f"{image}@{PINNED}", archive="more.tar")
            for image in images
        ),
        kubernetes=RELEASED.planned().manifest,
    )


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a spec whose add-ons are in the folder of a bundle next to it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / FOLDER).mkdir(parents=True)
    for name in (*NEEDED, "widgets"):
        (tmp_path / FOLDER / f"{name}-1.0.0.yaml").write_bytes(manifest(name))
    return write(tmp_path, *(known(name) for name in (*NEEDED, "widgets")), spec=SPEC)


def opened(path: Path, held: BundleManifest | None) -> Cluster:
    cluster = open_cluster(str(path))
    cluster.__dict__["bundle"] = held
    cluster.__dict__.pop("kubernetes", None)
    return cluster


def made_ready(cluster: Cluster, path: Path, folder: Path | None) -> None:
    """Do what `up` does of add-ons before it changes anything, where nothing is there yet."""
    nothing = ClusterInventory(cluster="lab", hosts=())
    observation = Observation(
        sites=(), existing=nothing, desired=hosts_of(path), stamps={}, unreachable={}, taken_at=0.0
    )
    ready(cluster, observation, LocalShell(path.parent / "bin"), silent, folder)


def test_a_bundle_with_all_images_that_are_started_passes(path: Path) -> None:
    cluster = opened(path, bundle(NAMED, f"docker.io/{MORE}"))
    made_ready(cluster, path, path.parent)


def test_an_image_that_only_the_rendered_add_on_names_is_requested(path: Path) -> None:
    cluster = opened(path, bundle(NAMED))
    with pytest.raises(LifecycleError) as error:
        made_ready(cluster, path, path.parent)
    found = error.value.diagnostics
    assert error.value.exit_code is Exit.REFUSED
    assert {answer.code for answer in found} == {"GC1002"}
    assert [answer.summary for answer in found] == [
        f"the bundle has no image {MORE}, which add-on {name} starts"
        for name in ("cilium", "gpu-operator", "kueue", "widgets")
    ]
    assert f"gcluster bundle {path} --out {path.parent}" in found[0].hint


def test_a_cluster_that_already_uses_a_bundle_is_held_to_it(path: Path) -> None:
    made_ready(opened(path, bundle(NAMED, f"docker.io/{MORE}")), path, path.parent)  # now cached
    with pytest.raises(LifecycleError) as error:
        made_ready(opened(path, bundle(NAMED)), path, None)
    assert "--out DIR" in error.value.diagnostics[0].hint


def test_nodes_that_pull_from_registries_are_held_to_nothing(path: Path) -> None:
    made_ready(opened(path, bundle(NAMED, f"docker.io/{MORE}")), path, path.parent)  # now cached
    made_ready(opened(path, None), path, None)
    other = msgspec.structs.replace(bundle(), kubernetes=None)
    made_ready(opened(path, other), path, None)


def test_images_of_the_catalog_are_requested_with_the_packages(path: Path) -> None:
    cluster = opened(path, None)

    def lacking(held: BundleManifest) -> list[str]:
        with pytest.raises(LifecycleError) as error:
            refuse_incomplete(held, cluster.spec, cluster.catalog, "make it")
        answer = error.value.diagnostics
        return [result.summary for result in answer if "add-on" in result.summary]

    assert lacking(bundle(NAMED)) == []
    assert lacking(bundle()) == [
        f"the bundle has no image {NAMED}@{PINNED}, which add-on {name} starts"
        for name in ("cilium", "gpu-operator", "kueue", "widgets")
    ]
    answer = lacking(msgspec.structs.replace(bundle(NAMED), files=()))
    assert (
        f"the bundle has no {FOLDER}/widgets-1.0.0.yaml, which add-on widgets is made of" in answer
    )
