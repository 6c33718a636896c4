"""The checks: what one finds, which of them a spec needs, and running them over it.

A module of checks is imported when a spec has what its checks look at: without that they would
have nothing to say, and a small spec doesn't pay for the import of all of them. The tests hold this
against all modules, for every golden case and for random specs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TypeAlias

import msgspec
from msgspec import structs

from ..diagnostics import Diagnostic, Patch, PathTuple, Severity
from ..spec import ClusterSoftware, FileService, NoScheduler, Rdma, Smoke, Tuning
from ..spec.scheduler import SlurmSettings
from ..structure.document import Document
from ..structure.fix.edits import Fix
from .context import CheckContext


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a check says about one place, in the coordinates of the checked parts."""

    summary: str
    path: PathTuple
    hint: str = ""
    detail: str = ""
    severity: Severity = Severity.ERROR
    at_key: bool = False
    """Point at the key, not at the value."""
    relies_on: tuple[PathTuple, ...] = ()
    """Paths this finding is drawn from ("*": any entry); silent when one of them is broken.
    Empty: the path alone."""
    suggestion: str | None = None
    """The right word for the value at `path`, where there is one: short for a Replace."""
    is_secret: bool = False
    """What is there may hold a secret: it is never shown."""
    fix: Fix | None = None
    """How a machine fixes it, where that is certain; paths in the coordinates of the parts."""


CheckFunction: TypeAlias = "Callable[[CheckContext], Iterator[Finding]]"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of meaning."""

    code: str
    summary: str
    """One sentence for a table of codes."""
    explanation: str
    """A paragraph: why the rule is there and what to do; the function's docstring."""
    run: CheckFunction


CHECKS: dict[str, Check] = {}
"""Every check by its code."""


def check(code: str, *, summary: str) -> Callable[[CheckFunction], CheckFunction]:
    """Register a check; its docstring is the explanation people read.

    Raises:
        ValueError: the code is taken.
    """

    def register(function: CheckFunction) -> CheckFunction:
        if code in CHECKS:
            raise ValueError(f"{code} is taken by {CHECKS[code].run.__name__}")
        explanation = " ".join((function.__doc__ or "").split())
        CHECKS[code] = Check(code=code, summary=summary, explanation=explanation, run=function)
        return function

    return register


def _always(_: CheckContext) -> bool:
    return True


def _hosts(context: CheckContext) -> bool:
    return _sites(context) or any(pool.hosts is not None for pool in context.pools.values())


def _fabrics(context: CheckContext) -> bool:
    """Real machines, a class by name, several sites, or pools that jobs may span."""
    compute = [pool for pool in context.pools.values() if pool.is_compute]
    return len(compute) > 1 or any(pool.fabric for pool in compute) or not _made_here(context)


def _made_here(context: CheckContext) -> bool:
    """Only sites whose machines are made and not rented: local and simulated ones."""
    return all(site.is_made_here for site in context.sites.values())


def _networks(context: CheckContext) -> bool:
    named = any(site.networks for site in context.sites.values())
    return named or _sites(context) or _rdma(context)


def _listed(context: CheckContext) -> bool:
    return any(hasattr(site, "listed") for site in context.sites.values())


def _sites(context: CheckContext) -> bool:
    """Sites that aren't all of this machine, several of them, or Kubernetes' own networks."""
    several = len(context.sites) > 1 or bool(context.links)
    return several or not _made_here(context) or context.kubernetes is not None


def _storage(context: CheckContext) -> bool:
    return bool(context.storage)


def _software(context: CheckContext) -> bool:
    own = any(pool.software is not None for pool in context.pools.values())
    return own or context.software != ClusterSoftware()


def _real_gpus(context: CheckContext) -> bool:
    machines = (context.machine(pool) for pool in context.pools.values())
    return any(machine and machine.gpu and not machine.simulated for machine in machines)


