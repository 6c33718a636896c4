"""A double of Google's services on 127.0.0.1, as a process of its own: one project, kept in memory.

It is not Google and says so in each answer's header. Every request is checked against the discovery
document of its service first, and what that doesn't take is refused. What is made exists at its
path until it is deleted; names are unique, and what is used by others can't be deleted. Local nodes
simulate the machines: they start and end with them, at the addresses of the first interface; a
metadata server inside each (`metadata_service`) takes its guest attributes. Quotas are ample, every
machine type and image is there, and a login may do everything.

usage: python -m tests.google_double.server PORT NODES
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.pulumi_double.instances import Instances

from gcluster.stacks.pulumi.names import HOST

from .documents import VERSIONS, Call, complaints, method_of
from .metadata_service import ATTRIBUTES, user_data

Json = dict[str, Any]  # a thing of Google's, or an answer
ROOTS = {
    "cloudresourcemanager": "", "compute": "compute/v1/", "dns": "", "iam": "",
    "storage": "storage/v1/",
}  # fmt: skip
"""Service -> what precedes the paths of its document."""
_LARGE = 100_000.0
_QUOTAS = ("CPUS", "N2_CPUS", "NVIDIA_H100_MEGA_GPUS", "GPUS_ALL_REGIONS", "INSTANCES", "NETWORKS")
_FIRST_ADDRESS = 10


class Refused(Exception):  # noqa: N818  # it is what Google says
    """Google's refusal."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class Project:
    """What exists in the project, by path: compute/projects/P/global/networks/N."""

    def __init__(self, nodes: Instances) -> None:
        self.things: dict[str, Json] = {}
        self.policies: dict[str, Json] = {}
        self._nodes = nodes
        self._serial = 1000
        self._lock = threading.Lock()

    def answer(self, verb: str, path: str, query: Json, body: Any) -> Json:
        """Answer one question; raises Refused."""
        service, call = _understood(verb, path, query, body)
        with self._lock:
            noun, _, act = call.method.rpartition(".")
            own = getattr(self, f"_{noun.rpartition('.')[2]}_{act}", None)
            if own is None:
                own = getattr(self, f"_{act}", None)
            if own is None:
                raise Refused(501, "UNIMPLEMENTED", f"this double can't answer {call.method}")
            answer: Json = own(_ParsedRequest(service, call, path))
            return answer

    # what all kinds have in common

    def _insert(self, requested: _ParsedRequest) -> Json:
        self._keep(f"{requested.place}/{requested.body['name']}", requested.body)
        return _done(requested)

    def _keep(self, path: str, body: Json) -> Json:
        if path in self.things:
            raise Refused(409, "alreadyExists", f"The resource '{path}' already exists")
        self._serial += 1
        service, _, rest = path.partition("/")
        made = {
            **body, "id": str(self._serial), "creationTimestamp": "2026-11-25T00:00:00.000-00:00"
        }  # fmt: skip
        if service == "compute":
            made["selfLink"] = f"https://www.googleapis.com/compute/v1/{rest}"
        self.things[path] = made
        return made

    def _get(self, requested: _ParsedRequest) -> Json:
        return self._found(requested.place)

    def _found(self, path: str) -> Json:
        if path not in self.things:
            raise Refused(404, "notFound", f"The resource '{path}' was not found")
        return self.things[path]

    def _delete(self, requested: _ParsedRequest) -> Json:
        gone = self._found(requested.place)
        if link := gone.get("selfLink"):
            for path, other in self.things.items():
                if path != requested.place and link in json.dumps(other):
                    users = f"The resource '{link}' is already being used by '{path}'"
                    raise Refused(400, "resourceInUseByAnotherResource", users)
        del self.things[requested.place]
        return _done(requested)

    def _list(self, requested: _ParsedRequest) -> Json:
        return {"items": list(self._below(requested.place))}

    def _below(self, place: str) -> Iterator[Json]:
        for path, thing in self.things.items():
            if path.rpartition("/")[0] == place:
                yield thing

    def _aggregatedList(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        kind = requested.place.rpartition("/")[2]
        wanted = _labels(requested.call.parameters.get("filter", ""))
        found: Json = {}
        for path, thing in self.things.items():
            scope, _, own = path.rpartition("/")[0].rpartition("/")
            if own == kind and wanted.items() <= thing.get("labels", {}).items():
                items = found.setdefault("/".join(scope.split("/")[-2:]), {kind: []})
                items[kind].append(thing)
        return {"items": found}

    # what only says that all is well

    def _projects_get(self, _asked: _ParsedRequest) -> Json:
        return {"quotas": [{"metric": q, "limit": _LARGE, "usage": 0.0} for q in _QUOTAS]}

    _regions_get = _projects_get

    def _machineTypes_get(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        return {"name": requested.place.rpartition("/")[2]}

    def _images_get(self, _asked: _ParsedRequest) -> Json:
        return {"status": "READY"}

    def _images_getFromFamily(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        return self._images_get(requested)

    def _projects_testIamPermissions(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        return {"permissions": requested.body["permissions"]}

    # machines

    def _instances_insert(self, requested: _ParsedRequest) -> Json:
        link = requested.call.parameters["sourceInstanceTemplate"].partition("?")[0]
        template = self._found(f"compute/{link.partition('/compute/v1/')[2]}")
        machine: Json = json.loads(json.dumps({**template["properties"], **requested.body}))
        zone = requested.call.parameters["zone"]
        used = {nic["networkIP"] for t in self.things.values()
                for nic in t.get("networkInterfaces", ())[:1] if "networkIP" in nic}  # fmt: skip
        addresses = (str(self._nodes.private[n]) for n in range(_FIRST_ADDRESS, 250))
        machine["networkInterfaces"][0]["networkIP"] = next(a for a in addresses if a not in used)
        public = [c for nic in machine["networkInterfaces"] for c in nic.get("accessConfigs", ())]
        for config in public:
            config["natIP"] = self._nodes.new_public_address()
        machine |= {"status": "RUNNING", "zone": f"zones/{zone}", "labelFingerprint": "double"}
        made = self._keep(f"{requested.place}/{machine['name']}", machine)
        given = {item["key"]: item["value"] for item in machine["metadata"]["items"]}
        self._nodes.launch(
            made["id"], host=machine["labels"][HOST],
            address=machine["networkInterfaces"][0]["networkIP"], user_data=user_data(given),
        )  # fmt: skip
        for config in public:
            self._nodes.open(made["id"], config["natIP"])
        return _done(requested)

    def _instances_delete(self, requested: _ParsedRequest) -> Json:
        self._nodes.end(self._found(requested.place)["id"])
        del self.things[requested.place]
        return _done(requested)

    def _instances_setLabels(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        self._found(requested.place.rpartition("/")[0])["labels"] = requested.body["labels"]
        return _done(requested)

    def _instances_getGuestAttributes(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # as above
        machine = self._found(requested.place.rpartition("/")[0])
        space = requested.call.parameters["queryPath"].rstrip("/")
        reported = self._nodes.files(machine["id"], f"{ATTRIBUTES}/{space}")
        if not reported:
            raise Refused(404, "notFound", f"The resource '{space}/' of type 'Guest Attribute'")
        items = [{"namespace": space, "key": k, "value": v} for k, v in reported.items()]
        return {"queryPath": f"{space}/", "queryValue": {"items": items}}

    def _instances_getSerialPortOutput(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # as above
        machine = self._found(requested.place.rpartition("/")[0])
        return {"contents": self._nodes.console(machine["id"])}

    # kinds of their own form

    def _routers_patch(self, requested: _ParsedRequest) -> Json:
        self._found(requested.place).update(requested.body)
        return _done(requested)

    def _managedZones_create(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        return self._keep(f"{requested.place}/{requested.body['name']}", requested.body)

    def _changes_create(self, requested: _ParsedRequest) -> Json:
        zone = requested.place.rpartition("/")[0]
        self._found(zone)
        for record in requested.body.get("deletions", ()):
            if self.things.pop(f"{zone}/rrsets/{record['name']} {record['type']}", None) is None:
                raise Refused(404, "notFound", f"record {record['name']} was not found")
        for record in requested.body.get("additions", ()):
            self._keep(f"{zone}/rrsets/{record['name']} {record['type']}", record)
        return {"status": "done"}

    def _resourceRecordSets_list(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        return {"rrsets": list(self._below(requested.place))}

    def _serviceAccounts_create(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        project = requested.call.parameters["name"]
        email = (
            f"{requested.body['accountId']}@{project.rpartition('/')[2]}.iam.gserviceaccount.com"
        )
        named = {"name": f"{project}/serviceAccounts/{email}", "email": email}
        return self._keep(
            f"{requested.place}/{email}", {**requested.body["serviceAccount"], **named}
        )

    def _serviceAccounts_list(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        return {"accounts": list(self._below(requested.place))}

    def _roles_create(self, requested: _ParsedRequest) -> Json:
        path = f"{requested.place}/{requested.body['roleId']}"
        if path in self.things:
            raise Refused(409, "ALREADY_EXISTS", f"A role named {path} already exists")
        return self._keep(path, {**requested.body["role"], "name": path.partition("/")[2]})

    def _getIamPolicy(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        return self.policies.get(requested.call.parameters["resource"], {"bindings": []})

    def _setIamPolicy(self, requested: _ParsedRequest) -> Json:  # noqa: N802  # the API's word
        policy: Json = requested.body["policy"]
        self.policies[requested.call.parameters["resource"]] = policy
        return policy

    def existing(self) -> list[str]:
        """Return the path of each thing, and each right that was granted."""
        granted = [
            f"{resource} {binding['role']} {member}"
            for resource, policy in self.policies.items()
            for binding in policy["bindings"]
            for member in binding["members"]
        ]
        return sorted([*self.things, *granted])


class _ParsedRequest:
    """A question that was understood."""

    def __init__(self, service: str, call: Call, path: str) -> None:
        self.call, self.body = call, call.body or {}
        rest = re.sub(r"^/(compute|storage)?/?(dns/)?v\d/", "", path)
        self.place = f"{service}/{rest}"


def _understood(verb: str, path: str, query: Json, body: Any) -> tuple[str, Call]:
    for service, root in ROOTS.items():
        if path.startswith(f"/{root}") and (
            known := method_of(service, verb, path[1 + len(root) :])
        ):
            call = Call(known[0], {**known[1], **query}, body)
            if found := list(complaints(call)):
                raise Refused(400, "INVALID_ARGUMENT", f"{call.method}: {'; '.join(found)}")
            return service, call
    raise Refused(404, "NOT_FOUND", f"no document of {sorted(VERSIONS)} has {verb} {path}")


def _done(requested: _ParsedRequest) -> Json:
    zone = requested.call.parameters.get("zone", "")
    return {"kind": "compute#operation", "name": "operation-double", "status": "DONE", "zone": zone}


def _labels(filter_: str) -> dict[str, str]:
    parts = (part.removeprefix("labels.").split("=") for part in filter_.split(" AND ") if part)
    return dict(parts)


_ENABLED = ("cloudresourcemanager", "compute", "dns", "iam", "lustre", "storage")


def serve(project: Project, port: int = 0) -> ThreadingHTTPServer:
    """Return a server that answers for a project; nothing is served yet."""
    return ThreadingHTTPServer(("127.0.0.1", port), _handler(project))


def _handler(project: Project) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            parts = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path, query = unquote(parts.path), dict(parse_qsl(parts.query))
            status = 200
            try:
                answer = self._answer(path, query, text)
            except Refused as refused:
                status, result = refused.status, f"{refused} (a double of Google)"
                error = {"code": status, "message": result, "status": refused.reason}
                answer = {"error": error}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Double", "This is a double of Google for tests, and not Google.")
            self.end_headers()
            self.wfile.write(content)

        def _answer(self, path: str, query: Json, text: bytes) -> Any:
            if path == "/token":  # any login is believed
                return {"access_token": "double", "expires_in": 3600, "token_type": "Bearer"}
            if path == "/standing":
                return project.existing()
            if path.endswith("/services"):  # Service Usage
                return {"services": [{"name": f"services/{n}.googleapis.com"} for n in _ENABLED]}
            return project.answer(self.command, path, query, json.loads(text or b"null"))

        do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _any  # noqa: N815  # the base class' names

        def log_message(self, form: str, *values: object) -> None:
            """Write the request to the log."""
            sys.stderr.write(f"{form % values}\n")

    return Handler


if __name__ == "__main__":
    kept = Project(Instances(**json.loads(sys.argv[2])))
    serve(kept, int(sys.argv[1])).serve_forever()
