"""What the AWS provider requests from AWS's API for each resource type of the programs.

Written after the API references of the services (docs.aws.amazon.com, November 2026) and pulumi-aws
7; only the inputs that the programs give are known here, and others are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import aws_control_plane, aws_file_systems
from .aws_parameters import Request, pascal, some, tagged, tags, true

Json = dict[str, Any]  # a request's JSON


class UnknownInputError(Exception):
    """An input that this table does not know, so it would be passed over."""


def requests(type_: str, name: str, inputs: Json) -> list[Request]:
    """Return the calls that make a resource; its id comes from the first.

    Raises:
        UnknownInputError: a type or an input that is not known here.
    """
    if type_ not in _TYPES:
        raise UnknownInputError(f"no requests are known for {type_}")
    given = _Read(inputs)
    calls = _TYPES[type_](name, given)
    if rest := sorted(inputs.keys() - given.read - _PROVIDER_ONLY):
        raise UnknownInputError(f"{type_} {name}: {rest} are in no request")
    return calls


_PROVIDER_ONLY = {
    "deleteDataInFilesystem", "deleteOptions", "forceDestroy", "mapPublicIpOnLaunch", "region",
    "skipFinalBackup", "tagsAll", "tags", "stopInstanceBeforeDetaching", "updateDefaultVersion",
}  # fmt: skip
"""Inputs that say how the provider itself shall act, or that are in each call anyhow."""


class _Read(Json):
    """Inputs that know which of them were read: the others would be passed over."""

    def __init__(self, inputs: Json) -> None:
        """Hold them."""
        super().__init__(inputs)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        """Return an input."""
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return an input, or the default."""
        self.read.add(key)
        return super().get(key, default)


def _ec2(operation: str, kind: str, **names: str) -> Callable[[str, Json], list[Request]]:
    def build(name: str, inputs: Json) -> list[Request]:
        del name
        given = {**some(inputs, **names), **(tagged(kind, inputs) if kind else {})}
        return [Request("ec2", operation, given)]

    return build


def _vpc(name: str, inputs: Json) -> list[Request]:
    del name
    made = {"CidrBlock": inputs["cidrBlock"], **tagged("vpc", inputs)}
    attributes = [
        Request("ec2", "modify_vpc_attribute", {"VpcId": "{id}", key: {"Value": inputs[ours]}})
        for key, ours in (
            ("EnableDnsSupport", "enableDnsSupport"), ("EnableDnsHostnames", "enableDnsHostnames"),
        )
        if ours in inputs
    ]  # fmt: skip
    return [Request("ec2", "create_vpc", made), *attributes]


def _internet_gateway(name: str, inputs: Json) -> list[Request]:
    del name
    attach = {"InternetGatewayId": "{id}", "VpcId": inputs["vpcId"]}
    return [
        Request("ec2", "create_internet_gateway", tagged("internet-gateway", inputs)),
        Request("ec2", "attach_internet_gateway", attach),
    ]


def _security_group(name: str, inputs: Json) -> list[Request]:
    """The provider takes the rule that EC2 puts into each new group out again."""
    out = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    made = {
        "GroupName": inputs.get("name", name), "VpcId": inputs["vpcId"],
        "Description": inputs["description"], **tagged("security-group", inputs),
    }  # fmt: skip
    revoke = {"GroupId": "{id}", "IpPermissions": [out]}
    return [
        Request("ec2", "create_security_group", made),
        Request("ec2", "revoke_security_group_egress", revoke),
    ]


def _rule(direction: str) -> Callable[[str, Json], list[Request]]:
    def build(name: str, inputs: Json) -> list[Request]:
        del name
        allowed: Json = some(inputs, IpProtocol="ipProtocol", FromPort="fromPort", ToPort="toPort")
        text = some(inputs, Description="description")
        if "cidrIpv4" in inputs:
            allowed["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"], **text}]
        if "cidrIpv6" in inputs:
            allowed["Ipv6Ranges"] = [{"CidrIpv6": inputs["cidrIpv6"], **text}]
        if "referencedSecurityGroupId" in inputs:
            other = inputs["referencedSecurityGroupId"]
            allowed["UserIdGroupPairs"] = [{"GroupId": other, **text}]
        given = {"GroupId": inputs["securityGroupId"], "IpPermissions": [allowed]}
        given_tags = tagged("security-group-rule", inputs)
        return [Request("ec2", f"authorize_security_group_{direction}", {**given, **given_tags})]

    return build


