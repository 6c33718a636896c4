"""An add-on from its content to the objects that are applied, in the parts of their order."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ....inventory.compile.kubernetes_objects.addons import ChosenAddon
from ....inventory.compile.kubernetes_objects.objects import Object
from ..objects import ObjectKey, key_of
from .documents import read_objects
from .helm import find_helm
from .hooks import Parted, parted
from .prepared import prepared, started_images

ROLLS_OUT = ("Deployment", "DaemonSet", "StatefulSet")
"""Kinds of which Kubernetes says whether they are there in full."""


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """What an add-on is made of."""

    definitions: tuple[Object, ...]
    """CRDs: the rest may be of their kinds."""
    namespaces: tuple[Object, ...]
    objects: tuple[Object, ...]
    hooks: Parted
    images: tuple[str, ...]
    """What its containers run, as their pods name it."""

    @property
    def unpinned(self) -> tuple[str, ...]:
        """Images that it starts at no digest."""
        return tuple(image for image in self.images if "@sha256:" not in image)

    @property
    def workloads(self) -> tuple[Object, ...]:
        """What has to roll out."""
        return tuple(made for made in self.objects if made["kind"] in ROLLS_OUT)


def rendered(
    one: ChosenAddon, content: bytes, cluster: str, release: str, compiled: Collection[ObjectKey]
) -> Rendered:
    """Render a chart, or read a manifest.

    Args:
        one: the add-on with its values.
        content: the chart's archive or the manifest.
        cluster: its name, for the labels.
        release: of Kubernetes: "1.35".
        compiled: objects that gcluster makes itself: an add-on's own version of one is left out.

    Raises:
        LifecycleError: GC1061, GC1062.
    """
    addon = one.addon
    if addon.kind == "helm":
        text = find_helm().template(
            content, addon.name, namespace=addon.namespace, values=one.values, release=release
        )
    else:
        text = content
    mine = (prepared(made, addon, cluster) for made in read_objects(text, addon.name))
    parts = parted(made for made in mine if key_of(made) not in compiled)
    crds = tuple(m for m in parts.objects if m["kind"] == "CustomResourceDefinition")
    spaces = tuple(made for made in parts.objects if made["kind"] == "Namespace")
    every = [*parts.objects, *(hook.made for hook in parts.hooks)]
    return Rendered(
        definitions=crds,
        namespaces=spaces,
        objects=tuple(made for made in parts.objects if made not in crds and made not in spaces),
        hooks=parts,
        images=tuple(dict.fromkeys(image for made in every for image in started_images(made))),
    )
