"""The recording rules (`data/rules.yaml`), their prices, and a rule file's group made of both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from ...schemas.catalog import Catalog
from ...schemas.cost.pools import pool_cost
from ...schemas.spec import Budget, ClusterSpec
from ...schemas.spec.model import SpecModel
from ...schemas.structure.compose import read_data_file

_DATA = Path(__file__).parent / "data"
Needs: TypeAlias = Literal["slurm", "gpus", "nvidia", "kubernetes"]
INTERVAL_S = 15
"""Seconds between two evaluations, as between two scrapes: sums over a time are of such steps."""
PRICE = "gcluster:pool_node_usd_per_hour"
"""USD for a node and hour, by pool; pools without a known price have none."""

HOUR_BUDGET = "gcluster:budget_usd_per_hour"
"""`budget.max_usd_per_hour` of the spec, where it has one."""
MONTH_BUDGET = "gcluster:budget_usd_per_month"
"""`budget.max_usd_per_month`, likewise."""


class RecordingRule(SpecModel, frozen=True, kw_only=True):
    """One metric that Prometheus records from others."""

    record: Annotated[str, Meta(pattern=r"^gcluster:[a-z_]+(:[a-z]+)?$")]
    expression: str
    means: str
    """A line for the page of docs."""
    needs: tuple[Needs, ...] = ()
    amd: str = ""
    """The same of AMD's GPUs; "": what `expression` queries is there for both."""

    def expression_for(self, conditions: Collection[str]) -> str:
        """Return the PromQL for a cluster that has GPUs of the makers that are listed."""
        makers = {"nvidia": self.expression, "amd": self.amd}
        if not self.amd:
            return self.expression
        return "\nor\n".join(text for maker, text in makers.items() if maker in conditions)


class _Rules(SpecModel, frozen=True):
    rules: tuple[RecordingRule, ...]


@lru_cache(maxsize=1)
def recording_rules() -> tuple[RecordingRule, ...]:
    """Return all rules, in the order in which they are evaluated."""
    tables = [read_data_file(_DATA / f"{name}.yaml", _Rules) for name in ("rules", "kubernetes")]
    return tuple(rule for table in tables for rule in table.rules)


def node_prices(spec: ClusterSpec, catalog: Catalog) -> dict[str, float]:
    """Return pool -> USD for one of its nodes and hour, on the first option that it is bought on.

    Pools whose price isn't known are left out. Nodes that a site makes on this machine cost 0.
    """
    found: dict[str, float] = {}
    for name, pool in spec.pools.items():
        cost = pool_cost(pool, spec.sites[pool.site], catalog)
        if cost.usd_per_node_hour is not None:
            found[name] = cost.usd_per_node_hour
    return found


def waste_group(
    prices: Mapping[str, float], conditions: Collection[str], budget: Budget | None = None
) -> dict[str, Any]:
    """Return the group of a rule file, for a cluster that has what is listed.

    Args:
        prices: pool -> USD for a node and hour.
        conditions: what the cluster has (`alerts.Condition`); other rules are left out.
        budget: the spec's; its ceilings are recorded for alerts.
    """
    ceilings = (
        {}
        if budget is None
        else {HOUR_BUDGET: budget.max_usd_per_hour, MONTH_BUDGET: budget.max_usd_per_month}
    )
    constants = [
        {"record": PRICE, "expr": f"vector({usd:.15g})", "labels": {"pool": pool}}
        for pool, usd in sorted(prices.items())
    ] + [
        {"record": name, "expr": f"vector({usd:.15g})"}
        for name, usd in ceilings.items()
        if usd is not None
    ]
    recorded = [
        {"record": rule.record, "expr": rule.expression_for(conditions)}
        for rule in recording_rules()
        if set(rule.needs) <= set(conditions)
    ]
    return {
        "name": "gcluster-waste",
        "interval": f"{INTERVAL_S}s",
        "rules": [*constants, *recorded],
    }
