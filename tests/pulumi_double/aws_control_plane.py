"""What the AWS provider requests for a control plane: EKS, or a load balancer for one's own.

Written after the API references of EKS and Elastic Load Balancing (docs.aws.amazon.com, November
2026) and pulumi-aws 7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .aws_parameters import Request, some, tags

Json = dict[str, Any]  # a request's JSON


def _cluster(name: str, inputs: Json) -> list[Request]:
    del name
    logged = {"types": inputs["enabledClusterLogTypes"], "enabled": True}
    given = {
        "resourcesVpcConfig": inputs["vpcConfig"], "logging": {"clusterLogging": [logged]},
        **some(
            inputs, name="name", version="version", roleArn="roleArn", tags="tags",
            upgradePolicy="upgradePolicy", accessConfig="accessConfig",
            kubernetesNetworkConfig="kubernetesNetworkConfig",
        ),
    }  # fmt: skip
    if "encryptionConfig" in inputs:  # the provider has one, the API a list of one
        given["encryptionConfig"] = [inputs["encryptionConfig"]]
    return [Request("eks", "create_cluster", given)]


def _access_entry(name: str, inputs: Json) -> list[Request]:
    del name
    given = some(
        inputs, clusterName="clusterName", principalArn="principalArn", type="type", tags="tags"
    )
    return [Request("eks", "create_access_entry", given)]


def _balancer(name: str, inputs: Json) -> list[Request]:
    """The provider sets what is no parameter of the first call after it, as attributes."""
    given = {
        "Name": inputs.get("name", name), "Type": inputs["loadBalancerType"],
        "Scheme": "internal" if inputs["internal"] else "internet-facing", "Tags": tags(inputs),
        **some(inputs, Subnets="subnets", SecurityGroups="securityGroups"),
    }  # fmt: skip
    set_ = {"load_balancing.cross_zone.enabled": inputs["enableCrossZoneLoadBalancing"]}
    return [
        Request("elbv2", "create_load_balancer", given),
        _attributes("load_balancer", "LoadBalancerArn", set_),
    ]


def _addon(name: str, inputs: Json) -> list[Request]:
    del name
    associations = [
        some(one, roleArn="roleArn", serviceAccount="serviceAccount")
        for one in inputs.get("podIdentityAssociations", [])
    ]
    given = some(
        inputs, clusterName="clusterName", addonName="addonName",
        configurationValues="configurationValues", resolveConflicts="resolveConflictsOnCreate",
    )  # fmt: skip
    given |= {"podIdentityAssociations": associations} if associations else {}
    later = some(
        inputs, clusterName="clusterName", addonName="addonName",
        resolveConflicts="resolveConflictsOnUpdate",
    )  # fmt: skip
    return [
        Request("eks", "create_addon", given | some(inputs, tags="tags")),
        Request("eks", "update_addon", later),
    ]


def _association(name: str, inputs: Json) -> list[Request]:
    del name
    given = some(
        inputs, clusterName="clusterName", namespace="namespace", serviceAccount="serviceAccount",
        roleArn="roleArn", tags="tags",
    )  # fmt: skip
    return [Request("eks", "create_pod_identity_association", given)]


def _identity_provider(name: str, inputs: Json) -> list[Request]:
    del name
    oidc = some(
        inputs["oidc"], identityProviderConfigName="identityProviderConfigName",
        issuerUrl="issuerUrl", clientId="clientId", usernameClaim="usernameClaim",
        usernamePrefix="usernamePrefix", groupsClaim="groupsClaim", groupsPrefix="groupsPrefix",
        requiredClaims="requiredClaims",
    )  # fmt: skip
    given = {"oidc": oidc, **some(inputs, clusterName="clusterName", tags="tags")}
    return [Request("eks", "associate_identity_provider_config", given)]


def _group(name: str, inputs: Json) -> list[Request]:
    """The provider waits for nothing here, and takes tags with whom they are handed on to."""
    template = inputs["launchTemplate"]
    marks = [
        {"Key": one["key"], "Value": one["value"], "PropagateAtLaunch": one["propagateAtLaunch"]}
        for one in inputs["tags"]
    ]
    given = {
        "AutoScalingGroupName": inputs.get("name", name), "Tags": marks,
        "LaunchTemplate": {"LaunchTemplateId": template["id"], "Version": template["version"]},
        "VPCZoneIdentifier": ",".join(inputs["vpcZoneIdentifiers"]),
        **some(
            inputs, MinSize="minSize", MaxSize="maxSize",
            NewInstancesProtectedFromScaleIn="protectFromScaleIn",
        ),
    }  # fmt: skip
    assert inputs["waitForCapacityTimeout"] == "0"
    return [Request("autoscaling", "create_auto_scaling_group", given)]


def _grant(name: str, inputs: Json) -> list[Request]:
    del name
    given = some(
        inputs, KeyId="keyId", GranteePrincipal="granteePrincipal", Operations="operations"
    )
    return [Request("kms", "create_grant", given)]


def _target_group(name: str, inputs: Json) -> list[Request]:
    health = some(
        inputs["healthCheck"], HealthCheckProtocol="protocol", HealthCheckPath="path",
        HealthCheckIntervalSeconds="interval", HealthyThresholdCount="healthyThreshold",
        UnhealthyThresholdCount="unhealthyThreshold",
    )  # fmt: skip
    given = {
        "Name": inputs.get("name", name), "Tags": tags(inputs), **health,
        **some(inputs, VpcId="vpcId", Protocol="protocol", Port="port", TargetType="targetType"),
    }  # fmt: skip
    set_ = {
        "deregistration_delay.timeout_seconds": inputs["deregistrationDelay"],
        "preserve_client_ip.enabled": inputs["preserveClientIp"],
    }
    return [
        Request("elbv2", "create_target_group", given),
        _attributes("target_group", "TargetGroupArn", set_),
    ]


def _attributes(kind: str, arn: str, values: Json) -> Request:
    attributes = [{"Key": key, "Value": str(value).lower()} for key, value in values.items()]
    return Request("elbv2", f"modify_{kind}_attributes", {arn: "{id}", "Attributes": attributes})


def _target(name: str, inputs: Json) -> list[Request]:
    del name
    one = {"Id": inputs["targetId"], "Port": inputs["port"]}
    given = {"TargetGroupArn": inputs["targetGroupArn"], "Targets": [one]}
    return [Request("elbv2", "register_targets", given)]


def _listener(name: str, inputs: Json) -> list[Request]:
    del name
    actions = [
        some(action, Type="type", TargetGroupArn="targetGroupArn")
        for action in inputs["defaultActions"]
    ]
    given = some(inputs, LoadBalancerArn="loadBalancerArn", Protocol="protocol", Port="port")
    given |= {"DefaultActions": actions, "Tags": tags(inputs)}
    return [Request("elbv2", "create_listener", given)]


TYPES: dict[str, Callable[[str, Json], list[Request]]] = {
    "aws:autoscaling/group:Group": _group,
    "aws:eks/accessEntry:AccessEntry": _access_entry,
    "aws:eks/addon:Addon": _addon,
    "aws:eks/cluster:Cluster": _cluster,
    "aws:eks/identityProviderConfig:IdentityProviderConfig": _identity_provider,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _association,
    "aws:kms/grant:Grant": _grant,
    "aws:lb/listener:Listener": _listener,
    "aws:lb/loadBalancer:LoadBalancer": _balancer,
    "aws:lb/targetGroup:TargetGroup": _target_group,
    "aws:lb/targetGroupAttachment:TargetGroupAttachment": _target,
}
"""Type -> what builds its calls."""
