"""Removes objects that an add-on no longer has, if they are still ours and hold no data."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from ....inventory.compile.kubernetes_objects.objects import CLUSTER_LABEL, Object
from ....schemas.structure.decoding import decode_json
from ..kubectl import Kubectl, rows
from ..objects import ObjectKey, key_of
from ..workloads import POLICY, is_protected, occupied
from .changes import OBJECT_FIELDS, key_of_row, objects_selector
from .ownership import AddonStopped, ApiResources, delete
from .record import Record
from .rendering import ADDON_LABEL

_LAST = ("CustomResourceDefinition", "Namespace")
"""Kinds that take others with them; what is of them goes before."""
_DATA = ("PersistentVolumeClaim", "PersistentVolume")
"""Kinds that hold what people wrote."""
_FIELDS = OBJECT_FIELDS | {"policy": POLICY}


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    removed: tuple[ObjectKey, ...] = ()
    definitions: dict[ObjectKey, int] = {}
    """CRDs that stay -> how many objects of their kind there are."""
    namespaces: dict[ObjectKey, list[str]] = {}
    """Namespaces that stay -> the work in them."""
    data: tuple[ObjectKey, ...] = ()
    """Volumes, claims, and what its chart keeps, with its namespace: deleted only by hand."""

    @property
    def kept(self) -> frozenset[ObjectKey]:
        """What is kept for now, and checked again in the next run."""
        return frozenset({*self.definitions, *self.namespaces})


def prune(
    kubectl: Kubectl, cluster: str, addon: str, keys: Iterable[ObjectKey], resources: ApiResources
) -> Pruned:
    """Delete objects that still carry an add-on's label; CRDs and namespaces last.

    A CRD is kept while objects of its kind exist, and a namespace while it has workloads, or
    objects of others that must be kept. Volumes, claims, those of StatefulSets among them, and what
    is annotated `helm.sh/resource-policy: keep` are always kept.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: the API refused.
    """
    requested = list(keys)
    if not requested:
        return Pruned()
    kinds = sorted({name for k in requested if (name := resources.name_of(k.group, k.kind))})
    there = _policies(kubectl, cluster, addon, kinds)
    data = _never_pruned(requested, there)
    sets = [
        key for key in requested if key.kind == "StatefulSet" and key in there and key not in data
    ]
    claims = release_claims(kubectl, sets)
    data = (*data, *claims.bound, *(key for key in claims.found if key not in data))
    ours = [key for key in reversed(requested) if key in there and key not in data]
    plain = [key for key in ours if key.kind not in _LAST]
    custom = [key for key in plain if resources.is_custom(key)]
    delete(kubectl, custom, resources)  # and are waited for, while their controller exists
    delete(kubectl, [key for key in plain if key not in custom], resources)
    definitions = {
        key: count
        for key in ours
        if key.kind == "CustomResourceDefinition"
        and (count := _objects_of(kubectl, key, resources))
    }
    spaces = [key for key in ours if key.kind == "Namespace"]
    held = occupied(kubectl, [key.name for key in spaces], resources)
    namespaces = {key: held[key.name] for key in spaces if key.name in held}
    rest = [k for k in ours if k.kind in _LAST and k not in definitions and k not in namespaces]
    delete(kubectl, sorted(rest, key=lambda key: _LAST.index(key.kind)), resources)
    return Pruned(
        removed=(*plain, *rest), definitions=definitions, namespaces=namespaces, data=data
    )


def _policies(kubectl: Kubectl, cluster: str, addon: str, kinds: list[str]) -> dict[ObjectKey, str]:
    """Return the existing objects of an add-on -> their chart's removal policy."""
    if not kinds:
        return {}
    of = (",".join(kinds), "--all-namespaces", objects_selector(cluster))
    found = rows(kubectl, *of, fields=_FIELDS)
    return {key_of_row(row): row["policy"] for row in found if row["addon"] == addon}


def _never_pruned(requested: list[ObjectKey], there: dict[ObjectKey, str]) -> tuple[ObjectKey, ...]:
    """Return what is always kept: a namespace's contents are deleted with it."""
    protected = {key for key in requested if is_protected(there.get(key, ""))}
    around = {key.namespace for key in protected}
    return tuple(
        key
        for key in requested
        if key in there
        and (
            key in protected
            or key.kind in _DATA
            or (key.kind == "Namespace" and key.name in around)
        )
    )


def _objects_of(kubectl: Kubectl, definition: ObjectKey, resources: ApiResources) -> int:
    """Return how many objects of a CRD's kind there are; one that isn't served has none."""
    if definition.name not in {name for name, _ in resources.kinds.values()}:
        return 0
    names = kubectl.text("get", definition.name, "--all-namespaces", "--output=name")
    return len(names.split())