def _scheduler_software(context: CheckContext) -> bool:
    slurm = context.slurm
    return _software(context) or (slurm is not None and slurm.topology.plugin != "auto")


def _mig(context: CheckContext) -> bool:
    gpus = (pool.gpus for pool in context.pools.values())
    return any(each.mig == "enabled" or each.mig_slices for each in gpus)


def _shares(context: CheckContext) -> bool:
    scheduler = context.scheduler
    return scheduler is not None and bool(scheduler.qos or scheduler.accounts)


def _spills(context: CheckContext) -> bool:
    scheduler = context.scheduler
    partitions = scheduler.partitions.values() if scheduler is not None else ()
    return any(partition.spill is not None for partition in partitions)


def _kubernetes_gpus(context: CheckContext) -> bool:
    """Kubernetes, or interfaces for its pods."""
    rails = any(pool.rdma.pods is not None for pool in context.pools.values())
    return rails or context.kubernetes is not None


def _tuning(context: CheckContext) -> bool:
    return any(pool.tuning != Tuning() for pool in context.pools.values())


def _rdma(context: CheckContext) -> bool:
    return any(pool.rdma != Rdma() for pool in context.pools.values())


def _nvlink_domains(context: CheckContext) -> bool:
    """Hosts that are named, or pools that say the topology of nodes or GPUs."""
    pools = context.pools.values()
    return any(pool.hosts or pool.nodes_per_block or pool.cpu for pool in pools)


def _topology(context: CheckContext) -> bool:
    slurm = context.slurm
    return slurm is not None and (
        slurm.topology.plugin != "auto" or bool(slurm.topology.block_sizes)
    )


def _maintenance(context: CheckContext) -> bool:
    return bool(context.maintenance)


MODULES: Mapping[str, Callable[[CheckContext], bool]] = {
    "capacity.failover": lambda context: any(pool.failover for pool in context.pools.values()),
    "capacity.hosts": _always,
    "capacity.listed_hosts": _listed,
    "capacity.machines": _always,
    "capacity.markets": _sites,
    "capacity.placement": _hosts,
    "capacity.pools": _always,
    "fabric.domains": lambda context: _fabrics(context) or _nvlink_domains(context),
    "fabric.fabrics": lambda context: _fabrics(context) or context.smoke != Smoke(),
    "fabric.interfaces": _real_gpus,
    "fabric.networks": _sites,
    "fabric.rdma": _rdma,
    "kubernetes.access": lambda context: context.kubernetes is not None,
    "kubernetes.cluster": lambda context: (
        context.kubernetes is not None
        or any(pool.kubernetes is not None for pool in context.pools.values())
    ),
    "kubernetes.control_planes": lambda context: context.kubernetes is not None,
    "kubernetes.elastic_pools": lambda context: context.kubernetes is not None,
    "kubernetes.gpus": _kubernetes_gpus,
    "kubernetes.managed_nodes": lambda context: context.kubernetes is not None,
    "kubernetes.queues": lambda context: context.kubernetes is not None,
    "network.access": _always,
    "network.addresses": _sites,
    "network.cidrs": _networks,
    "network.links": _sites,
    "network.subnets": _sites,
    "scheduler.accounts": _shares,
    "scheduler.gres": lambda context: any(pool.gres for pool in context.pools.values()),
    "scheduler.monitoring": lambda context: context.monitoring is not None,
    "scheduler.partitions": _always,
    "scheduler.services": _always,
    "scheduler.settings": lambda context: (
        context.slurm is not None and context.slurm.settings != SlurmSettings()
    ),
    "scheduler.unscheduled": lambda context: isinstance(context.scheduler, NoScheduler),
    "scheduler.topology": lambda context: _topology(context) or _maintenance(context),
    "scheduler.waste": lambda context: context.monitoring is not None,
    "scheduler.training": lambda context: bool(context.workloads),
    "scheduler.workloads": lambda context: bool(context.workloads),
    "scheduler.workloads_kubernetes": lambda context: bool(context.workloads),
    "scheduler.users": lambda context: bool(context.users),
    "software.gpu_software": _real_gpus,
    "software.hooks": lambda context: bool(context.hooks),
    "software.mig": _mig,
    "software.platforms": lambda context: _software(context) or _sites(context),
    "software.scheduler": _scheduler_software,
    "software.tuning": _tuning,
    "software.versions": _software,
    "storage.buckets": _storage,
    "storage.checkpoints": lambda context: context.checkpointing is not None,
    "storage.file_services": lambda context: any(
        isinstance(storage, FileService) for storage in context.storage.values()
    ),
    "storage.homes": lambda context: _storage(context) or bool(context.users or context.directory),
    "storage.lustre": _storage,
    "storage.lustre_sizes": _storage,
    "storage.mounts": _storage,
    "budget": lambda context: context.budget is not None,
    "references": _always,
    "spill": _spills,
    "state": lambda context: context.state is not None or context.secrets is not None,
}
"""Module -> whether a spec has what it looks at. A module that is missing here is never run."""


