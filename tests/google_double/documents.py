"""Holds a call to Google's own description of it: the discovery document of its service.

The documents are those of google-api-python-client. Checked are parameters and bodies: names,
types, formats, enumerations, patterns, what is required and what only Google may write. What a
document leaves open, and only the service checks, is not seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

Json = dict[str, Any]  # a discovery document, or what was sent
VERSIONS = {
    "billingbudgets": "v1",
    "cloudresourcemanager": "v1",
    "compute": "v1",
    "container": "v1",
    "dns": "v1",
    "file": "v1",
    "iam": "v1",
    "servicenetworking": "v1",
    "storage": "v1",
}
"""The services that are called. Managed Lustre is in no document of the package (2.202)."""
SENT_ALL_THE_SAME = frozenset({"compute.instanceGroups.insert network"})
"""Members that the documents call output only and the provider sends: the service holds a group's
machines to its network (google_compute_instance_group, argument `network`)."""
_OUTPUT_ONLY = re.compile(r"\[?output[- ]only\]?", re.IGNORECASE)


class Call(NamedTuple):
    """One call, by the id of its method: compute.instances.insert."""

    method: str
    parameters: Json
    """Those of its path and its query."""
    body: Any = None


@cache
def document(service: str) -> Json:
    """Return the discovery document of a service."""
    folder = files("googleapiclient.discovery_cache") / "documents"
    text = (folder / f"{service}.{VERSIONS[service]}.json").read_text(encoding="utf-8")
    found: Json = json.loads(text)
    return found


@cache
def methods(service: str) -> dict[str, Json]:
    """Return id -> method of a service."""
    return dict(_methods(document(service)))


def _methods(resource: Json) -> Iterator[tuple[str, Json]]:
    for method in resource.get("methods", {}).values():
        yield method["id"], method
    for inside in resource.get("resources", {}).values():
        yield from _methods(inside)


def method_of(service: str, verb: str, path: str) -> tuple[str, Json] | None:
    """Return the id of the method that answers a path below a service, and what the path gives."""
    for identifier, pattern in _routes(service, verb):
        found = pattern.fullmatch(path)
        known = methods(service)[identifier].get("parameters", {})
        if found and all(
            re.fullmatch(known[key].get("pattern", ".*"), value)
            for key, value in found.groupdict().items()
        ):
            return identifier, found.groupdict()
    return None


@cache
def _routes(service: str, verb: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    known = [
        (name, _pattern(m["path"])) for name, m in methods(service).items()
        if m["httpMethod"] == verb
    ]  # fmt: skip
    return tuple(known)


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\+?\w+\})", path)
    return re.compile("".join(_part(part) for part in parts))


def _part(part: str) -> str:
    if not part.startswith("{"):
        return re.escape(part)
    name, inside = part.strip("{+}"), ".+?" if "+" in part else "[^/:]+"
    return f"(?P<{name}>{inside})"


def path_of(call: Call) -> tuple[str, str, Json]:
    """Return the verb and path of a call, and what is left for its query."""
    method = methods(call.method.partition(".")[0])[call.method]
    names = re.findall(r"\{\+?(\w+)\}", method["path"])
    path = re.sub(r"\{\+?(\w+)\}", lambda m: str(call.parameters[m[1]]), method["path"])
    query = {k: v for k, v in call.parameters.items() if k not in names}
    return method["httpMethod"], path, query


def complaints(call: Call) -> Iterator[str]:
    """Yield what the document of a call doesn't take of it."""
    service = call.method.partition(".")[0]
    method = methods(service)[call.method]
    known = {**document(service)["parameters"], **method.get("parameters", {})}
    for key, value in call.parameters.items():
        if key in known:
            given = _read(known[key], value)
            yield from _Check(service, call.method).of(known[key], given, key)
        # compute.v1 of 2026-11-06 recommends returnPartialSuccess for lists, and doesn't list it.
        elif f"`{key}`" not in method["description"]:
            yield f"{key}: {call.method} has no such parameter"
    for key, parameter in known.items():
        if parameter.get("required") and key not in call.parameters:
            yield f"{call.method} requires {key}"
    if "request" in method:
        yield from _Check(service, call.method).of(method["request"], call.body or {}, "")
    elif call.body is not None:
        yield f"{call.method} takes no body"


