"""What OCI's interfaces take and answer, as OCI's own SDK (`oci`) says it.

The SDK describes its operations in code: verb, path, parameters, types of bodies and answers are
read out of the source of its clients, bodies are held to its models. What a model leaves open, and
only the service checks, is not seen.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import oci  # type: ignore[import-untyped]

Json = dict[str, Any]  # OCI's JSON
CLIENTS = (
    "budget.BudgetClient",
    "core.BlockstorageClient",
    "core.ComputeClient",
    "core.ComputeManagementClient",
    "core.VirtualNetworkClient",
    "dns.DnsClient",
    "file_storage.FileStorageClient",
    "identity.IdentityClient",
    "limits.LimitsClient",
    "lustre_file_storage.LustreFileStorageClient",
    "object_storage.ObjectStorageClient",
    "resource_search.ResourceSearchClient",
)
"""Those that gcluster and the provider call: module and class of the SDK."""


class Operation(NamedTuple):
    """One call of a client."""

    service: str
    """Module of the SDK that has the models."""
    name: str
    """launch_instance"""
    verb: str
    path: str
    """With the version of the interface: /20160918/instances/{instanceId}."""
    query: frozenset[str]
    required: frozenset[str]
    """Parameters of path and query that must be there."""
    body: str
    """Model; "" where there is none."""
    answer: str
    """Model, list[model], or "" """


@cache
def operations(client: str) -> dict[str, Operation]:
    """Return name -> operation of a client."""
    module, _, name = client.partition(".")
    text = inspect.getsource(getattr(getattr(oci, module), name))
    base = next(iter(re.findall(r"'base_path': '/?([^']*)'", text)), "")
    found = (_operation(module, base.strip("/"), part) for part in text.split("\n    def ")[1:])
    return {one.name: one for one in found if one is not None}


def _operation(service: str, base: str, text: str) -> Operation | None:
    path = re.search(r'resource_path = "([^"]+)"', text)
    if path is None:
        return None
    verb, name = (_one(rf'{word} = "(\w+)"', text) for word in ("method", "operation_name"))
    requested = re.search(r"query_params = \{(.*?)\n        \}", text, re.DOTALL)
    return Operation(
        service=service,
        name=name,
        verb=verb,
        path="/".join(("", base, path[1].strip("/"))) if base else path[1],
        query=frozenset(
            re.findall(r'^\s+"(\w+)":', requested[1], re.MULTILINE) if requested else ()
        ),
        required=frozenset(re.findall(r"'(\w+)'", _one(r"required_arguments = \[(.*?)\]", text))),
        body=_one(r":param oci\.\w+\.models\.(\w+) \w+: \(required\)", text),
        answer=_one(r'response_type="([^"]+)"', text),
    )


def _one(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else ""


def operation_of(verb: str, path: str) -> tuple[Operation, Json] | None:
    """Return the operation that answers a path, and what the path gives."""
    for client in CLIENTS:
        for pattern, one in _routes(client):
            found = pattern.fullmatch(path)
            if found and one.verb == verb:
                return one, found.groupdict()
    return None


@cache
def _routes(client: str) -> tuple[tuple[re.Pattern[str], Operation], ...]:
    patterns = (
        (re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", one.path)), one)
        for one in operations(client).values()
    )
    return tuple(sorted(patterns, key=lambda route: route[1].path.count("{")))


def complaints(one: Operation, parameters: Json, body: Any) -> Iterator[str]:
    """Yield what the SDK's description of an operation doesn't take of a call."""
    known = one.query | set(re.findall(r"\{(\w+)\}", one.path))
    yield from (f"{one.name} has no parameter {key}" for key in parameters.keys() - known)
    yield from (f"{one.name} requires {key}" for key in one.required - parameters.keys())
    if one.body:
        yield from _of_model(one.service, one.body, body or {}, one.body)
    elif body:
        yield f"{one.name} takes no body"


def _model(service: str, name: str, value: Json) -> type[Any]:
    """Return the model of a value: of a union the one that the value's discriminator names."""
    models = getattr(oci, service).models
    kind: type[Any] = getattr(models, name)
    if not hasattr(kind, "get_subtype"):
        return kind
    names = {own.lower(): own for own in kind().attribute_map.values()}
    reported = {names.get(key.lower(), key): item for key, item in value.items()}
    # A discriminator that is not there is no error of get_subtype's: it wants some text.
    blank = {own: "NONE" if own == "source" else None for own in names.values()}
    found: type[Any] = getattr(models, kind.get_subtype(blank | reported))
    return found


