"""Network access and permissions of nodes: security groups and identities."""

from __future__ import annotations

from typing import Literal, TypeAlias

import pulumi
import pulumi_aws as aws

from ....schemas.derived.links import TUNNEL_PORT
from ....schemas.spec import PoolRole
from ...pulumi.component import Args, Component, RuleGroup
from ...pulumi.names import Names, short_hash
from ..plan.types import IdentityPlan, NetworkPlan
from .network import EVERYWHERE
from .policies import bucket_policy, burst_policy, trust

_SSH = (22, 22)
_HTTPS = (443, 443)
_TUNNEL = (TUNNEL_PORT, TUNNEL_PORT)


class FirewallArgs(Args, frozen=True):
    """What the nodes' security groups are made from."""

    names: Names
    region: str
    vpc_id: pulumi.Input[str]
    plan: NetworkPlan
    """Defines the inbound access, and whether existing groups are used for the nodes."""
    has_gateway: bool
    """Tunnels from other sites end here."""
    endpoint_subnet: pulumi.Input[str]


class Firewall(Component[FirewallArgs]):
    """Security groups of nodes, of those that people log in to, and of the services' endpoints."""

    kind = "aws:Firewall"
    node_groups: list[pulumi.Output[str]]
    """Groups of every node."""
    login_groups: list[pulumi.Output[str]]
    """Additional groups of login and controller nodes; none without access from outside."""
    gateway_groups: list[pulumi.Output[str]]
    """Additional groups of gateways; none without tunnels."""

    def build(self, args: FirewallArgs) -> None:
        """Make the groups."""
        self.node_groups = [pulumi.Output.from_input(group) for group in args.plan.security_groups]
        if not self.node_groups:
            self.node_groups = [self._nodes(args)]
        is_open = args.plan.admin_cidrs or args.plan.connect_endpoint
        self.login_groups = [self._login(args)] if is_open else []
        self.gateway_groups = [self._gateway(args)] if args.has_gateway else []
        if args.plan.endpoints:
            self._endpoints(args)

    def groups(self, role: PoolRole, *, gateway: bool = False) -> list[pulumi.Output[str]]:
        """Return the groups of a node."""
        is_open = self.login_groups if role != "compute" else ()
        return [*self.node_groups, *is_open, *(self.gateway_groups if gateway else ())]

    def _group(self, args: FirewallArgs, what: str, why: str) -> Group:
        return make_group(args.names, what, vpc_id=args.vpc_id, why=why, opts=self.child())

    def _nodes(self, args: FirewallArgs) -> pulumi.Output[str]:
        """Create the nodes' group. EFA needs all protocols from and to the group itself.

        The way out to everywhere doesn't count for it: EFA's own traffic isn't IP (EC2 User Guide,
        "Get started with EFA and MPI", step 1).
        """
        nodes = self._group(args, "nodes", "Nodes of the cluster")
        nodes.allow("in", "self", group=nodes.id)
        nodes.allow("out", "self", group=nodes.id)
        nodes.allow("out", "everywhere", cidr=EVERYWHERE)
        for cidr in args.plan.allowed_networks:
            nodes.allow("in", f"site-{short_hash(cidr)}", cidr=cidr)
        return nodes.id

    def _gateway(self, args: FirewallArgs) -> pulumi.Output[str]:
        """Create the group of gateways: WireGuard only responds to known keys, from any address."""
        gateway = self._group(args, "gateway", "Tunnels from other sites")
        gateway.allow("in", "tunnel", "udp", ports=_TUNNEL, cidr=EVERYWHERE)
        return gateway.id

    def _login(self, args: FirewallArgs) -> pulumi.Output[str]:
        login = self._group(args, "login", "SSH from the administrators")
        for cidr in args.plan.admin_cidrs:
            what = f"ssh-{short_hash(cidr)}"
            login.allow("in", what, "tcp", ports=_SSH, cidr=cidr)
        if args.plan.connect_endpoint:
            self._connect_endpoint(args, login)
        return login.id

    def _connect_endpoint(self, args: FirewallArgs, login: Group) -> None:
        """Make the endpoint, which reaches SSH of the login group and nothing else."""
        group = self._group(args, "connect", "EC2 Instance Connect Endpoint")
        group.allow("out", "ssh", "tcp", ports=_SSH, group=login.id)
        login.allow("in", "connect", "tcp", ports=_SSH, group=group.id)
        name = args.names("connect")
        aws.ec2transitgateway.InstanceConnectEndpoint(
            name,
            subnet_id=args.endpoint_subnet,
            security_group_ids=[group.id],
            preserve_client_ip=False,
            tags={"Name": name},
            opts=self.child(),
        )

    def _endpoints(self, args: FirewallArgs) -> None:
        group = self._group(args, "endpoints", "Endpoints of AWS services")
        for number, nodes in enumerate(self.node_groups, 1):
            group.allow("in", f"nodes-{number}", "tcp", ports=_HTTPS, group=nodes)
        for service in args.plan.endpoints:
            name = args.names(f"endpoint-{service}")
            aws.ec2.VpcEndpoint(
                name,
                vpc_id=args.vpc_id,
                service_name=f"com.amazonaws.{args.region}.{service}",
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=[args.endpoint_subnet],
                security_group_ids=[group.id],
                tags={"Name": name},
                opts=self.child(),
            )


