"""Identities of a Google Cloud site, as components: service accounts with least privilege."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from ...pulumi.component import Args, Component
from ...pulumi.names import CLUSTER, Names, label_value
from ...pulumi.plan import ALARMS, BudgetPlan


class NodeIdentityArgs(Args, frozen=True, kw_only=True):
    """Who the nodes are."""

    names: Names
    project: str
    roles: tuple[str, ...]
    """What they may do in the project."""


class NodeIdentity(Component[NodeIdentityArgs]):
    """A service account for the nodes. It has no key: nodes get tokens from their metadata."""

    kind = "gcp:NodeIdentity"
    email: pulumi.Output[str]
    account_id: pulumi.Output[str]

    def build(self, args: NodeIdentityArgs) -> None:
        """Make the account and its grants."""
        account = _account(self, args.names, "node", args.project, "Nodes of a gcluster cluster")
        for role in args.roles:
            gcp.projects.IAMMember(
                args.names(f"node-{role.rpartition('.')[2].lower()}"),
                project=args.project,
                role=role,
                member=account.member,
                opts=self.child(),
            )
        self.email = account.email
        self.account_id = account.name


class BurstIdentityArgs(Args, frozen=True, kw_only=True):
    """Who the burst agent is, which makes and removes elastic nodes."""

    names: Names
    project: str
    permissions: tuple[str, ...]
    node_account: pulumi.Input[str] | None
    """The nodes' account, which new nodes run as: projects/P/serviceAccounts/EMAIL."""


class BurstIdentity(Component[BurstIdentityArgs]):
    """A service account that may make instances and nothing else."""

    kind = "gcp:BurstIdentity"
    email: pulumi.Output[str]

    def build(self, args: BurstIdentityArgs) -> None:
        """Make the account, a role of its own, and its right to start nodes as the nodes' one."""
        account = _account(self, args.names, "burst", args.project, "Burst agent of a gcluster")
        role = gcp.projects.IAMCustomRole(
            args.names("burst"),
            project=args.project,
            # ids of roles take letters, digits, dots and underscores
            role_id=args.names("burst").replace("-", "_"),
            title=f"gcluster burst {args.names.cluster} {args.names.site}",
            permissions=list(args.permissions),
            opts=self.child(),
        )
        gcp.projects.IAMMember(
            args.names("burst-instances"),
            project=args.project,
            role=role.name,
            member=account.member,
            opts=self.child(),
        )
        if args.node_account is not None:
            gcp.serviceaccount.IAMMember(
                args.names("burst-as-node"),
                service_account_id=args.node_account,
                role="roles/iam.serviceAccountUser",
                member=account.member,
                opts=self.child(),
            )
        self.email = account.email


def _account(
    component: Component[NodeIdentityArgs] | Component[BurstIdentityArgs],
    names: Names,
    what: str,
    project: str,
    title: str,
) -> gcp.serviceaccount.Account:
    return gcp.serviceaccount.Account(
        names(what),
        account_id=names(what, kind="service-account"),
        project=project,
        display_name=title,
        description=names.description,
        # Its id is the site's own: one that a killed run made and didn't write down is taken up.
        create_ignore_already_exists=True,
        opts=component.child(),
    )


_BASES = {"actual": "CURRENT_SPEND", "forecast": "FORECASTED_SPEND"}


class CostAlarmArgs(Args, frozen=True, kw_only=True):
    """A month's money."""

    names: Names
    project: str
    plan: BudgetPlan


class CostAlarm(Component[CostAlarmArgs]):
    """A budget that mails the bill's administrators at each threshold. It stops nothing."""

    kind = "gcp:CostAlarm"
    budget: pulumi.Output[str]

    def build(self, args: CostAlarmArgs) -> None:
        """Make it on the account that pays for the project."""
        project = gcp.organizations.get_project_output(project_id=args.project)
        made = gcp.billing.Budget(
            args.names("budget"),
            billing_account=project.apply(lambda known: known.billing_account),
            display_name=args.names("budget"),
            amount=gcp.billing.BudgetAmountArgs(
                specified_amount=gcp.billing.BudgetAmountSpecifiedAmountArgs(
                    currency_code="USD", units=str(max(1, round(args.plan.usd_per_month)))
                )
            ),
            budget_filter=gcp.billing.BudgetBudgetFilterArgs(
                projects=[project.apply(lambda known: f"projects/{known.number}")],
                # A filter takes one label.
                labels={CLUSTER: label_value(args.names.cluster)},
            ),
            threshold_rules=[
                gcp.billing.BudgetThresholdRuleArgs(
                    threshold_percent=percent / 100, spend_basis=_BASES[kind]
                )
                for kind, percent in ALARMS
            ],
            opts=self.child(),
        )
        self.budget = made.name
