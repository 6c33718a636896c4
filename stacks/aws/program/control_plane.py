"""A control plane that EKS runs, and what its nodes need to join it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from ....schemas.derived.control_planes import API_PORT
from ....schemas.spec import NodeTaint
from ....schemas.spec.scheduler.kubernetes import OIDC_PREFIX
from ...pulumi.component import Args, Component
from ...pulumi.names import Names
from ..plan.facts import facts
from ..plan.types import EksOidcPlan, EksPlan
from .policies import service_trust

ZONES = "aws:index/getAvailabilityZones:getAvailabilityZones"
"""The question to AWS which zones there are; recordings answer it with `RECORDED_ZONES`."""
RECORDED_ZONES = {"zoneIds": ("${first zone}", "${second zone}")}
_LOGS = ("api", "audit", "authenticator", "controllerManager", "scheduler")


class ControlPlaneArgs(Args, frozen=True):
    """What the control plane is made from."""

    names: Names
    plan: EksPlan
    partition: str
    vpc_id: pulumi.Input[str]
    kms_key: str | None
    node_role: pulumi.Input[str]
    """ARN of the role that the nodes take."""


class ControlPlane(Component[ControlPlaneArgs]):
    """An EKS cluster whose nodes are instances of ours, admitted by their role.

    Its creator is its administrator. Secrets are encrypted by the site's key where it has one, by a
    key of AWS's otherwise. EKS provides the pod network (VPC CNI), kube-proxy and CoreDNS.
    """

    kind = "aws:ControlPlane"
    cluster_name: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    authority: pulumi.Output[str]
    """Certificate of the cluster's authority, base64."""
    node_group: pulumi.Output[str]
    """Security group by which control plane and nodes reach each other."""

    def build(self, args: ControlPlaneArgs) -> None:
        """Make subnets, role and cluster, and let the nodes in."""
        plan, role = args.plan, self._role(args)
        allowed = aws.iam.RolePolicyAttachment(
            args.names("eks"),
            role=role.name,
            policy_arn=f"arn:{args.partition}:iam::aws:policy/AmazonEKSClusterPolicy",
            opts=self.child(),
        )
        made = aws.eks.Cluster(
            args.names("eks"),
            name=plan.name,
            role_arn=role.arn,
            version=plan.release,
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=self._subnets(args),
                endpoint_private_access=True,
                endpoint_public_access=bool(plan.admin_cidrs),
                public_access_cidrs=list(plan.admin_cidrs) or None,
            ),
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=True
            ),
            kubernetes_network_config=aws.eks.ClusterKubernetesNetworkConfigArgs(
                service_ipv4_cidr=plan.service_cidr
            ),
            encryption_config=_encryption(args.kms_key),
            enabled_cluster_log_types=list(_LOGS),
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(support_type="STANDARD"),
            opts=self.child(
                pulumi.ResourceOptions(depends_on=[allowed], delete_before_replace=True)
            ),
        )
        aws.eks.AccessEntry(
            args.names("eks-nodes"),
            cluster_name=made.name,
            principal_arn=args.node_role,
            type="EC2_LINUX",
            opts=self.child(),
        )
        if plan.oidc is not None:
            self._identity_provider(args, made.name, plan.oidc)
        self.cluster_name, self.endpoint = made.name, made.endpoint
        self.authority = made.certificate_authority.apply(lambda known: known.data or "")
        self.node_group = made.vpc_config.apply(lambda known: known.cluster_security_group_id or "")

    def _identity_provider(
        self, args: ControlPlaneArgs, cluster: pulumi.Input[str], oidc: EksOidcPlan
    ) -> None:
        """Have EKS take a provider's tokens; none of its settings can be changed, and one fits."""
        aws.eks.IdentityProviderConfig(
            args.names("oidc"),
            cluster_name=cluster,
            oidc=aws.eks.IdentityProviderConfigOidcArgs(
                identity_provider_config_name=args.names("oidc"),
                issuer_url=oidc.issuer,
                client_id=oidc.client_id,
                username_claim=oidc.username_claim,
                username_prefix=OIDC_PREFIX,
                groups_claim=oidc.groups_claim,
                groups_prefix=OIDC_PREFIX,
                required_claims=oidc.required_claims or None,
            ),
            opts=self.child(pulumi.ResourceOptions(delete_before_replace=True)),
        )

    def _role(self, args: ControlPlaneArgs) -> aws.iam.Role:
        return aws.iam.Role(
            args.names("eks", kind="role"),
            assume_role_policy=service_trust("eks.amazonaws.com"),
            opts=self.child(),
        )

    def _subnets(self, args: ControlPlaneArgs) -> list[pulumi.Input[str]]:
        """Return subnets in two zones: EKS requires two, wherever the nodes are."""
        if args.plan.subnets:
            return list(args.plan.subnets)
        zones = aws.get_availability_zones_output(
            state="available",
            exclude_zone_ids=facts().eks_zones_without,
            filters=[
                aws.GetAvailabilityZonesFilterArgs(
                    name="opt-in-status", values=["opt-in-not-required"]
                )
            ],
            opts=pulumi.InvokeOutputOptions(parent=self),
        )
        return [
            aws.ec2.Subnet(
                args.names("eks", number),
                vpc_id=args.vpc_id,
                cidr_block=cidr,
                availability_zone_id=zones.zone_ids[number - 1],
                tags={"Name": args.names("eks", number)},
                opts=self.child(),
            ).id
            for number, cidr in enumerate(args.plan.cidrs, 1)
        ]


