"""One image is for one processor architecture."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple
from ..spec import Pool
from .context import CheckContext
from .registry import Finding, check


@check("GC609", summary="One image for machines of two processor architectures.")
def mixed_architectures(context: CheckContext) -> Iterator[Finding]:
    """A machine image holds programs for x86_64 or for aarch64 (Grace), never for both.

    Give the pools of one architecture an `image` of their own.
    """
    first: dict[tuple[str | None, str], tuple[str, str]] = {}
    for name, pool in context.pools.items():
        image, path = _image(context, name, pool)
        machine = context.machine(pool) if image is not None else None
        if image is None or machine is None or machine.cpu is None:
            continue
        architecture = machine.cpu.architecture
        before, other = first.setdefault((context.provider(pool), image), (name, architecture))
        if other != architecture:
            yield Finding(
                summary=f'pool "{name}" is {architecture}, but boots the image of pool "{before}", '
                f"which is {other}",
                path=path,
                hint=f"give pool {name} an image for {architecture}",
                relies_on=tuple(
                    ("pools", p, key)
                    for p in (name, before)
                    for key in ("machine", "image", "site")
                ),
            )


def _image(context: CheckContext, name: str, pool: Pool) -> tuple[str | None, PathTuple]:
    """Return the image that a pool names or takes from its site, and the place to speak about."""
    if pool.image is not None:
        return pool.image, ("pools", name, "image")
    site = context.cloud(pool)
    return (None if site is None else site.image), ("pools", name, "machine")
