"""Elastic pools under EKS: an Auto Scaling group for each, and the autoscaler's rights.

The groups start from the launch template that the pool's other nodes have, so EFA interfaces,
placement group and reserved capacity are the same. The Cluster Autoscaler, an add-on of the
cluster, sizes them; CONTRIBUTING.md has the reason for this choice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from ...pulumi.component import Args, Component
from ...pulumi.names import Labels, Names
from ..plan.eks_groups import group_name, group_tags, own_tags
from ..plan.types import EksGroupPlan, OfferPlan, PoolPlan
from .policies import autoscaler_policy, pod_trust
from .templates import launch_template

_NAMESPACE = "kube-system"
_SERVICE_ACCOUNT = "cluster-autoscaler"
"""Both as the add-on's values have them."""
_SERVICE_ROLE = "aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
_KEY_USE = (
    "Encrypt",
    "Decrypt",
    "ReEncryptFrom",
    "ReEncryptTo",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "DescribeKey",
    "CreateGrant",
)
"""What the service may do with a key of one's own, for the disks of the machines that it starts
(EC2 Auto Scaling User Guide, "Required AWS KMS key policy for use with encrypted volumes")."""


class ElasticGroupArgs(Args, frozen=True, kw_only=True):
    """What a group is made from."""

    names: Names
    cluster: str
    """Its name in EKS."""
    pool: PoolPlan
    group: EksGroupPlan
    offer: OfferPlan
    subnet_id: pulumi.Input[str]
    security_groups: Sequence[pulumi.Input[str]]
    placement: pulumi.Input[str] | None
    profile: pulumi.Input[str]
    kms_key: str | None
    user_data: pulumi.Input[str]
    """Base64."""
    labels: Labels


class ElasticGroup(Component[ElasticGroupArgs]):
    """The nodes of a pool beyond the fixed ones, as an Auto Scaling group.

    The autoscaler sets their number, from 0. They are protected from being scaled in: a lower `max`
    ends no node that works, and the autoscaler ends those that are idle, which the protection does
    not prevent (EC2 Auto Scaling User Guide, "Use instance scale-in protection"; read 2026-11).
    """

    kind = "aws:ElasticGroup"
    group: pulumi.Output[str]
    """Its name, and its id."""

    def build(self, args: ElasticGroupArgs) -> None:
        """Make template and group, and let the service use the site's key."""
        pool, offer = args.pool, args.offer
        name = group_name(args.names, pool.name)
        own = own_tags(args.labels, pool, offer)
        template = launch_template(
            name,
            pool=pool,
            offer=offer,
            subnet_id=None,
            security_groups=args.security_groups,
            placement=args.placement,
            profile=args.profile,
            kms_key=args.kms_key,
            user_data=args.user_data,
            tags=own,
            opts=self.child(),
        )
        hints = group_tags(args.group, args.cluster)
        made = aws.autoscaling.Group(
            name,
            min_size=0,
            max_size=args.group.most,
            vpc_zone_identifiers=[args.subnet_id],
            launch_template=aws.autoscaling.GroupLaunchTemplateArgs(
                id=template.id,
                version=template.latest_version.apply(str),
            ),
            protect_from_scale_in=True,
            wait_for_capacity_timeout="0",
            tags=[
                aws.autoscaling.GroupTagArgs(key=key, value=value, propagate_at_launch=key in own)
                for key, value in (own | hints).items()
            ],
            opts=self.child(),
        )
        if args.kms_key is not None:
            aws.kms.Grant(
                name,
                key_id=args.kms_key,
                grantee_principal=made.arn.apply(_service_role),
                operations=list(_KEY_USE),
                opts=self.child(),
            )
        self.group = made.name


def _service_role(group: str) -> str:
    """Return the ARN of the account's own role behind every group, which the first one makes."""
    return _OF_GROUP.sub(rf":iam::\1:role/{_SERVICE_ROLE}", group)


_OF_GROUP = re.compile(r":autoscaling:[^:]*:(\d+):.*")


class AutoscalerArgs(Args, frozen=True, kw_only=True):
    """What the autoscaler's rights are made from."""

    names: Names
    cluster: pulumi.Input[str]
    """Its name in EKS."""
    gcluster: str
    """As the spec calls it."""
    site: str


class Autoscaler(Component[AutoscalerArgs]):
    """The role of the autoscaler's pod, provided by EKS' agent."""

    kind = "aws:Autoscaler"
    association: pulumi.Output[str]

    def build(self, args: AutoscalerArgs) -> None:
        """Make role, rights and association."""
        role = aws.iam.Role(
            args.names("eks-autoscaler", kind="role"),
            assume_role_policy=pod_trust(),
            opts=self.child(),
        )
        allowed = aws.iam.RolePolicy(
            args.names("eks-autoscaler"),
            role=role.name,
            policy=autoscaler_policy(args.gcluster, args.site),
            opts=self.child(),
        )
        self.association = aws.eks.PodIdentityAssociation(
            args.names("eks-autoscaler"),
            cluster_name=args.cluster,
            namespace=_NAMESPACE,
            service_account=_SERVICE_ACCOUNT,
            role_arn=role.arn,
            opts=self.child(pulumi.ResourceOptions(depends_on=[allowed])),
        ).association_id
