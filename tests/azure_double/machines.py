"""The machines of the double of Azure: named ones and those of scale sets, local nodes for all.

A machine of a scale set gets its host name from its number, train001 of 0, which is the name that
gcluster gives it later: a container can't change its own.
"""

from __future__ import annotations

import base64
import re
import uuid
from ipaddress import IPv4Network
from typing import Any

from azure.mgmt.compute import models
from tests.pulumi_double.instances import Instances

from gcluster.stacks.provider import ProviderError

from .models import flat, of_sdk
from .refused import Refused

Json = dict[str, Any]  # a resource, or an answer
_SET = re.compile(
    r"(?P<set>.+/virtualMachineScaleSets/[^/]+)"
    r"(?P<what>/virtualMachines|/networkInterfaces|/delete)?",
    re.IGNORECASE,
)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHmRn4kLqrT2jXg0o9cYbqkZ0WzT8hYp3vVd5s1nC7eQ"
_KEPT_ADDRESSES = 4
"""Of each subnet, by Azure, at its beginning (virtual networks FAQ)."""
_BOOTED = "test -e /var/lib/cloud/instance/sem/config_ssh"
"""cloud-init has made the host keys: Azure's agent takes no command before there is one
(WALinuxAgent, CloudInitProvisionHandler.wait_for_ssh_host_key)."""


class NoInstances:
    """Nodes that never boot, for tests of the interfaces alone; what runs on one returns a key."""

    _given = 0

    def launch(self, identifier: str, *, host: str, address: str, user_data: str) -> None:
        """Do nothing."""

    def open(self, identifier: str, address: str) -> None:
        """Do nothing."""

    def end(self, identifier: str) -> None:
        """Do nothing."""

    def new_public_address(self) -> str:
        """Return another one each time."""
        self._given += 1
        return f"198.51.100.{self._given}"

    def run(self, identifier: str, shell: str) -> str:
        """Return a host key."""
        del identifier, shell
        return f"{KEY} root@node"


