"""Checks requests to Azure against models of its interfaces: names, types, enumerations, ranges.

Compute has the models of its SDK (azure-mgmt-compute). All types have those of pulumi_azure_native,
which are made from Microsoft's REST specifications (Azure/azure-rest-api-specs) in the versions
that the engine's provider requests. Both are of the form that programs write: members that the
interface has below `properties` are on one level with the others. Neither has ranges and patterns:
those of all that our programs send are in limits.yaml. What a model leaves open is not seen.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import math
import re
import types
import typing
from collections.abc import Awaitable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pulumi
import yaml
from azure.mgmt.compute import models
from pulumi import _types

Json = dict[str, Any]  # a provider's JSON
COMPUTE = ("Disk", "DiskEncryptionSet", "VirtualMachine", "VirtualMachineScaleSet")
"""Types whose inputs are held to the SDK's models as well."""
_OPEN = {"VirtualMachineSizeTypes"}
"""Enumerations that stopped being complete: the service takes sizes that came later."""
_PLAIN: dict[type, type | tuple[type, ...]] = {str: str, bool: bool, int: int, float: (int, float)}
_FILLED_IN = {"id", "name", "type"}
"""What the SDK's models require of answers, and requests have in their address."""


def complaints(token: str, inputs: Json) -> Iterator[str]:
    """Yield what the models don't take of the inputs of a type, "azure-native:MODULE:TYPE"."""
    _, module, kind = token.split(":")
    known = importlib.import_module(f"pulumi_azure_native.{module}")
    # Where a resource is a part of others too, NetworkSecurityGroupArgs is that part.
    whole = getattr(known, f"{kind}InitArgs", None) or getattr(known, f"{kind}Args")
    yield from _of(whole, inputs, kind)
    for path, value in paths(f"{module}.{kind}", inputs):
        yield from _beyond(path, value)
    if module == "compute" and kind in COMPUTE:
        body = {key: value for key, value in inputs.items() if key not in _path_only(kind)}
        yield from of_sdk(getattr(models, kind), body, f"SDK {kind}")


class _Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pattern: str = ""
    least: float = 0
    most: float = math.inf


@cache
def limits() -> dict[str, _Limit]:
    """Return module, type and path of a member -> what it is held to."""
    file = Path(__file__).with_name("limits.yaml")
    return msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), dict[str, _Limit])


