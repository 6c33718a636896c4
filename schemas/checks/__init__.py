"""Meaning: what a spec of the right structure must also satisfy. One concept a file.

Importing this package registers every check in `CHECKS`.
"""

from gcluster.schemas.checks import (  # noqa: F401  # imported to be registered
    accelerators,
    addresses,
    allreduce,
    architectures,
    buckets,
    capacity_blocks,
    cidrs,
    clashing_hosts,
    cloud_keys,
    copies,
    counts,
    distributions,
    elastic,
    existing_networks,
    exposure,
    fabric_domains,
    fabric_networks,
    fabrics,
    floors,
    host_names,
    hosts,
    identifiers,
    local_disks,
    lustre,
    lustre_reach,
    lustre_sizes,
    machines,
    markets,
    mount_points,
    network,
    overlaps,
    partitions,
    placements,
    processors,
    quorum,
    references,
    regions,
    roles,
    scheduler_software,
    servers,
    sites,
    skew,
    software,
    storage_routes,
    subnets,
    users,
    zones,
)
from gcluster.schemas.checks.context import CheckContext
from gcluster.schemas.checks.registry import CHECKS, Check, Finding
from gcluster.schemas.checks.run import run_checks

__all__ = ["CHECKS", "Check", "CheckContext", "Finding", "run_checks"]