def _launch_template(name: str, inputs: Json) -> list[Request]:
    same = ("userData", "imageId", "instanceType", "iamInstanceProfile", "metadataOptions",
            "placement", "capacityReservationSpecification", "instanceMarketOptions",
            "blockDeviceMappings", "networkInterfaces", "ebsOptimized")  # fmt: skip
    data = pascal(
        {k: inputs[k] for k in same if k in inputs}, securityGroups="Groups", kmsKeyId="KmsKeyId"
    )
    for interface in data.get("NetworkInterfaces", ()):
        for key in ("AssociatePublicIpAddress", "DeleteOnTermination"):
            if key in interface:
                interface[key] = true(interface[key])
    for device in data.get("BlockDeviceMappings", ()):
        for key in ("Encrypted", "DeleteOnTermination"):
            if key in device.get("Ebs", {}):
                device["Ebs"][key] = true(device["Ebs"][key])
    data["TagSpecifications"] = [
        {"ResourceType": spec["resourceType"], "Tags": tags(spec)}
        for spec in inputs.get("tagSpecifications", ())
    ]
    made = {
        "LaunchTemplateName": inputs.get("name", name), "LaunchTemplateData": data,
        **some(inputs, VersionDescription="description"), **tagged("launch-template", inputs),
    }  # fmt: skip
    return [Request("ec2", "create_launch_template", made)]


def _instance(name: str, inputs: Json) -> list[Request]:
    del name
    template = inputs["launchTemplate"]
    from_template = {
        "LaunchTemplateId": template["id"], "Version": str(template["version"]),
    }  # fmt: skip
    given = {
        "MinCount": 1, "MaxCount": 1, "LaunchTemplate": from_template,
        **some(inputs, InstanceType="instanceType", ImageId="ami"),
        **tagged("instance", inputs),
    }  # fmt: skip
    if "instanceMarketOptions" in inputs:
        given["InstanceMarketOptions"] = pascal(inputs["instanceMarketOptions"])
    calls = [Request("ec2", "run_instances", given)]
    if "sourceDestCheck" in inputs:
        check = {"InstanceId": "{id}", "SourceDestCheck": {"Value": inputs["sourceDestCheck"]}}
        calls.append(Request("ec2", "modify_instance_attribute", check))
    return calls


def _endpoint(name: str, inputs: Json) -> list[Request]:
    del name
    given = some(
        inputs, VpcId="vpcId", VpcEndpointType="vpcEndpointType", RouteTableIds="routeTableIds",
        ServiceName="serviceName", SubnetIds="subnetIds", SecurityGroupIds="securityGroupIds",
        PrivateDnsEnabled="privateDnsEnabled",
    )  # fmt: skip
    given_tags = tagged("vpc-endpoint", inputs)
    return [Request("ec2", "create_vpc_endpoint", {**given, **given_tags})]


def _volume(name: str, inputs: Json) -> list[Request]:
    del name
    given = some(
        inputs, AvailabilityZone="availabilityZone", Size="size", VolumeType="type",
        Encrypted="encrypted", KmsKeyId="kmsKeyId", Iops="iops", Throughput="throughput",
    )  # fmt: skip
    return [Request("ec2", "create_volume", {**given, **tagged("volume", inputs)})]


def _placement_group(name: str, inputs: Json) -> list[Request]:
    given = {"GroupName": inputs.get("name", name), "Strategy": inputs["strategy"]}
    given_tags = tagged("placement-group", inputs)
    return [Request("ec2", "create_placement_group", {**given, **given_tags})]


def _capacity_block(name: str, inputs: Json) -> list[Request]:
    del name
    given = some(
        inputs, InstancePlatform="instancePlatform",
        CapacityBlockOfferingId="capacityBlockOfferingId",
    )  # fmt: skip
    given_tags = tagged("capacity-reservation", inputs)
    return [Request("ec2", "purchase_capacity_block", {**given, **given_tags})]