def _encryption(key: str | None) -> aws.eks.ClusterEncryptionConfigArgs | None:
    if key is None:
        return None
    provider = aws.eks.ClusterEncryptionConfigProviderArgs(key_arn=key)
    return aws.eks.ClusterEncryptionConfigArgs(provider=provider, resources=["secrets"])


def node_config(
    plane: ControlPlane,
    plan: EksPlan,
    labels: dict[str, str],
    taints: Sequence[NodeTaint] = (),
    *,
    striped: bool = False,
) -> pulumi.Output[str]:
    """Return the settings by which EKS' image joins a cluster."""
    known = pulumi.Output.all(plane.cluster_name, plane.endpoint, plane.authority)
    return known.apply(
        lambda found: node_config_text(
            found[0], found[1], found[2], plan.service_cidr, labels, taints, striped=striped
        )
    )


def node_config_text(  # noqa: PLR0917  # as nodeadm has them
    name: str,
    endpoint: str,
    authority: str,
    cidr: str,
    labels: dict[str, str],
    taints: Sequence[NodeTaint] = (),
    *,
    striped: bool = False,
) -> str:
    """Return a NodeConfig of EKS' nodeadm.

    Fields as in awslabs.github.io/amazon-eks-ami/nodeadm (November 2026). JSON is YAML. Striped,
    all local NVMe disks are one RAID 0 with XFS before kubelet starts, and /var/lib/kubelet,
    /var/lib/containerd and /var/log/pods lie on it (awslabs/amazon-eks-ami,
    templates/shared/runtime/bin/setup-local-disks; read 2026-11).
    """
    flags = ["--node-labels=" + ",".join(f"{key}={value}" for key, value in sorted(labels.items()))]
    if taints:
        given = ",".join(f"{one.key}={one.value}:{one.effect}" for one in taints)
        flags.append(f"--register-with-taints={given}")
    cluster = {
        "name": name,
        "apiServerEndpoint": endpoint,
        "certificateAuthority": authority,
        "cidr": cidr,
    }
    spec = {
        "cluster": cluster,
        "kubelet": {"flags": flags},
        "containerd": {"baseRuntimeSpec": {"process": {"rlimits": _LIMITS}}},
        **({"instance": {"localStorage": {"strategy": "RAID0"}}} if striped else {}),
    }
    return json.dumps({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec})


_LIMITS = [
    {"type": "RLIMIT_MEMLOCK", "soft": 2**64 - 1, "hard": 2**64 - 1},
    {"type": "RLIMIT_NOFILE", "soft": 65536, "hard": 1048576},
]
"""Adapters read pinned memory, and pods of accounts have no right of their own to pin it. Files as
the image has them, since a list is replaced as a whole (awslabs/amazon-eks-ami#1794, 2024-05)."""


class ApiBalancerArgs(Args, frozen=True):
    """What the load balancer is made from."""

    names: Names
    name: str
    """Its name, which is also in the API servers' certificates."""
    zone_id: pulumi.Input[str]
    vpc_id: pulumi.Input[str]
    subnets: Sequence[pulumi.Input[str]]
    groups: Sequence[pulumi.Input[str]]
    """Security groups: the nodes' own, so that nodes reach it and it reaches them."""
    instances: Mapping[str, pulumi.Input[str]]
    """Control plane -> instance."""


class ApiBalancer(Component[ApiBalancerArgs]):
    """An internal network load balancer.

    Clients' addresses are not kept: with them, a control plane whose request is balanced to itself
    would get no response (Elastic Load Balancing, "Troubleshoot your Network Load Balancer:
    requests time out for connections from a target to its load balancer", November 2026).
    """

    kind = "aws:ApiBalancer"
    dns_name: pulumi.Output[str]

    def build(self, args: ApiBalancerArgs) -> None:
        """Make balancer, targets and the name."""
        name = args.names("api", kind="load-balancer")
        balancer = aws.lb.LoadBalancer(
            name,
            internal=True,
            load_balancer_type="network",
            subnets=list(args.subnets),
            security_groups=list(args.groups),
            enable_cross_zone_load_balancing=True,
            opts=self.child(),
        )
        targets = aws.lb.TargetGroup(
            name,
            vpc_id=args.vpc_id,
            port=API_PORT,
            protocol="TCP",
            target_type="instance",
            preserve_client_ip="false",
            deregistration_delay=30,
            health_check=aws.lb.TargetGroupHealthCheckArgs(
                protocol="HTTPS",
                path="/readyz",
                interval=10,
                healthy_threshold=2,
                unhealthy_threshold=2,
            ),
            opts=self.child(),
        )
        aws.lb.Listener(
            args.names("api"),
            load_balancer_arn=balancer.arn,
            port=API_PORT,
            protocol="TCP",
            default_actions=[
                aws.lb.ListenerDefaultActionArgs(type="forward", target_group_arn=targets.arn)
            ],
            opts=self.child(),
        )
        for host, instance in args.instances.items():
            aws.lb.TargetGroupAttachment(
                args.names(f"api-{host}"),
                target_group_arn=targets.arn,
                target_id=instance,
                port=API_PORT,
                opts=self.child(),
            )
        aws.route53.Record(
            args.names("api"),
            zone_id=args.zone_id,
            name=args.name,
            type="A",
            aliases=[
                aws.route53.RecordAliasArgs(
                    name=balancer.dns_name, zone_id=balancer.zone_id, evaluate_target_health=False
                )
            ],
            opts=self.child(),
        )
        self.dns_name = balancer.dns_name