def _of_model(service: str, name: str, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is no {name}"
        return
    kind = _model(service, name, value)
    if hasattr(kind, "get_subtype") and kind.__name__ == name:
        yield f"{path}: {name} has no such kind"  # the SDK takes what it doesn't know for the base
        return
    made = kind()
    attributes = {theirs: own for own, theirs in made.attribute_map.items()}
    for key, item in value.items():
        if key not in attributes:
            yield f"{path}.{key}: {kind.__name__} has no such member"
            continue
        own = attributes[key]
        yield from _of_type(service, made.swagger_types[own], item, f"{path}.{key}")
        if not isinstance(item, dict | list):
            try:
                setattr(made, own, item)
            except ValueError as error:  # an enumeration
                yield f"{path}.{key}: {error}"
    for own, theirs in made.attribute_map.items():
        required = "**[Required]**" in (getattr(kind, own).__doc__ or "")
        if required and theirs not in value and getattr(made, own) is None:
            yield f"{path}: {kind.__name__} requires {theirs}"


def _of_type(service: str, wanted: str, item: Any, path: str) -> Iterator[str]:
    if inside := re.fullmatch(r"list\[(.+)\]", wanted):
        if not isinstance(item, list):
            yield f"{path}: a list is wanted"
            return
        for index, one in enumerate(item):
            yield from _of_type(service, inside[1], one, f"{path}[{index}]")
    elif wanted.startswith("dict("):
        if not isinstance(item, dict):
            yield f"{path}: a map is wanted"
    elif wanted in _PLAIN:
        if isinstance(item, bool) is not (wanted == "bool") or not isinstance(item, _PLAIN[wanted]):
            yield f"{path}: {item!r} is no {wanted}"
    elif wanted != "object":
        yield from _of_model(service, wanted, item, path)


_PLAIN: dict[str, tuple[type, ...]] = {
    "bool": (bool,), "datetime": (str,), "float": (int, float), "int": (int,), "str": (str,),
}  # fmt: skip


def as_named(service: str, model: str, value: Json) -> Json:
    """Return what a program gives as the API names and types it.

    The provider's names are Terraform's: they differ in case and in the plural of lists, and its
    numbers and truth values may be text. What no member fits stays as it is.
    """
    kind = _model(service, model, value)
    made = kind()
    attributes = {theirs.lower(): own for own, theirs in made.attribute_map.items()}
    named: Json = {}
    for key, item in value.items():
        own = attributes.get(key.lower()) or attributes.get(key.lower().removesuffix("s"))
        if own is None:
            named[key] = item
        else:
            named[made.attribute_map[own]] = _as_typed(service, made.swagger_types[own], item)
    return named


def _as_typed(service: str, wanted: str, item: Any) -> Any:
    inside = re.fullmatch(r"list\[(.+)\]", wanted)
    if inside and isinstance(item, list):
        return [_as_typed(service, inside[1], one) for one in item]
    if isinstance(item, dict) and not wanted.startswith("dict(") and wanted != "object":
        return as_named(service, wanted, item)
    if isinstance(item, str) and wanted == "bool" and item in {"true", "false"}:
        return item == "true"
    if isinstance(item, str) and wanted in {"int", "float"} and re.fullmatch(r"\d+(\.\d+)?", item):
        return float(item) if wanted == "float" else int(item)
    return item


def answered(one: Operation, thing: Json) -> Json:
    """Return of a thing what the model of an operation's answer has."""
    return _described(_model(one.service, one.answer, thing), thing)


def listed(one: Operation, things: Iterable[Json]) -> list[Json] | Json:
    """Return things as the answer of a list has them: bare, or as the items of a collection."""
    bare = re.fullmatch(r"list\[(.+)\]", one.answer)
    items = None if bare else _model(one.service, one.answer, {})().swagger_types["items"]
    name = (bare or re.fullmatch(r"list\[(.+)\]", items))[1]
    found = [_described(_model(one.service, name, thing), thing) for thing in things]
    return found if bare else {"items": found}


def _described(kind: type, thing: Json) -> Json:
    return {key: thing[key] for key in kind().attribute_map.values() if key in thing}
