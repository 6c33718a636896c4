"""An add-on from its content to the objects that are applied, in the parts of their order."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
import yaml

from ....inventory.compile.kubernetes_objects.addons import ChosenAddon
from ....inventory.compile.kubernetes_objects.nodes import STARTUP_TAINT, STARTUP_TOLERATION
from ....inventory.compile.kubernetes_objects.objects import CLUSTER_LABEL, DOMAIN, Object
from ....schemas.catalog import Addon
from ...cluster.outcome import Exit, LifecycleError, failure
from ..objects import ObjectKey, key_of
from ..release.image_archive import full_name
from .helm import find_helm

ROLLS_OUT = ("Deployment", "DaemonSet", "StatefulSet")
"""Kinds whose completeness Kubernetes reports in their status."""


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """What an add-on is made of."""

    definitions: tuple[Object, ...]
    """CRDs: the rest may be of their kinds."""
    namespaces: tuple[Object, ...]
    objects: tuple[Object, ...]
    hooks: ChartParts
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
    parts = split_hooks(made for made in mine if key_of(made) not in compiled)
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


_NO_MORE = frozenset({"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"})
_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"


class _Reader(yaml.SafeLoader):
    """Reads what is text for Kubernetes as text."""


_Reader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in found
        if tag not in _NO_MORE and tag not in {_INTEGER, _FLOAT}
    ]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _add_numbers() -> None:

    whole = re.compile(r"^(?:[-+]?0|[-+]?[1-9][0-9]*|0o?[0-7]+|0x[0-9a-fA-F]+)$")
    part = re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$")
    _Reader.add_implicit_resolver(_INTEGER, whole, list("-+0123456789"))
    _Reader.add_implicit_resolver(_FLOAT, part, list("-+0123456789."))


_add_numbers()


def read_objects(text: bytes, addon: str) -> list[Object]:
    """Return the objects of a file of documents; lists are opened.

    Raises:
        LifecycleError: GC1062: it holds something else.
    """
    try:
        found = [one for one in yaml.load_all(text, Loader=_Reader) if one]  # a SafeLoader
    except (yaml.YAMLError, ValueError) as error:
        raise _no_objects(addon, str(error).splitlines()[0]) from None
    made = [each for one in found for each in _opened(one, addon)]
    if not made:
        raise _no_objects(addon, "it is empty")
    return made


def _opened(one: Any, addon: str) -> Iterator[Object]:
    if not isinstance(one, dict) or not isinstance(one.get("kind"), str):
        raise _no_objects(addon, "a document of it has no kind")
    if str(one.get("apiVersion")).startswith(
        ("kustomize.config.k8s.io/", "kubectl.config.k8s.io/")
    ):
        raise _no_objects(addon, f"it is a {one['kind']}, which names files elsewhere")
    if one["kind"].endswith("List") and isinstance(one.get("items"), list):
        for each in one["items"]:
            yield from _opened(each, addon)
        return
    if why := _fault(one):
        raise _no_objects(addon, f"a {one['kind']} of it has {why}")
    yield one


def _fault(one: dict[Any, Any]) -> str:
    """Return what an object lacks that all else goes by; "": nothing."""
    metadata = one.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return "no name"
    if not isinstance(metadata["name"], str):
        return "a name that is no text"
    if not isinstance(one.get("apiVersion"), str) or not one["apiVersion"]:
        return "no apiVersion"
    if not isinstance(metadata.get("namespace", "") or "", str):
        return "a namespace that is no text"
    for key in ("labels", "annotations"):
        if not isinstance(metadata.get(key) or {}, dict):
            return f"{key} that are no mapping"
    return ""


def _no_objects(addon: str, why: str) -> LifecycleError:
    return failure(
        "GC1062",
        f"add-on {addon} is no file of objects: {why}",
        hint="name one in a catalog file of your own: a chart, or YAML that kubectl apply takes",
        exit_code=Exit.REFUSED,
    )


ADDON_LABEL = f"{DOMAIN}/addon"
"""On every object of an add-on, with its name; the label of who manages it stays the chart's."""
_CONTAINERS = ("containers", "initContainers")
_MAKES_PODS = frozenset({"CronJob", "DaemonSet", "Deployment", "Job", "StatefulSet"})


def prepared(made: Object, addon: Addon, cluster: str) -> Object:
    """Return an object with our labels and pinned images, without fields that only a server sets.

    Its pods tolerate starting nodes: device plugins are add-ons, and pods that are waited for
    before them have no other nodes where all of them have GPUs.

    Raises:
        LifecycleError: GC1062: it runs an image with a digest that differs from the add-on's.
    """
    metadata = {key: value for key, value in made["metadata"].items() if value is not None}
    labels = {**(metadata.get("labels") or {}), CLUSTER_LABEL: cluster, ADDON_LABEL: addon.name}
    kept = {key: value for key, value in made.items() if key != "status"}
    digests = {full_name(name): digest for name, digest in addon.images.items() if digest}
    whole = kept | {"metadata": metadata | {"labels": labels}}
    pinned: Object = _pinned(whole, digests, addon.name)
    pod = _pod_of(pinned)
    if pod is not None and not _tolerates_startup(pod):
        pod["tolerations"] = [*(pod.get("tolerations") or []), dict(STARTUP_TOLERATION)]
    return pinned


