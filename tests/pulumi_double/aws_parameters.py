"""Calls of AWS's API, and inputs of the provider spelled as they are there: names, tags."""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]  # a request's JSON


class Request(msgspec.Struct, frozen=True):
    """One call."""

    service: str
    operation: str
    """As boto3 names it: create_vpc."""
    parameters: Json


def pascal(value: Any, **renamed: str) -> Any:
    """Return a value with its keys as the API spells them."""
    if isinstance(value, list):
        return [pascal(item, **renamed) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        renamed.get(k, k[:1].upper() + k[1:]): pascal(item, **renamed) for k, item in value.items()
    }


def some(inputs: Json, **names: str) -> Json:
    """Return the inputs that are given under the API's names: CidrBlock="cidrBlock"."""
    return {theirs: inputs[ours] for theirs, ours in names.items() if ours in inputs}


def tags(inputs: Json) -> list[Json]:
    return [{"Key": key, "Value": value} for key, value in sorted(inputs.get("tags", {}).items())]


def tagged(kind: str, inputs: Json) -> Json:
    """Return EC2's tags of what is made."""
    found = tags(inputs)
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": found}]} if found else {}


def true(value: Any) -> bool:
    return value is True or value == "true"
