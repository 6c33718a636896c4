"""Network access and permissions of nodes: security groups and dynamic groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import pulumi
import pulumi_oci as oci

from ....schemas.spec import PoolRole
from ...pulumi.component import Args, Component, RuleGroup
from ...pulumi.names import Names, short_hash
from ...pulumi.plan import GrantPlan
from ..plan.facts import ROLE
from ..plan.types import IdentityPlan, NetworkPlan
from .network import EVERYWHERE

_SSH = 22


class FirewallArgs(Args, frozen=True):
    """What the nodes' security groups are made from."""

    names: Names
    compartment: str
    vcn_id: pulumi.Input[str]
    plan: NetworkPlan
    """Defines the inbound access, and whether existing groups are used for the nodes."""


class Firewall(Component[FirewallArgs]):
    """Security groups of the nodes, and of those that people log in to.

    They are for the VCN: the RDMA network is another one, which only its own nodes are in.
    """

    kind = "oci:Firewall"
    node_groups: list[pulumi.Output[str]]
    """Groups of every node."""
    login_groups: list[pulumi.Output[str]]
    """Additional groups of login and controller nodes; none without access from outside."""

    def build(self, args: FirewallArgs) -> None:
        """Make the groups."""
        self.node_groups = [pulumi.Output.from_input(group) for group in args.plan.security_groups]
        if not self.node_groups:
            nodes = self._group(args, "nodes")
            nodes.allow("in", "self", group=nodes.id)
            nodes.allow("out", "everywhere", cidr=EVERYWHERE)
            for cidr in args.plan.allowed_networks:
                nodes.allow("in", f"site-{short_hash(cidr)}", cidr=cidr)
            self.node_groups = [pulumi.Output.from_input(nodes.id)]
        self.login_groups = []
        if args.plan.admin_cidrs:
            login = self._group(args, "login")
            for cidr in args.plan.admin_cidrs:
                what = f"ssh-{short_hash(cidr)}"
                login.allow("in", what, port=_SSH, cidr=cidr)
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
        """Create the group of a role; dynamic groups are in the tenancy itself."""
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


TCP = "6"
ALL = "all"
"""Protocols, by their number (CreateNetworkSecurityGroupSecurityRule)."""
_GROUP = "NETWORK_SECURITY_GROUP"
_CIDR = "CIDR_BLOCK"


class Group(RuleGroup):
    """A network security group of OCI, with stateful rules."""

    def allow(
        self,
        way: Literal["in", "out"],
        what: str,
        *,
        port: int | None = None,
        group: pulumi.Input[str] | None = None,
        cidr: str | None = None,
    ) -> None:
        """Allow traffic of or to a group or a network: to one TCP port, else of every protocol."""
        peer, kind = cidr or group, _CIDR if cidr else _GROUP
        comes = way == "in"
        rule = oci.core.NetworkSecurityGroupSecurityRule(
            self._names(f"{self._what}-{way}-{what}"),
            network_security_group_id=self.id,
            direction="INGRESS" if comes else "EGRESS",
            protocol=ALL if port is None else TCP,
            source=peer if comes else None,
            source_type=kind if comes else None,
            destination=None if comes else peer,
            destination_type=None if comes else kind,
            stateless=False,
            tcp_options=_port(port),
            opts=self._opts,
        )
        self.rules.append(rule)


def make_group(
    names: Names,
    what: str,
    *,
    compartment: str,
    vcn_id: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> Group:
    """Make a group without rules; `what` is part of its name and theirs."""
    made = oci.core.NetworkSecurityGroup(
        names(what), compartment_id=compartment, vcn_id=vcn_id, display_name=names(what), opts=opts
    )
    return Group(names, what, made.id, opts)


def _port(port: int | None) -> oci.core.NetworkSecurityGroupSecurityRuleTcpOptionsArgs | None:
    if port is None:
        return None
    only = oci.core.NetworkSecurityGroupSecurityRuleTcpOptionsDestinationPortRangeArgs(
        min=port, max=port
    )
    return oci.core.NetworkSecurityGroupSecurityRuleTcpOptionsArgs(destination_port_range=only)


_WRITE = ("OBJECT_CREATE", "OBJECT_OVERWRITE", "OBJECT_DELETE")
_READ = ("OBJECT_INSPECT", "OBJECT_READ")
_START = ("INSTANCE_CREATE", "INSTANCE_INSPECT", "INSTANCE_READ")
_END = ("INSTANCE_UPDATE", "INSTANCE_DELETE")


def members(compartment: str, namespace: str, role: str) -> str:
    """Return the rule of a dynamic group: the compartment's instances with this role's tag."""
    return (
        f"All {{instance.compartment.id = '{compartment}', tag.{namespace}.role.value = '{role}'}}"
    )


def bucket_statements(group: str, compartment: str, grants: Iterable[GrantPlan]) -> Iterator[str]:
    """Yield the nodes' rights in the buckets that they mount: list, read and, if needed, write."""
    for grant in grants:
        where = f"target.bucket.name='{grant.bucket}'"
        yield _allow(group, "read buckets", compartment, where)
        inside = [where]
        if grant.prefix:
            inside.append(f"target.object.name=/{grant.prefix}*/")
        rights = (*_READ, *(_WRITE if grant.write else ()))
        inside.append(_any(rights))
        yield _allow(group, "manage objects", compartment, f"all {{{', '.join(inside)}}}")


def burst_statements(group: str, compartment: str, namespace: str) -> Iterator[str]:
    """Yield what the controller needs to start and end elastic nodes, and to read their consoles.

    It may change and end only machines with the nodes' tag: not itself, and no foreign machines.
    """
    nodes = f"target.resource.tag.{namespace}.role='node'"
    yield _allow(group, "manage instances", compartment, _any(_START))
    yield _allow(group, "manage instances", compartment, f"all {{{nodes}, {_any(_END)}}}")
    yield _allow(group, "manage console-histories", compartment)
    for used in (
        "read instance-configurations",
        "read instance-images",
        "use compute-clusters",
        "use compute-capacity-reservations",
        "use subnets",
        "use network-security-groups",
        "manage vnics",
        "inspect vnic-attachments",
    ):
        yield _allow(group, used, compartment)
    yield _allow(
        group, "use tag-namespaces", compartment, f"target.tag-namespace.name='{namespace}'"
    )


def lustre_statement(compartment: str) -> str:
    """Return the service's rights in a subnet ("Managing File Storage with Lustre")."""
    return f"Allow service lustrefs to use virtual-network-family in compartment id {compartment}"


def _allow(group: str, what: str, compartment: str, where: str = "") -> str:
    condition = f" where {where}" if where else ""
    return f"Allow dynamic-group {group} to {what} in compartment id {compartment}{condition}"


def _any(permissions: Iterable[str]) -> str:
    named = ", ".join(f"request.permission='{permission}'" for permission in permissions)
    return f"any {{{named}}}"
