"""What an add-on has no more goes, but for data; custom objects while their operator runs."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.kubernetes.addons import prune as claims
from gcluster.lifecycle.kubernetes.addons.notes import remaining_data, remaining_namespaces
from gcluster.lifecycle.kubernetes.addons.ownership import ApiResources, delete
from gcluster.lifecycle.kubernetes.addons.prune import prune
from gcluster.lifecycle.kubernetes.objects import ObjectKey

from .kubectl_double import KubectlDouble, row

SERVED = ApiResources(
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
    kubectl = KubectlDouble({"get ": there(*keys)})
    done = prune(kubectl, "lab", "widgets", keys, SERVED)
    assert kubectl.deleted() == [
        "delete configmaps settings --namespace=w --ignore-not-found --wait=false"
    ]
    assert (set(done.data), done.kept) == ({CLAIM, VOLUME}, frozenset())
    (answer,) = remaining_data("widgets", done.data)
    assert (answer.code, answer.is_error) == ("GC1069", False)
    assert "PersistentVolumeClaim w/results, PersistentVolume disk" in answer.summary


def test_what_its_chart_keeps_stays_with_its_namespace() -> None:
    keys = [SPACE, SETTINGS, MANAGER]
    kubectl = KubectlDouble({"get pods": "", "get ": there(*keys, kept=SETTINGS)})
    done = prune(kubectl, "lab", "widgets", keys, SERVED)
    assert done.removed == (MANAGER,)
    assert set(done.data) == {SPACE, SETTINGS}


def test_an_object_of_another_that_is_to_be_kept_keeps_the_namespace() -> None:
    theirs = row("Secret", "passwords", "keep") + row("ConfigMap", "kube-root-ca.crt", "")
    kubectl = KubectlDouble({
        "get configmaps,deployments.apps,widgets.example.org --namespace=w": theirs,
        "get pods,persistentvolumeclaims,jobs.batch": "",
        "get ": there(SPACE, SETTINGS),
    })  # fmt: skip
    done = prune(kubectl, "lab", "widgets", [SPACE, SETTINGS], SERVED)
    assert done.removed == (SETTINGS,)
    held = {key.name: work for key, work in done.namespaces.items()}
    assert held == {"w": ["Secret/passwords (its chart keeps it)"]}
    (answer,) = remaining_namespaces(held)
    assert answer.summary == "namespace w is kept: 1 Secret (its chart keeps it) in it"
    assert answer.hint.endswith("what a chart keeps you delete yourself")


SET = ObjectKey("apps", "StatefulSet", "kube-system", "books")
PAGES = ObjectKey("", "PersistentVolumeClaim", "kube-system", "pages-books-0")
SETS = ApiResources(kinds=SERVED.kinds | {("apps", "StatefulSet"): ("statefulsets.apps", True)})


def of_books(owners: str) -> dict[str, str]:
    names = ("pages-books-0", "pages-bookshop-0", "other-books-0", "pages-books-new")
    return {
        "get statefulsets.apps --namespace": row("books", "pages", "Delete")
        + row("x", "pages", ""),
        "get persistentvolumeclaims": "".join(row(name, owners) for name in names),
        "get ": there(SET),
    }


def test_claims_of_a_set_stay_and_are_named_and_it_lets_go_of_them_first() -> None:
    kubectl = KubectlDouble(of_books(""))
    done = prune(kubectl, "lab", "widgets", [SET], SETS)
    assert (done.removed, done.data) == ((SET,), (PAGES,))
    verbs = [line.split()[0] for line in kubectl.calls if not line.startswith("get ")]
    assert verbs == ["patch", "delete"]
    (patch,) = (line for line in kubectl.calls if line.startswith("patch "))
    assert '"whenDeleted":"Retain"' in patch
    assert (
        "PersistentVolumeClaim kube-system/pages-books-0"
        in remaining_data("w", done.data)[0].summary
    )


def test_a_set_that_does_not_let_go_of_its_claims_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_WITHIN_S", 0)
    kubectl = KubectlDouble(of_books("books"))
    done = prune(kubectl, "lab", "widgets", [SET], SETS)
    assert (done.removed, done.data) == ((), (SET, PAGES))
    assert kubectl.deleted() == []


def test_custom_objects_go_first_and_are_awaited_while_their_operator_is_there() -> None:
    keys = [SETTINGS, MANAGER, WIDGET]
    kubectl = KubectlDouble({"get ": there(*keys)})
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
    kubectl = KubectlDouble({"get ": there(MANAGER, gateway)})
    prune(kubectl, "lab", "widgets", [gateway, MANAGER], ApiResources(kinds=SERVED.kinds | kinds))
    assert [line.split()[1:3] + line.split()[-1:] for line in kubectl.deleted()] == [
        ["gateways.gateway.networking.k8s.io", "door", "--timeout=60s"],
        ["deployments.apps", "manager", "--wait=false"],
    ]


def test_custom_objects_of_several_kinds_are_all_reported_before_one_is_awaited() -> None:
    kubectl = KubectlDouble({})
    parts = ObjectKey("example.org", "Part", "w", "one")
    kinds = SERVED.kinds | {("example.org", "Part"): ("parts.example.org", True)}
    delete(kubectl, [parts, WIDGET], ApiResources(kinds=kinds))
    assert [line.split()[1:3] + line.split()[-1:] for line in kubectl.deleted()] == [
        ["parts.example.org", "one", "--wait=false"],
        ["widgets.example.org", "first", "--wait=false"],
        ["parts.example.org", "one", "--timeout=60s"],
        ["widgets.example.org", "first", "--timeout=60s"],
    ]
