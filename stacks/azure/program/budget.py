"""The budget's alarm. It warns; Azure stops nothing because of it."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import consumption

from ...pulumi.component import Args, Component
from ...pulumi.names import Names
from ..plan.types import BudgetPlan

_THRESHOLDS = (80, 100)
"""Percent of the budget at which somebody is told."""


class AlarmArgs(Args, frozen=True, kw_only=True):
    """What a budget alarm is made from."""

    names: Names
    subscription: str
    plan: BudgetPlan
    """Azure counts in the currency that the subscription is billed in."""
    found_by: dict[str, str]
    """Tags of what is counted; data groups and node groups have them alike."""
    month: str


class Alarm(Component[AlarmArgs]):
    """A monthly budget over all that carries the cluster's tags."""

    kind = "azure:Alarm"
    budget_id: pulumi.Output[str]

    def build(self, args: AlarmArgs) -> None:
        """Make it. When it began is not changed later: Azure takes no month that is gone."""
        budget = consumption.Budget(
            args.names("budget", kind="budget"),
            scope=f"/subscriptions/{args.subscription}",
            amount=args.plan.usd_per_month,
            category="Cost",
            time_grain="Monthly",
            time_period=consumption.BudgetTimePeriodArgs(start_date=args.month),
            filter=consumption.BudgetFilterArgs(
                and_=[
                    consumption.BudgetFilterPropertiesArgs(
                        tags=consumption.BudgetComparisonExpressionArgs(
                            name=key, operator="In", values=[value]
                        )
                    )
                    for key, value in args.found_by.items()
                ]
            ),
            notifications={
                f"at-{percent}-percent": consumption.NotificationArgs(
                    enabled=True,
                    operator="GreaterThanOrEqualTo",
                    threshold=float(percent),
                    contact_emails=list(args.plan.emails),
                    contact_roles=["Owner"],
                )
                for percent in _THRESHOLDS
            },
            opts=self.child(pulumi.ResourceOptions(ignore_changes=["timePeriod"])),
        )
        self.budget_id = budget.id
