"""Software for GPUs and fabrics that the pools don't have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..diagnostics import Severity
from ..mend.fix import Remove
from ..suggest import listing
from .context import CheckContext
from .pool_software import once, relies_on, stacks, the_lock
from .registry import Finding, check

if TYPE_CHECKING:
    from ..stack.lock import Component
    from ..stack.pools import PoolStack

_MAKERS = {"nvidia": "NVIDIA", "nvswitch": "NVIDIA", "amd": "AMD"}
_PLUGINS = {"efa", "tcpxo", "gib", "ofed"}


def _asked(stack: PoolStack) -> Iterator[Component]:
    return (component for component in the_lock().components if component.key in stack.asked)


def _vendor(stack: PoolStack) -> str | None:
    """Return the maker of a pool's GPUs, simulated ones included; None: none, or not known."""
    gpu = None if stack.machine is None else stack.machine.gpu
    return None if gpu is None else gpu.vendor


@check("GC606", summary="Software of another maker than the GPUs.")
def other_maker(context: CheckContext) -> Iterator[Finding]:
    """Drivers, CUDA and NCCL are for NVIDIA's GPUs; ROCm and RCCL are for AMD's.

    A version at the root is for the pools it fits; when none of the pools has such GPUs, it is a
    mistake.
    """
    found = stacks(context)
    yield from once(_wrong_maker(found))


def _wrong_maker(found: Mapping[str, PoolStack]) -> Iterator[tuple[PoolStack, Finding]]:
    computing = [stack for stack in found.values() if stack.pool.role == "compute"]
    vendors = {_vendor(stack) for stack in computing}
    for stack in computing:
        vendor = _vendor(stack)
        for component in _asked(stack):
            path = stack.where(component.key)
            maker = _MAKERS.get(component.part)
            if maker is None or vendor is None or maker.lower() == vendor:
                continue
            if path[0] == "software" and vendors & {None, maker.lower()}:
                continue
            instead = "rocm and rccl" if vendor == "amd" else "driver, cuda and nccl"
            yield (
                stack,
                Finding(
                    summary=f"{component.name} is for {maker} GPUs, these are {vendor.upper()}'s",
                    path=path,
                    hint=f"leave {component.key} out; here go {instead}",
                    relies_on=(*relies_on(stack, component.key), ("pools", "*", "machine")),
                    fix=Remove(path=path),
                ),
            )


@check("GC607", summary="A version of a fabric's software where no pool has that fabric.")
def no_such_fabric(context: CheckContext) -> Iterator[Finding]:
    """`efa`, `tcpxo`, `gib` and `ofed` are used by pools of the matching fabric class only.

    Leave the version out, or give a pool the fabric class.
    """
    computing = {n: s for n, s in stacks(context).items() if s.pool.role == "compute"}
    fabrics = {stack.need.fabric or "" for stack in computing.values()}
    if computing and "" not in fabrics:
        first = next(iter(computing.values()))
        plugins = {the_lock().plugin(fabric) for fabric in fabrics}
        for component in _of_fabrics(first, at_root=True):
            if component.part not in plugins:
                why = f"no pool's fabric takes it ({listing(fabrics)})"
                yield _unused(first, component, why)
    for stack in computing.values():
        fabric = stack.need.fabric
        for component in _of_fabrics(stack, at_root=False):
            if fabric is not None and component.part != the_lock().plugin(fabric):
                yield _unused(stack, component, f"the fabric is {fabric}")


def _of_fabrics(stack: PoolStack, *, at_root: bool) -> list[Component]:
    """Return the fabric software that is asked for, at the root or by the pool itself."""
    of_fabrics = [c for c in _asked(stack) if c.part in _PLUGINS]
    return [c for c in of_fabrics if (stack.where(c.key)[0] == "software") == at_root]


def _unused(stack: PoolStack, component: Component, why: str) -> Finding:
    path = stack.where(component.key)
    return Finding(
        summary=f"{component.name} {stack.asked[component.key]} is not used: {why}",
        path=path,
        severity=Severity.WARNING,
        hint=f"leave {component.key} out",
        relies_on=(
            *relies_on(stack, component.key),
            *(("pools", "*", key) for key in ("fabric", "machine")),
        ),
        fix=Remove(path=path),
    )
