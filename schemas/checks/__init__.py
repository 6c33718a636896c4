"""Meaning: what a spec of the right structure must also satisfy. One concept a file.

Importing this package registers every check in `CHECKS`.
"""

from gcluster.schemas.checks import (  # noqa: F401  # imported to be registered
    accelerators,
    addresses,
    allreduce,
    architectures,
    capacity_blocks,
    cloud_keys,
    counts,
    distributions,
    elastic,
    fabric_domains,
    fabric_networks,
    fabrics,
    floors,
    host_names,
    hosts,
    lustre,
    lustre_sizes,
    machines,
    markets,
    mount_points,
    network,
    partitions,
    placements,
    processors,
    quorum,
    references,
    regions,
    roles,
    scheduler_software,
    sites,
    skew,
    software,
    storage_routes,
    users,
    zones,
)
from gcluster.schemas.checks.context import CheckContext
from gcluster.schemas.checks.registry import CHECKS, Check, Finding
from gcluster.schemas.checks.run import run_checks

__all__ = ["CHECKS", "Check", "CheckContext", "Finding", "run_checks"]
