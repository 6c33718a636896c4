"""Starts the extended moto server for a test, and lists what exists in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]

from .server_process import ServerProcess


class MotoProcess(ServerProcess):
    """A running server; `folder` has its log, its consoles and what was launched."""

    def __init__(
        self, folder: Path, region: str = "us-east-1", nodes: dict[str, str] | None = None
    ) -> None:
        """Start it; `nodes` are the arguments of `Instances`."""
        words = [str(folder), *([json.dumps(nodes)] if nodes else [])]
        super().__init__("tests.pulumi_double.moto_server", folder, *words)
        self.region, self.url = region, f"http://127.0.0.1:{self.port}"

    def client(self, service: str) -> Any:
        """Return a client of a service."""
        return boto3.client(service, region_name=self.region, endpoint_url=self.url)

    def existing(self) -> list[str]:
        """Return what exists in addition to what every account has, as "KIND ID"."""
        ec2, found = self.client("ec2"), []
        for call, key, name in (
            ("describe_vpcs", "Vpcs", "VpcId"),
            ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
            ("describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
            ("describe_addresses", "Addresses", "AllocationId"),
            ("describe_placement_groups", "PlacementGroups", "GroupName"),
            ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
        ):
            found += [
                f"{name} {item[name]}"
                for item in getattr(ec2, call)()[key]
                if not item.get("IsDefault") and item.get("State") != "deleted"
            ]
        found += [
            f"NatGatewayId {gateway['NatGatewayId']}"
            for gateway in ec2.describe_nat_gateways()["NatGateways"]
            if gateway["State"] != "deleted"
        ]
        found += [
            f"InstanceId {instance['InstanceId']}"
            for reservation in ec2.describe_instances()["Reservations"]
            for instance in reservation["Instances"]
            if instance["State"]["Name"] != "terminated"
        ]
        iam = self.client("iam")
        found += [f"Role {role['RoleName']}" for role in iam.list_roles()["Roles"]]
        profiles = iam.list_instance_profiles()["InstanceProfiles"]
        found += [f"InstanceProfile {profile['InstanceProfileName']}" for profile in profiles]
        systems = self.client("fsx").describe_file_systems()["FileSystems"]
        found += [f"FileSystem {system['FileSystemId']}" for system in systems]
        systems = self.client("efs").describe_file_systems()["FileSystems"]
        found += [f"FileSystem {system['FileSystemId']}" for system in systems]
        zones = self.client("route53").list_hosted_zones()["HostedZones"]
        return sorted([*found, *(f"Zone {zone['Id']}" for zone in zones)])
