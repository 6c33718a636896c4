"""Sites, machine types and the processors that a pool says its machines have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ...catalog import Catalog, Machine
from ...catalog.model.family import family_of
from ...diagnostics import Severity, listing
from ...spec import AwsSite, GpuSettings, Pool
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check


@check("GC102", summary="A pool names a machine type that the catalog does not have.")
def unknown_machine(context: CheckContext) -> Iterator[Finding]:
    """`machine` must be a machine type of the catalog.

    A machine type is a whole node (GPUs, CPUs, NICs), not GPUs by the piece: write hgx-h100-8,
    not H100:8. Of CPU machines any size of a family is one (m7i.2xlarge, n2-standard-32); `gcluster
    machines` lists both. One of your own is in a file next to the spec, which the spec names by
    `catalog: [machines.yaml]`: `{apiVersion: gcluster/catalog/v1, machines: [{name: our-head,
    sites: [aws], cpu: {architecture: x86_64, vcpus: 16}, memory_gib: 64, source: where you read it,
    date: 2026-11}]}`. More about it is in docs/machines.md.
    """
    at_site: dict[str | None, Mapping[str, Machine]] = {}
    for name, pool in context.pools.items():
        if pool.machine is None or pool.machine in context.machines:
            continue
        if not context.catalog.complete:
            return  # it may be in the file that can't be read, and that is said already
        place = context.catalog_name(pool)
        if place not in at_site:
            at_site[place] = _of_provider(context.machines, place)
        machines = at_site[place]
        suggestion, hint = _suggested_machines(pool.machine, machines), ""
        if suggestion:
            hint = f"a machine type is a whole node: write {listing(suggestion)}"
        elif sizes := _sizes_of_family(context.catalog, pool.machine):
            hint = f"its family has {listing(sizes)}"
        elif (close := context.suggest(pool.machine, machines)) is not None:
            suggestion = [close]
        question = f': did you mean "{suggestion[0]}"?' if len(suggestion) == 1 else ""
        yield Finding(
            summary=f'pool "{name}": unknown machine type "{pool.machine}"{question}',
            path=("pools", name, "machine"),
            hint=hint or _choices(context.catalog, machines, place),
            suggestion=suggestion[0] if len(suggestion) == 1 else None,
        )


_OWN = "one of your own: docs/machines.md, A machine of your own"


def _sizes_of_family(catalog: Catalog, written: str) -> list[str]:
    """Return the machine types of the family that a name would be of; none: there is no such."""
    family = catalog.families.get(family_of(written) or "")
    return [] if family is None else family.names()


def _choices(catalog: Catalog, machines: Mapping[str, Machine], place: str | None) -> str:
    """Return what may be written at a provider: machine types, sizes of families, one's own."""
    families = [name for name, family in catalog.families.items() if place in family.sites]
    any_size = f"; any size of {listing(families)}" if families else ""
    return f"machine types: {listing(machines)}{any_size}; {_OWN}"


def _of_provider(machines: Mapping[str, Machine], place: str | None) -> Mapping[str, Machine]:
    """Return the machine types that a provider's sites can have; all where it is not known."""
    fitting = {name: machine for name, machine in machines.items() if place in machine.sites}
    return fitting or machines


def _suggested_machines(written: str, machines: Mapping[str, Machine]) -> list[str]:
    """Return the machine types with the GPU and count that "H100:8" or "8xH100" requests."""
    match = re.fullmatch(r"([A-Za-z]+[0-9]+[A-Za-z]*)(?:[:x]([0-9]+))?", written, re.ASCII)
    if match:
        model, count = match[1], match[2]
    elif match := re.fullmatch(r"([0-9]+)x([A-Za-z]+[0-9]+[A-Za-z]*)", written, re.ASCII):
        count, model = match[1], match[2]
    else:
        return []
    return sorted(
        name
        for name, machine in machines.items()
        if machine.gpu is not None
        and machine.gpu.model.casefold() == model.casefold()
        and (count is None or str(machine.gpu.count) == count)
    )


@check("GC103", summary="A compute pool names no machine type.")
def compute_needs_machine(context: CheckContext) -> Iterator[Finding]:
    """Every compute pool needs `machine`.

    The scheduler must know the GPUs, CPUs and memory of a compute node before it runs a job
    there. Controllers and logins may leave the machine type out.
    """
    for name, pool in context.pools.items():
        if pool.is_compute and pool.machine is None:
            place = context.catalog_name(pool)
            fitting = [n for n, m in context.machines.items() if place in m.sites]
            yield Finding(
                summary=f'compute pool "{name}" names no machine type',
                path=("pools", name),
                at_key=True,
                hint=f"add machine: one of {listing(fitting)}" if fitting else "add machine: TYPE",
                relies_on=(("pools", name, "machine"), ("pools", name, "role")),
            )


@check("GC104", summary="A machine type can't be had at the pool's site.")
def machine_not_at_site(context: CheckContext) -> Iterator[Finding]:
    """The machine type must exist at the pool's site.

    Local nodes are containers on this machine and have no GPU: they take the simulated types
    (sim.*). Simulated GPUs on bare metal are accepted for trials, with a warning.
    """
    for name, pool in context.pools.items():
        machine = context.machines.get(pool.machine) if pool.machine is not None else None
        provider, place = context.provider(pool), context.catalog_name(pool)
        if machine is None or place is None or place in machine.sites:
            continue
        trial = machine.simulated and context.exists(pool.site)
        what = "has no GPU of its own" if provider == "local" else f"is {provider}"
        summary = f'pool "{name}": {machine.name} can\'t be had at site "{pool.site}", which {what}'
        if trial:
            summary = f'pool "{name}" gives its real hosts simulated GPUs ({machine.name})'
        yield Finding(
            summary=summary,
            path=("pools", name, "machine"),
            severity=Severity.WARNING if trial else Severity.ERROR,
            hint=_instead(machine, place, context.machines),
            relies_on=(("pools", name, "machine"), ("pools", name, "site")),
        )


