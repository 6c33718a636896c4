"""What an add-on has no more goes, but for data; custom objects while their operator lives."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.kubernetes.addons.applying import delete
from gcluster.lifecycle.kubernetes.addons.notes import kept_data
from gcluster.lifecycle.kubernetes.addons.prune import prune
from gcluster.lifecycle.kubernetes.addons.served import Served
from gcluster.lifecycle.kubernetes.objects import ObjectKey

from .told import ToldKubectl, row

SERVED = Served(
    kinds={
        ("", "Namespace"): ("namespaces", False),
        ("", "ConfigMap"): ("configmaps", True),
        ("", "PersistentVolume"): ("persistentvolumes", False),
        ("", "PersistentVolumeClaim"): ("persistentvolumeclaims", True),
        ("apps", "Deployment"): ("deployments.apps", True),
        ("example.org", "Widget"): ("widgets.example.org", True),
    }
)
SPACE = ObjectKey("", "Namespace", "", "w")
SETTINGS = ObjectKey("", "ConfigMap", "w", "settings")
CLAIM = ObjectKey("", "PersistentVolumeClaim", "w", "results")
VOLUME = ObjectKey("", "PersistentVolume", "", "disk")
MANAGER = ObjectKey("apps", "Deployment", "w", "manager")
WIDGET = ObjectKey("example.org", "Widget", "w", "first")


def there(*keys: ObjectKey, kept: ObjectKey | None = None) -> str:
    return "".join(
        row(
            *(f"{key.group}/v1".lstrip("/"), key.kind, key.namespace, key.name, "widgets"),
            "keep" if key == kept else "",
        )
        for key in keys
    )


def test_volumes_stay_and_are_named() -> None:
    keys = [CLAIM, VOLUME, SETTINGS]
    kubectl = ToldKubectl({"get ": there(*keys)})
    done = prune(kubectl, "lab", "widgets", keys, SERVED)
    assert kubectl.deleted() == [
        "delete configmaps settings --namespace=w --ignore-not-found --wait=false"
    ]
    assert (set(done.data), done.kept) == ({CLAIM, VOLUME}, frozenset())
    (said,) = kept_data("widgets", done.data)
    assert (said.code, said.is_error) == ("GC1069", False)
    assert "PersistentVolumeClaim w/results, PersistentVolume disk" in said.summary


def test_what_its_chart_keeps_stays_with_its_namespace() -> None:
    keys = [SPACE, SETTINGS, MANAGER]
    kubectl = ToldKubectl({"get pods": "", "get ": there(*keys, kept=SETTINGS)})
    done = prune(kubectl, "lab", "widgets", keys, SERVED)
    assert done.removed == (MANAGER,)
    assert set(done.data) == {SPACE, SETTINGS}


def test_custom_objects_go_first_and_are_awaited_while_their_operator_is_there() -> None:
    keys = [SETTINGS, MANAGER, WIDGET]
    kubectl = ToldKubectl({"get ": there(*keys)})
    prune(kubectl, "lab", "widgets", [WIDGET, SETTINGS, MANAGER], SERVED)
    where = "--namespace=w --ignore-not-found"
    assert kubectl.deleted() == [
        f"delete widgets.example.org first {where} --timeout=60s",
        f"delete deployments.apps manager {where} --wait=false",
        f"delete configmaps settings {where} --wait=false",
    ]


@pytest.mark.parametrize(
    ("group", "custom"),
    [
        ("gateway.networking.k8s.io", True),
        ("snapshot.storage.k8s.io", True),
        ("kueue.x-k8s.io", True),
        ("example.org", True),
        ("networking.k8s.io", False),
        ("rbac.authorization.k8s.io", False),
        ("apiextensions.k8s.io", False),
        ("apps", False),
        ("", False),
    ],
)
def test_what_is_custom_is_known_by_what_a_server_has_itself_and_not_by_its_ending(
    group: str, custom: bool
) -> None:
    assert SERVED.is_custom(ObjectKey(group, "Gateway", "w", "door")) is custom


def test_gateways_are_awaited_while_their_controller_is_there() -> None:
    gateway = ObjectKey("gateway.networking.k8s.io", "Gateway", "w", "door")
    kinds = {("gateway.networking.k8s.io", "Gateway"): ("gateways.gateway.networking.k8s.io", True)}
    kubectl = ToldKubectl({"get ": there(MANAGER, gateway)})
    prune(kubectl, "lab", "widgets", [gateway, MANAGER], Served(kinds=SERVED.kinds | kinds))
    assert [line.split()[1:3] + line.split()[-1:] for line in kubectl.deleted()] == [
        ["gateways.gateway.networking.k8s.io", "door", "--timeout=60s"],
        ["deployments.apps", "manager", "--wait=false"],
    ]


def test_custom_objects_of_several_kinds_are_all_told_before_one_is_awaited() -> None:
    kubectl = ToldKubectl({})
    parts = ObjectKey("example.org", "Part", "w", "one")
    kinds = SERVED.kinds | {("example.org", "Part"): ("parts.example.org", True)}
    delete(kubectl, [parts, WIDGET], Served(kinds=kinds))
    assert [line.split()[1:3] + line.split()[-1:] for line in kubectl.deleted()] == [
        ["parts.example.org", "one", "--wait=false"],
        ["widgets.example.org", "first", "--wait=false"],
        ["parts.example.org", "one", "--timeout=60s"],
        ["widgets.example.org", "first", "--timeout=60s"],
    ]
