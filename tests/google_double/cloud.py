"""Google behind the double of `pulumi`: the calls that the provider would make, made of a double.

Only the types that the programs of plain Slurm sites use are known; others are refused.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import requests
from tests.pulumi_double.clouds import Cloud, CloudError, type_of, unique_name

from .documents import Call, path_of
from .requests import KINDS, request
from .server import ROOTS

Json = dict[str, Any]  # a provider's JSON
_MISSING, _EXISTS = 404, 409


class Kind(msgspec.Struct, frozen=True):
    """How a type is found again and removed; "{project}" and the like are inputs and outputs."""

    item: str = ""
    """Its path below the service's root; "": what is made is a part of something else."""
    outputs: tuple[str, ...] = ("name", "selfLink")


class GoogleCloud(Cloud):
    """Makes things in the double of Google."""

    def __init__(self, endpoint: str) -> None:
        """Send requests to this endpoint."""
        self._endpoint = endpoint

    def create(self, urn: str, inputs: Json) -> tuple[str, Json]:
        """Make the call of the type, and read the thing."""
        kind, made = _kind(urn), request(type_of(urn), unique_name(urn), inputs)
        if type_of(urn) in _GRANTS:
            where = self._grant(urn, inputs, add=True)
            return f"{where}/{inputs['role']}/{inputs['member']}", {"etag": "double"}
        if type_of(urn).endswith(":RecordSet"):
            made.body.update(deletions=self._records(made))
        self._call(made, exists_ok=inputs.get("createIgnoreAlreadyExists", False))
        known = {**inputs, "name": (made.body or {}).get("name", inputs.get("name"))}
        path = kind.item.format_map(known)
        if not path:
            return f"{known['project']}/{known.get('router')}/{known['name']}", {}
        found = self._read(made.method, path) or {}
        outputs = {key: found[key] for key in kind.outputs if key in found}
        if "selfLink" in found:
            outputs["selfLinkUnique"] = f"{found['selfLink']}?uniqueId={found['id']}"
        if "networkInterfaces" in found:
            outputs["instanceId"] = found["id"]
            outputs["networkInterfaces"] = [
                {"networkIp": nic.get("networkIP", ""), "accessConfigs": [
                    {"natIp": config.get("natIP", "")} for config in nic.get("accessConfigs", ())
                ]} for nic in found["networkInterfaces"]
            ]  # fmt: skip
        if "email" in found:
            outputs["member"] = f"serviceAccount:{found['email']}"
        return path.removeprefix("v1/").removeprefix("dns/v1/"), outputs

    def delete(self, urn: str, identifier: str, state: Json) -> None:
        """Take it away; what is gone already is no error."""
        del identifier
        kind = _kind(urn)
        if type_of(urn) in _GRANTS:
            self._grant(urn, state, add=False)
        elif type_of(urn).endswith(":RecordSet"):
            record = {key: state[key] for key in ("name", "type", "ttl", "rrdatas")}
            place = {key: state[key] for key in ("project", "managedZone")}
            self._call(Call("dns.changes.create", place, {"deletions": [record]}), missing_ok=True)
        elif kind.item:
            self._send(
                "DELETE", KINDS[type_of(urn)].method, kind.item.format_map(state), ignored=_MISSING
            )

    def read(self, urn: str, identifier: str, state: Json) -> Json | None:
        """Return what was known, else (a role's import) what its id says; None where it is gone."""
        kind = _kind(urn)
        if not kind.item:
            return state
        known = state
        if not state:
            form = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", kind.item.removeprefix("v1/"))
            answer = re.fullmatch(form, identifier)
            known = answer.groupdict() if answer else {}
        found = self._read(KINDS[type_of(urn)].method, kind.item.format_map(known))
        return None if found is None else state or {**found, **known}

    def invoke(self, token: str, arguments: Json) -> Json:
        """Refuse: no program of this double's sites calls functions."""
        raise CloudError(f"this double has no answer to {token} {arguments}")

    def _grant(self, urn: str, inputs: Json, *, add: bool) -> str:
        """Read the policy, change it, write it: what the provider does, under its own lock."""
        place = {"resource": inputs[_GRANTS[type_of(urn)]]}
        nouns = KINDS[type_of(urn)].method.rpartition(".")[0]
        requested = None if nouns.startswith("iam.") else {}
        policy = self._call(Call(f"{nouns}.getIamPolicy", place, requested))
        pairs = {(b["role"], m) for b in policy.get("bindings", ()) for m in b["members"]}
        pair = {(inputs["role"], inputs["member"])}
        pairs = pairs | pair if add else pairs - pair
        bindings = [{"role": role, "members": [member]} for role, member in sorted(pairs)]
        written = {"policy": {"bindings": bindings}}
        self._call(Call(f"{nouns}.setIamPolicy", place, written))
        return str(place["resource"])

    def _records(self, made: Call) -> list[Json]:
        """Return the records that a new one takes the place of: the provider replaces what exists.

        As in terraform-provider-google, resource_dns_record_set.go (November 2026).
        """
        zone = {key: made.parameters[key] for key in ("project", "managedZone")}
        there = self._call(Call("dns.resourceRecordSets.list", zone))["rrsets"]
        [new] = made.body["additions"]
        fields = ("name", "type", "ttl", "rrdatas")
        same = [one for one in there if (one["name"], one["type"]) == (new["name"], new["type"])]
        return [{key: one[key] for key in fields} for one in same]

    def _read(self, method: str, path: str) -> Json | None:
        found: Json | None = self._send("GET", method, path, ignored=_MISSING)
        return found

    def _call(self, call: Call, *, missing_ok: bool = False, exists_ok: bool = False) -> Any:
        verb, path, query = path_of(call)
        ignored = _MISSING if missing_ok else _EXISTS if exists_ok else 0
        return self._send(verb, call.method, path, query, call.body, ignored=ignored)

    def _send(
        self, verb: str, method: str, path: str, query: Json | None = None, body: Any = None,
        *, ignored: int = 0,
    ) -> Any:  # fmt: skip
        url = f"{self._endpoint}/{ROOTS[method.partition('.')[0]]}{path}"
        reply = requests.request(verb, url, params=query, json=body, timeout=300)
        if reply.status_code == ignored:
            return None
        if not reply.ok:
            raise CloudError(f"googleapi: Error {reply.status_code}: {reply.text}")
        return reply.json()


