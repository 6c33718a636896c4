"""A double of OCI's services on 127.0.0.1, as a process of its own: one tenancy, kept in memory.

It is not OCI and says so in each answer's header. Every request is checked against OCI's own SDK
first (`operations`), and what that doesn't describe is refused; answers have what its models have,
and nothing else. What is made exists until it is deleted, and what is used by others can't be. The
members of a cluster network start and end with it. Local nodes simulate the machines, where there
are any; a console history is the console of a container. Limits and capacity are ample, every image
is there, and any login that signs may do everything.

usage: python -m tests.oci_double.server PORT [NODES]
"""

from __future__ import annotations

import base64
import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.pulumi_double.instances import Instances

from gcluster.inventory.hosts import pool_host_names
from gcluster.schemas.spec import Pool
from gcluster.stacks.pulumi.names import HOST, POOL

from .operations import Json, Operation, answered, complaints, listed, operation_of

_LARGE = 1000
_FIRST_ADDRESS = 10
_DOMAINS = [{"name": f"Uocm:US-ASHBURN-AD-{number}"} for number in (1, 2, 3)]
_REGIONS = [
    {"regionKey": "IAD", "regionName": "us-ashburn-1", "status": "READY", "isHomeRegion": False},
    {"regionKey": "PHX", "regionName": "us-phoenix-1", "status": "READY", "isHomeRegion": True},
]
_SERVICES = [
    {
        "id": "ocid1.service.oc1.iad.double",
        "cidrBlock": "all-iad-services-in-oracle-services-network",
        "name": "All IAD Services In Oracle Services Network",
        "description": "",
    }
]
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGhvc3Q"
CONSOLE = f"""\
[   41.2] cloud-init[1021]: -----BEGIN SSH HOST KEY KEYS-----
[   41.2] cloud-init[1021]: {HOST_KEY} root@node
[   41.2] cloud-init[1021]: -----END SSH HOST KEY KEYS-----
"""
"""What a machine shows where no local node simulates it."""
_FOLLOWS = frozenset({"vnic", "vnicattachment", "instancepool", "consolehistory"})
"""Kinds that go with what they are of."""


