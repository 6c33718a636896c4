"""A double of Azure Resource Manager on 127.0.0.1, as a process of its own: one subscription.

It is not Azure and says so in each answer's header. What is created is checked against the models
of `models` first, must have its resource group, its parent and all that it refers to, and exists at
its path until it is deleted; what others use can't be deleted. Local nodes simulate the machines: a
command that is run on one (`machines`) runs in its node. Quotas are ample, every size and image is
there, and a login may do everything.

usage: python -m tests.azure_double.server PORT CERTIFICATE [NODES]; without NODES none boot
"""

from __future__ import annotations

import json
import re
import ssl
import sys
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.pulumi_double.instances import Instances

from .addresses import SUBSCRIPTION, resource_at
from .machines import Machines, NoInstances
from .models import complaints, flat
from .refused import Refused

Json = dict[str, Any]  # a resource, or an answer
_ROOT = f"/subscriptions/{SUBSCRIPTION}"
_LARGE = 100_000
_QUOTAS = ("cores", "lowPriorityCores", "standardDSv5Family", "standardNDSH100v5Family")
_SIZES = ("Standard_D8s_v5", "Standard_ND96isr_H100_v5")
_ID = re.compile(rf"{_ROOT}/resourceGroups/[^/]+(/providers/[^/]+(/[^/]+/[^/]+)+)?", re.IGNORECASE)
_GONE_ANY_TIME = ("managedidentity", "authorization")
"""Modules of what may be deleted while others name it."""


