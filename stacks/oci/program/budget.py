"""The budget alarm of a cluster: what OCI sends when its month goes over the spec's ceiling."""

from __future__ import annotations

import math

import pulumi  # the component's outputs are read from its annotations
import pulumi_oci as oci

from ...pulumi.component import Args, Component
from ...pulumi.names import Names
from ...pulumi.plan import ALARMS, BudgetPlan


class SpendingArgs(Args, frozen=True):
    """What the alarm is made from."""

    names: Names
    tenancy: str
    compartment: str
    plan: BudgetPlan


class Spending(Component[SpendingArgs]):
    """A monthly budget over the compartment, in the tenancy's currency. It warns; it stops nothing.

    Free-form tags can't be budgeted: other resources of the compartment count too.
    """

    kind = "oci:Spending"
    budget_id: pulumi.Output[str]

    def build(self, args: SpendingArgs) -> None:
        """Create budget and alarms; without an owner's address there are no mails."""
        name = args.names("budget")
        made = oci.budget.Budget(
            name,
            compartment_id=args.tenancy,
            amount=math.ceil(args.plan.usd_per_month),
            reset_period="MONTHLY",
            target_type="COMPARTMENT",
            targets=[args.compartment],
            display_name=name,
            opts=self.child(),
        )
        for kind, percent in ALARMS if args.plan.email else ():
            what = args.names(f"{kind}-{percent}")
            oci.budget.Rule(
                what,
                budget_id=made.id,
                type=kind.upper(),
                threshold=float(percent),
                threshold_type="PERCENTAGE",
                recipients=args.plan.email,
                display_name=what,
                opts=self.child(),
            )
        self.budget_id = made.id
