"""A bundle pins add-ons: what their publishers have, by digest, in a catalog file of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.publisher import Publisher, digest, get, published

from gcluster.inventory.compile.kubernetes_objects.addons import ChosenAddon
from gcluster.lifecycle.bundle.addons import (
    RequiredAddons,
    addons_missing,
    addons_of,
    bundle_addons,
    lock_addons,
    pinned_images,
)
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.addons.notes import bundled_images
from gcluster.lifecycle.planning.preflight.offline import CATALOG
from gcluster.schemas.catalog import Addon, load_catalog
from gcluster.schemas.load import load, load_text
from gcluster.schemas.stack.bundle import BundledFile, BundledImage, BundleManifest

ONE, TWO = ("sha256:" + digit * 64 for digit in "12")
TEXT = """\
apiVersion: gcluster/v1
name: demo
sites: {hall: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: hall, role: controller, hosts: [{name: head, address: 10.0.0.1}]}
  gpu: {site: hall, machine: hgx-h200-8, hosts: [{name: gpu1, address: 10.0.0.2}]}
scheduler: {type: kubernetes, kueue: false, cni: cilium}
"""


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with published() as content:
        yield content


@pytest.fixture
def renders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a helm that makes of every chart what is in the file returned."""
    (tmp_path / "bin").mkdir()
    made, helm = tmp_path / "made.yaml", tmp_path / "bin" / "helm"
    made.write_text("{kind: ConfigMap, apiVersion: v1, metadata: {name: a}}\n", encoding="utf-8")
    script = f"#!/bin/sh\n[ $1 = version ] && echo v4.1.4 || {{ cat >/dev/null; cat {made}; }}\n"
    helm.write_text(script, encoding="utf-8")
    helm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    return made


def of(*addons: Addon) -> RequiredAddons:
    """Return requests for add-ons without values of ours."""
    chosen = tuple(ChosenAddon(addon=one) for one in addons)
    return RequiredAddons(chosen=chosen, cluster="demo", release="1.35")


def pod(*images: str) -> bytes:
    """Return a manifest whose pod runs images."""
    run = [{"name": f"c{n}", "image": image} for n, image in enumerate(images)]
    made = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}
    return json.dumps(made | {"spec": {"initContainers": run[1:], "containers": run[:1]}}).encode()


def addon(publisher: Publisher, **answer: object) -> Addon:
    """Return an add-on of the publisher's; what nothing is said of is a chart of a repository."""
    known: dict[str, object] = {
        "name": "queue", "description": "queues", "kind": "helm", "chart": "queue",
        "repository": f"https://{publisher.host}/charts", "version": "1.2.3",
        "namespace": "queue", "source": "here", "date": "2026-11",
    }  # fmt: skip
    return msgspec.convert(known | answer, Addon)


@pytest.mark.usefixtures("renders")
def test_a_chart_of_a_repository_is_taken_as_in_its_index(
    publisher: Publisher, tmp_path: Path
) -> None:
    chart = b"a chart"
    entry = (
        f"entries: {{queue: [{{version: 1.2.3, urls: [queue.tgz], digest: {digest(chart)[7:]}}}]}}"
    )
    publisher["/charts/index.yaml"] = entry.encode()
    publisher["/charts/queue.tgz"] = chart
    image = f"{publisher.host}/queue/queue:v1"
    manifest = json.dumps({"layers": []}).encode()
    publisher["/v2/queue/queue/manifests/v1"] = manifest
    requested = addon(publisher, images={image: None})
    held, catalog = bundle_addons(of(requested), tmp_path, silent, get)
    assert (tmp_path / held.path).read_bytes() == chart
    assert held.sha256 == digest(chart)[7:]
    assert catalog.path == CATALOG
    text = (tmp_path / CATALOG).read_text(encoding="utf-8")
    assert digest(chart) in text
    assert digest(manifest) in text