class Refused(Exception):  # noqa: N818  # it is what OCI says
    """OCI's refusal."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class ParsedRequest(NamedTuple):
    """A question that was understood."""

    operation: Operation
    parameters: Json
    body: Json
    token: str

    @property
    def noun(self) -> str:
        """What it is about: cluster_network."""
        return self.operation.name.partition("_")[2]

    @property
    def target(self) -> str:
        """The last parameter of the path: what is requested."""
        return str(self.parameters[re.findall(r"\{(\w+)\}", self.operation.path)[-1]])


class Tenancy:
    """What exists in the tenancy, by OCID; `kind` in each thing is this double's own."""

    def __init__(self, nodes: Instances | None = None) -> None:
        self.things: dict[str, Json] = {}
        self._nodes = nodes
        self._serial = 0
        self._tokens: dict[str, str] = {}
        self._lock = threading.RLock()

    def answer(self, verb: str, path: str, query: Json, body: Any, token: str) -> Any:
        """Answer one question; raises Refused."""
        known = operation_of(verb, path)
        if known is None:
            raise Refused(404, "NotFound", f"the SDK has no operation {verb} {path}")
        one, parameters = known[0], {**known[1], **query}
        if found := list(complaints(one, parameters, body)):
            raise Refused(400, "InvalidParameter", f"{one.name}: {'; '.join(found)}")
        requested = ParsedRequest(one, parameters, body or {}, token)
        act = one.name.partition("_")[0]
        with self._lock:
            own = getattr(self, f"_{one.name}", None) or getattr(self, f"_{act}", None)
            if own is None:
                raise Refused(501, "NotImplemented", f"this double can't answer {one.name}")
            answer = own(requested)
        if isinstance(answer, dict) and one.answer and act != "list":
            return answered(one, answer)
        return answer

    # what all kinds have in common

    def _create(self, requested: ParsedRequest) -> Json:
        return self._once(
            requested, lambda: self._keep(requested.noun, requested.body | requested.parameters)
        )

    def _once(self, requested: ParsedRequest, make: Any) -> Json:
        """Make a thing; a token that is known makes none, and answers what it made."""
        if requested.token in self._tokens:
            return self._found(self._tokens[requested.token])
        made: Json = make()
        if requested.token:
            self._tokens[requested.token] = made["id"]
        return made

    def _keep(self, noun: str, body: Json) -> Json:
        kind = noun.replace("_", "")
        self._serial += 1
        made = {
            "id": f"ocid1.{kind}.oc1.iad.{self._serial:08d}", "kind": kind, "freeformTags": {},
            "timeCreated": "2026-11-25T00:00:00Z", "lifecycleState": _STATES.get(kind, "AVAILABLE"),
            **body,
        }  # fmt: skip
        self.things[made["id"]] = made
        return made

    def _get(self, requested: ParsedRequest) -> Json:
        return self._found(requested.target)

    def _found(self, wanted: str) -> Json:
        named = [t for t in self.things.values() if t.get("name") == wanted]  # tags, buckets
        if wanted not in self.things and not named:
            raise Refused(404, "NotAuthorizedOrNotFound", f"{wanted} was not found")
        return self.things.get(wanted) or named[0]

    def _update(self, requested: ParsedRequest) -> Json:
        found = self._found(requested.target)
        found.update(requested.body)
        return found

    def _delete(self, requested: ParsedRequest) -> None:
        gone = self._found(requested.target)
        users = [t["id"] for t in self._others(gone) if gone["id"] in json.dumps(t)]
        if users:
            raise Refused(409, "Conflict", f"{gone['id']} is used by {', '.join(users)}")
        self._delete_thing(gone)

    def _others(self, gone: Json) -> Iterator[Json]:
        for thing in self.things.values():
            if thing is not gone and thing["kind"] not in _FOLLOWS and not thing.get("isDefault"):
                yield thing

    def _delete_thing(self, gone: Json) -> None:
        del self.things[gone["id"]]
        for thing in list(self.things.values()):
            follows = thing["kind"] in _FOLLOWS or thing.get("isDefault")
            if follows and gone["id"] in json.dumps(thing):
                self.things.pop(thing["id"], None)

    def _list(self, requested: ParsedRequest) -> list[Json] | Json:
        wanted = {
            k: v for k, v in requested.parameters.items() if k not in {"limit", "page", "fields"}
        }
        kind = re.sub("ie$", "y", requested.noun.replace("_", "").removesuffix("s"))
        return listed(requested.operation, (
            thing
            for thing in self.things.values()
            if thing["kind"] == kind and all(thing.get(k) == v for k, v in wanted.items())
        ))  # fmt: skip

    # what only says that all is well

    def _get_compartment(self, requested: ParsedRequest) -> Json:
        return {"id": requested.target, "lifecycleState": "ACTIVE"}

    def _get_image(self, requested: ParsedRequest) -> Json:
        return {"id": requested.target, "lifecycleState": "AVAILABLE"}

    def _get_namespace(self, _asked: ParsedRequest) -> str:
        return "doublenamespace"

    def _get_resource_availability(self, _asked: ParsedRequest) -> Json:
        return {"used": 0, "available": _LARGE, "effectiveQuotaValue": float(_LARGE)}

    def _list_availability_domains(self, _asked: ParsedRequest) -> list[Json]:
        return _DOMAINS

    def _list_compute_hosts(self, _asked: ParsedRequest) -> Json:
        return {"items": []}

    def _list_region_subscriptions(self, _asked: ParsedRequest) -> list[Json]:
        return _REGIONS

    def _list_services(self, _asked: ParsedRequest) -> list[Json]:
        return _SERVICES

    def _create_compute_capacity_report(self, requested: ParsedRequest) -> Json:
        shapes = requested.body["shapeAvailabilities"]
        return {"shapeAvailabilities": [{**s, "availabilityStatus": "AVAILABLE"} for s in shapes]}

    def _search_resources(self, requested: ParsedRequest) -> Json:
        [(key, value)] = re.findall(
            r"freeformTags\.key = '([^']+)' && freeformTags\.value = '([^']+)'",
            requested.body["query"],
        )
        tagged = [t for t in self.things.values() if t["freeformTags"].get(key) == value]
        return {"items": [
            {
                "resourceType": thing["kind"], "identifier": thing["id"],
                "compartmentId": thing.get("compartmentId", ""),
                "displayName": thing.get("displayName") or thing.get("name"),
                "lifecycleState": thing["lifecycleState"], "freeformTags": thing["freeformTags"],
            }
            for thing in tagged
        ]}  # fmt: skip

    # machines

    def _launch_instance(self, requested: ParsedRequest) -> Json:
        def launched() -> Json:
            details = requested.body
            if configured := details.get("instanceConfigurationId"):
                kept = self._found(configured)["instanceDetails"]["launchDetails"]
                details = {**kept, **details}
            return self._launch(details)

        return self._once(requested, launched)

    def _launch(self, details: Json) -> Json:
        # Tenants with a key in the launch only; metadata are not repeated by a list.
        machine = self._keep("instance", {"extendedMetadata": {}, "region": "iad", **details})
        nic = details["createVnicDetails"]
        public = ""
        if self._nodes is not None and nic.get("assignPublicIp"):
            public = self._nodes.new_public_address()
        vnic = self._keep("vnic", {
            "privateIp": self._free_address(), "publicIp": public or None, "isPrimary": True,
            "compartmentId": machine["compartmentId"], "of": machine["id"],
        })  # fmt: skip
        self._keep("vnic_attachment", {
            "instanceId": machine["id"], "vnicId": vnic["id"], "lifecycleState": "ATTACHED",
            "compartmentId": machine["compartmentId"],
        })  # fmt: skip
        if self._nodes is not None:
            data = base64.b64decode(details["metadata"]["user_data"]).decode()
            host = details["freeformTags"].get(HOST) or self._next_host(details["freeformTags"])
            address = vnic["privateIp"]
            self._nodes.launch(machine["id"], host=host, address=address, user_data=data)
            machine["host"] = host
            if public:
                self._nodes.open(machine["id"], public)
        return machine

    def _free_address(self) -> str:
        used = {thing.get("privateIp") for thing in self.things.values()}
        if self._nodes is None:
            return f"10.0.{self._serial // 200}.{self._serial % 200 + 10}"
        addresses = (str(self._nodes.private[n]) for n in range(_FIRST_ADDRESS, 250))
        return next(address for address in addresses if address not in used)

    def _next_host(self, tags: Json) -> str:
        """Return the name that gcluster will give the next member of a pool."""
        used = {thing.get("host") for thing in self.things.values()}
        names = pool_host_names(tags[POOL], Pool(site="here", count=250))
        return next(name for name in names if name not in used)

    def _terminate_instance(self, requested: ParsedRequest) -> None:
        self._end(self._found(requested.target))

    def _end(self, machine: Json) -> None:
        if self._nodes is not None:
            self._nodes.end(machine["id"])
        self._delete_thing(machine)

    def _create_cluster_network(self, requested: ParsedRequest) -> Json:
        def made() -> Json:
            network = self._keep("cluster_network", dict(requested.body))
            pools = []
            for wanted in requested.body["instancePools"]:
                of = {**wanted, "compartmentId": network["compartmentId"], "of": network["id"]}
                pool = self._keep("instance_pool", {**of, "lifecycleState": "RUNNING"})
                pools.append(pool)
                configured = self._found(wanted["instanceConfigurationId"])
                for number in range(wanted["size"]):
                    details = configured["instanceDetails"]["launchDetails"]
                    name = f"inst-{pool['id'][-4:]}{number}-{pool['displayName']}"
                    self._launch({**details, "displayName": name, "poolOf": network["id"]})
            network["instancePools"] = pools
            return network

        return self._once(requested, made)

    def _terminate_cluster_network(self, requested: ParsedRequest) -> None:
        network = self._found(requested.target)
        for thing in list(self.things.values()):
            if thing.get("poolOf") == network["id"]:
                self._end(thing)
        self._delete_thing(network)

    def _capture_console_history(self, requested: ParsedRequest) -> Json:
        self._found(requested.body["instanceId"])
        return self._keep("console_history", {**requested.body, "lifecycleState": "REQUESTED"})

    def _get_console_history(self, requested: ParsedRequest) -> Json:
        return self._found(requested.target) | {"lifecycleState": "SUCCEEDED"}

    def _get_console_history_content(self, requested: ParsedRequest) -> str:
        history = self._found(requested.parameters["instanceConsoleHistoryId"])
        shown = CONSOLE
        if self._nodes is not None:
            shown = self._nodes.console(history["instanceId"])
        return shown[: int(requested.parameters["length"])]

    # kinds of their own form

    def _create_vcn(self, requested: ParsedRequest) -> Json:
        vcn = self._create(requested)
        if "defaultSecurityListId" not in vcn:
            own = {"vcnId": vcn["id"], "compartmentId": vcn["compartmentId"], "isDefault": True}
            vcn["defaultSecurityListId"] = self._keep("security_list", own)["id"]
        return vcn

    def _add_network_security_group_security_rules(self, requested: ParsedRequest) -> Json:
        group, made = self._found(requested.target), []
        for rule in requested.body["securityRules"]:
            self._serial += 1
            if "tcpOptions" in rule:
                rule["tcpOptions"].setdefault("sourcePortRange", None)  # OCI returns defaults
            made.append({**rule, "id": f"{self._serial:06X}", "isValid": True})
        group.setdefault("rules", []).extend(made)
        return {"securityRules": made}

    def _list_network_security_group_security_rules(self, requested: ParsedRequest) -> list[Json]:
        rules: list[Json] = self._found(requested.target).get("rules", [])
        return rules

    def _remove_network_security_group_security_rules(self, requested: ParsedRequest) -> None:
        group = self._found(requested.target)
        gone = requested.body["securityRuleIds"]
        group["rules"] = [rule for rule in group.get("rules", []) if rule["id"] not in gone]

    def _create_lustre_file_system(self, requested: ParsedRequest) -> Json:
        made = self._create(requested)
        return made | {"lnet": "tcp", "managementServiceAddress": self._free_address()}

    def _create_mount_target(self, requested: ParsedRequest) -> Json:
        made = self._create(requested)
        return made | {"exportSetId": f"{made['id']}.exports", "ipAddress": self._free_address()}

    def _update_rr_set(self, requested: ParsedRequest) -> Json:
        name = requested.parameters["domain"]
        self._keep("rr_set", {**requested.body, **requested.parameters, "id": name})
        return requested.body

    def _get_rr_set(self, requested: ParsedRequest) -> Json:
        return self._found(requested.parameters["domain"])

    def _delete_rr_set(self, requested: ParsedRequest) -> None:
        self._delete_thing(self._get_rr_set(requested))

    def _attach_volume(self, requested: ParsedRequest) -> Json:
        where = {"compartmentId": self._found(requested.body["instanceId"])["compartmentId"]}
        attached = {**requested.body, **where, "lifecycleState": "ATTACHED"}
        return self._keep("volume_attachment", attached)

    _detach = _delete

    def existing(self) -> list[str]:
        """Return the OCID of each thing that doesn't come and go with another, and all rules."""
        things = list(self.things.values())
        rules = [f"{thing['id']}/{r['id']}" for thing in things for r in thing.get("rules", ())]
        kept = [t for t in things if t["kind"] not in _FOLLOWS and not t.get("isDefault")]
        return sorted([*rules, *(thing["id"] for thing in kept)])


