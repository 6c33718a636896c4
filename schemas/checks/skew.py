"""How far the nodes' daemons may be from the control plane's: never newer, not much older."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .context import CheckContext
from .pool_software import once, relies_on, stacks, the_lock
from .registry import Finding, check

if TYPE_CHECKING:
    from ..stack.pools import PoolStack


@check("GC615", summary="Nodes' Slurm too new or too old for the controller's.")
def slurm_skew(context: CheckContext) -> Iterator[Finding]:
    """A slurmd must not be newer than slurmctld, nor older than that understands.

    slurmctld talks to the two major releases before its own, from 24.11 on to three. Upgrade the
    controller first.
    """
    if context.slurm is not None:
        yield from _skewed(context, "slurm", "slurmd", "slurmctld")


@check("GC616", summary="Nodes' Kubernetes too new or too old for the control plane's.")
def kubernetes_skew(context: CheckContext) -> Iterator[Finding]:
    """A kubelet must not be newer than the API server, nor more than three minor releases older.

    Upgrade the control plane first, then the nodes.
    """
    if context.kubernetes is not None:
        yield from _skewed(context, "kubernetes", "kubelet", "the control plane")


def _skewed(context: CheckContext, key: str, daemon: str, control: str) -> Iterator[Finding]:
    found = stacks(context)
    controllers = [stack for stack in found.values() if stack.pool.role == "controller"]
    version = controllers[0].asked.get(key) if len(controllers) == 1 else None
    if version is None:
        return
    nodes = [stack for stack in found.values() if stack.pool.role != "controller"]
    pairs = ((stack, _apart(stack, key, version, (daemon, control))) for stack in nodes)
    yield from once((stack, finding) for stack, finding in pairs if finding is not None)


def _apart(stack: PoolStack, key: str, control: str, names: tuple[str, str]) -> Finding | None:
    from ..stack.rules import behind, window  # noqa: PLC0415  # only with software

    written = stack.asked.get(key)
    skew = next(skew for skew in the_lock().skews if skew.component == key)
    distance = None if written is None else behind(skew, written, control)
    allowed = window(skew, control)
    if distance is None or 0 <= distance <= allowed:
        return None
    newer = f"newer than {names[1]} {control}"
    older = f"{distance} releases older than {names[1]} {control}, which talks to {allowed}"
    return Finding(
        summary=f"{names[0]} {written} is {newer if distance < 0 else older}",
        path=stack.where(key),
        hint=f'write {key}: "{control}" here, or upgrade the controller first'
        if distance < 0
        else f"upgrade these nodes: at most {allowed} releases behind",
        relies_on=(*relies_on(stack, key), ("pools", "*", "role")),
    )
