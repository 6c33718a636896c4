"""The budget's alarm. It warns; Azure stops nothing because of it."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import consumption

from ...pulumi.component import Args, Component
from ...pulumi.names import CLUSTER, Names
from ...pulumi.plan import ALARMS, BudgetPlan

_KINDS = {"actual": "Actual", "forecast": "Forecasted"}


class AlarmArgs(Args, frozen=True, kw_only=True):
    """What a budget alarm is made from."""

    names: Names
    subscription: str
    plan: BudgetPlan
    """Azure counts in the currency that the subscription is billed in."""
    cluster: str
    month: str


class Alarm(Component[AlarmArgs]):
    """A monthly budget over all that carries the cluster's tag."""

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
                tags=consumption.BudgetComparisonExpressionArgs(
                    name=CLUSTER, operator="In", values=[args.cluster]
                )
            ),
            notifications={
                f"{kind}-at-{percent}-percent": consumption.NotificationArgs(
                    enabled=True,
                    operator="GreaterThanOrEqualTo",
                    threshold=float(percent),
                    threshold_type=_KINDS[kind],
                    contact_emails=[args.plan.email] if args.plan.email else [],
                    contact_roles=["Owner"],
                )
                for kind, percent in ALARMS
            },
            opts=self.child(pulumi.ResourceOptions(ignore_changes=["timePeriod"])),
        )
        self.budget_id = budget.id