def _role(name: str, inputs: Json) -> list[Request]:
    given = {
        "RoleName": inputs.get("name", name), "Tags": tags(inputs),
        "AssumeRolePolicyDocument": inputs["assumeRolePolicy"],
        **some(inputs, Description="description", PermissionsBoundary="permissionsBoundary"),
    }  # fmt: skip
    attach = [
        Request("iam", "attach_role_policy", {"RoleName": "{id}", "PolicyArn": arn})
        for arn in inputs.get("managedPolicyArns", ())
    ]
    return [Request("iam", "create_role", given), *attach]


def _profile(name: str, inputs: Json) -> list[Request]:
    called = inputs.get("name", name)
    add = {"InstanceProfileName": called, "RoleName": inputs["role"]}
    given = {"InstanceProfileName": called, "Tags": tags(inputs)}
    return [
        Request("iam", "create_instance_profile", given),
        Request("iam", "add_role_to_instance_profile", add),
    ]


def _role_policy(name: str, inputs: Json) -> list[Request]:
    given = {"PolicyName": inputs.get("name", name), "PolicyDocument": inputs["policy"]}
    return [Request("iam", "put_role_policy", {"RoleName": inputs["role"], **given})]


def _zone(name: str, inputs: Json) -> list[Request]:
    region = inputs.get("region", "us-east-1")
    vpc = {"VPCRegion": region, "VPCId": inputs["vpcs"][0]["vpcId"]}
    given = {
        "Name": inputs["name"], "CallerReference": name, "VPC": vpc,
        "HostedZoneConfig": {"Comment": inputs.get("comment", ""), "PrivateZone": True},
    }  # fmt: skip
    marks = {"ResourceType": "hostedzone", "ResourceId": "{id}", "AddTags": tags(inputs)}
    return [
        Request("route53", "create_hosted_zone", given),
        Request("route53", "change_tags_for_resource", marks),
    ]


def record_change(action: str, inputs: Json) -> Request:
    """Return the call that makes a record (CREATE) or removes it (DELETE)."""
    record = {"Name": inputs["name"], "Type": inputs["type"]}
    if "aliases" in inputs:
        [alias] = inputs["aliases"]
        record["AliasTarget"] = {
            "HostedZoneId": alias["zoneId"], "DNSName": alias["name"],
            "EvaluateTargetHealth": alias["evaluateTargetHealth"],
        }  # fmt: skip
    else:
        values = [{"Value": value} for value in inputs["records"]]
        record |= {"TTL": inputs["ttl"], "ResourceRecords": values}
    batch = {"Changes": [{"Action": action, "ResourceRecordSet": record}]}
    given = {"HostedZoneId": inputs["zoneId"], "ChangeBatch": batch}
    return Request("route53", "change_resource_record_sets", given)


def _budget(name: str, inputs: Json) -> list[Request]:
    limit = {"Amount": inputs["limitAmount"], "Unit": inputs["limitUnit"]}
    filters = {f["name"]: f["values"] for f in inputs["costFilters"]}
    budget = {
        "BudgetName": inputs.get("name", name), "BudgetLimit": limit, "CostFilters": filters,
        "TimeUnit": inputs["timeUnit"], "BudgetType": inputs["budgetType"],
    }  # fmt: skip
    mails = "subscriberEmailAddresses"
    notifications = [
        {
            "Notification": pascal({k: v for k, v in n.items() if k != mails}),
            "Subscribers": [{"SubscriptionType": "EMAIL", "Address": mail} for mail in n[mails]],
        }
        for n in inputs["notifications"]
    ]
    given = {
        "AccountId": "123456789012", "Budget": budget, "ResourceTags": tags(inputs),
        "NotificationsWithSubscribers": notifications,
    }  # fmt: skip
    return [Request("budgets", "create_budget", given)]


def _bucket(name: str, inputs: Json) -> list[Request]:
    del name
    marks = {"Bucket": inputs["bucket"], "Tagging": {"TagSet": tags(inputs)}}
    return [
        Request("s3", "create_bucket", {"Bucket": inputs["bucket"]}),
        Request("s3", "put_bucket_tagging", marks),
    ]


def _of_bucket(operation: str, field: str, value: Callable[[Json], Any]) -> Any:
    def build(name: str, inputs: Json) -> list[Request]:
        del name
        given = {"Bucket": inputs["bucket"], field: value(inputs)}
        return [Request("s3", operation, given)]

    return build


def _encryption(inputs: Json) -> Json:
    rules = pascal(inputs["rules"], sseAlgorithm="SSEAlgorithm", kmsMasterKeyId="KMSMasterKeyID")
    return {"Rules": rules}


