"""Laws of the language: what its schema accepts loads, and what loads is written and read again."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.structure.json_schema import cluster_schema, inlined_schema

from .schema_values import values

_ACCEPTED = values(inlined_schema(ClusterSpec)).filter(lambda data: not _names_a_file(data))


def _with_named_machines(data: dict[str, Any]) -> dict[str, Any]:
    """Return a spec without requirements of machines: whether one fits is the catalog's."""
    pools = {
        name: {**pool, "machine": "named"} if isinstance(pool.get("machine"), dict) else pool
        for name, pool in data["pools"].items()
    }
    return {**data, "pools": pools}


_NAMED = _ACCEPTED.map(_with_named_machines)
_VALIDATOR = Draft202012Validator(cluster_schema())
_SLOW = settings(
    max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def _names_a_file(data: dict[str, Any]) -> bool:
    """Return whether hosts or hooks are in files next to the spec: there are none next to these."""
    hooks = data.get("hooks", {}).values()
    return any("hosts_file" in site for site in data["sites"].values()) or any(
        hook.get("path") is not None for hook in hooks
    )


def written(value: object) -> str:
    """Return a value as JSON that is YAML too: line breaks of YAML 1.1 are escaped in it."""
    text = msgspec.json.encode(value, enc_hook=str).decode()
    unfit = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
    return re.sub(unfit, lambda found: f"\\u{ord(found[0]):04x}", text)


def _read(text: str) -> ClusterSpec:
    loaded = load_text(text, check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


@_SLOW
@given(_NAMED)
def test_whatever_the_schema_accepts_loads(data: dict[str, Any]) -> None:
    assert _VALIDATOR.is_valid(data)
    _read(written(data))


@_SLOW
@given(_NAMED)
def test_whatever_loads_is_written_and_loads_again_to_the_same_value(data: dict[str, Any]) -> None:
    spec = _read(written(data))
    text = written(spec)

    assert _VALIDATOR.is_valid(json.loads(text)), text
    assert _read(text) == spec


@_SLOW
@given(_ACCEPTED)
def test_whatever_the_schema_accepts_is_checked_without_a_traceback(data: dict[str, Any]) -> None:
    loaded = load_text(written(data))

    assert (loaded.spec is None) == any(found.is_error for found in loaded.diagnostics)
    assert not [found for found in loaded.diagnostics if found.code.startswith("GC00")]