class Machines:
    """Starts and ends nodes as machines come and go."""

    def __init__(self, nodes: Instances | NoInstances, things: dict[str, Json]) -> None:
        self.nodes = nodes
        self._things = things
        self._of_sets: dict[str, dict[str, Json]] = {}
        """Path of a scale set -> number -> vm_id and address of each machine."""

    def new_address(self, subnet: str) -> str:
        """Return an address of a subnet that nothing has."""
        prefix = IPv4Network(self._things[subnet.casefold()]["properties"]["addressPrefix"])
        used = {vm["address"] for one in self._of_sets.values() for vm in one.values()}
        for thing in self._things.values():
            for part in thing["properties"].get("ipConfigurations", ()):
                used.add(part["properties"].get("privateIPAddress"))
        hosts = (str(prefix[n]) for n in range(_KEPT_ADDRESSES, prefix.num_addresses - 1))
        return next(address for address in hosts if address not in used)

    def made(self, kind: str, thing: Json, before: Json | None) -> None:
        """Start the local nodes of a machine or scale set that was created."""
        if kind == "VirtualMachine" and before is None:
            self._launch_named(thing)
        if kind == "VirtualMachineScaleSet":
            thing["etag"] = _etag()
            self._resize(thing)

    def gone(self, thing: Json) -> None:
        """End the local nodes of a resource that was deleted."""
        if "vmId" in thing["properties"]:
            self.nodes.end(thing["properties"]["vmId"])
        for vm in self._of_sets.pop(thing["id"].casefold(), {}).values():
            self.nodes.end(vm["vm_id"])

    def answer(self, verb: str, path: str, requested: Json) -> Json | None:
        """Answer a request that scale sets take beyond any resource's; None: no such request."""
        found = _SET.fullmatch(path)
        if found is None or found["set"].casefold() not in self._of_sets:
            return None
        one = self._things[found["set"].casefold()]
        if verb == "PATCH" and not found["what"]:
            return self._change(one, requested)
        if verb == "POST" and found["what"] == "/delete":
            return self._end(one, requested["body"])
        if verb == "GET" and found["what"]:
            shown = self._shown if found["what"] == "/virtualMachines" else self._interface
            machines = self._of_sets[one["id"].casefold()]
            return {"value": [shown(one, number, vm) for number, vm in machines.items()]}
        return None

    def run(self, path: str, body: Json) -> Json:
        """Run a command on a machine, as Azure's agent does, as soon as it has host keys."""
        _refuse(models.RunCommandInput, body)
        where, _, number = path.rpartition("/virtualMachines/")
        found = self._of_sets.get(where.casefold(), {}).get(number)
        thing = self._things.get(path.casefold())
        if found is None and thing is None:
            raise Refused(404, "ResourceNotFound", f"The Resource '{path}' was not found.")
        vm_id = found["vm_id"] if found else thing["properties"]["vmId"] if thing else ""
        lines = "\n".join(body["script"])
        try:
            printed = self.nodes.run(vm_id, f"{_BOOTED} || exit 75\n{lines}")
        except ProviderError:
            raise Refused(409, "VMAgentStatusCommunicationError", "no agent reports yet") from None
        message = f"Enable succeeded: \n[stdout]\n{printed}\n[stderr]\n"
        return {"value": [{"code": "ProvisioningState/succeeded", "message": message}]}

    def _launch_named(self, thing: Json) -> None:
        own = thing["properties"]
        [nic] = own["networkProfile"]["networkInterfaces"]
        [part] = self._things[nic["id"].casefold()]["properties"]["ipConfigurations"]
        profile, vm_id = own["osProfile"], own["vmId"]
        self.nodes.launch(
            vm_id, host=profile["computerName"], user_data=_user_data(profile),
            address=part["properties"]["privateIPAddress"],
        )  # fmt: skip
        if public := part["properties"].get("publicIPAddress"):
            address = self._things[public["id"].casefold()]["properties"]["ipAddress"]
            self.nodes.open(vm_id, address)

    def _resize(self, one: Json) -> None:
        machines = self._of_sets.setdefault(one["id"].casefold(), {})
        profile = one["properties"]["virtualMachineProfile"]
        [nic] = profile["networkProfile"]["networkInterfaceConfigurations"]
        [part] = nic["properties"]["ipConfigurations"]
        wanted = int(one["sku"]["capacity"])
        for number in sorted(machines, key=int)[wanted:]:
            self.nodes.end(machines.pop(number)["vm_id"])
        number = 0
        while len(machines) < wanted:
            if str(number) not in machines:
                address = self.new_address(part["properties"]["subnet"]["id"])
                vm = {"vm_id": str(uuid.uuid4()), "address": address}
                machines[str(number)] = vm
                host = f"{profile['osProfile']['computerNamePrefix']}{number + 1:03d}"
                user_data = _user_data(profile["osProfile"])
                self.nodes.launch(vm["vm_id"], host=host, address=address, user_data=user_data)
            number += 1

    def _change(self, one: Json, requested: Json) -> Json:
        _refuse(models.VirtualMachineScaleSetUpdate, requested["body"])
        if requested["match"] not in {None, one["etag"]}:
            raise Refused(412, "PreconditionFailed", "the etag is another")
        one |= {"tags": requested["body"].get("tags", one.get("tags")), "etag": _etag()}
        one["sku"] |= requested["body"].get("sku") or {}
        self._resize(one)
        return one

    def _end(self, one: Json, body: Json) -> Json:
        _refuse(models.VirtualMachineScaleSetVMInstanceRequiredIDs, body)
        machines = self._of_sets[one["id"].casefold()]
        for number in body["instanceIds"]:
            self.nodes.end(machines.pop(number)["vm_id"])
        one["sku"]["capacity"] = len(machines)
        one["etag"] = _etag()
        return {}

    @staticmethod
    def _shown(one: Json, number: str, vm: Json) -> Json:
        own = {"vmId": vm["vm_id"], "provisioningState": "Succeeded"}
        id_ = f"{one['id']}/virtualMachines/{number}"
        return {"id": id_, "instanceId": number, "name": number, "properties": own}

    @staticmethod
    def _interface(one: Json, number: str, vm: Json) -> Json:
        part = {"properties": {"privateIPAddress": vm["address"], "primary": True}}
        machine = {"id": f"{one['id']}/virtualMachines/{number}"}
        return {"properties": {"virtualMachine": machine, "ipConfigurations": [part]}}


def _user_data(profile: Json) -> str:
    return base64.b64decode(profile["customData"]).decode()


def _refuse(model: type, body: Json) -> None:
    found = list(of_sdk(model, flat(body), model.__name__))
    if found:
        raise Refused(400, "InvalidRequestContent", "; ".join(found))


def _etag() -> str:
    return f'"{uuid.uuid4()}"'
