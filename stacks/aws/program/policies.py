"""IAM policies of the nodes, as JSON: each names its actions and what they are allowed on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ...pulumi.names import CLUSTER, SITE
from ...pulumi.plan import GrantPlan
from ..plan.facts import SPOT_ROLE

Condition: TypeAlias = Mapping[str, Mapping[str, str | list[str]]]
Statement: TypeAlias = dict[str, str | list[str] | Condition | Mapping[str, str]]


def trust(partition: str) -> str:
    """Return who may take the role: EC2, for its instances."""
    return service_trust("ec2.amazonaws.com.cn" if partition == "aws-cn" else "ec2.amazonaws.com")


def service_trust(service: str) -> str:
    """Return who may take the role: a service of AWS's."""
    return _document(
        [{"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}]
    )


def pod_trust() -> str:
    """Return who may take the role: pods, by EKS' agent on their node (EKS, "Pod Identity")."""
    return _document(
        [
            {
                "Effect": "Allow",
                "Principal": {"Service": "pods.eks.amazonaws.com"},
                "Action": ["sts:AssumeRole", "sts:TagSession"],
            }
        ]
    )


def bucket_policy(partition: str, grants: Iterable[GrantPlan]) -> str:
    """Return the nodes' rights in the buckets that they mount: list, read and, if needed, write."""
    statements: list[Statement] = []
    for grant in grants:
        bucket = f"arn:{partition}:s3:::{grant.bucket}"
        inside = f"{grant.prefix}/*" if grant.prefix else "*"
        list_it: Statement = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket}
        if grant.prefix:
            list_it["Condition"] = {"StringLike": {"s3:prefix": inside}}
        write = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
        actions = ["s3:GetObject", *(write if grant.write else [])]
        objects: Statement = {
            "Effect": "Allow",
            "Action": actions,
            "Resource": f"{bucket}/{inside}",
        }
        statements += [list_it, objects]
    return _document(statements)


def burst_policy(
    partition: str,
    *,
    cluster: str,
    site: str,
    node_role_arn: str,
    kms_key: str | None,
    spot: bool = False,
) -> str:
    """Return what the controller needs to start and end elastic nodes of its own site, no other.

    It starts machines from launch templates of the cluster alone, ends and tags only what carries
    the cluster's tags, and reads consoles of those: that is where host keys are found. A fleet that
    is `instant` launches with its caller's rights: its machines, disks and interfaces are tagged by
    RunInstances and not by CreateFleet (EC2 User Guide, "Grant permission to tag Amazon EC2
    resources during creation"; Karpenter's policy of controllers names both, November 2026).
    """
    ec2 = f"arn:{partition}:ec2:*:*:"
    ours = {f"aws:ResourceTag/{CLUSTER}": cluster, f"aws:ResourceTag/{SITE}": site}
    requested = {f"aws:RequestTag/{CLUSTER}": cluster, f"aws:RequestTag/{SITE}": site}
    launched = ("instance", "fleet", "volume", "network-interface")
    used = (
        "spot-instances-request",
        "subnet",
        "security-group",
        "image",
        "placement-group",
        "capacity-reservation",
    )
    return _document(
        [
            _statement("look", _READ_ACTIONS, "*"),
            _statement("launch", _LAUNCH, [f"{ec2}{kind}/*" for kind in launched], requested),
            _statement("template", _LAUNCH, f"{ec2}launch-template/*", ours),
            _statement(
                "use",
                _LAUNCH,
                [*(f"{ec2}{k}/*" for k in used), f"arn:{partition}:ec2:*::image/*"],
            ),
            _statement(
                "tag",
                ["ec2:CreateTags"],
                [f"{ec2}{kind}/*" for kind in launched],
                {"ec2:CreateAction": ["CreateFleet", "RunInstances"]},
            ),
            _statement("name", ["ec2:CreateTags"], f"{ec2}instance/*", ours),
            _statement(
                "end",
                ["ec2:TerminateInstances", "ec2:GetConsoleOutput"],
                f"{ec2}instance/*",
                ours,
            ),
            _statement("pass", ["iam:PassRole"], node_role_arn),
            *([_spot_role(partition)] if spot else []),
            *([_key_use(partition, kms_key)] if kms_key else []),
        ]
    )


def autoscaler_policy(cluster: str, site: str) -> str:
    """Return the rights of EKS' autoscaler: read, and size the groups of its own site only.

    The actions are those of kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/README.md
    ("Full Cluster Autoscaler Features Policy") at cluster-autoscaler-1.35.2.
    """
    ours = {f"aws:ResourceTag/{CLUSTER}": cluster, f"aws:ResourceTag/{SITE}": site}
    size = ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"]
    return _document([_statement("look", _GROUPS, "*"), _statement("size", size, "*", ours)])


_GROUPS = [
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeAutoScalingInstances",
    "autoscaling:DescribeLaunchConfigurations",
    "autoscaling:DescribeScalingActivities",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:GetInstanceTypesFromInstanceRequirements",
    "eks:DescribeNodegroup",
]


def _spot_role(partition: str) -> Statement:
    """Return what the first spot request of an account needs: EC2 then makes its own role.

    Nothing else can be made by it (EC2 User Guide, "Service-linked role for Spot Instance
    requests", November 2026).
    """
    return _statement(
        "spot",
        ["iam:CreateServiceLinkedRole"],
        f"arn:{partition}:iam::*:role/aws-service-role/spot.amazonaws.com/{SPOT_ROLE}",
        {"iam:AWSServiceName": "spot.amazonaws.com"},
    )


def _key_use(partition: str, kms_key: str) -> Statement:
    """Return the permissions on a customer-managed disk key for what starts the node."""
    is_arn = kms_key.startswith("arn:")
    actions = ["CreateGrant", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "Decrypt"]
    return {
        "Sid": "key",
        "Effect": "Allow",
        "Action": [f"kms:{action}" for action in actions],
        "Resource": kms_key if is_arn else f"arn:{partition}:kms:*:*:key/{kms_key}",
        "Condition": {"StringLike": {"kms:ViaService": "ec2.*"}},
    }


_READ_ACTIONS = [
    "ec2:DescribeInstances",
    "ec2:DescribeFleets",
    "ec2:DescribeFleetInstances",
    "ec2:DescribeInstanceTopology",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:DescribeCapacityReservations",
    "ssm:GetParameters",
]
_LAUNCH = ["ec2:CreateFleet", "ec2:RunInstances"]


def _statement(
    sid: str,
    actions: list[str],
    resource: str | list[str],
    equals: Mapping[str, str | list[str]] | None = None,
) -> Statement:
    statement: Statement = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": actions,
        "Resource": resource,
    }
    if equals:
        statement["Condition"] = {"StringEquals": dict(equals)}
    return statement


def _document(statements: list[Statement]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, sort_keys=True)


def tls_only(partition: str, bucket: str) -> str:
    """Return a bucket's own policy: access over TLS only."""
    arn = f"arn:{partition}:s3:::{bucket}"
    return _document(
        [
            {
                "Sid": "TlsOnly",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": [arn, f"{arn}/*"],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ]
    )
