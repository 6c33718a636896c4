"""An add-on takes over nothing that others made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gcluster.lifecycle.kubernetes.addons.ownership import AddonStopped, read_api_resources
from gcluster.lifecycle.kubernetes.addons.prune import refuse_unmanaged
from gcluster.lifecycle.kubernetes.addons.record import Placed, Record
from gcluster.lifecycle.kubernetes.objects import key_of

from .kubectl_double import KubectlDouble

KINDS = """\
configmaps   cm       v1                       true    ConfigMap
namespaces   ns       v1                       false   Namespace
deployments  deploy   apps/v1                  true    Deployment
"""


def made(kind: str, name: str = "a", **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "w"} if kind != "Namespace" else {"name": name}
    version = {"Deployment": "apps/v1beta1", "Widget": "example.org/v1"}.get(kind, "v1")
    reported = {f"gcluster.local/{key}": value for key, value in labels.items()}
    return {"apiVersion": version, "kind": kind, "metadata": metadata | {"labels": reported}}


def refuse(there: list[dict[str, Any]], *known: dict[str, Any]) -> list[dict[str, Any]]:
    """Hold it; return the server's requests."""
    answer = there[0] if len(there) == 1 else {"kind": "List", "items": there}
    kubectl = KubectlDouble({"api-resources": KINDS, "get ": json.dumps(answer) if there else ""})
    desired = [made(kind) for kind in ("ConfigMap", "Namespace", "Deployment", "Widget")]
    record = Record(
        addon="widgets",
        version="1",
        content="",
        installed=False,
        kinds=(),
        objects=tuple(Placed(*key_of(one)) for one in known),
    )
    refuse_unmanaged(kubectl, "lab", record, desired, read_api_resources(kubectl))
    items: list[dict[str, Any]] = json.loads(kubectl.given[-1])["items"]
    return items


def test_only_names_of_kinds_that_are_served_are_requested_in_a_version_that_is() -> None:
    requested = refuse([])
    assert [(one["apiVersion"], one["kind"]) for one in requested] == [
        ("v1", "ConfigMap"),
        ("v1", "Namespace"),
        ("apps/v1", "Deployment"),
    ]
    assert requested[0]["metadata"] == {"name": "a", "namespace": "w"}


@pytest.mark.parametrize(
    "there",
    [
        [made("ConfigMap")],
        [made("ConfigMap", cluster="lab")],
        [made("ConfigMap", cluster="lab", addon="other")],
        [made("Namespace", cluster="lab"), made("ConfigMap", cluster="old", addon="widgets")],
    ],
    ids=["nobody's", "compiled", "another add-on's", "another cluster's"],
)
def test_what_is_there_and_not_its_own_is_refused(there: list[dict[str, Any]]) -> None:
    with pytest.raises(AddonStopped) as stopped:
        refuse(there)
    message = stopped.value.diagnostic
    assert message.code == "GC1064"
    assert "ConfigMap w/a is there already, and is not its own" in message.summary


def test_its_own_and_namespaces_of_the_cluster_are_not() -> None:
    refuse([made("ConfigMap", cluster="lab", addon="widgets"), made("Namespace", cluster="lab")])


def test_what_its_record_has_is_not_requested() -> None:
    requested = refuse([], made("ConfigMap"))
    assert [one["kind"] for one in requested] == ["Namespace", "Deployment"]
