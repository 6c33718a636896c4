"""How a Google Cloud site's resources are called."""

from __future__ import annotations

from ..pulumi.names import Names
from .layout import SiteLayout


def names_of(plan: SiteLayout) -> Names:
    """Return the site's names."""
    return Names(cluster=plan.cluster, site=plan.site, cloud="gcp")
