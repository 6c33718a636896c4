"""A double of Azure Resource Manager, written after Microsoft's REST documentation.

There is no emulator of Azure's compute service, and nothing here was recorded from a subscription.
It answers the SDK's own requests over `requests`, keeps scale sets in memory, and takes all else
from tests/cases/stacks/azure/http/*.json, which say themselves where their form comes from.
"""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from azure.core.credentials import AccessToken
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import BaseAdapter
from urllib3 import HTTPResponse

from gcluster.stacks.azure.api import Api
from gcluster.stacks.azure.offers import PRICES

HTTP = Path(__file__).parents[2] / "cases/stacks/azure/http"
SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/research-east-cluster1a2b3c4d"
SETS = f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets"


class Login:
    """A credential that is always good."""

    def get_token(self, *_scopes: str, **_more: object) -> AccessToken:
        """Return a token that means nothing."""
        return AccessToken("not-a-token", 2**31)


class ScaleSetDouble:
    """One scale set: capacity, tags, machines, and what it can't do today."""

    def __init__(self, name: str, count: int, tags: dict[str, str]) -> None:
        """Begin with machines 0 to count - 1."""
        self.name = name
        self.tags = tags
        self.version = 1
        self.capacity = count
        self.numbers = {str(n): "Succeeded" for n in range(count)}
        self.room: int | None = None
        """Machines that Azure has left; beyond it the call fails, as AllocationFailed."""
        self.breaks: set[str] = set()
        """Numbers of machines that will not start."""
        self.interrupt: str = ""
        """"before" or "after": the next change ends there, as in a killed process."""
        self.rival = False
        """Another client changes it right before the next change."""
        self.calls: list[str] = []

    def shown(self) -> dict[str, object]:
        """Return what a GET answers."""
        return {
            "id": f"{SETS}/{self.name}",
            "name": self.name,
            "type": "Microsoft.Compute/virtualMachineScaleSets",
            "location": "eastus",
            "tags": self.tags,
            "etag": f'"{self.version}"',
            "sku": {"name": "Standard_ND96isr_H100_v5", "capacity": self.capacity},
            "properties": {"provisioningState": "Succeeded"},
        }

    def machines(self) -> list[dict[str, object]]:
        """Return what the list of machines answers."""
        return [
            {
                "instanceId": number,
                "id": f"{SETS}/{self.name}/virtualMachines/{number}",
                "properties": {"vmId": f"vm-{self.name}-{number}", "provisioningState": state},
            }
            for number, state in self.numbers.items()
        ]

    def change(self, body: dict[str, Any], match: str | None) -> tuple[int, object]:
        """Take a PATCH; return status and body."""
        if self.rival:
            self.rival = False
            self.version += 1
        if match not in {None, f'"{self.version}"'}:
            return 412, error("PreconditionFailed", "the etag is another")
        if self.interrupt == "before":
            self.interrupt = ""
            raise KilledError
        self.version += 1
        self.tags = body.get("tags", self.tags)
        wanted = (body.get("sku") or {}).get("capacity")
        refused = None if wanted is None else self._resize(int(wanted))
        if self.interrupt == "after":
            self.interrupt = ""
            raise KilledError
        return refused or (200, self.shown())

    def _resize(self, wanted: int) -> tuple[int, object] | None:
        self.calls.append(f"capacity {self.capacity} -> {wanted}")
        self.capacity = wanted
        free = (str(n) for n in range(10**6) if str(n) not in self.numbers)
        while len(self.numbers) < wanted:
            if self.room == 0:
                return 409, error("AllocationFailed", "Allocation failed. We do not have capacity")
            self.room = None if self.room is None else self.room - 1
            number = next(free)
            self.numbers[number] = "Failed" if number in self.breaks else "Succeeded"
        return None

    def delete(self, numbers: list[str]) -> None:
        """End machines, the capacity with them."""
        self.calls.append(f"delete {','.join(numbers)}")
        for number in numbers:
            if self.numbers.pop(number, None) is not None:
                self.capacity -= 1
        self.version += 1


class KilledError(Exception):
    """The process that sent the request is gone."""


