"""Which modules of checks a spec needs: a small spec doesn't pay for the import of all of them.

A module stands under what its checks look at; without that they would have nothing to say. The
tests hold this against all modules, for every golden case and for random specs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from ..spec import ClusterSoftware, Count, Smoke
from .context import CheckContext

_CLOUD_KEYS = ("market", "mixed", "zones", "placement", "image", "disk", "public_address", "tags")


def _always(_: CheckContext) -> bool:
    return True


def _hosts(context: CheckContext) -> bool:
    return _sites(context) or any(pool.hosts is not None for pool in context.pools.values())


def _clouds(context: CheckContext) -> bool:
    return any(site.is_cloud for site in context.sites.values())


def _cloud_keys(context: CheckContext) -> bool:
    return any(getattr(pool, key) for pool in context.pools.values() for key in _CLOUD_KEYS)


def _elastic(context: CheckContext) -> bool:
    return any(isinstance(pool.count, Count) for pool in context.pools.values())


def _fabrics(context: CheckContext) -> bool:
    """Real machines, a class by name, several sites, or pools that jobs may span."""
    compute = [pool for pool in context.pools.values() if pool.role == "compute"]
    return len(compute) > 1 or any(pool.fabric for pool in compute) or not _made_here(context)


def _made_here(context: CheckContext) -> bool:
    """Only sites whose machines are made and not rented: local and simulated ones."""
    return all(site.is_made_here for site in context.sites.values())


def _networks(context: CheckContext) -> bool:
    return _sites(context) or any(site.networks for site in context.sites.values())


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


def _scheduler_software(context: CheckContext) -> bool:
    slurm = context.slurm
    return _software(context) or (slurm is not None and slurm.topology.plugin != "auto")


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


def _nvlink_domains(context: CheckContext) -> bool:
    """Hosts that are named, or pools that say where nodes or GPUs stand."""
    pools = context.pools.values()
    return any(pool.hosts or pool.nodes_per_block or pool.cpu for pool in pools)


def _topology(context: CheckContext) -> bool:
    slurm = context.slurm
    return slurm is not None and (
        slurm.topology.plugin != "auto" or bool(slurm.topology.block_sizes)
    )


def _maintenance(context: CheckContext) -> bool:
    return context.slurm is not None and bool(context.slurm.maintenance)


def _services(context: CheckContext) -> bool:
    slurm = context.slurm
    served = slurm is not None and (slurm.accounting is not None or slurm.rest_api)
    return served or context.monitoring is not None or context.directory is not None


MODULES: Mapping[str, Callable[[CheckContext], bool]] = {
    **dict.fromkeys(
        (
            "controllers", "counts", "host_names", "machines", "network", "partition_limits",
            "partitions", "quorum", "references", "roles", "sites",
        ),
        _always,
    ),
    **dict.fromkeys(("addresses", "clashing_hosts", "hosts", "placements", "processors"), _hosts),
    "nvlink_domains": _nvlink_domains,
    **dict.fromkeys(
        (
            "architectures", "capacity_blocks", "existing_networks", "exposure", "fabric_networks",
            "identifiers", "markets", "regions", "subnets", "zones",
        ),
        _sites,
    ),
    **dict.fromkeys(("fabric_domains", "fabrics"), _fabrics),
    **dict.fromkeys(("cidrs", "overlaps"), _networks),
    **dict.fromkeys(
        (
            "buckets", "copies", "local_disks", "lustre", "lustre_reach", "lustre_sizes",
            "mount_points", "servers", "storage_routes",
        ),
        _storage,
    ),
    **dict.fromkeys(
        ("accelerators", "artefact_sources", "distributions", "skew", "software"), _software
    ),
    **dict.fromkeys(("accounts", "preemption"), _shares),
    **dict.fromkeys(("spill_ceilings", "spill_data", "spill_limits", "spill_targets"), _spills),
    "allreduce": lambda context: context.smoke != Smoke(),
    "budget": lambda context: context.budget is not None,
    "checkpoints": lambda context: context.checkpointing is not None,
    "cloud_keys": _cloud_keys,
    "elastic": _elastic,
    "expiry": lambda context: context.budget is not None,
    "floors": lambda context: context.smoke != Smoke(),
    "cloud_control_planes": lambda context: context.kubernetes is not None,
    "kubernetes": lambda context: context.kubernetes is not None,
    "kubernetes_gpus": _kubernetes_gpus,
    "kubernetes_networks": lambda context: context.kubernetes is not None,
    "kubernetes_queues": lambda context: context.kubernetes is not None,
    "links": _sites,
    "listed_hosts": _listed,
    "maintenance": _maintenance,
    "scheduler_software": _scheduler_software,
    "services": _services,
    "state_urls": lambda context: context.state is not None or context.secrets is not None,
    "topology": _topology,
    "tunnels": lambda context: bool(context.links),
    "users": lambda context: bool(context.users),
}  # fmt: skip
"""Module -> whether a spec has what it looks at. A module that is missing here is never run."""


def import_for(context: CheckContext) -> None:
    """Import the modules whose checks may have something to say about a spec."""
    for module, needed in MODULES.items():
        if needed(context):
            import_module(f"{__package__}.{module}")


def import_all() -> None:
    """Import every module, so that every check is in the register."""
    for module in MODULES:
        import_module(f"{__package__}.{module}")
