"""Ownership of objects in the API server, and the messages with which it refuses changes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ....inventory.compile.kubernetes_objects.objects import Object
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.structure.decoding import decode_json, decode_yaml
from ..kubectl import ApiRefused, Kubectl
from ..objects import ObjectKey

MANAGER = "gcluster-addons"
"""Field manager of add-ons' objects: another one than of what gcluster compiles itself."""
_LIMIT_S = 300
_ESTABLISHED_S = 60
_ASK_AGAIN_S = 0.5
_WITHOUT_CONDITIONS = ".status.conditions accessor error: <nil>"
"""What `kubectl wait` says of an object whose conditions nothing has written yet, instead of
waiting for them (kubernetes/kubernetes#66439)."""


class AddonStopped(Exception):  # noqa: N818  # named for what happened
    """An add-on could not be brought; what came before is applied and stays."""

    def __init__(self, code: str, summary: str, detail: str = "", hint: str = "") -> None:
        """Keep the message."""
        super().__init__(summary)
        self.diagnostic = Diagnostic(
            code=code,
            severity=Severity.ERROR,
            summary=summary,
            detail=detail,
            hint=hint or "fix it, then run the same command again: it goes on",
        )


def apply(kubectl: Kubectl, objects: Sequence[Object], addon: str) -> None:
    """Apply objects in their order, in one call.

    Raises:
        AddonStopped: GC1064: the API server refused one.
        ApiSilent: no API server answers.
    """
    if not objects:
        return
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    try:
        kubectl.text(
            *("apply", "--server-side", "--force-conflicts", f"--field-manager={MANAGER}"),
            *("--validate=strict", "--filename=-"),
            stdin=msgspec.json.encode(listed).decode(),
            timeout_s=_LIMIT_S,
        )
    except ApiRefused as refused:
        summary = f"add-on {addon}: the API server refused {_named(objects, refused)}: {refused}"
        raise AddonStopped("GC1064", summary, refused.words) from refused


