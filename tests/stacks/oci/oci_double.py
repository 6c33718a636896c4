"""A double of OCI's HTTP interfaces on 127.0.0.1, written after their references.

There is none to install, and nothing here was recorded from a tenancy. Its client is OCI's own SDK,
with a key that is made here, so requests and signatures are real. Fixed answers are in
tests/cases/stacks/oci/http/region.json; machines are kept here, so that launches have effects.
Paths are given without the version of the interface: compute/instances.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.oci_double.server import CONSOLE

from gcluster.stacks.oci.api import Api

FIXTURE = Path(__file__).parents[2] / "cases" / "stacks" / "oci" / "http" / "region.json"
_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
LOGIN = {
    "user": "ocid1.user.oc1..aaaa",
    "tenancy": "ocid1.tenancy.oc1..acme",
    "fingerprint": ":".join(["ab"] * 16),
    "key_content": _KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode(),
}
Answer = tuple[int, Any]


class Oracle:
    """One compartment. `calls` has every request; `fixed` answers what is not about machines."""

    def __init__(self) -> None:
        """Start without machines."""
        self.fixed: dict[str, Any] = json.loads(FIXTURE.read_text(encoding="utf-8"))["answers"]
        self.calls: list[tuple[str, str, Any]] = []
        self.machines: dict[str, dict[str, Any]] = {}
        self.configurations: dict[str, dict[str, Any]] = {}
        self.networks: list[dict[str, Any]] = []
        self.tokens: dict[str, str] = {}
        self.full: set[str] = set()
        """Instance configurations whose launches find no capacity."""
        self.room = 1000
        """Launches that succeed before capacity is out everywhere."""
        self.logged_out = False
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def api(self) -> Api:
        """Return the provider's own client, pointed here."""
        url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return Api("us-ashburn-1", login=LOGIN, endpoint_url=url)

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def add(self, tags: dict[str, str], state: str = "RUNNING") -> str:
        """Let a machine exist; return its id."""
        name = f"ocid1.instance.oc1.iad.{len(self.machines):03d}"
        self.machines[name] = {
            "id": name,
            "lifecycleState": state,
            "displayName": f"inst-{len(self.machines)}",
            "shape": "BM.GPU.H100.8",
            "freeformTags": {"gcluster-cluster": "lab", "gcluster-site": "here", **tags},
            "sourceDetails": {"sourceType": "image", "imageId": "ocid1.image.oc1.iad.booted"},
        }
        return name

    def configure(self, pool: str, offer: str) -> str:
        """Let an instance configuration exist, as the program makes it; return its id."""
        name = f"ocid1.instanceconfiguration.oc1.iad.{offer}"
        self.configurations[name] = {
            "id": name,
            "freeformTags": {
                "gcluster-cluster": "lab",
                "gcluster-site": "here",
                "gcluster-pool": pool,
                "gcluster-offer": offer,
            },
            "instanceDetails": {
                "instanceType": "compute",
                "launchDetails": {"availabilityDomain": "Uocm:US-ASHBURN-AD-2"},
            },
        }
        return name

    def existing(self) -> list[dict[str, Any]]:
        """Return the machines that are there."""
        return [m for m in self.machines.values() if m["lifecycleState"] != "TERMINATED"]

    def posted(self, end: str) -> list[Any]:
        """Return the bodies that were sent to paths with this end."""
        return [body for method, path, body in self.calls if method != "GET" and path.endswith(end)]

    def answer(
        self, method: str, path: str, query: dict[str, str], body: Any, token: str
    ) -> Answer:
        """Answer one question."""
        with self._lock:
            self.calls.append((method, path, body))
            if self.logged_out:
                return 401, {"code": "NotAuthenticated", "message": "The key is not known."}
            if (method, path) == ("POST", "compute/instances"):
                return self._launch(body, token)
            for pattern, act in _ROUTES.items():
                found = re.fullmatch(pattern, f"{method} {path}")
                if found is not None:
                    return act(self, found, query, body)
            if f"{method} {path}" in self.fixed:
                return 200, self.fixed[f"{method} {path}"]
            return 404, {"code": "NotAuthorizedOrNotFound", "message": f"{path} was not found."}

    def _launch(self, body: Any, token: str) -> Answer:
        if token in self.tokens:  # "without risk of executing that same action again"
            return 200, self.machines[self.tokens[token]]
        if body["instanceConfigurationId"] in self.full or self.room <= 0:
            return 500, {"code": "InternalError", "message": "Out of host capacity."}
        self.room -= 1
        self.tokens[token] = self.add(body["freeformTags"], "PROVISIONING")
        return 200, self.machines[self.tokens[token]]


