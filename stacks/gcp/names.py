"""How a Google Cloud site's resources are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..pulumi.names import Names

if TYPE_CHECKING:
    from .layout import SiteLayout


def names_of(plan: SiteLayout) -> Names:
    """Return the site's names."""
    return Names(cluster=plan.cluster, site=plan.site, cloud="gcp")