class Subscription:
    """What exists in it, by path in small letters: Azure ignores case."""

    def __init__(self, nodes: Instances | NoInstances) -> None:
        self.things: dict[str, Json] = {}
        self.machines = Machines(nodes, self.things)
        self._lock = threading.RLock()

    def answer(self, verb: str, path: str, requested: Json) -> Any:
        """Answer one question; `requested` has query, body and match. Raises Refused."""
        if verb == "POST" and path.endswith("/runCommand"):  # takes long, and changes nothing
            return self.machines.run(path.removesuffix("/runCommand"), requested["body"])
        with self._lock:
            if verb == "GET" and (ready := _always(path)) is not None:
                return ready
            if verb == "GET" and path in {f"{_ROOT}/resources", f"{_ROOT}/resourcegroups"}:
                return {"value": list(self._tagged(path, requested["query"]["$filter"]))}
            if (reported := self.machines.answer(verb, path, requested)) is not None:
                return reported
            known = resource_at(path)
            if known is None or verb not in {"GET", "PUT", "DELETE"}:
                raise Refused(404, "InvalidResourceType", f"this double knows no {verb} of {path}")
            if verb == "PUT":
                return self._put(path, *known, requested["body"])
            return self._delete(path, known[0]) if verb == "DELETE" else self._found(path)

    def _found(self, path: str) -> Json:
        if path.casefold() not in self.things:
            raise Refused(404, "ResourceNotFound", f"The Resource '{path}' was not found.")
        return self.things[path.casefold()]

    def _put(self, path: str, token: str, reported: Json, body: Json) -> Json:
        found = list(complaints(token, {**flat(body), **reported}))
        if found:
            raise Refused(400, "InvalidRequestContent", "; ".join(found))
        self._check_place(path, body)
        before = self.things.get(path.casefold())
        kind = token.rpartition(":")[2]
        made: Json = json.loads(json.dumps(body))
        made |= {"id": path, "name": path.rpartition("/")[2], "type": _arm_type(path)}
        own = made.setdefault("properties", {})
        if before is not None:
            made = {**made, "properties": {**before["properties"], **own}}
        getattr(self, f"_made_{kind.lower()}", lambda _made, _before: None)(made, before)
        made["properties"]["provisioningState"] = "Succeeded"
        self.things[path.casefold()] = made
        self.machines.made(kind, made, before)
        return made

    def _check_place(self, path: str, body: Json) -> None:
        group = "/".join(path.split("/")[:5])
        if path != group and group.casefold() not in self.things:
            raise Refused(404, "ResourceGroupNotFound", f"Resource group '{group}' not found.")
        parent = path.rsplit("/", 2)[0]
        if resource_at(parent) and parent.casefold() not in self.things:
            raise Refused(404, "ParentResourceNotFound", f"'{parent}' was not found.")
        for named in _ids(body):
            if named.casefold() not in self.things:
                message = f"Resource {named} referenced by resource {path} was not found."
                raise Refused(400, "InvalidResourceReference", message)

    def _made_subnet(self, made: Json, _before: Json | None) -> None:
        network = made["id"].partition("/subnets/")[0]
        own = ip_network(made["properties"]["addressPrefix"])
        space = self._found(network)["properties"]["addressSpace"]["addressPrefixes"]
        if not any(own.subnet_of(ip_network(whole)) for whole in space):
            raise Refused(400, "NetcfgInvalidSubnet", f"{own} is not within {space}")
        for other in self._below(f"{network}/subnets"):
            theirs = ip_network(other["properties"]["addressPrefix"])
            if other["id"] != made["id"] and own.overlaps(theirs):
                raise Refused(400, "NetcfgSubnetRangesOverlap", f"{own} overlaps {theirs}")

    def _made_publicipaddress(self, made: Json, before: Json | None) -> None:
        if before is None:
            made["properties"]["ipAddress"] = self.machines.nodes.new_public_address()

    def _made_networkinterface(self, made: Json, before: Json | None) -> None:
        kept = before["properties"]["ipConfigurations"] if before else ()
        for number, part in enumerate(made["properties"]["ipConfigurations"]):
            own = part["properties"]
            if number < len(kept):
                own["privateIPAddress"] = kept[number]["properties"]["privateIPAddress"]
            public = own.get("publicIPAddress", {}).get("id", "")
            for other in self._using(public, made["id"]):
                raise Refused(400, "PublicIPAddressInUse", f"{public} is of {other}")
            if "privateIPAddress" not in own:
                own["privateIPAddress"] = self.machines.new_address(own["subnet"]["id"])

    def _made_virtualmachine(self, made: Json, before: Json | None) -> None:
        for nic in made["properties"]["networkProfile"]["networkInterfaces"]:
            for other in self._using(nic["id"], made["id"]):
                raise Refused(400, "NicInUse", f"{nic['id']} is used by {other}")
        if before is None:
            made["properties"]["vmId"] = str(uuid.uuid4())

    def _made_userassignedidentity(self, made: Json, _before: Json | None) -> None:
        for key in ("principalId", "clientId", "tenantId"):
            made["properties"].setdefault(key, str(uuid.uuid4()))

    def _using(self, identifier: str, by: str) -> Iterator[str]:
        """Yield the ids of what names this thing, but for that and what is below the thing."""
        for other in self.things.values() if identifier else ():
            inside = other["id"].casefold().startswith(f"{identifier}/".casefold())
            if other["id"] not in {by, identifier} and not inside and identifier in _ids(other):
                yield other["id"]

    def _below(self, path: str) -> list[Json]:
        start = f"{path}/".casefold()
        return [thing for key, thing in self.things.items() if key.startswith(start)]

    def _delete(self, path: str, token: str) -> Json:
        gone = [*self._below(path), self._found(path)]
        if not token.endswith(":ResourceGroup"):  # with a group goes all that is in it
            self._check_use(path, token)
        for thing in gone:
            self.machines.gone(self.things.pop(thing["id"].casefold()))
        return {}

    def _check_use(self, path: str, token: str) -> None:
        links = f"{path}/virtualNetworkLinks/".casefold()
        if any(key.startswith(links) for key in self.things):
            raise Refused(409, "CannotDeleteResource", f"{path} has links")
        if token.split(":")[1] not in _GONE_ANY_TIME:
            for other in self._using(path, path):
                raise Refused(400, "InUseCannotBeDeleted", f"{path} is in use by {other}")

    def _tagged(self, path: str, wanted: str) -> Iterator[Json]:
        key, value = wanted.split("'")[1::2]
        groups = path.endswith("/resourcegroups")
        for thing in self.things.values():
            is_group = thing["type"] == "Microsoft.Resources/resourceGroups"
            if is_group == groups and thing.get("tags", {}).get(key) == value:
                yield thing

    def existing(self) -> list[str]:
        """Return the path of each thing."""
        return sorted(thing["id"] for thing in self.things.values())