def _read(schema: Json, value: Any) -> Any:
    """Return a parameter as JSON would have it: addresses hold text only."""
    if schema["type"] == "boolean" and value in {"true", "false"}:
        return value == "true"
    if schema["type"] == "integer" and _WHOLE.fullmatch(str(value)):
        return int(value)
    return [value] if schema.get("repeated") else value


_WHOLE = re.compile(r"-?\d+")


class _Check:
    """A value, against the schemas of one service, as they are for one method."""

    def __init__(self, service: str, method: str) -> None:
        self._schemas: Json = document(service)["schemas"]
        self._method = method

    def of(self, schema: Json, value: Any, path: str) -> Iterator[str]:
        """Yield what a schema doesn't take."""
        if "$ref" in schema:
            yield from self._of_object(self._schemas[schema["$ref"]], schema["$ref"], value, path)
        elif schema["type"] == "object":
            yield from self._of_object(schema, "this object", value, path)
        elif schema["type"] == "array" or schema.get("repeated"):
            if not isinstance(value, list):
                yield f"{path}: a list is wanted"
                return
            for index, item in enumerate(value):
                yield from self.of(
                    schema.get("items", {"type": "string"}), item, f"{path}[{index}]"
                )
        elif schema["type"] != "any":
            yield from _of_plain(schema, value, path)

    def _of_object(self, schema: Json, name: str, value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{path}: {value!r} is no {name}"
            return
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, item in value.items():
            where = f"{path}.{key}".lstrip(".")
            if key in known:
                sent = f"{self._method} {where}" in SENT_ALL_THE_SAME
                if _is_output(known[key]) and not sent:
                    yield f"{where}: only Google writes it"
                yield from self.of(known[key], item, where)
            elif others is not None:
                yield from self.of(others, item, where)
            else:
                yield f"{where}: {name} has no such member"
        for key, member in known.items():
            required = self._method in member.get("annotations", {}).get("required", ())
            if required and key not in value:
                yield f"{path}: {self._method} requires {key}".lstrip(": ")


def _is_output(schema: Json) -> bool:
    answer = schema.get("description", "")
    return bool(schema.get("readOnly")) or _OUTPUT_ONLY.match(answer) is not None


_KINDS: dict[str, type | tuple[type, ...]] = {
    "boolean": bool, "integer": int, "number": (int, float), "string": str,
}  # fmt: skip


def _of_plain(schema: Json, value: Any, path: str) -> Iterator[str]:
    kind, form = schema["type"], schema.get("format", "")
    if kind == "string" and form in {"int64", "uint64"}:  # JSON has no such numbers: text, or both
        if isinstance(value, bool) or not _WHOLE.fullmatch(str(value)):
            yield f"{path}: {value!r} is no {form}"
        return
    whole = isinstance(value, float) and value.is_integer()  # as they come through the engine
    if kind == "integer" and whole:
        value = int(value)
    if not isinstance(value, _KINDS[kind]) or (kind != "boolean" and isinstance(value, bool)):
        yield f"{path}: {value!r} is no {form or kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value} is none of {schema['enum']}"
    pattern = schema.get("pattern")
    if pattern and not re.fullmatch(pattern, value):
        yield f"{path}: {value} does not match {pattern}"
    least, most = (schema.get(end) for end in ("minimum", "maximum"))
    if least is not None and value < int(least):
        yield f"{path}: {value} is under {least}"
    if most is not None and value > int(most):
        yield f"{path}: {value} is over {most}"
