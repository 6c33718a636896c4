"""The objects that a cluster is to have: compiled, in the order in which they are applied."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from ...inventory.compile.kubernetes_objects.addons import chosen_addons
from ...inventory.compile.kubernetes_objects.facts import KubernetesFacts, kubernetes_facts
from ...inventory.compile.kubernetes_objects.objects import DOMAIN, Object, owned
from ...inventory.compile.kubernetes_objects.registration import nodes
from ...inventory.compile.kubernetes_objects.tree import FIRST, objects
from ...inventory.hosts import ClusterInventory
from ...schemas.catalog import Catalog
from ...schemas.spec import ClusterSpec
from .release.source import takes_own_build

DIGEST = f"{DOMAIN}/compiled"
"""Annotation of each object that `up` applied: hash of what it was compiled to."""


class ObjectKey(NamedTuple):
    """The key of an object in a cluster, independent of its API version."""

    group: str
    kind: str
    namespace: str
    """"" where the kind has none."""
    name: str

    @property
    def words(self) -> str:
        """Name it as people do: "everyone/members"."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class DesiredObjects(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster is to have."""

    facts: KubernetesFacts
    objects: dict[ObjectKey, Object]
    """In the order in which they are applied, each with its digest."""
    last: frozenset[ObjectKey] = frozenset()
    """Those that may be of kinds which add-ons bring: they are applied after these."""
    nodes: dict[str, dict[str, Any]]
    """Node -> its labels and taints."""


def desired_objects(
    spec: ClusterSpec, inventory: ClusterInventory, catalog: Catalog
) -> DesiredObjects:
    """Return what a spec's cluster is to have; what its nodes can't get is left out."""
    facts = kubernetes_facts(spec, inventory, catalog, left_out(spec, inventory, catalog))
    made = {
        folder: [_digested(owned(each, spec.name)) for alike in files.values() for each in alike]
        for folder, files in objects(facts).items()
    }
    return DesiredObjects(
        facts=facts,
        objects={key_of(one): one for alike in made.values() for one in alike},
        last=frozenset(
            key_of(one) for folder, alike in made.items() if folder not in FIRST for one in alike
        ),
        nodes=nodes(facts),
    )


def left_out(spec: ClusterSpec, inventory: ClusterInventory, catalog: Catalog) -> frozenset[str]:
    """Return the add-ons that a cluster goes without: nodes made here get what their bundle has."""
    if not takes_own_build(spec):
        return frozenset()
    facts = kubernetes_facts(spec, inventory, catalog)
    return frozenset(one.addon.name for one in chosen_addons(facts))


def key_of(made: Object) -> ObjectKey:
    """Return the key of an object, compiled or from the API server."""
    group, _, version = str(made["apiVersion"]).rpartition("/")
    del version
    metadata = made["metadata"]
    return ObjectKey(group, str(made["kind"]), metadata.get("namespace", ""), metadata["name"])


def images(made: Any) -> Iterator[str]:
    """Yield the images that an object's containers run."""
    if isinstance(made, dict):
        if isinstance(made.get("image"), str):
            yield made["image"]
        for value in made.values():
            yield from images(value)
    elif isinstance(made, list):
        for value in made:
            yield from images(value)


def _digested(made: Object) -> Object:
    """Return the object with the hash of its content, by which it is known to be as compiled."""
    content = msgspec.json.encode(made, order="sorted")
    digest = hashlib.sha256(content).hexdigest()[:32]
    metadata = made["metadata"]
    annotations = {**metadata.get("annotations", {}), DIGEST: digest}
    return made | {"metadata": metadata | {"annotations": annotations}}
