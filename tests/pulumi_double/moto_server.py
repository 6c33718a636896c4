"""moto's server, extended where it lacks what a site on AWS calls; run as a process of its own.

Added here: placement groups, instance topology, host keys on consoles, images named by an SSM
parameter, and what a launch template says of networks and tags, which moto passes over. What a
node's console shows comes from the folder of the argument: one file an instance, which whoever
plays the machine writes; without one the console is empty, as it is while a machine boots.

usage: python -m tests.pulumi_double.moto_server PORT FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from moto.core.responses import ActionResult
from moto.core.types import Base64EncodedString
from moto.ec2.models.instances import InstanceBackend  # type: ignore[attr-defined]
from moto.ec2.responses import EC2Response
from moto.server import main as serve

_IMAGE = "ami-1e749f67"
"""One that moto knows; every parameter of a public image resolves to it."""


def _placement_groups(backend: Any) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = backend.__dict__.setdefault(
        "placement_groups_of_double", {}
    )
    return groups


def create_placement_group(self: EC2Response) -> ActionResult:
    """Answer CreatePlacementGroup."""
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
            (folder / "launched" / instance.id).write_text(json.dumps(seen), encoding="utf-8")
        return reservation

    InstanceBackend.run_instances = run_instances


if __name__ == "__main__":
    (Path(sys.argv[2]) / "consoles").mkdir(parents=True, exist_ok=True)
    extend(Path(sys.argv[2]))
    serve(["--host", "127.0.0.1", "--port", sys.argv[1]])