def paths(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the path of each member at any depth, and its value; "*" is a key of the user's own."""
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            name = "*" if path.endswith(".notifications") else key
            yield from paths(f"{path}.{name}", item)
    elif isinstance(value, list):
        for item in value:
            yield from paths(path, item) if isinstance(item, dict) else ()


def _beyond(path: str, value: Any) -> Iterator[str]:
    """Yield what is out of its range or not of its pattern."""
    limit = limits().get(path)
    if limit is not None:
        size = value if isinstance(value, int | float) else len(value)
        if not limit.least <= size <= limit.most:
            yield f"{path}: {value!r} is not from {limit.least:g} to {limit.most:g}"
        if limit.pattern and not re.fullmatch(limit.pattern, value):
            yield f"{path}: {value!r} is not of {limit.pattern}"


def of_sdk(model: type, body: Json, path: str) -> Iterator[str]:
    """Yield what a model of azure-mgmt-compute doesn't take of a map."""
    yield from _of(model, body, path)


def _path_only(kind: str) -> set[str]:
    """Return the inputs that are part of a resource's address."""
    own = {"VirtualMachine": "vmName", "VirtualMachineScaleSet": "vmScaleSetName"}
    return {"resourceGroupName", own.get(kind, f"{kind[0].lower()}{kind[1:]}Name")}


@cache
def members(model: type) -> dict[str, tuple[Any, bool]]:
    """Return the members of a model by the API's names: type, and whether it is required."""
    return _of_provider(model) if _types.is_input_type(model) else _of_sdk(model)


def _of_provider(model: type) -> dict[str, tuple[Any, bool]]:
    hints = _types.input_type_types(model)
    given = inspect.signature(model).parameters
    return {
        name: (hints[name], given[own].default is inspect.Parameter.empty)
        for own, name in _types.input_type_py_to_pulumi_names(model).items()
    }


def _of_sdk(model: type) -> dict[str, tuple[Any, bool]]:
    found = dict(_fields(model))
    if "properties" not in found:
        return found
    inside, _ = found.pop("properties")
    return {**members(_alternatives(inside)[0]), **found}


def _fields(model: type) -> dict[str, tuple[Any, bool]]:
    """Return the members of a model of the SDK as they are sent, "properties" among them."""
    found: dict[str, tuple[Any, bool]] = {}
    names = {**vars(typing), "_models": models, "datetime": importlib.import_module("datetime")}
    for kind in reversed(model.__mro__):
        fields = {k: f for k, f in vars(kind).items() if hasattr(f, "_rest_name_input")}
        hints = typing.get_type_hints(kind, names) if fields else {}
        for own, field in fields.items():
            name = field._rest_name_input or own  # noqa: SLF001  # nothing public says it
            needed = type(None) not in typing.get_args(hints[own]) and name not in _FILLED_IN
            found[name] = hints[own], needed
    return found


def _alternatives(hint: Any) -> list[Any]:
    """Return the types that a member may have: without None, and without Pulumi's wrapping."""
    if typing.get_origin(hint) not in {typing.Union, types.UnionType}:
        return [hint]
    found: list[Any] = []
    for each in typing.get_args(hint):
        wrapped = typing.get_origin(each) in {Awaitable, pulumi.Output}
        if not wrapped and each is not type(None):
            found += _alternatives(each)
    return found


def _of_member(hint: Any, value: Any, path: str) -> Iterator[str]:
    """Yield what the type of a member doesn't take of a value."""
    kinds = _alternatives(hint)
    enums = [k for k in kinds if isinstance(k, type) and issubclass(k, enum.Enum)]
    if enums:
        yield from _of_enums(enums, value, path)
        return
    (kind,) = kinds
    if typing.get_origin(kind) is not None:
        yield from _of_many(kind, value, path)
    elif kind in _PLAIN:
        if not isinstance(value, _PLAIN[kind]) or (kind is not bool and isinstance(value, bool)):
            yield f"{path}: {value!r} is no {kind.__name__}"
    elif isinstance(value, dict):
        yield from _of(kind, value, path)
    else:
        yield f"{path}: {value!r} is no {kind.__name__}"


def _of_many(kind: Any, value: Any, path: str) -> Iterator[str]:
    is_list = typing.get_origin(kind) in {list, Sequence}
    if path.endswith(".userAssignedIdentities") and isinstance(value, list | dict):
        return  # programs give a list of ids, of which the provider makes the interface's map
    if not isinstance(value, list if is_list else dict):
        yield f"{path}: a {'list' if is_list else 'map'} is wanted"
        return
    for item in value if is_list else value.values():
        yield from _of_member(typing.get_args(kind)[-1], item, path)


def _of_enums(enums: list[type[enum.Enum]], value: Any, path: str) -> Iterator[str]:
    allowed = [each.value for kind in enums for each in kind]
    if value not in allowed and not {kind.__name__ for kind in enums} & _OPEN:
        yield f"{path}: {value} is none of {allowed}"


def _of(model: type, value: Json, path: str) -> Iterator[str]:
    known = members(model)
    for key, item in value.items():
        if key in known:
            yield from _of_member(known[key][0], item, f"{path}.{key}")
        else:
            yield f"{path}.{key}: {model.__name__} has no such member"
    for key, (_, required) in known.items():
        if required and key not in value:
            yield f"{path}: {model.__name__} requires {key}"


def nested(token: str, inputs: Json) -> Json:
    """Return the inputs of a type as the interface takes them: most of them below `properties`."""
    _, module, kind = token.split(":")
    is_compute = module == "compute"
    found = _nested(getattr(models, kind), inputs) if is_compute else _below(inputs)
    given = (inputs.get("identity") or {}).get("userAssignedIdentities")
    if given:  # the interface takes a map
        found["identity"] = {**inputs["identity"], "userAssignedIdentities": {i: {} for i in given}}
    return found


def _nested(model: type, inputs: Json) -> Json:
    fields = _fields(model)
    found = {k: _value(fields[k][0], item) for k, item in inputs.items() if k in fields}
    below = {k: item for k, item in inputs.items() if k not in fields}
    if below:
        found["properties"] = _nested(_alternatives(fields["properties"][0])[0], below)
    return found


def _value(hint: Any, item: Any) -> Any:
    kind = _alternatives(hint)[0]
    if isinstance(item, list):
        return [_value(typing.get_args(kind)[0], each) for each in item]
    is_model = isinstance(item, dict) and typing.get_origin(kind) is None
    return _nested(kind, item) if is_model else item


_BESIDE = {"extendedLocation", "id", "identity", "kind", "location", "name", "sku", "tags", "zones"}
"""What Azure Resource Manager has next to `properties` (its common types, resource)."""
_INSIDE = {"ipConfigurations", "securityRules"}
"""Members of networks whose items are resources themselves."""


def _below(inputs: Json) -> Json:
    found = {k: item for k, item in inputs.items() if k in _BESIDE}
    below = {
        key: [_below(each) for each in item] if key in _INSIDE else item
        for key, item in inputs.items() if key not in _BESIDE
    }  # fmt: skip
    return {**found, "properties": below} if below else found


def flat(answer: Any) -> Any:
    """Return what an interface answers as programs see it: nothing is below `properties`."""
    if isinstance(answer, list):
        return [flat(item) for item in answer]
    if not isinstance(answer, dict):
        return answer
    below = answer.get("properties")
    if not isinstance(below, dict):
        return {key: flat(item) for key, item in answer.items()}
    return {**{k: flat(item) for k, item in answer.items() if k != "properties"}, **flat(below)}
