"""Generic resources of Slurm besides GPUs: shares of GPUs, and what a site has of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ...catalog.model.machine import Gpu
from ...diagnostics import PathTuple
from ...spec import Pool
from ...spec.pool import Gres
from ...stack.lock import older
from ..context import CheckContext
from ..registry import Finding, check
from ..software.versions import slurm_of_pools

SHARES = frozenset({"shard", "mps"})
"""Generic resources that are shares of the node's GPUs (gres.conf(5), "File")."""
SINCE = "23.11"
"""From this release on a reconfiguration reaches every daemon; before, GresTypes took a restart of
slurmctld and of each slurmd (slurm.conf(5), "GresTypes")."""
MOST_FILES = 1024
"""Device files of a resource on a node (gres.conf(5), "File")."""


@check("GC631", summary="A generic resource that a pool can't have.")
def gres_unusable(context: CheckContext) -> Iterator[Finding]:
    """`gres` of a pool says what its nodes have besides GPUs, for `--gres=NAME:COUNT` of jobs.

    shard and mps are shares of GPUs: each GPU of a node gets as many, and a job that has one shares
    that GPU with others. Everything else is counted, or handed out by its device files. GPUs are in
    no `gres`: they follow from the machine type, and slices of them from `mig_slices`. A name has
    files in all pools or in none, as Slurm tracks files or counts.
    """
    version = _slurm(context)
    for name, pool in context.pools.items():
        for gres, wanted in pool.gres.items():
            path: PathTuple = ("pools", name, "gres", gres)
            problems = chain(
                _placed(context, pool, gres, version), _shaped(context, pool, gres, wanted)
            )
            problem = next(problems, None)
            if problem is None:
                continue
            what, hint = problem
            yield Finding(
                summary=f'pool "{name}": {gres}: {what}',
                path=path,
                at_key=True,
                hint=hint,
                relies_on=(path, ("scheduler",), ("pools", "*"), ("software",)),
            )


def _slurm(context: CheckContext) -> str:
    """Return the controllers' Slurm; "" where it isn't known."""
    if context.slurm is None or not any(pool.gres for pool in context.pools.values()):
        return ""
    versions = slurm_of_pools(context)
    controllers = (name for name, pool in context.pools.items() if pool.role == "controller")
    return next((v.version or "" for name in controllers if (v := versions.get(name))), "")


def _placed(
    context: CheckContext, pool: Pool, gres: str, version: str
) -> Iterator[tuple[str, str]]:
    """Yield why a pool has no generic resource at all, and what to write instead."""
    if context.slurm is None:
        yield "only Slurm hands it out", "remove gres"
    if not pool.is_compute:
        yield f"a {pool.role} runs no jobs", "remove gres"
    if gres == "gpu":
        yield "GPUs follow from the machine type", "remove it, or write gpus: {mig_slices: ...}"
    if version and older(version, SINCE):
        why = f"Slurm {version} takes it up only when each daemon is restarted"
        yield why, f"software: {{slurm: ...}} of {SINCE} or later, or remove gres"


def _shaped(
    context: CheckContext, pool: Pool, gres: str, wanted: Gres
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with one generic resource, and what to write instead."""
    if gres in SHARES:
        machine = context.machine(pool)
        if pool.machine is None or machine is not None:
            yield from _share(pool, gres, wanted, None if machine is None else machine.gpu)
        return
    if wanted.flags:
        yield "flags are for shares of GPUs (shard, mps)", "remove flags"
    if wanted.files is None:
        if wanted.count is None:
            yield "it has no number", "write count or files"
        return
    files = wanted.file_count
    if files < 1:
        yield f"{wanted.files} names no file", "write such as /dev/fpga[0-3]"
    if wanted.count not in {None, files}:
        yield f"count is {wanted.count}, and files names {files}", "remove count"
    if files > MOST_FILES:
        yield f"Slurm takes {MOST_FILES} device files of a node", "write count without files"
    if any(p.gres[gres].files is None for p in context.pools.values() if gres in p.gres):
        yield "another pool has it without files", "write files in all pools, or in none"


def _share(pool: Pool, gres: str, wanted: Gres, gpu: Gpu | None) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with shares of GPUs, and what to write instead."""
    if gpu is None:
        yield "its nodes have no GPUs to share", "remove it"
        return
    if gres == "mps" and gpu.vendor != "nvidia":
        yield "MPS is of NVIDIA's GPUs", "write shard"
    if pool.is_sliced:
        yield "its GPUs are cut into MIG slices", "keep mig_slices or the shares"
    for key in ("type", "files", "cores"):
        if getattr(wanted, key) is not None:
            yield f"{key} is the GPUs' own", f"remove {key}"
    if len(set(wanted.flags)) > 1:
        yield "one_sharing and all_sharing say opposite things", "keep one of them"
    each = f"{gpu.count * 4}, which is 4 of each GPU"
    if wanted.count is None:
        yield "it has no number", f"write count: {each}"
    elif wanted.count % gpu.count:
        yield f"{wanted.count} shares can't be equal on {gpu.count} GPUs", f"such as {each}"
