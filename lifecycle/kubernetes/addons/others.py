"""Holds that what an add-on is about to apply is its own: what others made is never taken over.

What is applied is labelled, and goes with the add-on later; so this is asked before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ....inventory.compile.kubernetes_objects.objects import CLUSTER_LABEL, Object
from ....schemas.decoding import decode_json
from ..kubectl import Kubectl
from ..objects import key_of
from .ownership import AddonStopped, Served
from .record import Record
from .rendering import ADDON_LABEL

_LIMIT_S = 300
_SHARED = frozenset({"Namespace", "CustomResourceDefinition"})
"""Kinds of which the cluster's own may serve an add-on, though another add-on or it made them."""


def refuse_unmanaged(
    kubectl: Kubectl,
    cluster: str,
    record: Record,
    objects: Iterable[Object],
    served: Served,
) -> None:
    """Refuse objects that are there, and that neither the record nor the labels call the add-on's.

    Kinds that aren't served yet have no objects.

    Raises:
        AddonStopped: GC1064: there is one.
        ApiSilent: no API server answers.
        ApiRefused: it says no.
    """
    addon, known = record.addon, {placed.key for placed in record.objects}
    asked = [
        made
        for each in objects
        if key_of(each) not in known and (made := _name_of(each, served)) is not None
    ]
    if not asked:
        return
    told = kubectl.text(
        *("get", "--filename=-", "--ignore-not-found", "--output=json"),
        stdin=msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": asked}).decode(),
        timeout_s=_LIMIT_S,
    )
    found: dict[str, Any] = decode_json(told, dict[str, Any]) if told.strip() else {"items": []}
    for each in found.get("items", [found]):
        if not _is_own(each, cluster, addon):
            key = key_of(each)
            raise AddonStopped(
                "GC1064",
                f"add-on {addon}: {key.kind} {key.words} is there already, and is not its own",
                hint="delete it, or give it to the add-on, which removes it later, by the labels "
                f"{CLUSTER_LABEL}={cluster} and {ADDON_LABEL}={addon}",
            )


def _name_of(made: Object, served: Served) -> Object | None:
    """Return what names an object, in a version that the server has; None where it has no kind."""
    group = str(made["apiVersion"]).rpartition("/")[0]
    version = served.versions.get((group, str(made["kind"])))
    if version is None:
        return None
    names = {key: made["metadata"][key] for key in ("name", "namespace") if key in made["metadata"]}
    return {"apiVersion": version, "kind": made["kind"], "metadata": names}


def _is_own(there: Object, cluster: str, addon: str) -> bool:
    labels = there["metadata"].get("labels") or {}
    if labels.get(CLUSTER_LABEL) != cluster:
        return False
    return there["kind"] in _SHARED or labels.get(ADDON_LABEL) == addon
