"""What can't be collected into a bundle, said before anything is fetched."""

from __future__ import annotations

from ...schemas.catalog import Catalog
from ...schemas.diagnostics import Diagnostic, Severity
from ..outcome import Exit, LifecycleError
from .asked import PoolNeeds
from .kubernetes import KubernetesAsked, refusals


def refuse_unclear(
    needs: list[PoolNeeds],
    catalog: Catalog,
    only: tuple[str, ...],
    kubernetes: KubernetesAsked | None,
) -> None:
    """Name all that can't be collected before anything is fetched.

    Args:
        needs: what the pools ask for.
        catalog: sources.
        only: roles that the bundle is limited to.
        kubernetes: what nodes need of it; None: nothing.

    Raises:
        LifecycleError: GC939, one for each.
    """
    found: list[Diagnostic] = [] if kubernetes is None else list(refusals(kubernetes))
    for pool in needs:
        if pool.distribution is None:
            found.append(
                _refusal(
                    f"pool {pool.pool}: nothing says which distribution its hosts have",
                    "write software.distribution in the spec, for all pools or for this one",
                )
            )
        found += [
            _refusal(
                f"role {a.role} of pool {pool.pool}: only a node can tell what is needed by"
                f' its task "{a.what}"',
                "leave this role out, or give it a version",
            )
            for a in pool.unclear
        ]
        for file in pool.files:
            if not file.checksum.startswith("sha256:"):
                found.append(
                    _refusal(
                        f"{file.source}/{file.path}, which {file.role} asks for, has no checksum",
                        f"write it under software.sources.{file.source}.checksums",
                    )
                )
            if file.source not in catalog.sources:
                found.append(_refusal(f"{file.source} is no artefact source of the catalog", ""))
        found += [
            _refusal(
                f"image {image.what}, which {image.role} asks for, has no digest",
                "an image is taken by its digest alone: NAME@sha256:…",
            )
            for image in pool.images
            if "@sha256:" not in image.what
        ]
    asked = {a.role for pool in needs for a in pool.packages} | {
        f.role for pool in needs for f in pool.files
    }
    asked |= set() if kubernetes is None else {"kubernetes"}
    for role in only:
        if role not in asked:
            found.append(_refusal(f'nothing of this spec is installed by a role "{role}"', ""))
    if found:
        raise LifecycleError(*dict.fromkeys(found), exit_code=Exit.REFUSED)


def _refusal(summary: str, hint: str) -> Diagnostic:
    return Diagnostic(code="GC939", severity=Severity.ERROR, summary=summary, hint=hint)
