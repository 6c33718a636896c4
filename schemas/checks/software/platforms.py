"""Distribution, processor architecture and the GPU vendor's software of a pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...diagnostics import PathTuple, Severity, listing
from ...spec import LustreStorage, Pool
from ...stack.lock import Component, older
from ...stack.pools import PoolStack
from ...stack.resolved import ResolvedComponent
from ...stack.slurm import slurm_sources, source_of
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check
from .versions import once, relies_on, slurm_of_pools, stacks, the_lock

_MAKERS = {"nvidia": "NVIDIA", "nvswitch": "NVIDIA", "amd": "AMD"}
_PLUGINS = {"efa", "tcpxo", "gib", "ofed"}
_UNSAID = "not said"
_SHARED = {"gib": {"gib", "gib-metal"}}
"""Part -> the plugins that it is of, where it is not alone."""


def _requested(stack: PoolStack) -> Iterator[Component]:
    return (component for component in the_lock().components if component.key in stack.requested)


def _vendor(stack: PoolStack) -> str | None:
    """Return the maker of a pool's GPUs, simulated ones included; None: none, or not known."""
    gpu = None if stack.machine is None else stack.machine.gpu
    return None if gpu is None else gpu.vendor


@check("GC606", summary="Software of another maker than the GPUs.")
def software_of_other_vendor(context: CheckContext) -> Iterator[Finding]:
    """Drivers, CUDA and NCCL are for NVIDIA's GPUs; ROCm and RCCL are for AMD's.

    A version at the root is for the pools it fits; when none of the pools has such GPUs, it is a
    mistake.
    """
    found = stacks(context)
    yield from once(_wrong_maker(found))


def _wrong_maker(found: Mapping[str, PoolStack]) -> Iterator[tuple[PoolStack, Finding]]:
    computing = [stack for stack in found.values() if stack.pool.is_compute]
    vendors = {_vendor(stack) for stack in computing}
    for stack in computing:
        vendor = _vendor(stack)
        for component in _requested(stack):
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
def fabric_software_without_fabric(context: CheckContext) -> Iterator[Finding]:
    """`efa`, `tcpxo`, `gib` and `ofed` are used by pools of the matching fabric class only.

    Leave the version out, or give a pool the fabric class.
    """
    computing = {n: s for n, s in stacks(context).items() if s.pool.is_compute}
    unknown = any(s.pool.machine is not None and s.machine is None for s in computing.values())
    if computing and not unknown:
        fabrics = {stack.need.fabric or _UNSAID for stack in computing.values()}
        first = next(iter(computing.values()))
        plugins = {the_lock().plugin(fabric) for fabric in fabrics - {_UNSAID}}
        for component in _of_fabrics(first, at_root=True):
            if not _SHARED.get(component.part, {component.part}) & plugins:
                why = f"no pool's fabric takes it ({listing(fabrics)})"
                yield _unused(first, component, why)
    for stack in computing.values():
        fabric = stack.need.fabric
        plugin = None if fabric is None else the_lock().plugin(fabric)
        for component in _of_fabrics(stack, at_root=False) if not unknown else ():
            if plugin not in _SHARED.get(component.part, {component.part}):
                yield _unused(stack, component, f"the fabric is {fabric or _UNSAID}")


def _of_fabrics(stack: PoolStack, *, at_root: bool) -> list[Component]:
    """Return the fabric software that is requested, at the root or by the pool itself."""
    of_fabrics = [c for c in _requested(stack) if c.part in _PLUGINS]
    return [c for c in of_fabrics if (stack.where(c.key)[0] == "software") == at_root]


def _unused(stack: PoolStack, component: Component, why: str) -> Finding:
    path = stack.where(component.key)
    return Finding(
        summary=f"{component.name} {stack.requested[component.key]} is not used: {why}",
        path=path,
        severity=Severity.WARNING,
        hint=f"leave {component.key} out",
        relies_on=(
            *relies_on(stack, component.key),
            *(("pools", "*", key) for key in ("fabric", "machine")),
        ),
        fix=Remove(path=path),
    )


_OF_GPUS = ("driver", "fabric_manager", "cuda", "nccl", "rocm", "rccl")
_OF_FABRICS = ("efa", "tcpxo", "gib", "ofed")