class AzureDouble(BaseAdapter):
    """Answers requests; `answers` maps a path to a fixture's name, or to an answer."""

    def __init__(self) -> None:
        """Know nothing yet."""
        super().__init__()
        self.sets: dict[str, ScaleSetDouble] = {}
        self.answers: dict[str, object] = {}
        self.scripts: dict[str, str] = {}
        self.refuse_commands: tuple[int, str] | None = None
        """Status and code that run-command is refused with."""
        """Path of a machine -> what a script prints on it."""
        self.more: list[Any] = []
        """Other resources that carry tags."""
        self.calls: list[str] = []
        self.hosts: set[str] = set()
        """The URL of the request."""
        self.denied: set[str] = set()
        """Paths that the login may not read."""
        self.refused: tuple[int, object] | None = None
        """What everything is answered with, where a login is no good."""

    def api(self) -> Api:
        """Return the real client over this adapter."""
        session = requests.Session()
        session.mount("https://", self)
        transport = RequestsTransport(session=session, session_owner=False)
        return Api(SUBSCRIPTION, credential=Login(), transport=transport, interval_s=0)

    def scale_set(self, pool: str, count: int, **tags: str) -> ScaleSetDouble:
        """Add a scale set of cluster research, site east."""
        own = {
            "gcluster-cluster": "research", "gcluster-site": "east", "gcluster-pool": pool,
            "gcluster-set": pool,
        }  # fmt: skip
        made = ScaleSetDouble(f"research-east-{pool}1a2b3c4d", count, own | tags)
        self.sets[made.name] = made
        return made

    def price_list(self, url: str) -> bytes:
        """Answer Azure's public price list, which needs no login; see `answers` under its URL."""
        self.calls.append(f"GET {url}")
        return json.dumps(fixture(self.answers.get(PRICES, "prices.json"))).encode()

    def send(
        self, request: requests.PreparedRequest, *_: object, **__: object
    ) -> requests.Response:
        """Answer one request."""
        url = urlsplit(str(request.url))
        self.calls.append(f"{request.method} {url.path}")
        self.hosts.add(url.netloc)
        status, body = self.refused or self._answer(request, url.path, parse_qs(url.query))
        response = requests.Response()
        response.status_code = status
        response.url = str(request.url)
        response.request = request
        response.headers["Content-Type"] = "application/json"
        response.raw = HTTPResponse(
            body=BytesIO(json.dumps(body).encode()), status=status, preload_content=False
        )
        return response

    def close(self) -> None:
        """Nothing is held."""

    def _answer(
        self, request: requests.PreparedRequest, path: str, query: dict[str, list[str]]
    ) -> tuple[int, object]:
        text = request.body or b"{}"
        body = json.loads(text if isinstance(text, str | bytes) else b"{}")
        if path in self.denied:
            return 403, error(
                "AuthorizationFailed", "does not have authorization to perform action"
            )
        if path in self.answers:
            return 200, fixture(self.answers[path])
        if path.endswith("/runCommand"):
            return self._ran(path.removesuffix("/runCommand"))
        if path.endswith(("/resources", "/resourcegroups")):
            key, value = query["$filter"][0].split("'")[1::2]
            every = self._every() if path.endswith("/resources") else []
            return 200, {"value": [r for r in every if r["tags"].get(key) == value]}
        found = re.match(rf"{SETS}/(?P<name>[^/]+)(?P<rest>/.*)?$", path, re.IGNORECASE)
        if found and found["name"] in self.sets:
            one = self.sets[found["name"]]
            return self._of_set(one, found["rest"], body, request)
        return 404, error("ResourceNotFound", f"nothing at {path}")

    @staticmethod
    def _of_set(
        one: ScaleSetDouble,
        rest: str | None,
        body: Any,
        request: requests.PreparedRequest,  # any JSON
    ) -> tuple[int, object]:
        if request.method == "PATCH":
            return one.change(body, request.headers.get("If-Match"))
        if rest == "/delete":
            one.delete(body["instanceIds"])
            return 200, {}
        return 200, {"value": one.machines()} if rest else one.shown()

    def _ran(self, machine: str) -> tuple[int, object]:
        if self.refuse_commands is None:
            return 200, self._printed(machine)
        status, code = self.refuse_commands
        return status, error(code, "the agent can't be queried")

    def _printed(self, machine: str) -> object:
        answer = fixture("run_command.json")
        first = answer["value"][0]
        first["message"] = first["message"].replace("OUTPUT", self.scripts.get(machine, ""))
        return answer

    def _every(self) -> list[Any]:
        return [one.shown() for one in self.sets.values()] + self.more


def fixture(answer: object) -> Any:  # any JSON
    if not isinstance(answer, str):
        return answer
    return json.loads((HTTP / answer).read_text(encoding="utf-8"))["body"]


def error(code: str, message: str) -> dict[str, object]:
    """Return an error as Azure Resource Manager words it."""
    return {"error": {"code": code, "message": message}}