@pytest.mark.usefixtures("renders")
def test_a_chart_of_a_registry_is_its_layer(publisher: Publisher, tmp_path: Path) -> None:
    chart = b"a chart in a registry"
    publisher.has_chart("queue", "1.2.3", chart)
    requested = addon(publisher, repository=f"oci://{publisher.host}/charts")
    held, _ = bundle_addons(of(requested), tmp_path, silent, get)
    assert (tmp_path / held.path).read_bytes() == chart


def test_what_is_pinned_and_differs_is_refused_and_all_failures_are_named(
    publisher: Publisher, tmp_path: Path
) -> None:
    publisher["/one.yaml"] = b"kind: ConfigMap\n"
    file = f"https://{publisher.host}/one.yaml"
    pinned = addon(publisher, name="one", kind="manifests", repository=file, digest=digest(b"two"))
    lacking = addon(publisher, name="lacking", chart="lacking")
    with pytest.raises(LifecycleError) as error:
        bundle_addons(of(pinned, lacking), tmp_path, silent, get)
    answer = [found.summary for found in error.value.diagnostics]
    assert len(answer) == 2
    assert "not sha256:" in answer[0]
    assert not (tmp_path / CATALOG).exists()


def test_what_up_leaves_out_on_local_nodes_is_not_requested() -> None:
    text = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools: {head: {site: here, role: controller}, gpu: {site: here, machine: sim.h100x8, count: 1}}
scheduler: {type: kubernetes}
"""
    loaded = load_text(text, file="demo.yaml")
    assert loaded.spec is not None
    assert addons_of(loaded.spec, load_catalog()).chosen == ()


def test_the_digests_of_a_bundle_fill_what_a_spec_leaves_open(
    publisher: Publisher, tmp_path: Path
) -> None:
    loaded = load_text(TEXT, file="demo.yaml")
    assert loaded.spec is not None
    chosen = addons_of(loaded.spec, load_catalog()).chosen
    open_one = next(one.addon for one in chosen if one.addon.unfilled)
    assert open_one.unfilled
    publisher["/one.yaml"] = pod(f"{publisher.host}/queue:v1")
    manifest = json.dumps({"layers": []}).encode()
    publisher["/v2/queue/manifests/v1"] = manifest
    requested = addon(
        publisher,
        name=open_one.name,
        kind="manifests",
        repository=f"https://{publisher.host}/one.yaml",
        images={f"{publisher.host}/queue:v1": None},
    )
    bundle_addons(of(requested), tmp_path, silent, get)
    filled = load_catalog([tmp_path / CATALOG]).addons[open_one.name]
    assert filled.unfilled == []


def test_what_a_chart_starts_is_pinned_in_addition_to_what_the_catalog_names(
    publisher: Publisher, renders: Path, tmp_path: Path
) -> None:
    named, more = f"{publisher.host}/queue/queue:v1", f"{publisher.host}/queue/init:v2"
    one, two = (json.dumps({"layers": [], "of": n}).encode() for n in "12")
    publisher["/v2/queue/queue/manifests/v1"] = one
    publisher["/v2/queue/init/manifests/v2"] = two
    publisher.has_chart("queue", "1.2.3", b"a chart")
    renders.write_bytes(pod(named, more, f"other@{TWO}"))
    requested = addon(publisher, repository=f"oci://{publisher.host}/charts", images={named: None})
    bundle_addons(of(requested), tmp_path, silent, get)
    assert pinned_images(tmp_path) == {
        named: digest(one),
        more: digest(two),
        "docker.io/library/other:latest": TWO,
    }


def test_charts_are_refused_where_nothing_renders_them(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    of(addon(publisher, kind="manifests")).refuse_unrendered()
    with pytest.raises(LifecycleError) as error:
        of(addon(publisher)).refuse_unrendered()
    assert [diagnostic.code for diagnostic in error.value.diagnostics] == ["GC1061"]


def test_a_bundle_lacks_charts_and_images_that_are_not_in_it(publisher: Publisher) -> None:
    requested = of(
        addon(publisher, images={"docker.io/queue/queue:v1": ONE, "b.example/c:1": None})
    )
    empty = BundleManifest(cluster="demo", key_fingerprint="0" * 40, key="")
    chart, image = addons_missing(empty, requested, bundled_images(empty, "make it"), "make it")
    assert (chart.code, image.code) == ("GC937", "GC1002")
    assert "files/addons/queue-1.2.3.tgz" in chart.summary
    assert image.summary == (
        f"the bundle has no image docker.io/queue/queue:v1@{ONE}, which add-on queue starts"
    )
    assert "make it" in chart.hint
    assert "make it" in image.hint
    assert [answer.code for answer in addons_missing(empty, requested, None, "")] == ["GC937"]


@pytest.mark.parametrize(
    ("archive", "pinned", "lacking"), [("more.tar", ONE, 0), (None, ONE, 1), ("more.tar", TWO, 1)]
)
def test_an_image_is_held_by_its_digest_and_with_its_content(
    publisher: Publisher, archive: str | None, pinned: str, lacking: int
) -> None:
    chart = BundledFile(
        source="a", role="a", url="", path="files/addons/queue-1.2.3.tgz", size=1, sha256="0" * 64
    )
    image = BundledImage(role="a", reference=f"docker.io/queue/queue:v1@{ONE}", archive=archive)
    manifest = BundleManifest(
        cluster="demo", key_fingerprint="0" * 40, key="", files=(chart,), images=(image,)
    )
    held = bundled_images(manifest, "make it")
    requested = of(addon(publisher, images={"queue/queue:v1": pinned}))
    assert len(list(addons_missing(manifest, requested, held, "make it"))) == lacking
    assert held.has("queue/queue:v1") is (archive is not None)


def _spec(folder: Path, *catalogs: str) -> Path:
    path = folder / "demo.yaml"
    path.write_text(f"{TEXT}catalog: [{', '.join(catalogs)}]\n", encoding="utf-8")
    return path


def _own_catalog(folder: Path, publisher: Publisher) -> None:
    """Have a registry's chart and a file for what the spec needs, and no digest of either."""
    answers = (
        addon(publisher, name="cilium", repository=f"oci://{publisher.host}/charts"),
        addon(
            publisher, name="gpu-operator", kind="manifests", chart=None,
            repository=f"https://{publisher.host}/gpu.yaml",
        ),
    )  # fmt: skip
    made = {"apiVersion": "gcluster/catalog/v1", "addons": msgspec.to_builtins(answers)}
    (folder / "own.yaml").write_bytes(msgspec.yaml.encode(made))


