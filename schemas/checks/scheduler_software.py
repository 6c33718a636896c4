"""Software that belongs to the scheduler: none of the other's, and new enough for what is asked."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple
from ..mend.fix import Remove
from ..spec import ClusterSoftware, Software
from .context import CheckContext
from .pool_software import stacks, the_lock
from .registry import Finding, check

_TYPE = ("scheduler", "type")


def _written(context: CheckContext) -> Iterator[tuple[PathTuple, Software]]:
    """Yield every `software` of the spec with its place."""
    if context.software != ClusterSoftware():
        yield ("software",), context.software
    for name, pool in context.pools.items():
        if pool.software is not None:
            yield ("pools", name, "software"), pool.software


@check("GC611", summary="Pyxis under Kubernetes.")
def pyxis_under_kubernetes(context: CheckContext) -> Iterator[Finding]:
    """Pyxis is a plugin of Slurm: it starts a job's container through enroot.

    Under Kubernetes every pod is a container already.
    """
    if context.kubernetes is None:
        return
    for where, software in _written(context):
        if software.containers == "pyxis":
            yield Finding(
                summary="pyxis runs containers of Slurm jobs, the scheduler is Kubernetes",
                path=(*where, "containers"),
                hint="leave containers out",
                relies_on=((*where, "containers"), _TYPE),
                fix=Remove(path=(*where, "containers")),
            )


@check("GC612", summary="A version of the scheduler that the cluster does not run.")
def other_scheduler(context: CheckContext) -> Iterator[Finding]:
    """`slurm` is a version under `scheduler: {type: slurm}`, `kubernetes` under the other one."""
    if context.scheduler is None:
        return
    runs, other = ("Slurm", "kubernetes") if context.slurm else ("Kubernetes", "slurm")
    for where, software in _written(context):
        version = getattr(software, other)
        if version != "auto":
            yield Finding(
                summary=f"a version of {other} ({version}), but the scheduler is {runs}",
                path=(*where, other),
                at_key=True,
                hint=f"leave {other} out, or write scheduler: {{type: {other}}}",
                relies_on=((*where, other), _TYPE),
                fix=Remove(path=(*where, other)),
            )


@check("GC614", summary="Slurm is too old for topology/block.")
def slurm_for_blocks(context: CheckContext) -> Iterator[Finding]:
    """topology/block came with Slurm 23.11; an older slurmctld does not start with it.

    Take a newer Slurm or distribution, or `topology: {plugin: tree}`.
    """
    topology = None if context.slurm is None else context.slurm.topology
    if topology is None or not (topology.plugin == "block" or topology.block_sizes):
        return
    from ..stack.versions import older  # noqa: PLC0415  # only with blocks

    for stack in stacks(context).values():
        if stack.pool.role != "controller":
            continue
        version = stack.asked.get("slurm")
        packaged = the_lock().slurm_package(stack.software.distribution)
        least = next(f.at_least for f in the_lock().features if f.feature == "topology/block")
        have = version or packaged
        if have is None or not older(have, least):
            continue
        key = "slurm" if version else "distribution"
        of = "" if version else f" (of {stack.software.distribution})"
        yield Finding(
            summary=f"Slurm {have}{of} has no topology/block: it takes {least} or newer",
            path=stack.where(key),
            hint=f'write slurm: "{least}" or newer, or topology: {{plugin: tree}}',
            relies_on=(
                *(("software", k) for k in ("slurm", "distribution")),
                ("pools", stack.name),
                ("scheduler", "topology"),
            ),
        )
