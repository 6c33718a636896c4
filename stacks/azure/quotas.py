"""Whether the subscription's quotas have room for what the spec still wants to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...schemas.cost.quotas import quota_needs
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec
from ..pulumi.questions import Standing, finding
from .api import Api, refusals
from .plan import SitePlan

if TYPE_CHECKING:
    from ...schemas.catalog import Catalog

_CORES = "cores"
"""Azure's name of the quota over all machine types of a region."""
_SPOT = "lowPriorityCores"
"""Azure's name of the quota of spot machines, which count against no other."""


def check_quotas(
    api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog, standing: Standing
) -> Iterator[Diagnostic]:
    """Yield the quotas that the largest size of the pools does not fit in.

    An error where the whole is too small. A warning where others use what the spec still needs:
    machines of this cluster that run are among what is used, and are needed no more.
    """
    with refusals("quotas"):
        found = {
            usage.name.value: (usage.current_value, usage.limit)
            for usage in api.compute.usage.list(plan.region)
            if usage.name and usage.name.value
        }
    whole = _amounts(spec, plan, catalog, {})
    left = _amounts(spec, plan, catalog, standing.counts()) if whole else {}
    for code, (amount, pools) in whole.items():
        used, limit = found.get(code, (0, None))
        missing = left.get(code, (0, ()))[0]
        who = f"({', '.join(dict.fromkeys(pools))})"
        severity = Severity.WARNING
        if limit is None:
            what = f"has no quota {code}"
        elif amount > limit:
            what = f"quota {code} is {limit:,} vCPU, the pools need {amount:,}"
            severity = Severity.ERROR
        elif missing > limit - used:
            free = f"{limit - used:,} of {limit:,} vCPU are free"
            what = f"quota {code}: {free}, the pools still need {missing:,}"
        else:
            continue
        yield finding(
            "GC994",
            f"{plan.region}: {what} {who}",
            severity=severity,
            hint=f"ask for more of {code} on the portal's page Quotas, or lower the count",
        )


def _amounts(
    spec: ClusterSpec, plan: SitePlan, catalog: Catalog, there: Mapping[str, int]
) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return quota -> vCPUs and pools of those that the site's machines count against."""
    amounts: dict[str, tuple[int, tuple[str, ...]]] = {}
    for need in quota_needs(spec, catalog, there):
        if need.provider != "azure" or all(spec.pools[p].site != plan.site for p in need.pools):
            continue
        for code in (_SPOT,) if need.code == _SPOT else (need.code, _CORES):
            amount, pools = amounts.get(code, (0, ()))
            amounts[code] = amount + need.amount, (*pools, *need.pools)
    return amounts
