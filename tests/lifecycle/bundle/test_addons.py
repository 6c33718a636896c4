"""A bundle pins add-ons: what their publishers have, by digest, in a catalog file of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.publisher import Publisher, digest, get, published

from gcluster.lifecycle.bundle.addons import CATALOG, addons_of, bundle_addons
from gcluster.lifecycle.outcome import LifecycleError
from gcluster.lifecycle.progress import silent
from gcluster.schemas.catalog import Addon, load_catalog
from gcluster.schemas.load import load_text


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with published() as content:
        yield content


def addon(publisher: Publisher, **said: object) -> Addon:
    """Return an add-on of the publisher's; what nothing is said of is a chart of a repository."""
    known: dict[str, object] = {
        "name": "queue", "description": "queues", "kind": "helm", "chart": "queue",
        "repository": f"https://{publisher.host}/charts", "version": "1.2.3",
        "namespace": "queue", "source": "here", "date": "2026-11",
    }  # fmt: skip
    return msgspec.convert(known | said, Addon)


def test_a_chart_of_a_repository_is_taken_as_its_index_says(
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
    asked = addon(publisher, images={image: None})
    held, catalog = bundle_addons([asked], tmp_path, silent, get)
    assert (tmp_path / held.path).read_bytes() == chart
    assert held.sha256 == digest(chart)[7:]
    assert catalog.path == CATALOG
    text = (tmp_path / CATALOG).read_text(encoding="utf-8")
    assert digest(chart) in text
    assert digest(manifest) in text


def test_a_chart_of_a_registry_is_its_layer(publisher: Publisher, tmp_path: Path) -> None:
    chart = b"a chart in a registry"
    publisher.has_chart("queue", "1.2.3", chart)
    asked = addon(publisher, repository=f"oci://{publisher.host}/charts")
    held, _ = bundle_addons([asked], tmp_path, silent, get)
    assert (tmp_path / held.path).read_bytes() == chart


def test_what_is_pinned_and_differs_is_refused_and_all_failures_are_named(
    publisher: Publisher, tmp_path: Path
) -> None:
    publisher["/one.yaml"] = b"kind: ConfigMap\n"
    file = f"https://{publisher.host}/one.yaml"
    pinned = addon(publisher, name="one", kind="manifests", repository=file, digest=digest(b"two"))
    lacking = addon(publisher, name="lacking", chart="lacking")
    with pytest.raises(LifecycleError) as error:
        bundle_addons([pinned, lacking], tmp_path, silent, get)
    told = [found.summary for found in error.value.diagnostics]
    assert len(told) == 2
    assert "not sha256:" in told[0]
    assert not (tmp_path / CATALOG).exists()


def test_what_up_leaves_out_on_local_nodes_is_not_asked_for() -> None:
    text = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools: {head: {site: here, role: controller}, gpu: {site: here, machine: sim.h100x8, count: 1}}
scheduler: {type: kubernetes}
"""
    loaded = load_text(text, file="demo.yaml")
    assert loaded.spec is not None
    assert addons_of(loaded.spec, load_catalog()) == []


def test_the_digests_of_a_bundle_fill_what_a_spec_leaves_open(
    publisher: Publisher, tmp_path: Path
) -> None:
    text = """\
apiVersion: gcluster/v1
name: demo
sites: {hall: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: hall, role: controller, hosts: [{name: head, address: 10.0.0.1}]}
  gpu: {site: hall, machine: hgx-h200-8, hosts: [{name: gpu1, address: 10.0.0.2}]}
scheduler: {type: kubernetes, kueue: false, cni: cilium}
"""
    loaded = load_text(text, file="demo.yaml")
    assert loaded.spec is not None
    open_one = addons_of(loaded.spec, load_catalog())[0]
    assert open_one.unfilled
    publisher["/one.yaml"] = b"kind: ConfigMap\n"
    manifest = json.dumps({"layers": []}).encode()
    publisher["/v2/queue/manifests/v1"] = manifest
    asked = addon(
        publisher,
        name=open_one.name,
        kind="manifests",
        repository=f"https://{publisher.host}/one.yaml",
        images={f"{publisher.host}/queue:v1": None},
    )
    bundle_addons([asked], tmp_path, silent, get)
    filled = load_catalog([tmp_path / CATALOG]).addons[open_one.name]
    assert filled.unfilled == []