@check("GC629", summary="A version of something that a pool's nodes don't get.")
def software_without_use(context: CheckContext) -> Iterator[Finding]:
    """A pool's own `software` is for its nodes: drivers and CUDA for GPUs, EFA for nodes with GPUs.

    Nodes without GPUs get none of it, whatever the pool says; and a version of Lustre is for pools
    that mount or serve one. At the root a version is for all pools that it fits.
    """
    lustre = [name for name, s in context.storage.items() if isinstance(s, LustreStorage)]
    if context.software.lustre != "auto" and not lustre and not context.declared("storage"):
        yield Finding(
            summary=f"Lustre {context.software.lustre} is not used: the spec has no such storage",
            path=("software", "lustre"),
            severity=Severity.WARNING,
            hint="leave lustre out",
            relies_on=(("software", "lustre"), ("storage",)),
        )
    for stack in stacks(context).values():
        own, machine = stack.pool.software, stack.machine
        unknown = stack.pool.machine is not None and machine is None
        if own is None or not stack.is_real or unknown:
            continue
        bare = machine is None or machine.gpu is None
        keys = (*_OF_GPUS, *_OF_FABRICS) if bare else ()
        for key in keys:
            if getattr(own, key) != "auto":
                yield _without_use(stack, key, "its nodes have no GPUs")
        uses_lustre = any(stack.name in context.mounts.mounted_by(name) for name in lustre) or any(
            s.servers is not None and s.servers.pool == stack.name
            for s in context.storage.values()
            if isinstance(s, LustreStorage)
        )
        if own.lustre != "auto" and not uses_lustre:
            yield _without_use(stack, "lustre", "its nodes neither mount nor serve Lustre")


def _without_use(stack: PoolStack, key: str, why: str) -> Finding:
    path = ("pools", stack.name, "software", key)
    return Finding(
        summary=f'pool "{stack.name}": {key} would install nothing: {why}',
        path=path,
        at_key=True,
        hint=f"remove {key}",
        relies_on=(path, ("pools", stack.name, "machine"), ("storage",)),
        fix=Remove(path=path),
    )


@check("GC609", summary="One image for machines of two processor architectures.")
def mixed_architectures(context: CheckContext) -> Iterator[Finding]:
    """A machine image holds programs for x86_64 or for aarch64 (Grace), never for both.

    Give the pools of one architecture an `image` of their own.
    """
    first: dict[tuple[str | None, str], tuple[str, str]] = {}
    for name, pool in context.pools.items():
        image, path = _image(context, name, pool)
        machine = context.machine(pool) if image is not None else None
        if image is None or machine is None:
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
    """Return the image that a pool names or takes from its site, and its place."""
    if pool.image is not None:
        return pool.image, ("pools", name, "image")
    site = context.cloud(pool)
    return (None if site is None else site.image), ("pools", name, "machine")


@check("GC610", summary="A distribution that the pool's nodes can't have.")
def distribution_not_at_provider(context: CheckContext) -> Iterator[Finding]:
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
    apply_fixes = "" if site is None else ", or name an image of your own"
    return Finding(
        summary=f"{offered.provider} nodes don't come as {written}: {offered.why}",
        path=path,
        hint=f"leave distribution out, or write {' or '.join(offered.distributions)}{apply_fixes}",
        relies_on=(*relies_on(stack, "distribution"), ("pools", stack.name, "image")),
        fix=Remove(path=path),
    )


@check("GC613", summary="A Slurm that is neither the distribution's nor can be built.")
def slurm_unobtainable(context: CheckContext) -> Iterator[Finding]:
    """Slurm is the distribution's own package, or is built from SchedMD's source.

    Debian 13 has 24.11, Ubuntu 24.04 has 23.11, Debian 12 and EPEL 9 have 22.05, Ubuntu 22.04 has
    21.08. Any other version is built on a node, once a cluster. That takes a checksum of the
    source, from the catalog or from `software.sources.slurm.checksums`, and a source with
    packaging files of its own: Slurm has them since 23.11.
    """
    if context.slurm is None:
        return
    found = slurm_of_pools(context)
    pairs = (
        (stack, _unobtainable(context, stack, found[name]))
        for name, stack in stacks(context).items()
        if name in found and found[name].install == "built"
    )
    yield from once((stack, finding) for stack, finding in pairs if finding is not None)


def _unobtainable(
    context: CheckContext, stack: PoolStack, slurm: ResolvedComponent
) -> Finding | None:

    sources = slurm_sources(context.catalog.sources, context.software)
    source, wanted = source_of(slurm.version, sources), slurm.version
    if source is not None and not older(source.version, _PACKAGED_SINCE):
        return None
    lock = the_lock()
    package = lock.slurm_package(stack.resolved.distribution)
    own = f"slurm: distribution for its {package}" if package else "slurm: distribution"
    known = f'write slurm: "{lock.slurm_default.version}"' if lock.slurm_default else "write"
    if source is not None:
        why = f"Slurm {source.version} can't be built: its source has packaging files from "
        why, hint = f"{why}{_PACKAGED_SINCE} on", f"{known}, or {own}"
    else:
        why = f"no checksum is known of the source of Slurm {wanted}, which has to be built"
        hint = f"{known}, {own}, or in software.sources.slurm.checksums "
        hint += f'slurm-{wanted}.tar.bz2: "sha256:..." of the file that you have read'
    return Finding(
        summary=why,
        path=stack.where("slurm"),
        hint=hint,
        relies_on=(
            *relies_on(stack, "slurm", "distribution"),
            ("software", "sources"),
            ("catalog",),
        ),
    )


_PACKAGED_SINCE = "23.11"
"""First release whose source has debian/: https://slurm.schedmd.com/quickstart_admin.html."""
