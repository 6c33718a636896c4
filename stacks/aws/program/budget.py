"""The budget alarm of a cluster: what AWS sends when its month goes over the spec's ceiling."""

from __future__ import annotations

import pulumi  # the component's outputs are read from its annotations
import pulumi_aws as aws

from ...pulumi.component import Args, Component
from ...pulumi.names import CLUSTER, Names
from ...pulumi.plan import ALARMS, BudgetPlan

_KINDS = {"actual": "ACTUAL", "forecast": "FORECASTED"}


class SpendingArgs(Args, frozen=True):
    """What the alarm is made from."""

    names: Names
    cluster: str
    plan: BudgetPlan


class Spending(Component[SpendingArgs]):
    """A monthly budget over everything with the cluster's tag. It warns; it stops nothing.

    AWS counts by tag only after the tag was activated for cost allocation in the billing console.
    """

    kind = "aws:Spending"
    budget_name: pulumi.Output[str]

    def build(self, args: SpendingArgs) -> None:
        """Create the budget; without an owner's address it sends no mail, but can be viewed."""
        to = [args.plan.email] if args.plan.email else []
        self.budget_name = aws.budgets.Budget(
            args.names("budget"),
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=f"{args.plan.usd_per_month:.2f}",
            limit_unit="USD",
            cost_filters=[
                aws.budgets.BudgetCostFilterArgs(
                    name="TagKeyValue", values=[f"user:{CLUSTER}${args.cluster}"]
                )
            ],
            notifications=[
                aws.budgets.BudgetNotificationArgs(
                    comparison_operator="GREATER_THAN",
                    notification_type=_KINDS[kind],
                    threshold=float(percent),
                    threshold_type="PERCENTAGE",
                    subscriber_email_addresses=to,
                )
                for kind, percent in (ALARMS if to else ())
            ],
            opts=self.child(),
        ).name