def test_a_file_of_digests_is_all_that_up_needs_and_holds_publishers_to_it(
    publisher: Publisher, renders: Path, tmp_path: Path
) -> None:
    agent, operator = (f"{publisher.host}/{name}" for name in ("agent:v1", "operator:v2"))
    index, manifest = b'{"manifests": []}', b'{"layers": []}'
    publisher |= {"/v2/agent/manifests/v1": index, "/v2/operator/manifests/v2": manifest}
    publisher.has_chart("queue", "1.2.3", b"a chart in a registry")
    publisher["/gpu.yaml"] = pod(operator)
    renders.write_bytes(pod(agent))
    _own_catalog(tmp_path, publisher)
    lock = tmp_path / "demo.addons.yaml"
    written = lock_addons(_spec(tmp_path, "own.yaml"), lock, silent, get)
    assert [(one.name, one.digest, one.images) for one in written] == [
        ("cilium", digest(b"a chart in a registry"), {agent: digest(index)}),
        ("gpu-operator", digest(pod(operator)), {operator: digest(manifest)}),
    ]

    loaded = load(_spec(tmp_path, lock.name))
    assert loaded.spec is not None
    known = [one.addon for one in addons_of(loaded.spec, load_catalog(loaded.catalogs)).chosen]
    assert known == list(written)
    assert not any(one.unfilled for one in known)

    before = lock.read_bytes()
    publisher.has_chart("queue", "1.2.3", b"another chart of that version")
    with pytest.raises(LifecycleError) as refused:
        lock_addons(tmp_path / "demo.yaml", lock, silent, get)
    assert [found.code for found in refused.value.diagnostics] == ["GC939"]
    assert lock.read_bytes() == before
