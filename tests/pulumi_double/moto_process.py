"""Starts the extended moto server for a test, and tells what stands in it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]

_CHECKOUT = Path(__file__).parents[2]


class MotoProcess:
    """A running server; `folder` has its log, its consoles and what was launched."""

    def __init__(
        self, folder: Path, region: str = "us-east-1", nodes: dict[str, str] | None = None
    ) -> None:
        """Start it and wait until it answers; `nodes` are the arguments of `Instances`."""
        self.folder, self.region = folder, region
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        folder.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "tests.pulumi_double.moto_server", str(port), str(folder)]
        words += [json.dumps(nodes)] if nodes else []
        with (folder / "moto.log").open("w") as log:
            self._process = subprocess.Popen(words, cwd=_CHECKOUT, stdout=log, stderr=log)
        while True:
            if self._process.poll() is not None:
                raise RuntimeError((folder / "moto.log").read_text(encoding="utf-8"))
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)

    def client(self, service: str) -> Any:
        """Return a client of a service."""
        return boto3.client(service, region_name=self.region, endpoint_url=self.url)

    def standing(self) -> list[str]:
        """Return what exists beside what every account has, as "KIND ID"."""
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
        zones = self.client("route53").list_hosted_zones()["HostedZones"]
        return sorted([*found, *(f"Zone {zone['Id']}" for zone in zones)])

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()
