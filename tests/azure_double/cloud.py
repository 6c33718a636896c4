"""Azure behind the double of `pulumi`: the calls that the provider would make, made of a double."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from typing import Any

import requests
from tests.pulumi_double.clouds import Cloud, CloudError, name_of, type_of

from .addresses import address, named, templates
from .models import flat, nested

Json = dict[str, Any]  # a provider's JSON
_MISSING, _VERSION = 404, "azureApiVersion"


class AzureCloud(Cloud):
    """Makes things in the double of Azure."""

    def __init__(self, endpoint: str, certificate: str) -> None:
        """Send requests to this endpoint; the certificate is the double's own."""
        self._endpoint, self._certificate = endpoint, certificate

    def checked(self, urn: str, inputs: Json, old: Json | None) -> Json:
        """Give names (their own, and something random) and the API version, as the provider does.

        So a checkpoint has them before anything is made (pulumi-azure-native, applyDefaults).
        """
        names = [name for name in named(_known(urn)) if name.endswith("Name")]
        given = {name: (old or {}).get(name) or _unique(urn, name) for name in names}
        return {**given, _VERSION: "2024-01-01", **inputs}

    def create(self, urn: str, inputs: Json) -> tuple[str, Json]:
        """Create the resource, unless its address is taken; return what Azure answers."""
        token = _known(urn)
        path, body = address(token, {k: v for k, v in inputs.items() if k != _VERSION})
        if self._call("GET", path) is not None:
            raise CloudError(f"cannot create already existing resource '{path}'")
        made = self._call("PUT", path, nested(token, body))
        return path, _outputs(made)

    def update(self, urn: str, identifier: str, old: Json, new: Json) -> Json:
        """Put the whole thing again, as the provider does."""
        del old
        token = type_of(urn)
        _, body = address(token, {k: v for k, v in new.items() if k != _VERSION})
        return _outputs(self._call("PUT", identifier, nested(token, body)))

    def delete(self, urn: str, identifier: str, state: Json) -> None:
        """Take it away; what is gone already is no error."""
        del urn, state
        self._call("DELETE", identifier)

    def read(self, urn: str, identifier: str, state: Json) -> Json | None:
        """Return what it is now, None where it is gone."""
        del urn
        there = self._call("GET", identifier)
        return None if there is None else {**state, **_outputs(there)}

    def invoke(self, token: str, arguments: Json) -> Json:
        """Refuse: no program of this double's sites calls functions."""
        raise CloudError(f"this double has no answer to {token} {arguments}")

    def _call(self, verb: str, path: str, body: Json | None = None) -> Any:
        # The only login that the double gives is a machine's identity.
        if os.environ.get("ARM_USE_DEFAULT_AZURE_CREDENTIAL") != "true":
            raise CloudError("Azure CLI not found on path: the provider tries no other login")
        reply = requests.request(
            verb,
            f"{self._endpoint}{path}",
            params={"api-version": "2024-01-01"},
            json=body,
            timeout=300,
            verify=self._certificate,
        )
        if reply.status_code == _MISSING and verb != "PUT":
            return None
        if not reply.ok:
            raise CloudError(f"Status={reply.status_code} {reply.text}")
        return reply.json()


def _known(urn: str) -> str:
    if type_of(urn) not in templates():
        raise CloudError(f"this double of Azure has no type {type_of(urn)}")
    return type_of(urn)


def _outputs(answer: Json) -> Json:
    reported: Json = flat(answer)
    return reported


def _unique(urn: str, name: str) -> str:
    """Return the name that the provider gives what has none: its own, and something random."""
    if name == "roleAssignmentName":
        return str(uuid.uuid4())
    random = hashlib.sha256(f"{urn}{time.time_ns()}".encode()).hexdigest()[:8]
    return f"{name_of(urn)}{random}"