def import_for(context: CheckContext) -> None:
    """Import the modules whose checks may have something to say about a spec."""
    for module, needed in MODULES.items():
        if needed(context):
            import_module(f"{__package__}.{module}")


def all_checks() -> dict[str, Check]:
    """Import every module, so that every check is in the register, and return it."""
    for module in MODULES:
        import_module(f"{__package__}.{module}")
    return CHECKS


def run_checks(
    context: CheckContext,
    document: Document,
    *,
    file: str,
    spoilt: frozenset[PathTuple],
    original: Callable[[PathTuple], PathTuple],
) -> Iterator[Diagnostic]:
    """Yield what all checks find, in the order of their codes.

    Only modules of checks that the spec needs are imported; those that are loaded already run too.

    Args:
        context: the parts to check.
        document: has their places.
        file: name for the diagnostics.
        spoilt: paths whose value is unknown; findings that rely on one are left out.
        original: from the parts' paths to the document's.
    """
    import_for(context)
    holders = {path[:length] for path in spoilt for length in range(len(path))}
    for code in sorted(CHECKS):
        for finding in CHECKS[code].run(context):
            needs = [original(need) for need in finding.relies_on or (finding.path,)]
            if spoilt and any(_is_spoilt(need, spoilt, holders) for need in needs):
                continue
            yield _diagnostic(code, finding, document, file, original)


def _is_spoilt(need: PathTuple, spoilt: frozenset[PathTuple], holders: set[PathTuple]) -> bool:
    """Say whether something at, above or below `need` is unknown."""
    if "*" in need:
        return any(all(a in ("*", b) for a, b in zip(need, path, strict=False)) for path in spoilt)
    return need in holders or any(need[:length] in spoilt for length in range(len(need) + 1))


def _diagnostic(
    code: str,
    finding: Finding,
    document: Document,
    file: str,
    original: Callable[[PathTuple], PathTuple],
) -> Diagnostic:
    path = original(finding.path)
    return Diagnostic(
        code=code,
        severity=finding.severity,
        summary=finding.summary,
        detail=finding.detail,
        path=path,
        file=file,
        span=document.locate(path, key=finding.at_key),
        hint=finding.hint,
        patch=_patch(finding, document, original),
        is_secret=finding.is_secret,
    )


def _patch(
    finding: Finding, document: Document, original: Callable[[PathTuple], PathTuple]
) -> Patch | None:
    """Return the patch of a finding that says how it is fixed."""
    if finding.fix is None and finding.suggestion is None:
        return None
    from ..structure.fix.patches import (  # noqa: PLC0415  # a spec without findings needs none
        patch_of,
        word_patch,
    )

    if finding.fix is None:
        path, word = original(finding.path), finding.suggestion or ""
        return word_patch(document, path, word, at_key=finding.at_key)
    return patch_of(structs.replace(finding.fix, path=original(finding.fix.path)), document)