def _list(oracle: Oracle, *_: object) -> Answer:
    return 200, list(oracle.machines.values())


def _end(oracle: Oracle, found: re.Match[str], *_: object) -> Answer:
    oracle.machines[found[1]]["lifecycleState"] = "TERMINATED"
    return 204, None


def _rename(oracle: Oracle, found: re.Match[str], _: object, body: Any) -> Answer:
    oracle.machines[found[1]] |= body
    return 200, oracle.machines[found[1]]


def _attachments(_: Oracle, _f: object, query: dict[str, str], _b: object) -> Answer:
    machine = query["instanceId"]
    number = int(machine.rpartition(".")[2])
    return 200, [{"lifecycleState": "ATTACHED", "vnicId": f"ocid1.vnic.oc1.iad.{number}"}]


def _vnic(oracle: Oracle, found: re.Match[str], *_: object) -> Answer:
    number = int(found[1])
    machine = oracle.machines[f"ocid1.instance.oc1.iad.{number:03d}"]
    public = "192.0.2.7" if machine["freeformTags"].get("gcluster-pool") == "login" else None
    return 200, {"isPrimary": True, "privateIp": f"10.60.0.{number + 2}", "publicIp": public}


def _capture(_: Oracle, _f: object, _q: object, body: Any) -> Answer:
    return 200, {"id": f"history-{body['instanceId']}", "lifecycleState": "SUCCEEDED"}


def _history(*_: object) -> Answer:
    return 200, CONSOLE


def _gone(*_: object) -> Answer:
    return 204, None


def _templates(oracle: Oracle, *_: object) -> Answer:
    return 200, list(oracle.configurations.values())


def _template(oracle: Oracle, found: re.Match[str], *_: object) -> Answer:
    return 200, oracle.configurations[found[1]]


def _networks(oracle: Oracle, *_: object) -> Answer:
    return 200, oracle.networks


def _members(oracle: Oracle, *_: object) -> Answer:
    return 200, [{"id": name} for name in oracle.machines]


def _detach(oracle: Oracle, _f: object, _q: object, body: Any) -> Answer:
    assert body["isDecrementSize"] is True
    assert body["isAutoTerminate"] is True
    oracle.machines[body["instanceId"]]["lifecycleState"] = "TERMINATED"
    return 200, {"id": "pool"}


_ROUTES: dict[str, Any] = {
    r"GET compute/instances": _list,
    r"DELETE compute/instances/([^/]+)": _end,
    r"PUT compute/instances/([^/]+)": _rename,
    r"GET compute/vnicAttachments": _attachments,
    r"GET network/vnics/ocid1.vnic.oc1.iad.(\d+)": _vnic,
    r"POST compute/instanceConsoleHistories": _capture,
    r"GET compute/instanceConsoleHistories/[^/]+/data": _history,
    r"DELETE compute/instanceConsoleHistories/[^/]+": _gone,
    r"GET management/instanceConfigurations": _templates,
    r"GET management/instanceConfigurations/([^/]+)": _template,
    r"GET management/clusterNetworks": _networks,
    r"GET management/instancePools/[^/]+/instances": _members,
    r"POST management/instancePools/[^/]+/actions/detachInstance": _detach,
}


def _handler(oracle: Oracle) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            parts = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, answer = oracle.answer(
                self.command,
                re.sub(r"^/(\w+)/\d{8}/", r"\1/", parts.path),
                dict(parse_qsl(parts.query)),
                json.loads(raw or b"null"),
                self.headers.get("opc-retry-token") or "",
            )
            text = isinstance(answer, str)
            content = answer.encode() if text else json.dumps(answer).encode()
            content = b"" if answer is None else content
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if text else "application/json")
            self.send_header(
                "Content-Length", str(len(content) if status != 204 else 0)
            )  # no content
            self.end_headers()
            if status != 204:  # no content
                self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_PUT = _any  # noqa: N815  # names of the base class

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
