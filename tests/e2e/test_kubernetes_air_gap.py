"""Kubernetes on nodes that reach nothing beyond this machine, brought up from a bundle alone.

Packages are of the distribution's own mirror, Kubernetes of its Go modules. The tests run in order
and share one cluster.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcluster.lifecycle.kubernetes.release.image_archive import ArchivedImage, write_archive
from gcluster.lifecycle.kubernetes.release.recipe import architecture, recipe
from gcluster.schemas.stack.bundle import BUNDLED, IMAGES, MORE_IMAGES

from .conftest import made_bundle, until
from .kubernetes_site import PAUSE, SMOKE, KubernetesCluster, pod

INDEX = "application/vnd.oci.image.index.v1+json"

pytestmark = [pytest.mark.local, pytest.mark.bundle, pytest.mark.kubernetes]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """A site without a network; its cluster is taken down whatever happens."""
    cluster = KubernetesCluster(tmp_path_factory.mktemp("kubernetes"))
    cut_off(cluster)
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


@pytest.fixture(scope="module")
def bundle(live: KubernetesCluster) -> Path:
    """A bundle of all that the spec needs."""
    return made_bundle(live)


@pytest.fixture
def emptied(live: KubernetesCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the command a cache in which nothing was ever built; return where it would be."""
    monkeypatch.setitem(live.environment, "XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gcluster"


def cut_off(live: KubernetesCluster, end: str = SMOKE) -> None:
    """Write the spec of a site whose nodes reach nothing beyond this machine."""
    live.write_spec(nodes=1, end=end)
    internal = "provider: local, network: {internal: true}"
    live.spec.write_text(live.spec.read_text().replace("provider: local", internal))


def add_on_image(bundle: Path, out: Path) -> str:
    """Write the archive of an image that does what the bundle's pause does; return its digest.

    As registries have it, that is an index, which names architectures that the archive lacks.
    """
    with tarfile.open(bundle / BUNDLED / IMAGES) as archive:

        def blob(digest: str) -> bytes:
            member = archive.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert member is not None
            return member.read()

        listed = archive.extractfile("index.json")
        assert listed is not None
        entry = next(
            one
            for one in json.loads(listed.read())["manifests"]
            if one["annotations"]["io.containerd.image.name"] == PAUSE
        )
        manifest = json.loads(blob(entry["digest"]))
        parts = [entry["digest"], *(p["digest"] for p in (manifest["config"], *manifest["layers"]))]
        blobs = {digest: blob(digest) for digest in parts}
    here = {key: entry[key] for key in ("mediaType", "digest", "size")}
    platforms = {architecture(): here, "s390x": here | {"digest": f"sha256:{'0' * 64}"}}
    index = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [
                one | {"platform": {"os": "linux", "architecture": name}}
                for name, one in platforms.items()
            ],
        }
    ).encode()
    digest = f"sha256:{hashlib.sha256(index).hexdigest()}"
    image = ArchivedImage(
        reference="registry.invalid/add-on:1",
        digest=digest,
        media_type=INDEX,
        blobs=blobs | {digest: index},
        also=(f"registry.invalid/add-on@{digest}",),
    )
    write_archive([image], out)
    return digest