PROFILE = "aws:iam/getInstanceProfile:getInstanceProfile"
"""The question to AWS whose profile it is; recordings answer it with `RECORDED_PROFILE`."""
RECORDED_PROFILE = {"roleArn": "${the role of the profile}"}
_SESSION_MANAGER = "AmazonSSMManagedInstanceCore"
"""What the agent in a machine must be allowed for sessions (Systems Manager User Guide, "Configure
instance permissions required for Systems Manager")."""
_EKS_NODE = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
)
"""What a node under EKS must be allowed (EKS User Guide, "Amazon EKS node IAM role")."""


class IdentitiesArgs(Args, frozen=True):
    """What the nodes' identities are made from."""

    names: Names
    partition: str
    cluster: str
    site: str
    kms_key: str | None
    plan: IdentityPlan


class Identities(Component[IdentitiesArgs]):
    """Instance profiles: one of all nodes, and one of controllers that start elastic nodes."""

    kind = "aws:Identities"
    node_profile: pulumi.Output[str]
    """Name."""
    controller_profile: pulumi.Output[str]
    """Name; that of the other nodes where the site has no elastic pools."""

    def build(self, args: IdentitiesArgs) -> None:
        """Make the profiles; those that exist are used as they are."""
        plan = args.plan
        node_role: pulumi.Input[str] = f"arn:{args.partition}:iam::*:role/*"
        self.node_role = pulumi.Output.from_input("")
        """ARN of the role behind the nodes' profile; "" where it isn't needed."""
        if plan.node_profile is None:
            role = self._role(args, "node")
            node_role = self.node_role = role.arn
            for policy in _EKS_NODE if plan.joins_eks else ():
                self._allow(args, role, policy)
            self.node_profile = self._profile(args, "node", role)
        else:
            self.node_profile = pulumi.Output.from_input(plan.node_profile)
            if plan.joins_eks:
                known = aws.iam.get_instance_profile_output(
                    name=plan.node_profile, opts=pulumi.InvokeOutputOptions(parent=self)
                )
                self.node_role = known.role_arn
        self.controller_profile = self.node_profile
        if plan.burst_profile is not None:
            self.controller_profile = pulumi.Output.from_input(plan.burst_profile)
        elif plan.bursts:
            self.controller_profile = self._controller(args, node_role)

    def _allow(
        self, args: IdentitiesArgs, role: aws.iam.Role, policy: str, *, name: str = ""
    ) -> None:
        """Give a role a policy of AWS's own; `name` is the attachment's, else the policy's."""
        aws.iam.RolePolicyAttachment(
            args.names(name or policy),
            role=role.name,
            policy_arn=f"arn:{args.partition}:iam::aws:policy/{policy}",
            opts=self.child(),
        )

    def _controller(self, args: IdentitiesArgs, node_role: pulumi.Input[str]) -> pulumi.Output[str]:
        role = self._role(args, "controller")
        policy = pulumi.Output.from_input(node_role).apply(
            lambda arn: burst_policy(
                args.partition,
                cluster=args.cluster,
                site=args.site,
                node_role_arn=arn,
                kms_key=args.kms_key,
                spot=args.plan.bursts_spot,
            )
        )
        aws.iam.RolePolicy(args.names("burst"), role=role.name, policy=policy, opts=self.child())
        return self._profile(args, "controller", role)

    def _role(self, args: IdentitiesArgs, what: str) -> aws.iam.Role:
        name = args.names(what, kind="role")
        role = aws.iam.Role(name, assume_role_policy=trust(args.partition), opts=self.child())
        own = set(_EKS_NODE if args.plan.joins_eks and what == "node" else ())
        if args.plan.session_manager:
            own.add(_SESSION_MANAGER)
            self._allow(args, role, _SESSION_MANAGER, name=f"{what}-sessions")
        for arn in args.plan.policies:
            place, _, policy = arn.partition(":policy/")
            if place.endswith(":aws") and policy in own:
                continue  # it has that one already
            aws.iam.RolePolicyAttachment(
                args.names(f"{what}-{policy.replace('/', '-')}"),
                role=role.name,
                policy_arn=arn,
                opts=self.child(),
            )
        if args.plan.grants:
            policy = bucket_policy(args.partition, args.plan.grants)
            what = args.names(f"{what}-buckets")
            aws.iam.RolePolicy(what, role=role.name, policy=policy, opts=self.child())
        return role

    def _profile(self, args: IdentitiesArgs, what: str, role: aws.iam.Role) -> pulumi.Output[str]:
        name = args.names(what, kind="role")
        return aws.iam.InstanceProfile(name, role=role.name, opts=self.child()).name


