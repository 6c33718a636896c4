"""An add-on's objects as they are applied: labelled as ours, each image at its digest (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....inventory.compile.kubernetes_objects.objects import CLUSTER_LABEL, DOMAIN, Object
from ....schemas.catalog import Addon
from ...outcome import Exit, failure
from ..image_names import full_name

ADDON_LABEL = f"{DOMAIN}/addon"
"""On every object of an add-on, with its name; the label of who manages it stays the chart's."""
_CONTAINERS = ("containers", "initContainers")


def prepared(made: Object, addon: Addon, cluster: str) -> Object:
    """Return an object with our labels and pinned images, without what only a server says.

    Raises:
        LifecycleError: GC1062: it runs an image at another digest than the add-on's.
    """
    metadata = {key: said for key, said in made["metadata"].items() if said is not None}
    labels = {**(metadata.get("labels") or {}), CLUSTER_LABEL: cluster, ADDON_LABEL: addon.name}
    kept = {key: said for key, said in made.items() if key != "status"}
    digests = {full_name(name): digest for name, digest in addon.images.items() if digest}
    whole = kept | {"metadata": metadata | {"labels": labels}}
    pinned: Object = _pinned(whole, digests, addon.name)
    return pinned


def started_images(made: Any) -> Iterator[str]:
    """Yield the images that containers of an object run."""
    for container in _containers(made):
        image = container.get("image")
        if isinstance(image, str):
            yield image


def _pinned(made: Any, digests: Mapping[str, str], addon: str) -> Any:
    if isinstance(made, list):
        return [_pinned(each, digests, addon) for each in made]
    if not isinstance(made, dict):
        return made
    found = {key: _pinned(said, digests, addon) for key, said in made.items()}
    for key in _CONTAINERS:
        if isinstance(found.get(key), list):
            found[key] = [_container(one, digests, addon) for one in found[key]]
    return found


def _container(one: Any, digests: Mapping[str, str], addon: str) -> Any:
    if not isinstance(one, dict) or not isinstance(one.get("image"), str):
        return one
    name, _, said = one["image"].partition("@")
    digest = digests.get(full_name(name))
    if digest is None or said == digest:
        return one
    if said:
        raise failure(
            "GC1062",
            f"add-on {addon} runs {name} at {said}, and {digest} is pinned",
            hint="which of them is right? The catalog file that pins it says from where it has it",
            exit_code=Exit.REFUSED,
        )
    return one | {"image": f"{name}@{digest}"}


def _containers(made: Any) -> Iterator[dict[str, Any]]:
    if isinstance(made, list):
        for each in made:
            yield from _containers(each)
    elif isinstance(made, dict):
        for key, said in made.items():
            if key in _CONTAINERS and isinstance(said, list):
                yield from (one for one in said if isinstance(one, dict))
            yield from _containers(said)
