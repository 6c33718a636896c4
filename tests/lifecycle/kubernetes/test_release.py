"""A release is taken by the sums published of it, here from doubles of its servers."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.release.release import Release, fetch_release, planned_release

from .release_double import VERSION, Servers


def test_programs_and_images_are_in_the_bundle_with_their_sums(
    servers: tuple[Servers, Release], tmp_path: Path
) -> None:
    made = fetch_release(VERSION, "amd64", tmp_path / "out", silent, servers[1])
    for file in made.files:
        content = (tmp_path / "out" / file.path).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file.sha256
    assert {name for file in made.files for name in file.programs} == {
        "kubeadm",
        "kubectl",
        "kubelet",
    }
    with tarfile.open(tmp_path / "out/images.tar") as archive:
        names = set(archive.getnames())
    assert {f"blobs/{image.digest.replace(':', '/')}" for image in made.images} <= names
    assert made.image("pause").endswith("/pause:3.10.1")
    assert made.image("coredns").endswith("/coredns/coredns:v1.13.1")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("/v1.35.4/bin/linux/amd64/kubelet", "kubelet"),
        ("/v2/etcd/blobs/", "doesn't match its digest"),
        ("/v2/pause/manifests/sha256", "doesn't match its digest"),
    ],
)
def test_what_is_not_what_its_sum_has_ends_it_and_leaves_nothing(
    servers: tuple[Servers, Release], tmp_path: Path, part: str, message: str
) -> None:
    content, of = servers
    # Of an index and the manifest that it names, the manifest: the index is requested by its tag.
    path = [p for p in content if p.startswith(part) and not p.endswith(".sha256")][-1]
    content[path] = (content[path][0] + b" and more", content[path][1])
    with pytest.raises(LifecycleError) as raised:
        fetch_release(VERSION, "amd64", tmp_path / "out", silent, of)
    assert any(message in d.summary for d in raised.value.diagnostics)
    assert list(tmp_path.iterdir()) == []


def test_a_version_whose_etcd_is_not_recorded_is_refused_before_anything_is_fetched(
    servers: tuple[Servers, Release], tmp_path: Path
) -> None:
    with pytest.raises(LifecycleError, match=r"1\.99\.0 is not known"):
        fetch_release("1.99.0", "amd64", tmp_path / "out", silent, servers[1])


def test_an_architecture_that_is_not_published_is_reported(
    servers: tuple[Servers, Release], tmp_path: Path
) -> None:
    content, of = servers
    for name in of.programs.names:
        content.publish(f"/v{VERSION}/bin/linux/arm64/{name}", b"program")
    with pytest.raises(LifecycleError, match="has no image for linux on arm64"):
        fetch_release(VERSION, "arm64", tmp_path / "out", silent, of)


def test_a_planned_release_is_the_fetched_one_but_for_sizes_and_sums(
    servers: tuple[Servers, Release], tmp_path: Path
) -> None:
    made = fetch_release(VERSION, "amd64", tmp_path / "out", silent, servers[1])
    planned = planned_release(VERSION, "amd64")
    assert [file.path for file in planned.files] == [file.path for file in made.files]
    assert [f.programs for f in planned.files] == [f.programs for f in made.files]
    assert [image.reference.partition("/")[2] for image in planned.images] == [
        image.reference.partition("/")[2] for image in made.images
    ]
    assert (planned.etcd, planned.coredns, planned.pause) == (made.etcd, made.coredns, made.pause)
    assert not planned.is_built
