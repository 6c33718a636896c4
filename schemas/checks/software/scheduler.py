"""Versions of Slurm and Kubernetes, and the sources that packages come from."""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnostics import PathTuple, Severity, listing
from ...spec import ClusterSoftware, Software
from ...stack.lock import older
from ...stack.pools import PoolStack
from ...stack.rules import behind, window
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check
from .versions import once, relies_on, slurm_of_pools, stacks, the_lock

_TYPE = ("scheduler", "type")


def _written(context: CheckContext) -> Iterator[tuple[PathTuple, Software]]:
    """Yield every `software` of the spec with its place."""
    if context.software != ClusterSoftware():
        yield ("software",), context.software
    for name, pool in context.pools.items():
        if pool.software is not None:
            yield ("pools", name, "software"), pool.software


@check("GC611", summary="Pyxis without Slurm.")
def pyxis_without_slurm(context: CheckContext) -> Iterator[Finding]:
    """Pyxis is a plugin of Slurm: it starts a job's container through enroot.

    Under Kubernetes every pod is a container already; without a scheduler a hook of your own
    installs what runs containers.
    """
    if context.scheduler is None or context.slurm is not None:
        return
    runs = "Kubernetes" if context.kubernetes is not None else "none"
    for where, software in _written(context):
        if software.containers == "pyxis":
            yield Finding(
                summary=f"pyxis runs containers of Slurm jobs, the scheduler is {runs}",
                path=(*where, "containers"),
                hint="leave containers out",
                relies_on=((*where, "containers"), _TYPE),
                fix=Remove(path=(*where, "containers")),
            )


@check("GC623", summary="A version of Open MPI that no role installs.")
def mpi_version(context: CheckContext) -> Iterator[Finding]:
    """Open MPI is the distribution's package: its version comes with the distribution.

    Another one is built for jobs by their owners, or comes in a container; `distribution` chooses
    the package: Debian 13 has 5.0, Ubuntu 24.04 has 4.1.
    """
    for where, software in _written(context):
        if software.mpi != "auto":
            yield Finding(
                summary=f"Open MPI {software.mpi} is not installed: nodes get their distribution's",
                path=(*where, "mpi"),
                hint="leave mpi out, or choose the distribution that has it",
                relies_on=((*where, "mpi"),),
                fix=Remove(path=(*where, "mpi")),
            )


@check("GC612", summary="A version of the scheduler that the cluster does not run.")
def software_of_other_scheduler(context: CheckContext) -> Iterator[Finding]:
    """`slurm` is a version under `scheduler: {type: slurm}`, `kubernetes` under that type."""
    if context.scheduler is None:
        return
    runs = "Slurm" if context.slurm else "Kubernetes" if context.kubernetes else "none"
    written = ((*one, key) for one in _written(context) for key in ("slurm", "kubernetes"))
    for where, software, other in written:
        version = getattr(software, other)
        if version != "auto" and other != runs.lower():
            yield Finding(
                summary=f"a version of {other} ({version}), but the scheduler is {runs}",
                path=(*where, other),
                at_key=True,
                hint=f"leave {other} out, or write scheduler: {{type: {other}}}",
                relies_on=((*where, other), _TYPE),
                fix=Remove(path=(*where, other)),
            )


@check("GC614", summary="Slurm is too old for topology/block.")
def slurm_too_old_for_blocks(context: CheckContext) -> Iterator[Finding]:
    """topology/block came with Slurm 23.11; an older slurmctld does not start with it.

    Take a newer Slurm or distribution, or `topology: {plugin: tree}`.
    """
    topology = None if context.slurm is None else context.slurm.topology
    if topology is None or not (topology.plugin == "block" or topology.block_sizes):
        return

    least = next(f.at_least for f in the_lock().features if f.feature == "topology/block")
    slurm = slurm_of_pools(context)
    for name, stack in stacks(context).items():
        if stack.pool.role != "controller" or name not in slurm:
            continue
        have, said = slurm[name].version, stack.software.slurm
        if not have or not older(have, least):
            continue
        key = "distribution" if said == "auto" else "slurm"
        of = f" (of {stack.resolved.distribution})" if slurm[name].install == "distribution" else ""
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