def _pod_of(made: Object) -> dict[str, Any] | None:
    """Return what an object's pods are made from; None: it makes none."""
    spec = made.get("spec")
    if made["kind"] == "CronJob" and isinstance(spec, dict):
        spec = (spec.get("jobTemplate") or {}).get("spec")
    if made["kind"] not in _MAKES_PODS or not isinstance(spec, dict):
        return None
    found = (spec.get("template") or {}).get("spec")
    return found if isinstance(found, dict) else None


def _tolerates_startup(pod: Mapping[str, Any]) -> bool:
    """Whether a pod tolerates the startup taint already; an empty key matches every taint."""
    return any(
        one.get("operator") == "Exists"
        and one.get("key") in {None, "", STARTUP_TAINT}
        and one.get("effect") in {None, "", "NoSchedule"}
        for one in pod.get("tolerations") or ()
    )


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
    found = {key: _pinned(value, digests, addon) for key, value in made.items()}
    for key in _CONTAINERS:
        if isinstance(found.get(key), list):
            found[key] = [_container(one, digests, addon) for one in found[key]]
    return found


def _container(one: Any, digests: Mapping[str, str], addon: str) -> Any:
    if not isinstance(one, dict) or not isinstance(one.get("image"), str):
        return one
    name, _, written_digest = one["image"].partition("@")
    digest = digests.get(full_name(name))
    if digest is None or written_digest == digest:
        return one
    if written_digest:
        raise failure(
            "GC1062",
            f"add-on {addon} runs {name} at {written_digest}, and {digest} is pinned",
            hint="which of them is right? The catalog file that pins it says from where it has it",
            exit_code=Exit.REFUSED,
        )
    return one | {"image": f"{name}@{digest}"}


def _containers(made: Any) -> Iterator[dict[str, Any]]:
    if isinstance(made, list):
        for each in made:
            yield from _containers(each)
    elif isinstance(made, dict):
        for key, value in made.items():
            if key in _CONTAINERS and isinstance(value, list):
                yield from (one for one in value if isinstance(one, dict))
            yield from _containers(value)


Event: TypeAlias = Literal["install", "upgrade"]
When: TypeAlias = Literal["pre", "post"]

_KIND = "helm.sh/hook"
_WEIGHT = "helm.sh/hook-weight"
_TESTS = frozenset({"test", "test-success", "test-failure"})
_BEFORE = frozenset({"pre-install", "pre-upgrade"})
_AFTER = frozenset({"post-install", "post-upgrade"})


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """A chart's hook: an object that runs before or after an action."""

    made: Object
    events: frozenset[str]
    """"pre-install", "post-upgrade"."""
    weight: int

    @property
    def runs(self) -> bool:
        """Whether it runs once and ends."""
        return bool(self.made["kind"] == "Job")

    @property
    def is_known(self) -> bool:
        """Whether all of its events occur, and `up` can run its kind."""
        return self.made["kind"] != "Pod" and not self.events - _BEFORE - _AFTER - _TESTS

    @property
    def words(self) -> str:
        """Name it and what it is for: "Job/clean (pre-delete)"."""
        events = ", ".join(sorted(self.events))
        return f"{self.made['kind']}/{self.made['metadata']['name']} ({events})"


class ChartParts(msgspec.Struct, frozen=True, kw_only=True):
    """A chart's objects without its hooks, and those in their order: weight, kind, name."""

    objects: tuple[Object, ...]
    hooks: tuple[Hook, ...]

    def jobs(self, when: When, event: Event) -> list[Object]:
        """Return what runs before or after an event."""
        return [hook.made for hook in self.hooks if hook.runs and f"{when}-{event}" in hook.events]

    def hook_objects(self, when: When) -> list[Object]:
        """Return what is applied before the chart's own objects, or after them."""
        found = [hook for hook in self.hooks if hook.made["kind"] not in {"Job", "Pod"}]
        if when == "pre":
            return [hook.made for hook in found if hook.events & _BEFORE]
        return [h.made for h in found if h.events & _AFTER and not h.events & _BEFORE]

    @property
    def skipped_hooks(self) -> tuple[str, ...]:
        """Hooks of which at least one event never occurs, and single pods, as text."""
        return tuple(hook.words for hook in self.hooks if not hook.is_known)


def split_hooks(objects: Iterable[Object]) -> ChartParts:
    """Part hooks from the rest. CRDs that old charts have as hooks are none; tests are left out."""
    plain: list[Object] = []
    hooks: list[Hook] = []
    for made in objects:
        notes = made["metadata"].get("annotations") or {}
        events = frozenset(w.strip() for w in str(notes.get(_KIND, "")).split(",") if w.strip())
        if not events or "crd-install" in events:
            plain.append(made)
        elif events - _TESTS:
            hooks.append(Hook(made=made, events=events, weight=_weight(notes.get(_WEIGHT, "0"))))
    hooks.sort(key=lambda h: (h.weight, h.made["kind"], h.made["metadata"]["name"]))
    return ChartParts(objects=tuple(plain), hooks=tuple(hooks))


def _weight(text: object) -> int:
    try:
        return int(str(text))
    except ValueError:
        return 0
