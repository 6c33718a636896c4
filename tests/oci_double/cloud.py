"""OCI behind the double of `pulumi`: the calls that the provider would make, made of a double."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import requests
from tests.pulumi_double.clouds import Cloud, CloudError, type_of, unique_name

from .requests import KINDS, Act, Request, request

Json = dict[str, Any]  # a provider's JSON
_MISSING = 404
SIGNED = {"Authorization": 'Signature version="1",keyId="double"'}
"""The double accepts every signature; what has none it refuses."""


class OciCloud(Cloud):
    """Makes things in the double of OCI."""

    def __init__(self, endpoint: str) -> None:
        """Send requests to this endpoint."""
        self._endpoint = endpoint

    def checked(self, urn: str, inputs: Json, old: Json | None) -> Json:
        """Name what must have a name: its own, and something random, as the provider does."""
        kind = KINDS.get(type_of(urn))
        named = kind is not None and kind.autonamed
        return {"name": (old or {}).get("name") or unique_name(urn), **inputs} if named else inputs

    def create(self, urn: str, inputs: Json) -> tuple[str, Json]:
        """Make the call of the type; what the answer has beyond the inputs is computed."""
        inputs = self.checked(urn, inputs, None)
        made = self._call(urn, "create", inputs)
        if type_of(urn).endswith("SecurityRule"):
            [made] = made["securityRules"]
        identifier = str(made.get("id") or made.get("name") or inputs.get("domain"))
        computed = made | self._computed(urn, made)
        return identifier, {key: value for key, value in computed.items() if key not in inputs}

    def delete(self, urn: str, identifier: str, state: Json) -> None:
        """Take it away; what is gone already is no error."""
        if KINDS[type_of(urn)].delete:
            self._call(urn, "delete", state, identifier)

    def read(self, urn: str, identifier: str, state: Json) -> Json | None:
        """Return what was known, or what is there if nothing was; None where it is gone."""
        form = KINDS[type_of(urn)].imported
        named = form and form.fullmatch(identifier)
        parts = named.groupdict() if named and not state else {}
        identifier = parts.pop("id", identifier)
        found = self._call(urn, "get", {**parts, **state}, identifier)
        if isinstance(found, list):
            found = next((one for one in found if one["id"] == identifier), None)
        if found is None or state:
            return found and state
        return {"id": identifier, **parts, **found, **self._computed(urn, found)}

    def invoke(self, token: str, arguments: Json) -> Json:
        """Call the functions that programs call while they run."""
        noun = token.rpartition(":")[2]
        if noun == "getAvailabilityDomain":
            names = self._get("/20160918/availabilityDomains", arguments["compartmentId"])
            return {**arguments, "name": names[int(arguments["adNumber"]) - 1]["name"]}
        if noun == "getServices":
            return {**arguments, "services": self._get("/20160918/services")}
        if noun == "getRegionSubscriptions":
            where = f"/20160918/tenancies/{arguments['tenancyId']}/regionSubscriptions"
            return {**arguments, "regionSubscriptions": self._get(where)}
        if noun == "getNamespace":
            return {**arguments, "namespace": self._get("/n")}
        raise CloudError(f"this double has no answer to {token} {arguments}")

    def _computed(self, urn: str, made: Json) -> Json:
        """Return what the provider reads elsewhere: of an instance its first interface."""
        if type_of(urn) != "oci:Core/instance:Instance":
            return {}
        where = f"/20160918/vnicAttachments?instanceId={made['id']}"
        [attached] = self._get(where, made["compartmentId"])
        vnic = self._get(f"/20160918/vnics/{attached['vnicId']}")
        return {"privateIp": vnic["privateIp"], "publicIp": vnic.get("publicIp") or ""}

    def _get(self, path: str, compartment: str = "") -> Any:
        wanted = {"compartmentId": compartment} if compartment else None
        return _answer(
            requests.get(self._endpoint + path, params=wanted, headers=SIGNED, timeout=60)
        )

    def _call(self, urn: str, act: Act, inputs: Json, identifier: str = "") -> Any:
        if type_of(urn) not in KINDS:
            raise CloudError(f"this double of OCI has no type {type_of(urn)}")
        call: Request = request(type_of(urn), act, inputs, identifier=identifier)
        reply = requests.request(
            call.operation.verb, self._endpoint + quote(call.path), json=call.body, headers=SIGNED,
            timeout=300,
        )  # fmt: skip
        return None if act != "create" and reply.status_code == _MISSING else _answer(reply)


def _answer(reply: requests.Response) -> Any:
    if not reply.ok:
        answer = reply.json()
        raise CloudError(f"Error: {reply.status_code}-{answer['code']}, {answer['message']}")
    return reply.json() if reply.content else None
