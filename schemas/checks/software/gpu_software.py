"""The table of a pool's software: whether every piece that its GPUs need has a row."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from ...diagnostics import PathTuple, listing
from ...spec import GpuSettings, Software
from ...stack.lock import fits
from ...stack.pools import PoolStack
from ...stack.resolve import resolve_need
from ...stack.resolved import INBOX, Resolved
from ...structure.fix.edits import Remove, Replace
from ..context import CheckContext
from ..registry import Finding, check
from .versions import every_stack, once, the_lock

_DRIVERS = {"nvidia": "driver", "amd": "rocm"}
"""Maker of GPUs -> the component without which no program finds them."""
_SITE_IMAGE = ("sites", "*", "image")


@check("GC622", summary="Software of the GPUs that nothing brings.")
def gpu_software_missing(context: CheckContext) -> Iterator[Finding]:
    """All that GPUs need is installed by a role, comes with the image, or is declined by the spec.

    Driver, CUDA or ROCm, NCCL or RCCL, the fabric's plugin, DCGM: where no tested set has these
    GPUs and their maker is not known to support them on this distribution together with anything,
    the nodes would come up, Slurm would offer their GPUs, and no program would find one. Write a
    version, or `preinstalled` where the hosts or the image have it. `gcluster software SPEC` prints
    the whole table.
    """
    yield from once(
        (stack, finding)
        for stack in every_stack(context).values()
        if (finding := _missing(stack)) is not None
    )


def _missing(stack: PoolStack) -> Finding | None:
    resolved = stack.resolved
    if not resolved.missing:
        return None
    where = resolved.distribution or "an unspecified distribution"
    pieces = ", ".join(piece.name for piece in resolved.missing)
    capable = stack.need.capability is not None
    return Finding(
        summary=f"nothing brings {pieces} to {stack.need.gpu} on {where}",
        detail="" if capable else "The machine type doesn't say its GPU's compute_capability.",
        path=("pools", stack.name, "machine"),
        hint=_instead(stack, resolved),
        relies_on=(*_drawn_from(stack), ("scheduler", "type")),
    )


def _instead(stack: PoolStack, resolved: Resolved) -> str:
    """Return what to write: a distribution that has it, an image, a version, or preinstalled."""
    keys = [piece.key for piece in resolved.missing]
    unfit = next((piece.image for piece in resolved.missing if piece.image), "")
    if unfit:
        fitting = [
            image.name
            for image in the_lock().images
            if image.provider == stack.need.provider and stack.need.capability in image.capabilities
        ]
        named = f", such as {listing(fitting)}" if fitting else ""
        return f"{unfit} has no driver for these GPUs: name an image that has one{named}"
    other = _other_distributions(stack)
    if other and the_lock().node_image(stack.need.provider) is not None:
        return f"write software: {{distribution: {other[0]}}}"
    driver = _DRIVERS.get(stack.need.vendor or "", "")
    if driver in keys:
        text = f"write software: {{{driver}: VERSION}}, or {driver}: preinstalled"
        text += " where the nodes have it"
        return text if resolved.distribution else f"{text}, or software: {{distribution: ...}}"
    written = [key for key in keys if key in Software.__struct_fields__]
    if written:
        return f"write software: {{{written[0]}: VERSION}}"
    return "take a distribution or a fabric that a tested set has: gcluster software lists them"


def _other_distributions(stack: PoolStack) -> list[str]:
    """Return the distributions on which nothing of this would be missing."""
    lock = the_lock()
    image = lock.node_image(stack.need.provider)
    offered = image.distributions if image else [d for s in lock.sets for d in s.distributions]
    return [
        name
        for name in dict.fromkeys(offered)
        if name != stack.resolved.distribution
        and not resolve_need(
            structs.replace(stack.software, distribution=name), stack.need, lock
        ).missing
    ]


@check("GC624", summary="A version that the nodes' image has otherwise.")
def version_of_image(context: CheckContext) -> Iterator[Finding]:
    """What an image brings stays as it is: nothing is installed over it.

    A second driver in addition to the image's own, or another CUDA or NCCL over packages that it
    holds, breaks both. Take the image's version, or an image without it.
    """
    yield from once(
        (stack, finding) for stack in every_stack(context).values() for finding in _otherwise(stack)
    )


def _otherwise(stack: PoolStack) -> Iterator[Finding]:

    image = the_lock().image(stack.resolved.image)
    if image is None:
        return
    for component in stack.resolved.components:
        key, has = component.key, component.version
        written = stack.requested.get(key)
        if component.origin != "image" or written is None or (has and fits(written, has)):
            continue
        path = stack.where(key)
        known = f"has {has}" if has else "has one of unknown version"
        yield Finding(
            summary=f"{component.name} {written} is requested, and the image {image.name} {known}",
            path=path,
            hint=f"leave {key} out, or name an image without it",
            relies_on=(*_drawn_from(stack), path),
            fix=Remove(path=path),
        )
    yield from _other_distribution(stack)


def _other_distribution(stack: PoolStack) -> Iterator[Finding]:
    """Yield what is wrong with a distribution that isn't the named image's."""
    image, written = the_lock().image(stack.resolved.image), stack.software.distribution
    if image is None or written in {"auto", image.distribution}:
        return
    path = stack.where("distribution")
    yield Finding(
        summary=f"{written} is requested, and the image {image.name} is {image.distribution}",
        path=path,
        hint=f"write {image.distribution}, or name an image of {written}",
        relies_on=(*_drawn_from(stack), path),
        fix=Remove(path=path),
    )


@check("GC627", summary="nvidia-peermem where no RDMA driver has its interface.")
def peer_memory_without_interface(context: CheckContext) -> Iterator[Finding]:
    """nvidia-peermem needs RDMA drivers with peer memory: DOCA-OFED's, or of a patched kernel.

    "The kernel must have the required support for RDMA peer memory either through additional
    patches to the kernel or via MOFED" (NVIDIA's driver README, "GPUDirect RDMA Peer Memory
    Client"). Debian's and EL's kernels have no such patches, and there it never loads. DMA-BUF, the
    default, needs none.
    """
    for stack in every_stack(context).values():
        inbox = any(c.key == "ofed" and c.version == INBOX for c in stack.resolved.components)
        unpatched = (stack.resolved.distribution or "").startswith(("debian", "el"))
        if stack.pool.gpus.peer_memory == "nvidia-peermem" and inbox and unpatched:
            path = ("pools", stack.name, "gpus", "peer_memory")
            yield Finding(
                summary=f'pool "{stack.name}": the RDMA drivers of {stack.resolved.distribution} '
                "have no interface for nvidia-peermem",
                path=path,
                hint="write peer_memory: dma-buf, or rdma: {drivers: doca}",
                relies_on=(path, *_drawn_from(stack)),
                fix=Replace(path, "dma-buf"),
            )


@check("GC628", summary="Settings of a driver that no role installs.")
def driver_settings_unused(context: CheckContext) -> Iterator[Finding]:
    """`gpus.modules` and `gpus.peer_memory` say how the driver is installed, where a role does it.

    One that comes with the image, or that nodes have already (`preinstalled`), stays as it is.
    """
    kubernetes = context.kubernetes
    if kubernetes is not None and kubernetes.gpu.driver == "container":
        return  # the GPU operator is given them
    if kubernetes is not None and kubernetes.control_plane != "self":
        return  # GC746
    for stack in every_stack(context).values():
        driver = next((row for row in stack.resolved.rows if row.key == "driver"), None)
        if driver is None or driver.outcome == "role":
            continue
        from_image = driver.outcome == "image"
        why = f"the driver comes with {driver.by}" if from_image else "the nodes have their driver"
        for key in ("modules", "peer_memory"):
            path = ("pools", stack.name, "gpus", key)
            if getattr(stack.pool.gpus, key) != getattr(GpuSettings(), key):
                yield Finding(
                    summary=f'pool "{stack.name}": {key} would set nothing: {why}',
                    path=path,
                    at_key=True,
                    hint=f"remove {key}",
                    relies_on=(path, *_drawn_from(stack)),
                    fix=Remove(path),
                )


def _drawn_from(stack: PoolStack) -> tuple[PathTuple, ...]:
    pool = ("pools", stack.name)
    keys = ("machine", "fabric", "site", "software", "image", "rdma")
    return (*((*pool, key) for key in keys), ("software",), _SITE_IMAGE)
