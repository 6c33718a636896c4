"""Objects of others to the API server, and the words in which it refuses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ....schemas.diagnostics import Diagnostic, Severity
from ..kubectl import ApiRefused, Kubectl
from .served import Served

if TYPE_CHECKING:
    from ....inventory.compile.kubernetes_objects.objects import Object
    from ..objects import ObjectKey

MANAGER = "gcluster-addons"
"""Field manager of add-ons' objects: another one than of what gcluster compiles itself."""
_LIMIT_S = 300
_ESTABLISHED_S = 60


class AddonStopped(Exception):  # noqa: N818  # it says what happened
    """An add-on could not be brought; what came before is applied and stays."""

    def __init__(self, code: str, summary: str, detail: str = "", hint: str = "") -> None:
        """Hold what is said of it."""
        super().__init__(summary)
        self.diagnostic = Diagnostic(
            code=code,
            severity=Severity.ERROR,
            summary=summary,
            detail=detail,
            hint=hint or "mend it, then run the same command again: it goes on",
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


def establish(kubectl: Kubectl, definitions: Sequence[Object], addon: str) -> None:
    """Apply CRDs and wait until their kinds are served.

    Raises:
        AddonStopped: GC1064: one was refused, or isn't served in time.
        ApiSilent: no API server answers.
    """
    if not definitions:
        return
    apply(kubectl, definitions, addon)
    names = [f"customresourcedefinition/{one['metadata']['name']}" for one in definitions]
    try:
        kubectl.text(
            *("wait", "--for=condition=Established", f"--timeout={_ESTABLISHED_S}s", *names),
            timeout_s=_LIMIT_S,
        )
    except ApiRefused as refused:
        summary = f"add-on {addon}: a kind of it is not served: {refused}"
        raise AddonStopped("GC1064", summary, refused.words) from refused


def delete(
    kubectl: Kubectl, keys: Iterable[ObjectKey], served: Served, *, wait: bool | None = None
) -> None:
    """Delete objects, if they are there: one call for those of a kind and a namespace.

    `wait`: until they are gone; None: for custom ones only, which whoever looks after them may have
    to let go. One kind may wait for another, so all are told before one is awaited.
    """
    alike: dict[tuple[str, str], list[ObjectKey]] = {}
    for key in keys:
        if kind := served.name_of(key.group, key.kind):  # with a kind all its objects went
            alike.setdefault((kind, key.namespace), []).append(key)
    awaited = [
        at for at, found in alike.items() if (served.is_custom(found[0]) if wait is None else wait)
    ]
    told = list(alike) if len(awaited) > 1 else [at for at in alike if at not in awaited]
    for at in told:
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
    """Name the object that was refused: the first one whose name is in the server's words."""
    for made in objects:
        name = made["metadata"]["name"]
        if f'"{name}"' in refused.words or f"/{name} " in refused.words:
            return f"{made['kind']} {name}"
    return "an object of it"