def _ids(value: Any) -> set[str]:
    """Return the ids that a body names, as values or as keys."""
    if isinstance(value, str):
        return {value} if _ID.fullmatch(value) else set()
    if isinstance(value, dict):
        own = {key for key in value if _ID.fullmatch(key)}
        return own.union(*(_ids(item) for item in value.values()))
    return set().union(*map(_ids, value)) if isinstance(value, list) else set()


def _arm_type(path: str) -> str:
    parts = path.rpartition("/providers/")[2].split("/")
    own = "/".join([parts[0], *parts[1::2]])
    return own if "/providers/" in path else "Microsoft.Resources/resourceGroups"


_ALWAYS: dict[str, Any] = {
    "": {"state": "Enabled", "displayName": "a double of Azure"},
    "/providers/Microsoft.Authorization/permissions": {
        "value": [{"actions": ["*"], "notActions": []}]
    },
    "/providers/Microsoft.Compute/skus": {
        "value": [
            {"resourceType": "virtualMachines", "name": n, "locationInfo": [{"zones": ["1"]}]}
            for n in _SIZES
        ]
    },
    "/providers/Microsoft.Compute/locations/[^/]+/usages": {
        "value": [
            {"name": {"value": q}, "currentValue": 0, "limit": _LARGE, "unit": "Count"}
            for q in _QUOTAS
        ]
    },
    "/providers/[^/]+": {"registrationState": "Registered"},
    ".*/artifacttypes/vmimage/.*": [{"name": "1.0.0", "location": "eastus"}],
}
"""Path below the subscription -> an answer that only says that all is well."""


def _always(path: str) -> Any:
    """Return such an answer; None: another request."""
    rest = path.removeprefix(_ROOT)
    return next(
        (reported for known, reported in _ALWAYS.items() if re.fullmatch(known, rest)), None
    )


def _handler(kept: Subscription, own: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            parts = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path, query = unquote(parts.path), dict(parse_qsl(parts.query))
            requested = {
                "query": query, "body": json.loads(text or b"null"),
                "match": self.headers.get("If-Match"),
            }  # fmt: skip
            status, answer = 200, None
            try:
                answer = self._answer(path, requested)
            except Refused as refused:
                status = refused.status
                sys.stderr.write(f"refused: {refused}\n")
                result = f"{refused} (a double of Azure)"
                answer = {"error": {"code": refused.code, "message": result}}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Double", "This is a double of Azure for tests, and not Azure.")
            self.end_headers()
            self.wfile.write(content)

        def _answer(self, path: str, requested: Json) -> Any:
            if path == "/token":  # any login is believed
                whom = requested["query"].get("resource")
                ends = {"expires_in": "86400", "expires_on": "4000000000"}
                return {"access_token": "x", "resource": whom, "token_type": "Bearer", **ends}
            if path == "/metadata/endpoints":
                login = {"loginEndpoint": "https://login.microsoftonline.com", "audiences": [own]}
                return {"resourceManager": own, "authentication": login}
            if path == "/standing":
                return kept.existing()
            if "api-version" not in requested["query"]:
                raise Refused(400, "MissingApiVersionParameter", "api-version is required")
            return kept.answer(self.command, path, requested)

        do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _any  # noqa: N815  # the base class' names

        def log_message(self, form: str, *values: object) -> None:
            """Write the request to the log."""
            sys.stderr.write(f"{form % values}\n")

    return Handler


if __name__ == "__main__":
    port, pem, *given = sys.argv[1:]
    subscription = Subscription(Instances(**json.loads(given[0])) if given else NoInstances())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    handler = _handler(subscription, f"https://127.0.0.1:{port}")
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()
