"""YAML of others as objects: read as Kubernetes' own programs do, whatever YAML 1.1 says besides.

No dates and no numbers of base 60: a label `1:30` or `2026-11-01` is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from ....inventory.compile.kubernetes_objects.objects import Object
from ...outcome import Exit, LifecycleError, failure

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
