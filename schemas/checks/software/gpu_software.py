"""Whether every node with GPUs gets a driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..context import CheckContext
from ..registry import Finding, check
from .versions import every_stack, once

if TYPE_CHECKING:
    from ...stack.pools import PoolStack

_DRIVERS = {"nvidia": "driver", "amd": "rocm"}
"""Maker of GPUs -> the component without which no program finds them."""


@check("GC622", summary="GPUs for which nothing installs a driver.")
def gpus_without_driver(context: CheckContext) -> Iterator[Finding]:
    """Nodes with GPUs get a driver in a version that is known to go with them.

    No tested set has these GPUs, and their maker is not known to support them on this
    distribution together with anything. The nodes would come up, Slurm would offer their GPUs, and
    no program would find one. Write a version, or `preinstalled` where the hosts or the image have
    it.
    """
    yield from once(
        (stack, finding)
        for stack in every_stack(context).values()
        for finding in _without_driver(context, stack)
    )


def _without_driver(context: CheckContext, stack: PoolStack) -> Iterator[Finding]:
    key = _DRIVERS.get(stack.need.vendor or "")
    if key is None or _is_brought(context, stack, key):
        return
    gpu, capability = stack.need.gpu, stack.need.capability
    why = f"{gpu} on {stack.resolved.distribution or 'a distribution that is not said'}"
    detail = "" if capability else "The machine type doesn't say its GPU's compute_capability."
    yield Finding(
        summary=f"nothing installs a driver: no version is known for {why}",
        detail=detail,
        path=("pools", stack.name, "machine"),
        hint=f"write software: {{{key}: VERSION}}, or {key}: preinstalled where the nodes have it"
        + ("" if stack.resolved.distribution else ", or software: {distribution: ...}"),
        relies_on=(
            ("pools", stack.name, "machine"),
            ("pools", stack.name, "software"),
            ("software",),
            ("scheduler", "type"),
        ),
    )


def _is_brought(context: CheckContext, stack: PoolStack, key: str) -> bool:
    """Whether a component is installed, or the nodes have it; Kubernetes brings its own."""
    site = context.cloud(stack.pool)
    image = stack.pool.image is not None or (site is not None and site.image is not None)
    own = getattr(stack.software, key, "auto") == "preinstalled"
    if stack.need.scheduler == "kubernetes" or image or own:
        return True
    return stack.resolved.version(key) is not None
