"""Distributions: what a provider's nodes come in, and the Slurm of their packages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..diagnostics import Severity
from ..mend.fix import Remove
from .context import CheckContext
from .pool_software import once, relies_on, stacks, the_lock
from .registry import Finding, check

if TYPE_CHECKING:
    from ..stack.pools import PoolStack


@check("GC610", summary="A distribution that the pool's nodes can't have.")
def distribution_at_provider(context: CheckContext) -> Iterator[Finding]:
    """Local nodes are made from gcluster's own image; cloud nodes from the vendor's GPU image.

    Another distribution on a cloud needs an `image` of your own, at the site or the pool.
    """
    found = ((stack, _not_offered(context, stack)) for stack in stacks(context).values())
    yield from once((stack, finding) for stack, finding in found if finding is not None)


def _not_offered(context: CheckContext, stack: PoolStack) -> Finding | None:
    written = stack.software.distribution
    offered = the_lock().node_image(stack.need.provider)
    site = context.cloud(stack.pool)
    own_image = stack.pool.image is not None or (site is not None and site.image is not None)
    if written == "auto" or offered is None or written in offered.distributions or own_image:
        return None
    path = stack.where("distribution")
    mend = "" if site is None else ", or name an image of your own"
    return Finding(
        summary=f"{offered.provider} nodes don't come as {written}: {offered.why}",
        path=path,
        hint=f"leave distribution out, or write {' or '.join(offered.distributions)}{mend}",
        relies_on=(*relies_on(stack, "distribution"), ("pools", stack.name, "image")),
        fix=Remove(path=path),
    )


@check("GC613", summary="A Slurm that the distribution's packages don't have.")
def slurm_of_distribution(context: CheckContext) -> Iterator[Finding]:
    """Slurm comes from the distribution's packages unless the image brings another.

    Debian 13 has 24.11, Ubuntu 24.04 has 23.11, Debian 12 and EPEL 9 have 22.05, Ubuntu 22.04 has
    21.08. Any other version needs packages from a source of your own; local nodes have none.
    """
    found = ((stack, _other_slurm(context, stack)) for stack in stacks(context).values())
    yield from once((stack, finding) for stack, finding in found if finding is not None)


def _other_slurm(context: CheckContext, stack: PoolStack) -> Finding | None:
    from ..stack.versions import fits  # noqa: PLC0415  # only with software

    written, resolved = stack.asked.get("slurm"), stack.resolved
    package = the_lock().slurm_package(resolved.distribution)
    by_set = resolved.set is not None and resolved.tested and resolved.evidence is not None
    if written is None or package is None or context.slurm is None or fits(written, package):
        return None
    if by_set and any(c.key == "slurm" and c.verified for c in resolved.components):
        return None
    local = stack.need.provider == "local"
    path = stack.where("slurm")
    return Finding(
        summary=f"Slurm {written} is not in the packages of {resolved.distribution}, "
        f"which have {package}",
        path=path,
        severity=Severity.ERROR if local else Severity.WARNING,
        hint=f'write slurm: "{package}" or leave it out'
        + ("" if local else "; else bring packages of a pinned source in the nodes' image"),
        relies_on=relies_on(stack, "slurm", "distribution"),
        fix=Remove(path=path) if local else None,
    )
