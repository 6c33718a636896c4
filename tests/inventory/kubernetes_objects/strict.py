"""Strict validation by the schemas of kubernetes-validate, each read once.

The package's own `validate` reads 1.6 MB of definitions for every object.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

_FOLDER = files("kubernetes_validate") / "kubernetes-json-schema"
_RELEASE = re.compile(r"^v1\.(\d+)\.0-local-strict$")


def mistakes(made: dict[str, Any], release: str) -> list[str]:
    """Return what of an object doesn't fit its schema.

    Raises:
        FileNotFoundError: the release has no such kind.
    """
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", made["apiVersion"])
    validator = _validator(release, f"{made['kind'].lower()}-{group}")
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(made)]


def newest_release() -> str:
    """Return the newest release that there are schemas of."""
    found = (_RELEASE.match(path.name) for path in _FOLDER.iterdir())
    return f"1.{max(int(match[1]) for match in found if match)}"


@lru_cache(maxsize=64)
def _validator(release: str, name: str) -> Draft202012Validator:
    schema = _read(release, name)
    registry = Resource.from_contents(schema) @ _definitions(release)
    return Draft202012Validator(schema, registry=registry)


@lru_cache(maxsize=4)
def _definitions(release: str) -> Registry[Any]:
    registry: Registry[Any] = Registry()
    return Resource.from_contents(_read(release, "_definitions")) @ registry


def _read(release: str, name: str) -> Any:
    path = _FOLDER / f"v{release}.0-local-strict" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))
