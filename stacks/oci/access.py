"""Who may reach whom, and what nodes may do: security groups and dynamic groups."""

from __future__ import annotations

import hashlib

import pulumi
import pulumi_oci as oci

from ...schemas.spec import PoolRole
from ..pulumi.component import Args, Component
from ..pulumi.names import Names
from .network import EVERYWHERE
from .plan import IdentityPlan
from .policies import bucket_statements, burst_statements, members
from .rules import Group, make_group
from .tags import ROLE

_SSH = 22


class FirewallArgs(Args, frozen=True):
    """What the nodes' security groups are made from."""

    names: Names
    compartment: str
    vcn_id: pulumi.Input[str]
    existing: tuple[str, ...]
    """Groups that exist: used for the nodes instead of one that is made."""
    admin_cidrs: tuple[str, ...]


class Firewall(Component[FirewallArgs]):
    """Security groups of the nodes, and of those that people log in to.

    They are for the VCN: the RDMA network is another one, which only its own nodes are in.
    """

    kind = "oci:Firewall"
    node_groups: list[pulumi.Output[str]]
    """Groups of every node."""
    login_groups: list[pulumi.Output[str]]
    """Groups of login and controller nodes beside those; none where nobody may come from outside."""  # noqa: E501  # one sentence

    def build(self, args: FirewallArgs) -> None:
        """Make the groups."""
        self.node_groups = [pulumi.Output.from_input(group) for group in args.existing]
        if not self.node_groups:
            nodes = self._group(args, "nodes")
            nodes.lets_in("self", group=nodes.id)
            nodes.lets_out("everywhere", cidr=EVERYWHERE)
            self.node_groups = [pulumi.Output.from_input(nodes.id)]
        self.login_groups = []
        if args.admin_cidrs:
            login = self._group(args, "login")
            for cidr in args.admin_cidrs:
                what = f"ssh-{hashlib.sha256(cidr.encode()).hexdigest()[:6]}"
                login.lets_in(what, port=_SSH, cidr=cidr)
            self.login_groups = [pulumi.Output.from_input(login.id)]

    def groups(self, role: PoolRole) -> list[pulumi.Output[str]]:
        """Return the groups of a node."""
        return [*self.node_groups, *(self.login_groups if role != "compute" else ())]

    def _group(self, args: FirewallArgs, what: str) -> Group:
        return make_group(
            args.names, what, compartment=args.compartment, vcn_id=args.vcn_id, opts=self.child()
        )


class IdentitiesArgs(Args, frozen=True):
    """What the nodes' identities are made from."""

    names: Names
    tenancy: str
    compartment: str
    plan: IdentityPlan


class Identities(Component[IdentitiesArgs]):
    """Dynamic groups of the nodes and of controllers that burst, with their policies.

    Nodes that need nothing get nothing: most have no rights at all.
    """

    kind = "oci:Identities"
    namespace: pulumi.Output[str]
    """Tag namespace of the roles; "" where nothing is made."""

    def build(self, args: IdentitiesArgs) -> None:
        """Make what is needed; groups that exist have their own policies and tags."""
        self._made = args.plan.is_needed
        self.namespace = pulumi.Output.from_input("")
        if not self._made:
            return
        namespace = oci.identity.TagNamespace(
            args.names("roles", kind="identity"),
            compartment_id=args.compartment,
            description="Which nodes of the cluster may do what",
            opts=self.child(),
        )
        oci.identity.Tag(
            args.names("role", kind="identity"),
            tag_namespace_id=namespace.id,
            name=ROLE,
            description="node or controller",
            opts=self.child(),
        )
        self.namespace = namespace.name
        if args.plan.grants and args.plan.node_group is None:
            nodes = self._group(args, "node")
            self._policy(args, "node-buckets", self._buckets(args, nodes))
        if args.plan.bursts and args.plan.burst_group is None:
            controllers = self._group(args, "controller")
            if args.plan.grants:
                self._policy(args, "controller-buckets", self._buckets(args, controllers))
            self._policy(
                args,
                "burst",
                pulumi.Output.all(controllers, namespace.name).apply(
                    lambda known: list(burst_statements(known[0], args.compartment, known[1]))
                ),
            )

    def role(self, role: PoolRole) -> pulumi.Output[dict[str, str]] | None:
        """Return the defined tag of a node; None where no group goes by it."""
        if not self._made:
            return None
        value = "controller" if role == "controller" else "node"
        return self.namespace.apply(lambda namespace: {f"{namespace}.{ROLE}": value})

    def _buckets(self, args: IdentitiesArgs, group: pulumi.Output[str]) -> pulumi.Output[list[str]]:
        return group.apply(
            lambda name: list(bucket_statements(name, args.compartment, args.plan.grants))
        )

    def _group(self, args: IdentitiesArgs, role: str) -> pulumi.Output[str]:
        """Make the group of a role; dynamic groups stand in the tenancy itself."""
        return oci.identity.DynamicGroup(
            args.names(role, kind="identity"),
            compartment_id=args.tenancy,
            description=f"Instances of the cluster: {role}",
            matching_rule=self.namespace.apply(
                lambda namespace: members(args.compartment, namespace, role)
            ),
            opts=self.child(),
        ).name

    def _policy(
        self, args: IdentitiesArgs, what: str, statements: pulumi.Output[list[str]]
    ) -> None:
        oci.identity.Policy(
            args.names(what, kind="identity"),
            compartment_id=args.compartment,
            description="What nodes of the cluster may do",
            statements=statements,
            opts=self.child(),
        )