def _kind(urn: str) -> Kind:
    if type_of(urn) not in _KINDS:
        raise CloudError(f"this double of Google has no type {type_of(urn)}")
    return _KINDS[type_of(urn)]


_GLOBAL, _REGION, _ZONE = (
    f"projects/{{project}}/{scope}" for scope in ("global", "regions/{region}", "zones/{zone}")
)
_GRANTS = {
    "gcp:projects/iAMMember:IAMMember": "project",
    "gcp:serviceaccount/iAMMember:IAMMember": "serviceAccountId",
}
"""Type of a right -> the input that says at what."""
_KINDS: dict[str, Kind] = {
    "gcp:compute/firewall:Firewall": Kind(f"{_GLOBAL}/firewalls/{{name}}"),
    "gcp:compute/instanceFromTemplate:InstanceFromTemplate": Kind(f"{_ZONE}/instances/{{name}}"),
    "gcp:compute/instanceTemplate:InstanceTemplate": Kind(f"{_GLOBAL}/instanceTemplates/{{name}}"),
    "gcp:compute/network:Network": Kind(f"{_GLOBAL}/networks/{{name}}"),
    "gcp:compute/resourcePolicy:ResourcePolicy": Kind(f"{_REGION}/resourcePolicies/{{name}}"),
    "gcp:compute/router:Router": Kind(f"{_REGION}/routers/{{name}}"),
    "gcp:compute/routerNat:RouterNat": Kind(),
    "gcp:compute/subnetwork:Subnetwork": Kind(f"{_REGION}/subnetworks/{{name}}"),
    "gcp:dns/managedZone:ManagedZone": Kind("dns/v1/projects/{project}/managedZones/{name}"),
    "gcp:dns/recordSet:RecordSet": Kind(),
    "gcp:projects/iAMCustomRole:IAMCustomRole": Kind(
        "v1/projects/{project}/roles/{roleId}", ("name",)
    ),
    **{grant: Kind() for grant in _GRANTS},
    "gcp:serviceaccount/account:Account": Kind(
        "v1/projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com",
        ("name", "email"),
    ),
}
