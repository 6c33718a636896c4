"""MIG under Slurm: slices of GPUs, what they are cut into and who hands them out."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.model.machine import Gpu, mig_gpu
from ...diagnostics import PathTuple
from ...spec import Pool
from ..context import CheckContext
from ..registry import Finding, check

_TYPE: PathTuple = ("scheduler", "type")


@check("GC626", summary="GPUs in MIG mode under Slurm without slices.")
def mig_without_slices(context: CheckContext) -> Iterator[Finding]:
    """A GPU in MIG mode runs nothing until it is cut into slices: `mig_slices` says which.

    Without them Slurm would hand out whole GPUs that no program can use. `mig: unmanaged` leaves to
    the site what its own programs do.
    """
    for name, pool, gpu in _gpus(context):
        if context.slurm is None or pool.gpus.mig != "enabled" or pool.gpus.mig_slices:
            continue
        path: PathTuple = ("pools", name, "gpus", "mig")
        known = mig_gpu(gpu.model, gpu.memory_gib)
        profile, most = next(iter(known.profiles.items())) if known else ("1g.10gb", 7)
        yield Finding(
            summary=f'pool "{name}": GPUs in MIG mode run nothing without slices',
            path=path,
            hint=f"write mig_slices: {{{profile}: {most}}} beside it, or mig: disabled, or "
            "unmanaged where the site cuts them itself",
            relies_on=(path, _TYPE, ("pools", name, "machine"), ("pools", name, "gpus")),
        )


@check("GC630", summary="MIG slices that a pool's GPUs can't be cut into.")
def mig_slices(context: CheckContext) -> Iterator[Finding]:
    """`mig_slices` cuts each GPU of a pool alike, and Slurm hands out the slices.

    A profile is named by its share of the GPU and its memory, so it is one GPU's: 1g.10gb of an
    H100 with 80 GB is 1g.18gb of an H200. Together slices have to lie next to each other: 3g.40gb
    and 4g.40gb do, three of 3g.40gb don't. Of a GPU that isn't in catalog/mig.yaml no profile is
    known. Kubernetes has `scheduler.gpu.mig`; without a scheduler nothing would hand slices out.
    """
    for name, pool, gpu in _gpus(context):
        problem = _problem(context, pool, gpu) if pool.gpus.mig_slices else None
        if problem is None:
            continue
        what, hint = problem
        path: PathTuple = ("pools", name, "gpus", "mig_slices")
        yield Finding(
            summary=f'pool "{name}": {what}',
            path=path,
            hint=hint,
            relies_on=(path, _TYPE, ("pools", name, "machine"), ("pools", name, "gpus", "mig")),
        )


def _gpus(context: CheckContext) -> Iterator[tuple[str, Pool, Gpu]]:
    """Yield pools with NVIDIA's GPUs; of others GC141 says that `gpus` would set nothing."""
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if machine is not None and machine.gpu is not None and machine.gpu.vendor == "nvidia":
            yield name, pool, machine.gpu


def _problem(context: CheckContext, pool: Pool, gpu: Gpu) -> tuple[str, str] | None:
    """Return what is wrong with a pool's slices and what to write instead; None: nothing."""
    machine = context.machine(pool)
    if context.kubernetes is not None:
        instead = "remove mig_slices, and write scheduler: {gpu: {mig: all-PROFILE}}"
        return "Slurm hands out slices, the scheduler is Kubernetes", instead
    if context.slurm is None:
        return "Slurm hands out slices, and there is no scheduler", "remove mig_slices"
    if machine is not None and machine.simulated:
        return "simulated GPUs can't be cut", "remove mig_slices"
    if pool.gpus.mig == "disabled":
        return "GPUs are cut, but mig is disabled", "remove one of the two"
    return _misfit(context, pool.gpus.mig_slices, gpu)


def _misfit(context: CheckContext, slices: dict[str, int], gpu: Gpu) -> tuple[str, str] | None:
    """Return why a GPU can't be cut into these slices, and what to write instead."""
    known = mig_gpu(gpu.model, gpu.memory_gib)
    if known is None:
        return (
            f"no MIG profiles are known of {gpu.model} with {gpu.memory_gib:g} GiB",
            "remove mig_slices; mig: unmanaged leaves the GPUs to programs of your own",
        )
    if unknown := [each for each in slices if each not in known.profiles]:
        closest = context.suggest(unknown[0], known.profiles)
        return (
            f"{gpu.model} with {gpu.memory_gib:g} GiB has no MIG profile {unknown[0]}",
            f'did you mean "{closest}"?' if closest else f"one of {', '.join(known.profiles)}",
        )
    if not known.fits(slices):
        return (
            f"one {gpu.model} has no room for {_counted(slices)}",
            f"write fewer; of one profile alone at most {_counted(known.profiles)}",
        )
    return None


def _counted(slices: dict[str, int]) -> str:
    return ", ".join(f"{profile}: {count}" for profile, count in slices.items())
