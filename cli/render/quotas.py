"""What a spec takes of cloud quotas, below the line that says it is right."""

from __future__ import annotations

from ...schemas.catalog import load_catalog
from ...schemas.cost.quotas import QuotaNeed, quota_needs
from ...schemas.load import Loaded

_UNITS = {"vcpu": "vCPU", "gpu": "GPU", "node": "nodes"}


def needs(loaded: Loaded) -> tuple[QuotaNeed, ...]:
    """Return the quotas that a spec that is right needs; of clouds only."""
    spec = loaded.spec
    if spec is None or not any(site.is_cloud for site in spec.sites.values()):
        return ()
    return quota_needs(spec, load_catalog(loaded.catalogs))


def quota_lines(loaded: Loaded) -> list[str]:
    """Return a line for each: what to ask the cloud for, where, and for which pools."""
    return [
        f"    quota of {need.provider} {need.region}: {need.amount:,} {_UNITS[need.unit]} of "
        f"{need.code} ({', '.join(need.pools)})"
        for need in needs(loaded)
    ]
