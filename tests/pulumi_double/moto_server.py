"""moto's server, extended where it lacks what a site on AWS calls; run as a process of its own.

Added here: dry runs of CreateVpc, placement groups, instance topology, host keys on consoles,
images named by an SSM parameter, and what a launch template says of networks and tags, which moto
passes over. What a node's console shows comes from the folder of the argument: one file an
instance, which the double of the machine writes; without one the console is empty, as it is while a
machine boots. With NODES, the arguments of `Instances` as JSON, local nodes simulate the machines:
they start and end with them, have their addresses, public ones too, and their own consoles.

usage: python -m tests.pulumi_double.moto_server PORT FOLDER [NODES]
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.responses import ActionResult
from moto.core.types import Base64EncodedString
from moto.ec2.models import ec2_backends
from moto.ec2.models.elastic_ip_addresses import ElasticAddressBackend
from moto.ec2.models.instances import InstanceBackend  # type: ignore[attr-defined]
from moto.ec2.responses import EC2Response
from moto.server import main as serve

from gcluster.stacks.pulumi.names import HOST

from .instances import Instances

_IMAGE = "ami-1e749f67"
"""One that moto knows; every parameter of a public image resolves to it."""


def _placement_groups(backend: Any) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = backend.__dict__.setdefault(
        "placement_groups_of_double", {}
    )
    return groups


def create_placement_group(self: EC2Response) -> ActionResult:
    """Answer CreatePlacementGroup."""
    self.error_on_dryrun()
    name = self._get_param("GroupName")
    groups = _placement_groups(self.ec2_backend)
    if name in groups:
        raise _refusal("InvalidPlacementGroup.Duplicate", f"The group {name} exists already")
    tags = [
        tag for spec in self._get_param("TagSpecifications", []) for tag in spec.get("Tags", [])
    ]
    groups[name] = {
        "GroupName": name, "State": "available", "Strategy": self._get_param("Strategy"),
        "GroupId": f"pg-{len(groups):017x}", "Tags": tags,
    }  # fmt: skip
    return ActionResult({"PlacementGroup": groups[name]})


def describe_placement_groups(self: EC2Response) -> ActionResult:
    """Answer DescribePlacementGroups; filters are by tags only."""
    groups = _placement_groups(self.ec2_backend)
    names = self._get_param("GroupNames", [])
    if missing := [name for name in names if name not in groups]:
        raise _refusal("InvalidPlacementGroup.Unknown", f"The group {missing[0]} is unknown")
    return ActionResult(
        {"PlacementGroups": [g for n, g in groups.items() if n in names or not names]}
    )


def delete_placement_group(self: EC2Response) -> ActionResult:
    """Answer DeletePlacementGroup."""
    name = self._get_param("GroupName")
    if _placement_groups(self.ec2_backend).pop(name, None) is None:
        raise _refusal("InvalidPlacementGroup.Unknown", f"The group {name} is unknown")
    return ActionResult({})


def describe_instance_topology(self: EC2Response) -> ActionResult:
    """Answer DescribeInstanceTopology: all under one leaf, as in one placement group."""
    found = [
        {
            "InstanceId": one,
            "InstanceType": self.ec2_backend.get_instance(one).instance_type,
            "NetworkNodes": [
                "nn-0000000000000000a",
                "nn-0000000000000000b",
                "nn-000000000000000c0",
            ],
        }
        for one in self._get_param("InstanceIds", [])
    ]
    return ActionResult({"Instances": found})


def _refusal(code: str, message: str) -> Exception:
    from moto.ec2.exceptions import EC2ClientError  # noqa: PLC0415  # one use

    return EC2ClientError(code, message)


def extend(folder: Path) -> None:
    """Put the additions into moto."""
    for action in (
        create_placement_group, describe_placement_groups, delete_placement_group,
        describe_instance_topology,
    ):  # fmt: skip
        setattr(EC2Response, action.__name__, action)

    made_vpc = EC2Response.create_vpc

    def create_vpc(self: EC2Response) -> Any:
        self.error_on_dryrun()
        return made_vpc(self)

    EC2Response.create_vpc = create_vpc  # type: ignore[method-assign]

    def get_console_output(self: EC2Response) -> Any:
        instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
        file = folder / "consoles" / instance.id
        shown = file.read_text(encoding="utf-8") if file.exists() else ""
        text = Base64EncodedString.from_raw_string(shown)
        return ActionResult({"InstanceId": instance.id, "Output": text})

    EC2Response.get_console_output = get_console_output
    launched = InstanceBackend.run_instances

    def run_instances(
        self: Any, image_id: str, count: int, user_data: Any, groups: Any, **given: Any
    ) -> Any:
        template = self._get_template_from_args(given["launch_template"]).data
        [first, *_] = template["NetworkInterfaces"]
        public = str(first.get("AssociatePublicIpAddress")).lower() == "true"
        given |= {
            "subnet_id": first["SubnetId"], "security_group_ids": first["Groups"],
            "associate_public_ip": public,
        }  # fmt: skip
        image = image_id or template["ImageId"]
        image = _IMAGE if image.startswith("resolve:ssm:") else image
        reservation = launched(self, image, count, user_data, groups, **given)
        (folder / "launched").mkdir(exist_ok=True)
        for instance in reservation.instances:
            for spec in template.get("TagSpecifications", ()):
                if spec["ResourceType"] == "instance":
                    there = {tag["key"] for tag in instance.get_tags()}
                    tags = {t["Key"]: t["Value"] for t in spec["Tags"] if t["Key"] not in there}
                    instance.add_tags(tags)
            seen = {"id": instance.id, "private_ip": instance.private_ip}
            seen["template"] = given["launch_template"]
            (folder / "launched" / instance.id).write_text(json.dumps(seen), encoding="utf-8")
        return reservation

    InstanceBackend.run_instances = run_instances


def simulate_machines(nodes: Instances) -> None:  # noqa: C901  # one small function for each call
    """Have local nodes start and end with the machines, and answer by their addresses."""
    image = ec2_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].amis[_IMAGE]
    image.root_device_name = "/dev/xvda"  # as Debian's have it, which the nodes boot from
    launched, ended = InstanceBackend.run_instances, InstanceBackend.terminate_instances
    associated = ElasticAddressBackend.associate_address
    disassociated = ElasticAddressBackend.disassociate_address
    allocated = ElasticAddressBackend.allocate_address

    def run_instances(self: Any, *given: Any, **more: Any) -> Any:
        reservation = launched(self, *given, **more)
        for instance in reservation.instances:
            host = next(tag["value"] for tag in instance.get_tags() if tag["key"] == HOST)
            data = b64decode(str(instance.user_data)).decode()
            nodes.launch(instance.id, host=host, address=instance.private_ip, user_data=data)
        return reservation

    def terminate_instances(self: Any, instance_ids: list[str]) -> Any:
        answer = ended(self, instance_ids)
        for identifier in instance_ids:
            nodes.end(identifier)
        return answer

    def allocate_address(
        self: Any, domain: str, address: str | None = None, tags: dict[str, str] | None = None
    ) -> Any:
        return allocated(self, domain, address or nodes.new_public_address(), tags)

    def associate_address(self: Any, **given: Any) -> Any:
        address = associated(self, **given)
        if address.instance_id:  # else a NAT gateway's
            nodes.open(address.instance_id, address.public_ip)
        return address

    def disassociate_address(self: Any, **given: Any) -> None:
        (address,) = (
            self.address_by_ip([given["address"]])
            if given.get("address")
            else self.address_by_association([given["association_id"]])
        )
        identifier = address.instance_id
        disassociated(self, **given)
        if identifier:
            nodes.close(identifier)

    def get_console_output(self: EC2Response) -> Any:
        instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
        text = Base64EncodedString.from_raw_string(nodes.console(instance.id))
        return ActionResult({"InstanceId": instance.id, "Output": text})

    InstanceBackend.run_instances = run_instances  # type: ignore[assignment]
    InstanceBackend.terminate_instances = terminate_instances  # type: ignore[method-assign]
    ElasticAddressBackend.allocate_address = allocate_address  # type: ignore[method-assign]
    ElasticAddressBackend.associate_address = associate_address  # type: ignore[method-assign]
    ElasticAddressBackend.disassociate_address = disassociate_address  # type: ignore[method-assign]
    EC2Response.get_console_output = get_console_output


if __name__ == "__main__":
    (Path(sys.argv[2]) / "consoles").mkdir(parents=True, exist_ok=True)
    extend(Path(sys.argv[2]))
    if sys.argv[3:]:
        simulate_machines(Instances(**json.loads(sys.argv[3])))
    serve(["--host", "127.0.0.1", "--port", sys.argv[1]])