ALL = "-1"
"""Every protocol and port."""
Way: TypeAlias = Literal["in", "out"]
_RULES: dict[Way, type[aws.vpc.SecurityGroupIngressRule | aws.vpc.SecurityGroupEgressRule]] = {
    "in": aws.vpc.SecurityGroupIngressRule,
    "out": aws.vpc.SecurityGroupEgressRule,
}


def make_group(
    names: Names,
    what: str,
    *,
    vpc_id: pulumi.Input[str],
    why: str,
    opts: pulumi.ResourceOptions,
) -> Group:
    """Make a group without rules; `what` is part of its name and theirs."""
    name = names(what, kind="security-group")
    made = aws.ec2.SecurityGroup(
        name, vpc_id=vpc_id, description=why, tags={"Name": name}, opts=opts
    )
    return Group(names, what, made.id, opts)


class Group(RuleGroup):
    """A security group of AWS."""

    def allow(
        self,
        way: Way,
        what: str,
        protocol: str = ALL,
        *,
        ports: tuple[int, int] | None = None,
        group: pulumi.Input[str] | None = None,
        cidr: str | None = None,
    ) -> None:
        """Allow traffic of or to a group or a network; `ports` are the first and the last."""
        rule = _RULES[way](
            self._names(f"{self._what}-{way}-{what}"),
            security_group_id=self.id,
            ip_protocol=protocol,
            from_port=ports[0] if ports else None,
            to_port=ports[1] if ports else None,
            referenced_security_group_id=group,
            cidr_ipv4=_if_version(cidr, 4),
            cidr_ipv6=_if_version(cidr, 6),
            opts=self._opts,
        )
        self.rules.append(rule)


def _if_version(cidr: str | None, version: int) -> str | None:
    """Return a network where it is of that version of IP."""
    return cidr if cidr is not None and (":" in cidr) == (version == 6) else None  # noqa: PLR2004  # IPv6