def refused(live: KubernetesCluster, folder: Path, code: str) -> str:
    """Return what `up` says of a bundle that it refuses, having made nothing."""
    done = live.gcluster("up", str(live.spec), "--yes", "--bundle", str(folder), expect=4)
    assert live.engine("ps", "--all") == []
    assert f"error[{code}]" in done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_second_run_fetches_nothing_and_writes_the_same_manifest(
    live: KubernetesCluster, bundle: Path
) -> None:
    before = (bundle / "manifest.json").read_bytes()
    assert json.loads(before)["kubernetes"]["made_from"] == "modules"
    assert live.json("bundle", str(live.spec), "--out", str(bundle))["fetched"] == 0
    assert (bundle / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("how", ["missing", "other"])
def test_damaged_images_are_named_and_nothing_is_made(
    live: KubernetesCluster, copy: Path, how: str
) -> None:
    images = copy / BUNDLED / IMAGES
    if how == "missing":
        images.unlink()
    else:
        images.write_bytes(images.read_bytes()[:-1] + b"x")
    assert f"{BUNDLED}/{IMAGES}" in refused(live, copy, "GC938").replace("\n", "")


def test_another_version_than_the_bundles_is_refused_and_nothing_is_made(
    live: KubernetesCluster, bundle: Path
) -> None:
    cut_off(live, end='software: {kubernetes: "1.34.1"}\n')
    assert "1.34.1" in refused(live, bundle, "GC1001")
    cut_off(live)


def test_a_bundle_without_kubernetes_is_refused_and_nothing_is_made(
    live: KubernetesCluster, tmp_path: Path
) -> None:
    out = tmp_path / "containerd"
    live.gcluster("bundle", str(live.spec), "--out", str(out), "--only", "containerd")
    refused(live, out, "GC1050")


def test_the_cluster_comes_up_from_the_bundle_to_a_passed_allreduce(
    live: KubernetesCluster, bundle: Path, emptied: Path
) -> None:
    result = live.json("up", str(live.spec), "--yes", "--bundle", str(bundle))
    assert result["verdict"]["verdict"] == "pass"
    assert result["failed_hosts"] == {}
    assert list(emptied.rglob("images.tar")) == []


def test_no_node_reaches_anything_or_has_another_source(live: KubernetesCluster) -> None:
    for node in ("head", "gpu001"):
        reach = "timeout 5 bash -c '</dev/tcp/151.101.2.132/80' 2>/dev/null && echo yes || echo no"
        assert live.on(node, reach).strip() == "no"
        used = "apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort -u"
        (source,) = live.on(node, used).split()
        assert "/bundle/apt/" in source


def test_a_pod_with_pull_policy_always_finds_its_image_on_its_node(live: KubernetesCluster) -> None:
    wanting = pod("wanting", gpus=1, qos="low")
    wanting["spec"]["containers"][0]["imagePullPolicy"] = "Always"
    live.apply(wanting)
    live.runs("wanting")
    events = "--field-selector=involvedObject.name=wanting,reason=Pulled"
    answer = live.get("events", "--namespace=physics", events)["items"]
    assert "Successfully pulled" in answer[0]["message"]


def test_an_image_of_an_add_on_is_found_by_the_digest_that_was_pinned(
    live: KubernetesCluster, bundle: Path, tmp_path: Path
) -> None:
    digest = add_on_image(bundle, tmp_path / MORE_IMAGES)
    store = f"/usr/local/share/gcluster/kubernetes/{recipe().kubernetes}/{MORE_IMAGES}"
    node = f"gcluster-{live.name}-gpu001"
    take = ["ctr", "--namespace=k8s.io", "images", "import", store]
    subprocess.run(["podman", "cp", tmp_path / MORE_IMAGES, f"{node}:{store}"], check=True)
    subprocess.run(["podman", "exec", node, *take], check=True)
    for name, policy in (("kept", "IfNotPresent"), ("pulled", "Always")):
        of_add_on = pod(name, gpus=1, qos="low")
        of_add_on["spec"]["containers"][0] |= {
            "image": f"registry.invalid/add-on@{digest}",
            "imagePullPolicy": policy,
        }
        live.apply(of_add_on)
        live.runs(name)


def test_an_image_that_is_not_in_the_bundle_is_not_found(live: KubernetesCluster) -> None:
    lacking = pod("lacking", qos="low")
    lacking["spec"]["containers"][0] |= {
        "image": "gcluster.local/k8s/absent:1",
        "imagePullPolicy": "Always",
    }
    live.apply(lacking)
    events = "--field-selector=involvedObject.name=lacking,reason=Failed"

    def answer() -> list[str]:
        found = live.get("events", "--namespace=physics", events)["items"]
        return [result["message"] for result in found]

    until(lambda: bool(answer()), seconds=90)
    assert "gcluster.local/k8s/absent:1" in answer()[0]
    live.free()


def test_a_second_up_changes_nothing(live: KubernetesCluster, bundle: Path, emptied: Path) -> None:
    assert live.json("up", str(live.spec), "--yes", "--bundle", str(bundle))["changed"] is False
    assert live.json("up", str(live.spec), "--yes")["changed"] is False
    assert "in the bundle" in live.json("plan", str(live.spec))["kubernetes"]
    assert not list(emptied.rglob("images.tar"))
