"""Repositories that nodes need and nobody vouches for: refused before anything is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schemas.diagnostics import Diagnostic, Severity
from ..outcome import Exit, LifecycleError

if TYPE_CHECKING:
    from ...inventory.compile import CompiledCluster, Step


def refuse_unkeyed(compiled: CompiledCluster) -> None:
    """Let a cluster pass whose repositories all have a key that is known by its fingerprint.

    Raises:
        LifecycleError: one of them hasn't; says which source and for which pools.
    """
    pools: dict[str, list[str]] = {}
    for group in compiled.groups:
        for name in sorted(_unkeyed(group.steps)):
            pools.setdefault(name, []).append(group.name)
    if pools:
        raise LifecycleError(
            *(_finding(name, needed_by) for name, needed_by in sorted(pools.items())),
            exit_code=Exit.REFUSED,
        )


def _unkeyed(steps: tuple[Step, ...]) -> set[str]:
    """Return the sources whose key nobody says."""
    return {
        str(repository["name"])
        for step in steps
        if step.key == "package_sources.install"
        for repository in step.variables["package_sources_repositories"]
        if not repository["key_fingerprint"]
    }


def _finding(name: str, pools: list[str]) -> Diagnostic:
    return Diagnostic(
        code="GC936",
        severity=Severity.ERROR,
        summary=f'no fingerprint is known of the key of "{name}", which {_named(pools)} needs',
        path=("software", "sources", name),
        hint=f"read it from the vendor through another way than the download, and write "
        f"software.sources.{name}.key_fingerprint",
    )


def _named(pools: list[str]) -> str:
    return f"pool {pools[0]}" + (f" (and {len(pools) - 1} more)" if len(pools) > 1 else "")