def _instead(machine: Machine, place: str, machines: Mapping[str, Machine]) -> str:
    """Say which machine type of the same GPU the site has, else which it has at all."""
    fitting = {name: other for name, other in machines.items() if place in other.sites}
    alike = [n for n, other in fitting.items() if other.gpu_key == machine.gpu_key]
    return f"use {listing(alike or fitting)}"


_EXAMPLES = {
    "processors": "cpu: {sockets: 2, cores: 56, threads_per_core: 2}",
    "memory": "memory: 2048 GiB",
}
"""What to write, as on a DGX H100."""


@check("GC118", summary="The processors or memory of a pool's nodes are not specified.")
def node_hardware_unknown(context: CheckContext) -> Iterator[Finding]:
    """Say `cpu` and `memory` of bare-metal machine types that are a board, not a server.

    An HGX board comes in servers of many makers, so the catalog can't know their processors.
    Slurm takes what its configuration says: without any it counts one CPU and next to no memory,
    and jobs that request more never start. `lscpu` and `free` on a node show them.
    """
    if context.slurm is None:
        return
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if not pool.is_compute or machine is None or not context.exists(pool.site):
            continue
        missing = _missing(pool, machine)
        if missing:
            yield Finding(
                summary=f'pool "{name}": the {" and ".join(missing)} of {machine.name} '
                f"{'is' if missing == ['memory'] else 'are'} not known",
                path=("pools", name, "machine"),
                severity=Severity.WARNING,
                hint=f"add {', '.join(_EXAMPLES[what] for what in missing)} as `lscpu` and `free` "
                "say them",
                relies_on=tuple(
                    ("pools", name, key) for key in ("machine", "site", "role", "cpu", "memory")
                ),
            )


def _missing(pool: Pool, machine: Machine) -> list[str]:
    """Return which of processors and memory neither the pool nor the catalog says."""
    missing = []
    if pool.cpu is None and not machine.cpu.threads:
        missing.append("processors")
    if pool.memory is None and machine.memory_gib is None:
        missing.append("memory")
    return missing


@check("GC101", summary="A pool names a site that is not declared.")
def unknown_site(context: CheckContext) -> Iterator[Finding]:
    """A pool's `site` must be one of the names under `sites`.

    Every pool takes its machines from one site. Declare the site under `sites`, or correct the
    name.
    """
    declared = context.declared_sites
    if declared is None:
        return
    hint = f"declared sites: {listing(declared)}" if declared else ""
    for name, pool in context.pools.items():
        if pool.site in declared:
            continue
        suggestion = context.suggest(pool.site, declared)
        question = f': did you mean "{suggestion}"?' if suggestion else ""
        yield Finding(
            summary=f'pool "{name}" names an unknown site "{pool.site}"{question}',
            path=("pools", name, "site"),
            hint=hint,
            suggestion=suggestion,
        )


@check("GC141", summary="Settings of NVIDIA's GPUs for a pool that has none.")
def gpu_settings_without_gpus(context: CheckContext) -> Iterator[Finding]:
    """`gpus` sets MIG, ECC and the driver's modules of NVIDIA's GPUs.

    A pool that names no machine type has none that gcluster knows of; AMD's GPUs have no such
    settings here.
    """
    for name, pool in context.pools.items():
        site, machine = context.sites.get(pool.site), context.machine(pool)
        if site is None or site.is_made_here or (pool.machine is not None and machine is None):
            continue
        gpu = None if machine is None else machine.gpu
        if gpu is not None and gpu.vendor == "nvidia":
            continue
        why = f"{gpu.model} is AMD's" if gpu is not None else "it has no GPUs"
        for key in GpuSettings.__struct_fields__:
            path = ("pools", name, "gpus", key)
            if getattr(pool.gpus, key) != getattr(GpuSettings(), key):
                yield Finding(
                    summary=f'pool "{name}": {key} would set nothing: {why}',
                    path=path,
                    at_key=True,
                    hint=f"remove {key}"
                    if gpu or pool.machine
                    else f"remove {key}, or name the machine type",
                    fix=Remove(path),
                    relies_on=(path, ("pools", name, "machine"), ("pools", name, "site")),
                )


@check("GC143", summary="Policies are named for a role that exists.")
def policies_of_existing_role(context: CheckContext) -> Iterator[Finding]:
    """`policies` of a site of AWS are attached to the nodes' role that gcluster makes.

    An identity that exists (`roles: {node}`) has the rights that it has: nothing is changed of it.
    """
    for name, site in context.sites.items():
        if isinstance(site, AwsSite) and site.policies and site.roles.node is not None:
            yield Finding(
                summary=f'site "{name}": policies would change {site.roles.node}, which exists',
                path=("sites", name, "policies"),
                at_key=True,
                hint="attach them to its role yourself and remove policies, or remove roles.node",
                relies_on=(("sites", name),),
            )
