"""Who the machines are and what they may do: managed identities with as few roles as possible."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import authorization, managedidentity

from ...pulumi.component import KEPT, Args, Component
from ...pulumi.names import Names
from ...pulumi.program import SiteProgram
from ..plan.facts import facts
from ..plan.types import SitePlan


class Grant(Args, frozen=True, kw_only=True):
    """A role at a scope."""

    what: str
    """Part of the assignment's name: what the role is for."""
    role: str
    """Short name of facts.yaml."""
    scope: pulumi.Input[str]


class IdentityArgs(Args, frozen=True, kw_only=True):
    """What an identity is made from."""

    names: Names
    name: str
    region: str
    subscription: str
    resource_group: pulumi.Input[str]
    existing: str = ""
    """Id of one that exists: used as it is, and given nothing."""
    grants: tuple[Grant, ...] = ()
    kept: bool = False
    """Kept data can't be read without it."""


class Identity(Component[IdentityArgs]):
    """A user-assigned managed identity and its roles."""

    kind = "azure:Identity"
    identity_id: pulumi.Output[str]

    def build(self, args: IdentityArgs) -> None:
        """Make it, or use the one that exists."""
        if args.existing:
            self.identity_id = pulumi.Output.from_input(args.existing)
            return
        options = self.child(KEPT if args.kept else None)
        identity = managedidentity.UserAssignedIdentity(
            args.names(args.name),
            resource_group_name=args.resource_group,
            location=args.region,
            opts=options,
        )
        assigned = [
            authorization.RoleAssignment(
                args.names(f"{args.name}-{grant.what}"),
                principal_id=identity.principal_id,
                principal_type="ServicePrincipal",
                role_definition_id=role_id(args.subscription, grant.role),
                scope=grant.scope,
                opts=options,
            ).id
            for grant in args.grants
        ]
        # Resources that use the identity wait until it has its rights.
        self.identity_id = pulumi.Output.all(identity.id, *assigned).apply(lambda ids: str(ids[0]))


def make_identity(
    here: SiteProgram[SitePlan],
    name: str,
    group: pulumi.Input[str],
    *,
    existing: str = "",
    grants: tuple[Grant, ...] = (),
    kept: bool = False,
) -> pulumi.Output[str]:
    """Return the id of an identity of a site, in a resource group; see `IdentityArgs`."""
    args = IdentityArgs(
        names=here.plan.names,
        name=name,
        region=here.plan.region,
        subscription=here.plan.subscription,
        resource_group=group,
        existing=existing,
        grants=grants,
        kept=kept,
    )
    return here.make(Identity, f"identity-{name}", args).identity_id


def role_id(subscription: str, role: str) -> str:
    """Return the id of a built-in role, by its short name in facts.yaml."""
    kind = "providers/Microsoft.Authorization/roleDefinitions"
    return f"/subscriptions/{subscription}/{kind}/{facts().roles[role]}"
