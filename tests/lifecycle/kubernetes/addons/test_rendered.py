"""Objects of others become ours: labelled, at pinned images, in parts; hooks and tests apart."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gcluster.inventory.compile.kubernetes_objects.addons import ChosenAddon
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.addons.rendering import (
    prepared,
    read_objects,
    rendered,
    split_hooks,
    started_images,
)
from gcluster.lifecycle.kubernetes.objects import ObjectKey
from gcluster.schemas.catalog import Addon

from . import charts

ONE = "sha256:" + "1" * 64
TWO = "sha256:" + "2" * 64


def addon(**images: str) -> Addon:
    return msgspec.convert(
        {
            "name": "widgets", "description": "small", "kind": "manifests", "version": "1",
            "repository": "https://example.org/widgets.yaml", "namespace": "widgets-system",
            "images": images, "source": "here", "date": "2026-11", "digest": ONE,
        },
        Addon,
    )  # fmt: skip


def running(image: str) -> dict[str, Any]:
    pod = {"spec": {"containers": [{"name": "one", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "manager", "creationTimestamp": None},
        "spec": {"template": pod},
        "status": {},
    }


def test_pods_of_add_ons_run_on_nodes_that_wait_for_their_device_plugins() -> None:
    taint = "gcluster.local/startup"
    own = {"key": "example.edu/x", "operator": "Exists"}
    made = running("widgets:1")
    made["spec"]["template"]["spec"]["tolerations"] = [own]
    pod = prepared(made, addon(), "trial")["spec"]["template"]["spec"]
    assert [one["key"] for one in pod["tolerations"]] == ["example.edu/x", taint]
    job = {"spec": {"template": made["spec"]["template"]}}
    cron = {**made, "kind": "CronJob", "spec": {"jobTemplate": job}}
    found = prepared(cron, addon(), "trial")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert [one["key"] for one in found["tolerations"]] == ["example.edu/x", taint]
    everywhere = running("widgets:1")
    everywhere["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    pod = prepared(everywhere, addon(), "trial")["spec"]["template"]["spec"]
    assert pod["tolerations"] == [{"operator": "Exists"}]


def image_of(made: dict[str, Any]) -> str:
    return str(made["spec"]["template"]["spec"]["containers"][0]["image"])


def test_what_yaml_calls_a_date_or_a_number_of_base_60_is_text() -> None:
    text = (
        b"kind: A\napiVersion: v1\nmetadata: {name: a}\nx: [2026-11-01, 1:30, 0644, 1e3, 08, 7]\n"
    )
    (made,) = read_objects(text, "widgets")
    assert made["x"] == ["2026-11-01", "1:30", 420, 1000.0, "08", 7]


def test_lists_are_opened_and_empty_documents_left_out() -> None:
    one = "{kind: A, apiVersion: v1, metadata: {name: a}}"
    text = f"---\n---\nkind: List\napiVersion: v1\nitems: [{one}]\n".encode()
    assert [made["kind"] for made in read_objects(text, "widgets")] == ["A"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"#!/bin/sh\nkubectl apply -f x\n", "a document of it has no kind"),
        (b"kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\n", "names files"),
        (b"a: [", "while parsing"),
        (b"# nothing\n", "it is empty"),
        (b"kind: A\nmetadata: {}\n", "a A of it has no name"),
        (b"kind: A\nmetadata: a\n", "a A of it has no name"),
        (b"kind: A\nmetadata: {name: 7}\n", "a A of it has a name that is no text"),
        (b"kind: A\nmetadata: {name: a}\n", "a A of it has no apiVersion"),
        (b"kind: A\napiVersion: 1\nmetadata: {name: a}\n", "a A of it has no apiVersion"),
        (b"kind: A\napiVersion: v1\nmetadata: {name: a, labels: [b]}\n", "labels that are no map"),
        (b"kind: A\napiVersion: v1\nmetadata: {name: a, annotations: b}\n", "annotations that"),
    ],
    ids=[
        "script",
        "kustomization",
        "broken",
        "empty",
        "nameless",
        "metadata",
        "name",
        "versionless",
        "version",
        "labels",
        "annotations",
    ],
)
def test_a_file_that_is_none_of_objects_is_refused(text: bytes, why: str) -> None:
    with pytest.raises(LifecycleError) as error:
        read_objects(text, "widgets")
    (message,) = error.value.diagnostics
    assert message.code == "GC1062"
    assert why in message.summary


@pytest.mark.parametrize(
    ("known", "written"),
    [
        ("docker.io/rancher/manager:1", "rancher/manager:1"),
        ("docker.io/library/busybox:1", "busybox:1"),
        ("example.org/manager:1", "example.org/manager:1"),
    ],
)
def test_an_image_that_the_catalog_pins_runs_at_its_digest(known: str, written: str) -> None:
    made = prepared(running(written), addon(**{known: ONE}), "lab")
    assert image_of(made) == f"{written}@{ONE}"
    assert list(started_images(made)) == [f"{written}@{ONE}"]
    assert "status" not in made
    assert "creationTimestamp" not in made["metadata"]


def test_an_unpinned_image_stays_and_is_named() -> None:
    made = prepared(running("example.org/other:1"), addon(**{"example.org/manager:1": ONE}), "lab")
    assert list(started_images(made)) == ["example.org/other:1"]


def test_a_chart_that_runs_another_digest_than_the_catalogs_is_refused() -> None:
    known = addon(**{"example.org/manager:1": ONE})
    same = running(f"example.org/manager:1@{ONE}")
    assert image_of(prepared(same, known, "lab")) == f"example.org/manager:1@{ONE}"
    with pytest.raises(LifecycleError) as error:
        prepared(running(f"example.org/manager:1@{TWO}"), known, "lab")
    assert error.value.diagnostics[0].code == "GC1062"


def test_hooks_run_by_their_event_and_weight_and_those_that_never_run_are_named() -> None:
    objects = [
        *read_objects(charts.hook("late", "pre-install").encode(), "w"),
        *read_objects(charts.hook("clean", "post-install,pre-delete").encode(), "w"),
        *read_objects(charts.hook("try", "test-success", "Pod").encode(), "w"),
        *read_objects(charts.hook("pod", "pre-install", "Pod").encode(), "w"),
        *read_objects(charts.hook("definition", "crd-install").encode(), "w"),
    ]
    early = read_objects(charts.hook("early", "pre-install, pre-upgrade").encode(), "w")[0]
    early["metadata"]["annotations"]["helm.sh/hook-weight"] = "-5"
    account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {
        "name": "job", "annotations": {"helm.sh/hook": "pre-install"}}}  # fmt: skip
    found = split_hooks([*objects, early, account])

    def names(made: list[dict[str, Any]]) -> list[str]:
        return [one["metadata"]["name"] for one in made]

    assert names(found.jobs("pre", "install")) == ["early", "late"]
    assert names(found.jobs("pre", "upgrade")) == ["early"]
    assert names(found.jobs("post", "install")) == ["clean"]
    assert names(found.hook_objects("pre")) == ["job"]
    assert names(list(found.objects)) == ["definition"]
    assert found.skipped_hooks == ("Job/clean (post-install, pre-delete)", "Pod/pod (pre-install)")


def test_an_object_that_gcluster_compiles_itself_stays_its_own() -> None:
    text = b"""\
{kind: Namespace, apiVersion: v1, metadata: {name: widgets-system}}
---
{kind: Namespace, apiVersion: v1, metadata: {name: other}}
---
{kind: ConfigMap, apiVersion: v1, metadata: {name: a, labels: {mine: too}}}
"""
    ours = {ObjectKey("", "Namespace", "", "widgets-system")}
    made = rendered(ChosenAddon(addon=addon()), text, "lab", "1.35", ours)
    assert [one["metadata"]["name"] for one in made.namespaces] == ["other"]
    (settings,) = made.objects
    assert settings["metadata"]["labels"] == {
        "mine": "too",
        "gcluster.local/cluster": "lab",
        "gcluster.local/addon": "widgets",
    }
