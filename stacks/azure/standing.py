"""Which of the cluster's machines Azure has now, pool by pool."""

from __future__ import annotations

from collections.abc import Iterator

from ..pulumi.labels import CLUSTER, POOL, SITE
from .api import Api
from .plan import SitePlan
from .scale_sets import BROKEN, ScaleSets

_MACHINE = "microsoft.compute/virtualmachines"


def standing_pools(api: Api, plan: SitePlan) -> Iterator[str]:
    """Yield the pool of each machine that exists; raises ProviderError."""
    sets = ScaleSets(api, plan.cluster, plan.site)
    for part in sets.parts:
        seen = sets.look(part)
        yield from (seen.pool for machine in seen.machines if machine.state not in BROKEN)
    for found in api.tagged(CLUSTER, plan.cluster):
        if found.type.casefold() == _MACHINE and found.tags.get(SITE) == plan.site:
            yield found.tags.get(POOL, "")