_STATES = {
    kind: state
    for state, kinds in {
        "ACTIVE": ("computecluster", "policy", "dynamicgroup", "tagnamespace", "tag", "budget"),
        "RUNNING": ("clusternetwork", "instance"),
    }.items()
    for kind in kinds
}
"""States of what is well, where it isn't AVAILABLE."""


def serve(tenancy: Tenancy, port: int = 0) -> ThreadingHTTPServer:
    """Return a server that answers for a tenancy; nothing is served yet."""
    return ThreadingHTTPServer(("127.0.0.1", port), _handler(tenancy))


def _handler(tenancy: Tenancy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            parts = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status = 200
            try:
                answer = self._answer(parts.path, dict(parse_qsl(parts.query)), text)
            except Refused as refused:
                status = refused.status
                answer = {"code": refused.code, "message": f"{refused} (a double of OCI)"}
            plain = isinstance(answer, str) and not self.path.startswith("/n")
            content = answer.encode() if plain else json.dumps(answer).encode()
            if answer is None:
                status, content = 204, b""
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if plain else "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Double", "This is a double of OCI for tests, and not OCI.")
            self.end_headers()
            self.wfile.write(content)

        def _answer(self, path: str, query: Json, text: bytes) -> Any:
            if path == "/standing":
                return tenancy.existing()
            if not self.headers.get("Authorization", "").startswith("Signature "):
                raise Refused(401, "NotAuthenticated", "the request is not signed")
            token = self.headers.get("opc-retry-token") or ""
            body = json.loads(text or b"null")
            return tenancy.answer(self.command, unquote(path), query, body, token)

        do_GET = do_POST = do_DELETE = do_PUT = _any  # noqa: N815  # the base class' names

        def log_message(self, form: str, *values: object) -> None:
            sys.stderr.write(f"{form % values}\n")

    return Handler


if __name__ == "__main__":
    given = Instances(**json.loads(sys.argv[2])) if len(sys.argv) > 2 else None
    serve(Tenancy(given), int(sys.argv[1])).serve_forever()