_WITHIN_S = 30
"""The controller releases claims as soon as it processes their StatefulSet."""
_RETAIN = '{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain"}}}'
_SETS = {
    "name": "{.metadata.name}",
    "makes": "{.spec.volumeClaimTemplates[*].metadata.name}",
    "policy": "{.spec.persistentVolumeClaimRetentionPolicy.whenDeleted}",
}
_CLAIMS = {
    "name": "{.metadata.name}",
    "owners": '{.metadata.ownerReferences[?(@.kind=="StatefulSet")].name}',
}


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    found: tuple[ObjectKey, ...] = ()
    """Claims that the StatefulSets made, and that stay when these go."""
    bound: tuple[ObjectKey, ...] = ()
    """StatefulSets that still own theirs: with them the claims would go."""


def release_claims(
    kubectl: Kubectl,
    sets: Collection[ObjectKey],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Claims:
    """Make StatefulSets that will be deleted release their claims first; return the claims.

    One with `whenDeleted: Delete` owns its claims, and they would be deleted with it
    (kubernetes.io/ docs/concepts/workloads/controllers/statefulset, "PersistentVolumeClaim
    retention", 2026-11).

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: the API refused.
    """
    found: list[ObjectKey] = []
    bound: list[ObjectKey] = []
    for space in dict.fromkeys(key.namespace for key in sets):
        where, names = f"--namespace={space}", {key.name for key in sets if key.namespace == space}
        stateful_sets = rows(kubectl, "statefulsets.apps", where, fields=_SETS)
        makers = [row for row in stateful_sets if row["name"] in names and row["makes"]]
        for row in makers:
            if row["policy"] == "Delete":
                patch = ("--type=merge", f"--patch={_RETAIN}")
                kubectl.text("patch", "statefulsets.apps", row["name"], where, *patch)
        until = clock() + _WITHIN_S
        while makers:
            claims = rows(kubectl, "persistentvolumeclaims", where, fields=_CLAIMS)
            own = [c for c in claims if any(_is_of(c["name"], row) for row in makers)]
            owners = {name for claim in own for name in claim["owners"].split()} & names
            if not owners or clock() >= until:
                found += [ObjectKey("", "PersistentVolumeClaim", space, c["name"]) for c in own]
                bound += [key for key in sets if key.namespace == space and key.name in owners]
                break
            sleep(1)
    return Claims(found=tuple(found), bound=tuple(bound))


def _is_of(claim: str, made: dict[str, str]) -> bool:
    """Whether a claim's name is TEMPLATE-SET-NUMBER of a StatefulSet."""
    front, _, number = claim.rpartition("-")
    return number.isdigit() and front in {f"{t}-{made['name']}" for t in made["makes"].split()}


_LIMIT_S = 300
_SHARED = frozenset({"Namespace", "CustomResourceDefinition"})
"""Kinds of which the cluster's own may serve an add-on, though another add-on or it made them."""


def refuse_unmanaged(
    kubectl: Kubectl,
    cluster: str,
    record: Record,
    objects: Iterable[Object],
    resources: ApiResources,
) -> None:
    """Refuse existing objects that neither the record nor their labels assign to the add-on.

    Kinds that aren't served yet have no objects.

    Raises:
        AddonStopped: GC1064: there is one.
        ApiSilent: no API server answers.
        ApiRefused: the API refused.
    """
    addon, known = record.addon, {placed.key for placed in record.objects}
    requested = [
        made
        for each in objects
        if key_of(each) not in known and (made := _name_of(each, resources)) is not None
    ]
    if not requested:
        return
    answer = kubectl.text(
        *("get", "--filename=-", "--ignore-not-found", "--output=json"),
        stdin=msgspec.json.encode(
            {"apiVersion": "v1", "kind": "List", "items": requested}
        ).decode(),
        timeout_s=_LIMIT_S,
    )
    found: dict[str, Any] = decode_json(answer, dict[str, Any]) if answer.strip() else {"items": []}
    for each in found.get("items", [found]):
        if not _is_own(each, cluster, addon):
            key = key_of(each)
            raise AddonStopped(
                "GC1064",
                f"add-on {addon}: {key.kind} {key.words} is there already, and is not its own",
                hint="delete it, or give it to the add-on, which removes it later, by the labels "
                f"{CLUSTER_LABEL}={cluster} and {ADDON_LABEL}={addon}",
            )


def _name_of(made: Object, resources: ApiResources) -> Object | None:
    """Return what names an object, in a version that the server has; None where it has no kind."""
    group = str(made["apiVersion"]).rpartition("/")[0]
    version = resources.versions.get((group, str(made["kind"])))
    if version is None:
        return None
    names = {key: made["metadata"][key] for key in ("name", "namespace") if key in made["metadata"]}
    return {"apiVersion": version, "kind": made["kind"], "metadata": names}


def _is_own(there: Object, cluster: str, addon: str) -> bool:
    labels = there["metadata"].get("labels") or {}
    if labels.get(CLUSTER_LABEL) != cluster:
        return False
    return there["kind"] in _SHARED or labels.get(ADDON_LABEL) == addon
