"""EKS' own add-ons: pod network, kube-proxy, DNS, identities of pods, health of nodes, EBS volumes.

As add-ons of EKS they follow the cluster's release and are configured here; what EKS installs into
a new cluster by itself is never updated (EKS User Guide, "Amazon EKS add-ons", November 2026).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pulumi
import pulumi_aws as aws

from ...pulumi.component import Args, Component
from ...pulumi.names import Names
from ...pulumi.plan import ACCOUNTS_SERVICE_ACCOUNT
from .policies import pod_trust

_AGENT = "eks-pod-identity-agent"
_VOLUMES = "aws-ebs-csi-driver"
_VOLUMES_ACCOUNT = "ebs-csi-controller-sa"
"""Service account of the driver's controller, which the policy is for (EKS User Guide, "Amazon EBS
CSI driver")."""


class _Addon(NamedTuple):
    name: str
    settings: str = ""
    """As EKS takes them: JSON."""
    waits: bool = False
    """It is no DaemonSet, so it runs only once there are nodes."""


_ADDONS = (
    # Without this setting VPC CNI lets every pod reach every other ("Limit Pod traffic with
    # Kubernetes network policies").
    _Addon("vpc-cni", '{"enableNetworkPolicy": "true"}'),
    _Addon("kube-proxy"),
    _Addon(_AGENT),
    # It reports problems of GPUs, EFA, kernel and disks as node conditions ("Node monitoring
    # agent").
    _Addon("eks-node-monitoring-agent"),
    _Addon("coredns", waits=True),
    _Addon(_VOLUMES, waits=True),
)


class PodIdentitiesArgs(Args, frozen=True):
    """Who the accounts' pods are."""

    names: Names
    cluster: pulumi.Input[str]
    """Name of the cluster."""
    identities: tuple[tuple[str, str], ...]
    """Accounts, which are namespaces, with the ARN of a role that exists."""


class PodIdentities(Component[PodIdentitiesArgs]):
    """Roles of the accounts' pods, provided by EKS' agent; each role must trust EKS.

    The role's owner must set its trust policy: pods.eks.amazonaws.com may assume it and tag the
    session (EKS User Guide, "EKS Pod Identity", November 2026).
    """

    kind = "aws:PodIdentities"
    associations: dict[str, pulumi.Output[str]]
    """Account -> id of its association."""

    def build(self, args: PodIdentitiesArgs) -> None:
        """Make an association for each account."""
        self.associations = {
            account: aws.eks.PodIdentityAssociation(
                args.names(f"pods-{account}"),
                cluster_name=args.cluster,
                namespace=account,
                service_account=ACCOUNTS_SERVICE_ACCOUNT,
                role_arn=role,
                opts=self.child(),
            ).association_id
            for account, role in args.identities
        }


class EksAddonsArgs(Args, frozen=True):
    """What the add-ons are made from."""

    names: Names
    partition: str
    cluster: pulumi.Input[str]
    """Name of the cluster."""


class EksAddons(Component[EksAddonsArgs]):
    """The add-ons; what EKS has put into the cluster itself is taken over."""

    kind = "aws:EksAddons"
    versions: dict[str, pulumi.Output[str]]
    """Add-on -> its version, which EKS chooses for the cluster's release."""

    def build(self, args: EksAddonsArgs) -> None:
        """Make the DaemonSets, then the rest with the identity of its volumes."""
        made = {one.name: self._addon(args, one) for one in _ADDONS if not one.waits}
        first = list(made.values())
        made |= {one.name: self._addon(args, one, after=first) for one in _ADDONS if one.waits}
        self.versions = {name: one.addon_version for name, one in made.items()}

    def _addon(
        self, args: EksAddonsArgs, one: _Addon, after: Sequence[pulumi.Resource] = ()
    ) -> aws.eks.Addon:
        associations, needed = None, list(after)
        if one.name == _VOLUMES:
            role, allowed = self._volumes_role(args)
            needed.append(allowed)
            associations = [
                aws.eks.AddonPodIdentityAssociationArgs(
                    role_arn=role.arn, service_account=_VOLUMES_ACCOUNT
                )
            ]
        return aws.eks.Addon(
            args.names(one.name),
            cluster_name=args.cluster,
            addon_name=one.name,
            configuration_values=one.settings or None,
            pod_identity_associations=associations,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            opts=self.child(pulumi.ResourceOptions(depends_on=needed)),
        )

    def _volumes_role(self, args: EksAddonsArgs) -> tuple[aws.iam.Role, pulumi.Resource]:
        role = aws.iam.Role(
            args.names("eks-volumes", kind="role"),
            assume_role_policy=pod_trust(),
            opts=self.child(),
        )
        policy = f"arn:{args.partition}:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"
        allowed = aws.iam.RolePolicyAttachment(
            args.names("eks-volumes"), role=role.name, policy_arn=policy, opts=self.child()
        )
        return role, allowed
