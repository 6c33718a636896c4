"""A bundle of a spec has Kubernetes and its images, each by its checksum."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import msgspec
import pytest

from gcluster.inventory.compile import compile_cluster
from gcluster.lifecycle.bundle.addons import bundle_images
from gcluster.lifecycle.bundle.kubernetes import (
    RequiredKubernetes,
    bundle_kubernetes,
    kubernetes_missing,
    refusals,
)
from gcluster.lifecycle.bundle.requirements import kubernetes_of, needs_of
from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.fitness import kubernetes_findings
from gcluster.lifecycle.kubernetes.release.release import Release
from gcluster.lifecycle.kubernetes.release.source import bundled_at, describe_source
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
from gcluster.schemas.stack.bundle import BUNDLED, IMAGES, MORE_IMAGES, BundledImage, BundleManifest

from .release_double import VERSION, Servers
from .spec import TEXT, hosts_of, spec_of

OURS = RequiredKubernetes(versions=frozenset({"modules"}), architectures=frozenset({"amd64"}))
RELEASED = RequiredKubernetes(versions=frozenset({"1.35"}), architectures=frozenset({"amd64"}))
NOBODY = BundleManifest(cluster="trial", key_fingerprint="0" * 40, key="")


def test_our_build_lies_in_the_bundle_as_it_was_built(compiled: list[str], tmp_path: Path) -> None:
    manifest, files = bundle_kubernetes(OURS, tmp_path / "out", silent)
    assert manifest is not None
    assert compiled
    assert [file.path for file in files] == [f"{BUNDLED}/{file.path}" for file in manifest.files]
    for file in files:
        content = (tmp_path / "out" / file.path).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (file.sha256, file.size)


def test_what_is_there_and_right_stays_and_what_is_damaged_comes_again(
    compiled: list[str], tmp_path: Path
) -> None:
    bundle_kubernetes(OURS, tmp_path / "out", silent)
    kube, images = (tmp_path / "out" / BUNDLED / name for name in ("bin/kube", IMAGES))
    before = kube.stat().st_mtime_ns
    images.write_bytes(b"damaged")
    compiled.clear()
    _, files = bundle_kubernetes(OURS, tmp_path / "out", silent)
    assert kube.stat().st_mtime_ns == before
    assert hashlib.sha256(images.read_bytes()).hexdigest() == files[-1].sha256
    assert compiled == []


def test_a_release_is_fetched_once(
    servers: tuple[Servers, Release], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    content, of = servers
    made, files = bundle_kubernetes(RELEASED, tmp_path / "out", silent, of)
    assert made is not None
    assert made.kubernetes == VERSION
    content.clear()
    assert bundle_kubernetes(RELEASED, tmp_path / "again", silent, of) == (made, files)


def test_pools_of_two_architectures_or_versions_are_refused() -> None:
    both = RequiredKubernetes(
        versions=frozenset({"1.35", "1.36"}), architectures=frozenset({"amd64", "arm64"})
    )
    assert [answer.code for answer in refusals(both)] == ["GC939", "GC939"]
    assert list(refusals(RELEASED)) == []


def test_machines_of_which_nothing_has_the_version_are_refused() -> None:
    (answer,) = refusals(msgspec.structs.replace(RELEASED, versions=frozenset({""})))
    assert "software.kubernetes" in answer.hint


def test_a_bundle_without_kubernetes_or_for_other_nodes_is_named(compiled: list[str]) -> None:
    (none,) = kubernetes_missing(NOBODY, OURS, "make")
    assert none.code == "GC1050"
    has = msgspec.structs.replace(NOBODY, kubernetes=OURS.planned().manifest)
    assert list(kubernetes_missing(has, OURS, "make")) == []
    other = msgspec.structs.replace(OURS, architectures=frozenset({"arm64"}))
    (answer,) = kubernetes_missing(has, other, "make")
    assert answer.code == "GC1051"
    assert list(kubernetes_missing(NOBODY, None, "make")) == []
    assert compiled == []


def test_machines_request_the_release_and_for_no_packages_of_it(root: Path) -> None:
    spec = load(root / "examples" / "kubernetes-h200.yaml").spec
    assert spec is not None
    requested = kubernetes_of(spec, load_catalog())
    assert requested is not None
    assert (set(requested.versions), set(requested.architectures)) == ({"1.36"}, {"amd64"})
    needs = needs_of(spec, load_catalog(), ("kubernetes", "containerd"))
    assert needs
    for pool in needs:
        assert not {"kubeadm", "kubelet", "kubectl"} & {
            package.what.partition("=")[0] for package in pool.packages
        }
        assert "kubernetes" not in {repository["name"] for repository in pool.repositories}
        assert pool.files == ()


def test_an_image_that_was_not_pinned_is_refused_before_anything_is_fetched(root: Path) -> None:
    spec = load(root / "examples" / "kubernetes-h200.yaml").spec
    assert spec is not None
    requested = kubernetes_of(spec, load_catalog())
    assert requested is not None
    assert ["kube-vip" in answer.summary for answer in refusals(requested)] == [True]


def test_nodes_take_it_from_the_package_mirror_and_control_planes_from_their_disk() -> None:
    spec = spec_of()
    at = bundled_at(OURS.planned().manifest)
    groups = {
        group.name: {step.key: step.variables for step in group.steps}
        for group in compile_cluster(spec, hosts_of(spec), load_catalog(), NOBODY, at).groups
    }
    archives = {
        name: steps["kubernetes.install"]["kubernetes_archive"] for name, steps in groups.items()
    }
    head, gpu = (json.dumps(archives[name]) for name in ("head", "gpu"))
    assert f'"file:///srv/gcluster/package-mirror/bundle/{BUNDLED}/{IMAGES}"' in head
    assert f':8480/bundle/{BUNDLED}/{IMAGES}"' in gpu
    for steps in groups.values():
        assert steps["containerd.configure"]["containerd_mirrors"] == {
            "_default": "http://127.0.0.1:8481"
        }


def test_a_cluster_takes_kubernetes_from_the_bundle_that_it_uses(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(TEXT, encoding="utf-8")
    cluster = open_cluster(str(path))
    manifest = OURS.planned().manifest
    cluster.__dict__["bundle"] = msgspec.structs.replace(NOBODY, kubernetes=manifest)
    at = cluster.kubernetes
    assert at == bundled_at(manifest)
    assert "in the bundle that the nodes live on" in describe_source(at)
    assert not [d for d in kubernetes_findings(cluster, hosts_of(cluster.spec)) if d.is_error]


@pytest.mark.parametrize(
    ("archive", "codes"), [(f"{BUNDLED}/{MORE_IMAGES}", []), (None, ["GC1002"])]
)
def test_an_image_counts_as_there_when_the_bundle_holds_its_content(
    tmp_path: Path, archive: str | None, codes: list[str]
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(TEXT, encoding="utf-8")
    cluster = open_cluster(str(path))
    manifest = OURS.planned().manifest
    plugin = manifest.image("simulated-gpu")
    cluster.__dict__["bundle"] = msgspec.structs.replace(
        NOBODY,
        kubernetes=msgspec.structs.replace(
            manifest, images=tuple(i for i in manifest.images if i.reference != plugin)
        ),
        images=(
            BundledImage(
                role="kubernetes", reference=f"{plugin}@sha256:{'0' * 64}", archive=archive
            ),
        ),
    )
    found = kubernetes_findings(cluster, hosts_of(cluster.spec))
    assert [answer.code for answer in found if answer.is_error] == codes


def test_an_image_is_found_by_its_tag_and_by_the_digest_that_was_pinned(
    servers: tuple[Servers, Release], tmp_path: Path
) -> None:
    content, of = servers
    host = of.registry.url.removeprefix("http://")
    pinned = content.push("kueue/kueue", "v1")
    images, files = bundle_images(RELEASED, {f"{host}/kueue/kueue:v1": pinned}, tmp_path, silent)
    (file,) = files
    assert file.path == f"{BUNDLED}/{MORE_IMAGES}"
    assert [image.archive for image in images] == [file.path]
    with tarfile.open(tmp_path / file.path) as archive:
        member = archive.extractfile("index.json")
        assert member is not None
        index = json.loads(member.read())["manifests"]
        names = archive.getnames()
    assert {entry["annotations"]["io.containerd.image.name"] for entry in index} == {
        f"{host}/kueue/kueue:v1",
        f"{host}/kueue/kueue@{pinned}",
    }
    assert {entry["digest"] for entry in index} == {pinned}
    assert len([name for name in names if name.startswith("blobs/")]) == 4


def test_a_registry_that_gives_something_else_than_was_pinned_is_not_accepted(
    servers: tuple[Servers, Release], tmp_path: Path
) -> None:
    content, of = servers
    host = of.registry.url.removeprefix("http://")
    pinned = content.push("kueue/kueue", "v1")
    path = f"/v2/kueue/kueue/manifests/{pinned}"
    content[path] = (content[path][0] + b" ", content[path][1])
    with pytest.raises(LifecycleError, match="doesn't match its digest"):
        bundle_images(RELEASED, {f"{host}/kueue/kueue:v1": pinned}, tmp_path, silent)
    assert not (tmp_path / BUNDLED / MORE_IMAGES).exists()


def test_an_archive_that_has_just_these_images_is_not_fetched_again(
    servers: tuple[Servers, Release], tmp_path: Path
) -> None:
    content, of = servers
    host = of.registry.url.removeprefix("http://")
    run = {f"{host}/kueue/kueue:v1": content.push("kueue/kueue", "v1")}
    made = bundle_images(RELEASED, run, tmp_path, silent)
    before = msgspec.structs.replace(NOBODY, images=made[0], files=made[1])
    (tmp_path / "manifest.json").write_bytes(before.encode())
    content.clear()
    assert bundle_images(RELEASED, run, tmp_path, silent) == made
    (tmp_path / made[1][0].path).write_bytes(b"damaged")
    with pytest.raises(LifecycleError):
        bundle_images(RELEASED, run, tmp_path, silent)