def establish(
    kubectl: Kubectl,
    definitions: Sequence[Object],
    addon: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Apply CRDs and wait until their kinds are served.

    Raises:
        AddonStopped: GC1064: one was refused, or isn't served in time.
        ApiSilent: no API server answers.
    """
    if not definitions:
        return
    apply(kubectl, definitions, addon)
    names = [f"customresourcedefinition/{one['metadata']['name']}" for one in definitions]
    until = clock() + _ESTABLISHED_S
    while True:
        try:
            kubectl.text(
                *("wait", "--for=condition=Established", f"--timeout={_ESTABLISHED_S}s", *names),
                timeout_s=_LIMIT_S,
            )
        except ApiRefused as refused:
            if _WITHOUT_CONDITIONS in refused.words and clock() < until:
                sleep(_ASK_AGAIN_S)
                continue
            summary = f"add-on {addon}: a kind of it is not served: {refused}"
            raise AddonStopped("GC1064", summary, refused.words) from refused
        return


def delete(
    kubectl: Kubectl,
    keys: Iterable[ObjectKey],
    resources: ApiResources,
    *,
    wait: bool | None = None,
) -> None:
    """Delete objects, if they exist: one call per kind and namespace.

    `wait`: until they are deleted; None: for custom ones only, whose controller may have to remove
    a finalizer. One kind may depend on another, so all are deleted before the first is waited for.
    """
    alike: dict[tuple[str, str], list[ObjectKey]] = {}
    for key in keys:
        if kind := resources.name_of(key.group, key.kind):  # with a kind all its objects went
            alike.setdefault((kind, key.namespace), []).append(key)
    awaited = [
        at
        for at, found in alike.items()
        if (resources.is_custom(found[0]) if wait is None else wait)
    ]
    conflicts = list(alike) if len(awaited) > 1 else [at for at in alike if at not in awaited]
    for at in conflicts:
        _delete(kubectl, *at, alike[at], "--wait=false")
    for at in awaited:
        _delete(kubectl, *at, alike[at], "--timeout=60s")


def _delete(
    kubectl: Kubectl, kind: str, namespace: str, keys: Sequence[ObjectKey], waits: str
) -> None:
    where = [f"--namespace={namespace}"] if namespace else []
    names = [key.name for key in keys]
    kubectl.text("delete", kind, *names, *where, "--ignore-not-found", waits, timeout_s=90)


def _named(objects: Sequence[Object], refused: ApiRefused) -> str:
    """Return the object that was refused: the first whose name is in the server's message."""
    for made in objects:
        name = made["metadata"]["name"]
        if f'"{name}"' in refused.words or f"/{name} " in refused.words:
            return f"{made['kind']} {name}"
    return "an object of it"


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of an object's managedFields."""

    manager: str = ""
    subresource: str = ""
    time: str = ""
    fields: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


def fields_of(writers: str) -> str:
    """Return the hash of our fields out of an object's managedFields; "": we have none."""
    for writer in _read(writers):
        if writer.manager == MANAGER and not writer.subresource:
            text = msgspec.json.encode(writer.fields, order="sorted")
            return hashlib.sha256(text).hexdigest()[:16]
    return ""


def last_other(writers: str) -> tuple[str, str]:
    """Return who else wrote to an object last, and when; ("", ""): no one."""
    others = [w for w in _read(writers) if w.manager != MANAGER and not w.subresource]
    last = max(others, key=lambda writer: writer.time, default=None)
    return ("", "") if last is None else (last.manager, last.time)


def _read(writers: str) -> Iterator[Writer]:
    yield from decode_json(writers or "[]", list[Writer])


_LAST = 3
"""Columns that each line ends with: APIVERSION NAMESPACED KIND; short names may be missing."""


class ApiResources(msgspec.Struct, frozen=True, kw_only=True):
    """The kinds of an API server."""

    kinds: dict[tuple[str, str], tuple[str, bool]]
    """Group and kind -> name for kubectl (deployments.apps), whether it is in namespaces."""
    versions: dict[tuple[str, str], str] = {}
    """Group and kind -> the version that the server prefers: apps/v1."""

    def name_of(self, group: str, kind: str) -> str:
        """Return how kubectl calls a kind; "" where the server doesn't have it."""
        return self.kinds.get((group, kind), ("", False))[0]

    def placed(self, made: Object, namespace: str) -> Object:
        """Return an object with its namespace: the add-on's, unless it has its own."""
        group = str(made["apiVersion"]).rpartition("/")[0]
        _, has_namespace = self.kinds.get((group, str(made["kind"])), ("", False))
        if not has_namespace or made["metadata"].get("namespace"):
            return made
        return made | {"metadata": made["metadata"] | {"namespace": namespace}}

    def is_custom(self, key: ObjectKey) -> bool:
        """Whether a CRD defines the kind: its controller may have to remove finalizers."""
        return key.group not in built_in_groups()

    def of_groups(self, groups: Collection[str]) -> list[str]:
        """Return the kinds of API groups, as kubectl calls them."""
        return sorted(name for (group, _), (name, _) in self.kinds.items() if group in groups)


class _BuiltIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of built_in.yaml."""

    groups: frozenset[str]
    source: str
    date: str


@cache
def built_in_groups() -> frozenset[str]:
    """Return the API groups that an API server has by itself, as built_in.yaml has them."""
    path = Path(__file__).with_name("built_in.yaml")
    return decode_yaml(path.read_bytes(), _BuiltIn).groups


def read_api_resources(kubectl: Kubectl) -> ApiResources:
    """Query all kinds that can be listed; those of an unavailable aggregated API are missing.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: it returned no kind.
    """
    answer = kubectl.run("api-resources", "--verbs=list,delete", "--no-headers")
    found, versions = {}, {}
    for line in answer.stdout.splitlines():
        columns = line.split()
        if len(columns) > _LAST and columns[-2] in {"true", "false"}:
            group = columns[-3].rpartition("/")[0]
            name = f"{columns[0]}.{group}" if group else columns[0]
            found[group, columns[-1]] = (name, columns[-2] == "true")
            versions[group, columns[-1]] = columns[-3]
    if not found:
        raise ApiRefused(answer.stderr or "it named no kind")
    return ApiResources(kinds=found, versions=versions)
