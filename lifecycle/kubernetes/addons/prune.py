"""Removes what an add-on has no more, as far as it is still ours and nobody's data goes with it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..kubectl import Kubectl
from ..objects import ObjectKey
from ..occupied import POLICY, is_to_keep, occupied
from ..table import rows
from .applying import delete
from .claims import keep_claims
from .served import Served
from .standing import (
    OBJECT_FIELDS,
    key_of_row,
    objects_selector,
)

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
    """Volumes, claims, and what its chart says to keep, with its namespace: people delete those."""

    @property
    def kept(self) -> frozenset[ObjectKey]:
        """What stays for now, and is looked at again."""
        return frozenset({*self.definitions, *self.namespaces})


def prune(
    kubectl: Kubectl, cluster: str, addon: str, keys: Iterable[ObjectKey], served: Served
) -> Pruned:
    """Delete objects of an add-on that still carry its name; CRDs and namespaces last.

    A CRD of whose kind there are objects stays, and so does a namespace with work in it, or with
    another's object that is to be kept. Volumes, claims, those of StatefulSets among them, and what
    is annotated `helm.sh/resource-policy: keep` stay for good.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: it says no.
    """
    asked = list(keys)
    if not asked:
        return Pruned()
    kinds = sorted({name for k in asked if (name := served.name_of(k.group, k.kind))})
    there = _policies(kubectl, cluster, addon, kinds)
    data = _kept(asked, there)
    sets = [key for key in asked if key.kind == "StatefulSet" and key in there and key not in data]
    claims = keep_claims(kubectl, sets)
    data = (*data, *claims.bound, *(key for key in claims.found if key not in data))
    ours = [key for key in reversed(asked) if key in there and key not in data]
    plain = [key for key in ours if key.kind not in _LAST]
    custom = [key for key in plain if served.is_custom(key)]
    delete(kubectl, custom, served)  # and are awaited, while who looks after them is there
    delete(kubectl, [key for key in plain if key not in custom], served)
    definitions = {
        key: count
        for key in ours
        if key.kind == "CustomResourceDefinition" and (count := _objects_of(kubectl, key, served))
    }
    spaces = [key for key in ours if key.kind == "Namespace"]
    held = occupied(kubectl, [key.name for key in spaces], served)
    namespaces = {key: held[key.name] for key in spaces if key.name in held}
    rest = [k for k in ours if k.kind in _LAST and k not in definitions and k not in namespaces]
    delete(kubectl, sorted(rest, key=lambda key: _LAST.index(key.kind)), served)
    return Pruned(
        removed=(*plain, *rest), definitions=definitions, namespaces=namespaces, data=data
    )


def _policies(kubectl: Kubectl, cluster: str, addon: str, kinds: list[str]) -> dict[ObjectKey, str]:
    """Return the objects of an add-on that are there -> what their chart says of their removal."""
    if not kinds:
        return {}
    of = (",".join(kinds), "--all-namespaces", objects_selector(cluster))
    found = rows(kubectl, *of, fields=_FIELDS)
    return {key_of_row(row): row["policy"] for row in found if row["addon"] == addon}


def _kept(asked: list[ObjectKey], there: dict[ObjectKey, str]) -> tuple[ObjectKey, ...]:
    """Return what stays for good: a namespace goes with all in it, so it stays for one of these."""
    told = {key for key in asked if is_to_keep(there.get(key, ""))}
    around = {key.namespace for key in told}
    return tuple(
        key
        for key in asked
        if key in there
        and (key in told or key.kind in _DATA or (key.kind == "Namespace" and key.name in around))
    )


def _objects_of(kubectl: Kubectl, definition: ObjectKey, served: Served) -> int:
    """Return how many objects of a CRD's kind there are; one that isn't served has none."""
    if definition.name not in {name for name, _ in served.kinds.values()}:
        return 0
    told = kubectl.text("get", definition.name, "--all-namespaces", "--output=name")
    return len(told.split())
