"""Removes what an add-on has no more, as far as it is still ours and nobody's data goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gcluster.lifecycle.kubernetes.addons.applying import delete
from gcluster.lifecycle.kubernetes.addons.standing import read_there
from gcluster.lifecycle.kubernetes.live import occupied
from gcluster.lifecycle.kubernetes.objects import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gcluster.lifecycle.kubernetes.addons.served import Served
    from gcluster.lifecycle.kubernetes.kubectl import Kubectl

_LAST = ("CustomResourceDefinition", "Namespace")
"""Kinds that take others with them; what is of them goes before."""


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    removed: tuple[ObjectKey, ...] = ()
    definitions: dict[ObjectKey, int] = {}
    """CRDs that stay -> how many objects of their kind there are."""
    namespaces: dict[ObjectKey, list[str]] = {}
    """Namespaces that stay -> the work in them."""

    @property
    def kept(self) -> frozenset[ObjectKey]:
        """What stays, and is looked at again."""
        return frozenset({*self.definitions, *self.namespaces})


def prune(
    kubectl: Kubectl, cluster: str, addon: str, keys: Iterable[ObjectKey], served: Served
) -> Pruned:
    """Delete objects of an add-on that still carry its name; CRDs and namespaces last.

    A CRD of whose kind there are objects stays, and so does a namespace with work in it.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: it says no.
    """
    asked = list(keys)
    if not asked:
        return Pruned()
    kinds = sorted({name for k in asked if (name := served.name_of(k.group, k.kind))})
    there = {key for name, key in read_there(kubectl, cluster, kinds) if name == addon}
    ours = [key for key in reversed(asked) if key in there]
    plain = [key for key in ours if key.kind not in _LAST]
    delete(kubectl, plain, served)
    definitions = {
        key: count
        for key in ours
        if key.kind == "CustomResourceDefinition" and (count := _objects_of(kubectl, key, served))
    }
    spaces = [key for key in ours if key.kind == "Namespace"]
    held = occupied(kubectl, [key.name for key in spaces])
    namespaces = {key: held[key.name] for key in spaces if key.name in held}
    rest = [k for k in ours if k.kind in _LAST and k not in definitions and k not in namespaces]
    delete(kubectl, sorted(rest, key=lambda key: _LAST.index(key.kind)), served)
    return Pruned(removed=(*plain, *rest), definitions=definitions, namespaces=namespaces)


def _objects_of(kubectl: Kubectl, definition: ObjectKey, served: Served) -> int:
    """Return how many objects of a CRD's kind there are; one that isn't served has none."""
    if definition.name not in {name for name, _ in served.kinds.values()}:
        return 0
    told = kubectl.text("get", definition.name, "--all-namespaces", "--output=name")
    return len(told.split())