def _public_access(inputs: Json) -> Json:
    keys = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    return {key[:1].upper() + key[1:]: inputs[key] for key in keys}


_ENCRYPTION = (
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
)
_TYPES: dict[str, Callable[[str, Json], list[Request]]] = {
    **aws_control_plane.TYPES,
    **aws_file_systems.TYPES,
    "aws:budgets/budget:Budget": _budget,
    "aws:ec2/capacityBlockReservation:CapacityBlockReservation": _capacity_block,
    "aws:ec2/eip:Eip": _ec2("allocate_address", "elastic-ip", Domain="domain"),
    "aws:ec2/eipAssociation:EipAssociation": _ec2(
        "associate_address", "", InstanceId="instanceId", AllocationId="allocationId"
    ),
    "aws:ec2/instance:Instance": _instance,
    "aws:ec2/internetGateway:InternetGateway": _internet_gateway,
    "aws:ec2/launchTemplate:LaunchTemplate": _launch_template,
    "aws:ec2/natGateway:NatGateway": _ec2(
        "create_nat_gateway", "natgateway", SubnetId="subnetId", AllocationId="allocationId"
    ),
    "aws:ec2/placementGroup:PlacementGroup": _placement_group,
    "aws:ec2/route:Route": _ec2(
        "create_route",
        "",
        RouteTableId="routeTableId",
        GatewayId="gatewayId",
        DestinationCidrBlock="destinationCidrBlock",
        NatGatewayId="natGatewayId",
        NetworkInterfaceId="networkInterfaceId",
    ),
    "aws:ec2/routeTable:RouteTable": _ec2("create_route_table", "route-table", VpcId="vpcId"),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _ec2(
        "associate_route_table", "", RouteTableId="routeTableId", SubnetId="subnetId"
    ),
    "aws:ec2/securityGroup:SecurityGroup": _security_group,
    "aws:ec2/subnet:Subnet": _ec2(
        "create_subnet",
        "subnet",
        VpcId="vpcId",
        CidrBlock="cidrBlock",
        AvailabilityZoneId="availabilityZoneId",
    ),
    "aws:ec2/vpc:Vpc": _vpc,
    "aws:ebs/volume:Volume": _volume,
    "aws:ec2/volumeAttachment:VolumeAttachment": _ec2(
        "attach_volume", "", VolumeId="volumeId", InstanceId="instanceId", Device="deviceName"
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": _endpoint,
    "aws:ec2transitgateway/instanceConnectEndpoint:InstanceConnectEndpoint": _ec2(
        "create_instance_connect_endpoint",
        "instance-connect-endpoint",
        SubnetId="subnetId",
        SecurityGroupIds="securityGroupIds",
        PreserveClientIp="preserveClientIp",
    ),
    "aws:iam/instanceProfile:InstanceProfile": _profile,
    "aws:iam/role:Role": _role,
    "aws:iam/rolePolicy:RolePolicy": _role_policy,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": lambda _, i: [
        Request("iam", "attach_role_policy", {"RoleName": i["role"], "PolicyArn": i["policyArn"]})
    ],
    "aws:route53/record:Record": lambda _, inputs: [record_change("CREATE", inputs)],
    "aws:route53/zone:Zone": _zone,
    "aws:s3/bucket:Bucket": _bucket,
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": _of_bucket(
        "put_bucket_ownership_controls",
        "OwnershipControls",
        lambda i: {"Rules": [{"ObjectOwnership": i["rule"]["objectOwnership"]}]},
    ),
    "aws:s3/bucketPolicy:BucketPolicy": _of_bucket(
        "put_bucket_policy", "Policy", lambda i: i["policy"]
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _of_bucket(
        "put_public_access_block", "PublicAccessBlockConfiguration", _public_access
    ),
    _ENCRYPTION: _of_bucket(
        "put_bucket_encryption", "ServerSideEncryptionConfiguration", _encryption
    ),
    "aws:s3/bucketVersioning:BucketVersioning": _of_bucket(
        "put_bucket_versioning",
        "VersioningConfiguration",
        lambda i: pascal(i["versioningConfiguration"]),
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _rule("egress"),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _rule("ingress"),
}
"""Type -> what builds its calls."""
