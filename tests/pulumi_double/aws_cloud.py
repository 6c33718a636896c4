"""AWS behind the double: a moto server takes the calls that the provider would make of AWS."""

from __future__ import annotations

import hashlib
from typing import Any

import boto3  # type: ignore[import-untyped]
import msgspec
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError, ParamValidationError  # type: ignore[import-untyped]

from .aws_parameters import Request
from .aws_requests import record_change, requests
from .clouds import Cloud, CloudError, name_of, type_of

Json = dict[str, Any]  # an API's JSON
_GONE = ("NotFound", "NoSuch", "Malformed", "Unknown", "DoesNotExist")


class Kind(msgspec.Struct, frozen=True):
    """How a type is removed and found again; "{id}" and "{INPUT}" are filled in."""

    id: str = ""
    """Path of the id in the answer of the first call; "": made up from the inputs."""
    service: str = "ec2"
    delete: tuple[tuple[str, Json], ...] = ()
    find: tuple[str, Json] | None = None
    """A call that fails, or answers an empty list, when the thing is gone; None: never called."""
    outputs: dict[str, str] = {}
    """Output -> path in the answer of the first call."""


class MotoCloud(Cloud):
    """Makes things in moto."""

    def __init__(self, endpoint: str, region: str) -> None:
        """Send requests to this endpoint."""
        self._endpoint, self._region = endpoint, region
        self._clients: dict[str, Any] = {}

    def create(self, urn: str, inputs: Json) -> tuple[str, Json]:
        """Make the calls of the type; the first answer has the id."""
        type_, name = type_of(urn), name_of(urn)
        kind = _KINDS[type_]
        first, *rest = requests(type_, _unique(urn), inputs)
        answer = self._call(first)
        made_up = f"{name}-{hashlib.sha256(repr(inputs).encode()).hexdigest()[:8]}"
        identifier = str(_at(answer, kind.id)) if kind.id else made_up
        identifier = identifier.removeprefix("/hostedzone/")  # as the provider keeps it
        for call in rest:
            self._call(msgspec.structs.replace(call, parameters=_fill(call.parameters, identifier)))
        outputs = {key: _at(answer, path) for key, path in kind.outputs.items()}
        if "zoneId" in outputs:
            outputs["zoneId"] = identifier
        return identifier, outputs

    def update(self, urn: str, identifier: str, old: Json, new: Json) -> Json:
        """Change tags, templates, records; else refuse, so that nothing is taken for done."""
        if type_of(urn) == _TEMPLATE:
            [whole] = requests(_TEMPLATE, name_of(urn), new)
            data = {"LaunchTemplateData": whole.parameters["LaunchTemplateData"]}
            given = {"LaunchTemplateId": identifier, **data}
            made = self._call(Request("ec2", "create_launch_template_version", given))
            return {"latestVersion": made["LaunchTemplateVersion"]["VersionNumber"]}
        if type_of(urn).endswith(":Record"):
            self._call(record_change("UPSERT", new))
            return {}
        changed = {k for k in old.keys() | new.keys() if old.get(k) != new.get(k)}
        if rest := changed - {"tags", "tagsAll"}:
            raise CloudError(f"this double can't change {sorted(rest)} of {type_of(urn)}")
        if _KINDS[type_of(urn)].service == "ec2":
            tags = [{"Key": k, "Value": v} for k, v in new.get("tags", {}).items()]
            self._call(Request("ec2", "create_tags", {"Resources": [identifier], "Tags": tags}))
        return {}

    def delete(self, urn: str, identifier: str, state: Json) -> None:
        """Make the calls that remove it; what is gone already is no error."""
        kind = _KINDS[type_of(urn)]
        if type_of(urn).endswith(":Record"):
            self._call(record_change("DELETE", state), missing_ok=True)
        for operation, parameters in kind.delete:
            given = _fill(parameters, identifier, state)
            self._call(Request(kind.service, operation, given), missing_ok=True)

    def read(self, urn: str, identifier: str, state: Json) -> Json | None:
        """Return what was known, None where it is gone."""
        kind = _KINDS[type_of(urn)]
        if kind.find is None:
            return state
        operation, parameters = kind.find
        call = Request(kind.service, operation, _fill(parameters, identifier, state))
        answer = self._call(call, missing_ok=True)
        if answer is None or answer == []:
            return None
        lists = [value for value in answer.values() if isinstance(value, list)]
        alive = not lists or any(lists)
        if operation == "describe_instances":
            states = [i["State"]["Name"] for r in answer["Reservations"] for i in r["Instances"]]
            alive = any(state != "terminated" for state in states)
        return state if alive else None

    def invoke(self, token: str, arguments: Json) -> Json:
        """Refuse: no program of this double's sites calls functions."""
        raise CloudError(f"this double has no answer to {token} {arguments}")

    def _call(self, call: Request, *, missing_ok: bool = False) -> Any:
        if call.service not in self._clients:
            self._clients[call.service] = boto3.client(
                call.service,
                region_name=self._region,
                endpoint_url=self._endpoint,
                config=Config(retries={"max_attempts": 2}),
            )
        try:
            return getattr(self._clients[call.service], call.operation)(**call.parameters)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if missing_ok and any(word in code for word in _GONE):
                return None
            raise CloudError(str(error)) from error
        except ParamValidationError as error:
            raise CloudError(str(error)) from error