@check("GC625", summary="Slurm is too old for the nodes' cgroups.")
def slurm_too_old_for_cgroups(context: CheckContext) -> Iterator[Finding]:
    """Distributions boot with cgroup v2 alone, which Slurm knows from 22.05 on.

    An older slurmd ends at its start there: Ubuntu 22.04's own package is 21.08. Containers and
    simulated nodes have no cgroups of their own, and nothing is constrained there.
    """
    if context.slurm is None:
        return
    least = next(f.at_least for f in the_lock().features if f.feature == "cgroup/v2")
    slurm = slurm_of_pools(context)

    def too_old() -> Iterator[tuple[PoolStack, Finding]]:
        for name, stack in stacks(context).items():
            have = slurm[name].version if name in slurm else None
            if not stack.pool.is_compute or not stack.is_real or not have:
                continue
            if not older(have, least):
                continue
            is_package = slurm[name].install == "distribution"
            of = f" (of {stack.resolved.distribution})" if is_package else ""
            yield (
                stack,
                Finding(
                    summary=f"Slurm {have}{of} does not know cgroup v2, which nodes boot with",
                    path=stack.where("slurm"),
                    hint=f'write slurm: "{least}" or newer, or leave it out',
                    relies_on=relies_on(stack, "slurm", "distribution"),
                ),
            )

    yield from once(too_old())


@check("GC615", summary="Nodes' Slurm too new or too old for the controller's.")
def slurm_version_skew(context: CheckContext) -> Iterator[Finding]:
    """A slurmd must not be newer than slurmctld, nor older than that understands.

    slurmctld talks to the two major releases before its own, from 24.11 on to three. Upgrade the
    controller first. Two distributions with their own packages may be too far apart: without
    `slurm: distribution` all pools get one version.
    """
    if context.slurm is None:
        return
    slurm, found = slurm_of_pools(context), stacks(context)
    of = {name: slurm[name].version for name in found if name in slurm and slurm[name].version}
    controls = {of.get(name) for name, stack in found.items() if stack.pool.role == "controller"}
    control = next(iter(controls), None)
    if len(controls) != 1 or control is None:
        return
    names = ("slurmd", "slurmctld")
    nodes = {name: each for name, each in found.items() if each.pool.role != "controller"}
    pairs = (
        (stack, _apart(stack, "slurm", of.get(name), control, names))
        for name, stack in nodes.items()
    )
    yield from once((stack, finding) for stack, finding in pairs if finding is not None)


@check("GC616", summary="Nodes' Kubernetes too new or too old for the control plane's.")
def kubernetes_version_skew(context: CheckContext) -> Iterator[Finding]:
    """A kubelet must not be newer than the API server, nor more than three minor releases older.

    Upgrade the control plane first, then the nodes.
    """
    if context.kubernetes is not None:
        key, names = "kubernetes", ("kubelet", "the control plane")
        found = stacks(context)
        controllers = [stack for stack in found.values() if stack.pool.role == "controller"]
        version = controllers[0].requested.get(key) if len(controllers) == 1 else None
        nodes = (stack for stack in found.values() if stack.pool.role != "controller")
        if version is None:
            return
        pairs = (
            (stack, _apart(stack, key, stack.requested.get(key), version, names)) for stack in nodes
        )
        yield from once((stack, finding) for stack, finding in pairs if finding is not None)


def _apart(
    stack: PoolStack, key: str, written: str | None, control: str, names: tuple[str, str]
) -> Finding | None:

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


@check("GC617", summary="An artefact source that the catalog doesn't have.")
def unknown_source(context: CheckContext) -> Iterator[Finding]:
    """`software.sources` names sources of the catalog: the vendors' repositories and downloads.

    A redirect of a name that no role uses would change nothing, and nodes would go on to load
    from the vendor.
    """
    known = context.catalog.sources
    for name in context.software.sources:
        if name not in known and context.catalog.complete:
            suggestion = context.suggest(name, known)
            question = f': did you mean "{suggestion}"?' if suggestion else ""
            yield Finding(
                summary=f'unknown artefact source "{name}"{question}',
                path=("software", "sources", name),
                hint=f"the catalog has {listing(known)}",
                at_key=True,
                relies_on=(("catalog",),),
            )


@check("GC618", summary="A mirror whose signing key has no known fingerprint.")
def mirror_without_signing_key(context: CheckContext) -> Iterator[Finding]:
    """Nodes trust a repository by the fingerprint of its key, and refuse packages without one.

    Where the catalog knows no fingerprint of the vendor's key, the spec has to say it, read from
    the vendor through another way than the download.
    """
    for name, redirect in context.software.sources.items():
        source = context.catalog.sources.get(name)
        if source is None or not source.repositories:
            continue
        if redirect.key_fingerprint is None and source.key_fingerprint is None:
            yield Finding(
                summary=f'no fingerprint is known of the key that signs "{name}"',
                path=("software", "sources", name),
                severity=Severity.ERROR,
                hint="write key_fingerprint, read from the vendor through another way",
                at_key=True,
                relies_on=(("software", "sources", name), ("catalog",)),
            )
