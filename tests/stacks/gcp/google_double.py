"""A double of Google's HTTP interfaces on 127.0.0.1, written after their references.

There is none to install, and nothing here was recorded from a project. The forms of questions and
answers are those of the references of Compute Engine v1, Cloud Resource Manager v1, IAM v1, Cloud
Storage v1 and Managed Lustre v1 (November 2026). Fixed answers are in
tests/cases/stacks/gcp/http/*.json; machines are kept here, so that bulkInsert and delete have
effects. What a discovery document doesn't take is refused. Errors are Google's own sentences (their
sources: tests/stacks/pulumi/messages.yaml).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import requests
from tests.google_double.documents import Call, complaints, method_of

from gcluster.stacks.gcp.api import SERVICES, Api

FIXTURES = Path(__file__).parents[2] / "cases" / "stacks" / "gcp" / "http"
PROJECT = "acme-ml"
NO_CAPACITY = (
    "The zone 'projects/acme-ml/zones/us-central1-b' does not have enough resources available to "
    "fulfill the request."
)
Answer = tuple[int, Any]


class Google:
    """One project. `calls` has every request; `fixed` answers what is not about machines."""

    def __init__(self, *fixtures: str) -> None:
        """Start with the answers of some fixtures, and no machines."""
        self.calls: list[tuple[str, str, dict[str, str], Any]] = []
        self.fixed: dict[str, Answer] = {}
        for fixture in fixtures:
            reported = json.loads((FIXTURES / f"{fixture}.json").read_text(encoding="utf-8"))
            self.fixed |= {path: (200, answer) for path, answer in reported["answers"].items()}
        self.machines: dict[str, dict[str, Any]] = {}
        self.operations: dict[str, dict[str, Any]] = {}
        self.requests: dict[str, str] = {}
        self.full: set[str] = set()
        """Options (label) that have no capacity."""
        self.keys: dict[str, list[dict[str, str]]] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def api(self) -> Api:
        """Return the provider's own client, pointed here."""
        services = {service: f"{self.root}/{service}" for service in SERVICES}
        return Api(PROJECT, login=requests.Session(), services=services, pause_s=0.0)

    @property
    def root(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def add(self, name: str, zone: str, labels: dict[str, str], **more: object) -> None:
        """Let a machine exist."""
        self.machines[name] = {
            "name": name,
            "id": str(1000 + len(self.machines)),
            "status": "RUNNING",
            "zone": f"https://compute.googleapis.com/compute/v1/projects/{PROJECT}/zones/{zone}",
            "labels": labels,
            "labelFingerprint": "42WmSpB8rSM=",
            "networkInterfaces": [{"networkIP": f"10.40.0.{len(self.machines) + 2}"}],
            **more,
        }

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer one question."""
        with self._lock:
            self.calls.append((method, path, query, body))
            if refused := _refusal(method, path, query, body):
                return 400, _error(400, "INVALID_ARGUMENT", refused)
            for pattern, act in _ROUTES:
                found = re.fullmatch(pattern, path)
                if found is not None and (act is not _get or path not in self.fixed):
                    return act(self, method, found, query, body)
            return self.fixed.get(path, (404, _error(404, "NOT_FOUND", f"{path} was not found")))

    def bodies(self, end: str) -> list[Any]:
        """Return what was sent to paths with this end."""
        return [body for _, path, _, body in self.calls if path.endswith(end)]


def _bulk(
    google: Google, _m: str, found: re.Match[str], query: dict[str, str], body: Any
) -> Answer:
    zone, request = found[1], query["requestId"]
    if request in google.requests:  # "the server will ignore the second request"
        return 200, google.operations[google.requests[request]]
    name = google.requests[request] = f"operation-{len(google.operations)}"
    labels = body["instanceProperties"]["labels"]
    operation: dict[str, Any] = {"name": name, "status": "RUNNING", "zone": f"zones/{zone}"}
    google.operations[name] = operation
    if labels["gcluster-option"] in google.full:
        error = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": NO_CAPACITY}
        operation["error"] = {"errors": [error]}
    else:
        for machine in body["perInstanceProperties"]:
            google.add(machine, zone, labels)
    return 200, operation


def _wait(google: Google, _m: str, found: re.Match[str], _q: object, _b: object) -> Answer:
    return 200, google.operations[found[1]] | {"status": "DONE"}


def _delete(google: Google, method: str, found: re.Match[str], _q: object, _b: object) -> Answer:
    assert method == "DELETE"
    if google.machines.pop(found[2], None) is None:
        return 404, _error(404, "notFound", f"{found[2]} was not found")
    return 200, {"name": "operation-delete", "status": "DONE", "zone": f"zones/{found[1]}"}


def _labels(google: Google, _m: str, found: re.Match[str], _q: object, body: Any) -> Answer:
    google.machines[found[2]]["labels"] = body["labels"]
    return 200, {"name": "operation-labels", "status": "DONE", "zone": f"zones/{found[1]}"}


def _list(google: Google, _m: str, _f: object, query: dict[str, str], _b: object) -> Answer:
    wanted = dict(part.removeprefix("labels.").split("=") for part in
                  query["filter"].split(" AND ")) if "filter" in query else {}  # fmt: skip
    found: dict[str, Any] = {"zones/us-central1-f": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}
    for machine in google.machines.values():
        if wanted.items() <= machine["labels"].items():
            zone = machine["zone"].rpartition("/")[2]
            found.setdefault(f"zones/{zone}", {"instances": []})["instances"].append(machine)
    return 200, {"items": found}


def _attribute(google: Google, _m: str, found: re.Match[str], _q: object, _b: object) -> Answer:
    items = google.keys.get(found[2])
    if items is None:
        return 404, _error(404, "notFound", "The resource 'hostkeys/' of type 'Guest Attribute'")
    return 200, {"queryPath": "hostkeys/", "queryValue": {"items": items}}


def _get(google: Google, _m: str, found: re.Match[str], _q: object, _b: object) -> Answer:
    kind = found[1]
    return google.fixed.get(found[0], (200, {"items": {}} if kind else {"items": []}))


_ZONE = rf"/compute/projects/{PROJECT}/zones/([^/]+)"
Act = Callable[[Google, str, "re.Match[str]", dict[str, str], Any], Answer]
_ROUTES: list[tuple[str, Act]] = [
    (rf"{_ZONE}/instances/bulkInsert", _bulk),
    (rf"/compute/projects/{PROJECT}/zones/[^/]+/operations/([^/]+)/wait", _wait),
    (rf"/compute/projects/{PROJECT}/aggregated/instances", _list),
    (rf"{_ZONE}/instances/([^/]+)/getGuestAttributes", _attribute),
    (rf"{_ZONE}/instances/([^/]+)/setLabels", _labels),
    (rf"{_ZONE}/instances/([^/]+)", _delete),
    (rf"/compute/projects/{PROJECT}/(aggregated/)?(?:global/)?[A-Za-z]+", _get),
]


_DOCUMENTS = {
    "compute": ("compute", ""),
    "iam": ("iam", "v1/"),
    "resources": ("cloudresourcemanager", "v1/"),
    "storage": ("storage", ""),
}
"""Word of `SERVICES` -> its discovery document, and where paths of it begin."""


def _refusal(verb: str, path: str, query: dict[str, str], body: Any) -> str:
    """Return what the document of a service has against a question."""
    word, _, rest = path.removeprefix("/").partition("/")
    if word not in _DOCUMENTS:
        return ""
    service, root = _DOCUMENTS[word]
    found = method_of(service, verb, unquote(f"{root}{rest}"))
    if found is None:
        return f"{service} has no method {verb} {rest}"
    method, parameters = found
    return "; ".join(complaints(Call(method, {**parameters, **query}, body)))


def _error(code: int, status: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status}}


def _handler(google: Google) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"null")
            query = dict(parse_qsl(parts.query))
            status, answer = google.answer(self.command, parts.path, query, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _any  # noqa: N815  # names of the base class

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