def _unique(urn: str) -> str:
    """Return the name that the provider gives what has none: its own, and something random."""
    return f"{name_of(urn)}-{hashlib.sha256(f'{urn}{id(object())}'.encode()).hexdigest()[:7]}"


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value[int(key)] if key.isdigit() else value[key]
    return value


def _fill(value: Any, identifier: str, state: Json | None = None) -> Any:
    if isinstance(value, dict):
        return {key: _fill(item, identifier, state) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, identifier, state) for item in value]
    if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
        return identifier if value == "{id}" else (state or {})[value[1:-1]]
    return value


def _simple(noun: str, path: str, *, of_list: bool = True, **outputs: str) -> Kind:
    """Return a kind of EC2 whose calls are all named alike: delete_vpc, describe_vpcs."""
    key = path.rpartition(".")[2]
    given = {f"{key}s": ["{id}"]} if of_list else {key: "{id}"}
    return Kind(
        path, delete=((f"delete_{noun}", {key: "{id}"}),), find=(f"describe_{noun}s", given),
        outputs=outputs,
    )  # fmt: skip


_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_KINDS: dict[str, Kind] = {
    "aws:ec2/eip:Eip": Kind(
        "AllocationId", delete=(("release_address", {"AllocationId": "{id}"}),),
        find=("describe_addresses", {"AllocationIds": ["{id}"]}), outputs={"publicIp": "PublicIp"},
    ),
    "aws:ec2/eipAssociation:EipAssociation": Kind(
        "AssociationId", delete=(("disassociate_address", {"AssociationId": "{id}"}),),
    ),
    "aws:ec2/instance:Instance": Kind(
        "Instances.0.InstanceId", delete=(("terminate_instances", {"InstanceIds": ["{id}"]}),),
        find=("describe_instances", {"InstanceIds": ["{id}"]}),
        outputs={
            "privateIp": "Instances.0.PrivateIpAddress",
            "primaryNetworkInterfaceId": "Instances.0.NetworkInterfaces.0.NetworkInterfaceId",
        },
    ),
    "aws:ec2/internetGateway:InternetGateway": Kind(
        "InternetGateway.InternetGatewayId",
        delete=(
            ("detach_internet_gateway", {"InternetGatewayId": "{id}", "VpcId": "{vpcId}"}),
            ("delete_internet_gateway", {"InternetGatewayId": "{id}"}),
        ),
        find=("describe_internet_gateways", {"InternetGatewayIds": ["{id}"]}),
    ),
    _TEMPLATE: _simple(
        "launch_template", "LaunchTemplate.LaunchTemplateId",
        latestVersion="LaunchTemplate.LatestVersionNumber",
    ),
    "aws:ec2/natGateway:NatGateway": Kind(
        "NatGateway.NatGatewayId", delete=(("delete_nat_gateway", {"NatGatewayId": "{id}"}),),
        find=("describe_nat_gateways", {"NatGatewayIds": ["{id}"]}),
    ),
    "aws:ec2/placementGroup:PlacementGroup": Kind(
        "PlacementGroup.GroupName", delete=(("delete_placement_group", {"GroupName": "{id}"}),),
        find=("describe_placement_groups", {"GroupNames": ["{id}"]}),
        outputs={"name": "PlacementGroup.GroupName"},
    ),
    "aws:ec2/route:Route": Kind(
        delete=(("delete_route", {
            "RouteTableId": "{routeTableId}", "DestinationCidrBlock": "{destinationCidrBlock}",
        }),),
    ),
    "aws:ec2/routeTable:RouteTable": _simple("route_table", "RouteTable.RouteTableId"),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": Kind(
        "AssociationId", delete=(("disassociate_route_table", {"AssociationId": "{id}"}),),
    ),
    "aws:ec2/securityGroup:SecurityGroup": _simple("security_group", "GroupId"),
    "aws:ec2/subnet:Subnet": _simple("subnet", "Subnet.SubnetId"),
    "aws:ec2/vpc:Vpc": _simple("vpc", "Vpc.VpcId"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": Kind(
        "VpcEndpoint.VpcEndpointId",
        delete=(("delete_vpc_endpoints", {"VpcEndpointIds": ["{id}"]}),),
        find=("describe_vpc_endpoints", {"VpcEndpointIds": ["{id}"]}),
    ),
    "aws:efs/fileSystem:FileSystem": Kind(
        "FileSystemId", "efs", delete=(("delete_file_system", {"FileSystemId": "{id}"}),),
        find=("describe_file_systems", {"FileSystemId": "{id}"}),
    ),
    "aws:efs/mountTarget:MountTarget": Kind(
        "MountTargetId", "efs", delete=(("delete_mount_target", {"MountTargetId": "{id}"}),),
        find=("describe_mount_targets", {"MountTargetId": "{id}"}),
        outputs={"ipAddress": "IpAddress"},
    ),
    "aws:fsx/openZfsFileSystem:OpenZfsFileSystem": Kind(
        "FileSystem.FileSystemId", "fsx",
        delete=(("delete_file_system", {"FileSystemId": "{id}"}),),
        find=("describe_file_systems", {"FileSystemIds": ["{id}"]}),
        outputs={"dnsName": "FileSystem.DNSName"},
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": Kind(
        "FileSystem.FileSystemId", "fsx",
        delete=(("delete_file_system", {"FileSystemId": "{id}"}),),
        find=("describe_file_systems", {"FileSystemIds": ["{id}"]}),
        outputs={
            "dnsName": "FileSystem.DNSName",
            "mountName": "FileSystem.LustreConfiguration.MountName",
        },
    ),
    "aws:iam/instanceProfile:InstanceProfile": Kind(
        "InstanceProfile.InstanceProfileName", "iam",
        delete=(
            ("remove_role_from_instance_profile",
             {"InstanceProfileName": "{id}", "RoleName": "{role}"}),
            ("delete_instance_profile", {"InstanceProfileName": "{id}"}),
        ),
        find=("get_instance_profile", {"InstanceProfileName": "{id}"}),
        outputs={"name": "InstanceProfile.InstanceProfileName", "arn": "InstanceProfile.Arn"},
    ),
    "aws:iam/role:Role": Kind(
        "Role.RoleName", "iam", delete=(("delete_role", {"RoleName": "{id}"}),),
        find=("get_role", {"RoleName": "{id}"}),
        outputs={"name": "Role.RoleName", "arn": "Role.Arn"},
    ),
    "aws:route53/record:Record": Kind(service="route53"),
    "aws:route53/zone:Zone": Kind(
        "HostedZone.Id", "route53", delete=(("delete_hosted_zone", {"Id": "{id}"}),),
        find=("get_hosted_zone", {"Id": "{id}"}), outputs={"zoneId": "HostedZone.Id"},
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": Kind(
        "SecurityGroupRules.0.SecurityGroupRuleId",
        delete=(("revoke_security_group_egress", {
            "GroupId": "{securityGroupId}", "SecurityGroupRuleIds": ["{id}"],
        }),),
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": Kind(
        "SecurityGroupRules.0.SecurityGroupRuleId",
        delete=(("revoke_security_group_ingress", {
            "GroupId": "{securityGroupId}", "SecurityGroupRuleIds": ["{id}"],
        }),),
    ),
}  # fmt: skip
