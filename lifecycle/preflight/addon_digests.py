"""Add-ons of Kubernetes whose digests nobody has said: `up` refuses them, `compile` writes them."""

from __future__ import annotations

from ...inventory.compile.kubernetes_objects.addons import unfilled
from ...inventory.compile.kubernetes_objects.facts import KubernetesFacts
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.load import Loaded
from ..outcome import LifecycleError

CATALOG = "files/addons/addons.yaml"
"""The catalog file of a bundle: named under `catalog:` it fills in what gcluster's leaves open."""
_NAMED = 3
"""Most images that a message names."""


def unknown_digests(facts: KubernetesFacts, loaded: Loaded) -> tuple[Diagnostic, ...]:
    """Return an error for each add-on of which something has no digest, in order of application."""
    document = loaded.document
    path = ("scheduler",)
    return tuple(
        Diagnostic(
            code="GC619",
            severity=Severity.ERROR,
            summary=f"add-on {name}: no digest is known of {_what(missing)}",
            path=path,
            file=loaded.file,
            span=None if document is None else document.locate(path, key=True),
            hint=f"gcluster bundle {loaded.file} --out DIR; then name DIR/{CATALOG} under catalog:",
        )
        for name, missing in unfilled(facts).items()
    )


def refuse_unknown_digests(facts: KubernetesFacts, loaded: Loaded) -> None:
    """Refuse a cluster that would run what nobody has pinned.

    Raises:
        LifecycleError: an add-on has a chart, manifest or image without a digest.
    """
    found = unknown_digests(facts, loaded)
    if found:
        raise LifecycleError(*found)


def _what(missing: list[str]) -> str:
    """Name what lacks a digest: the chart or manifest itself, and some of the images."""
    named = [name or "the chart or manifest itself" for name in missing]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more
