"""A short hash of a spec, which everything in a cloud is tagged with: of which spec it is."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from ...schemas.spec import ClusterSpec

_DIGITS = 12


def spec_hash(spec: ClusterSpec) -> str:
    """Return a hash that changes with every change of the spec's meaning.

    Fields that have their default value are left out, whole nouns among them: a version of gcluster
    that knows more nouns gives the same spec the same hash, and retags nothing.
    """
    text = msgspec.json.encode(_said(spec), order="sorted")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]


def _said(value: object) -> Any:  # any JSON
    """Return plain data of what differs from the defaults."""
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        said = {} if tag is None else {value.__struct_config__.tag_field: tag}
        for field in msgspec.structs.fields(value):
            held = getattr(value, field.name)
            if held != _default(field):
                said[field.encode_name] = _said(held)
        return said
    if isinstance(value, dict):
        return {str(key): _said(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_said(part) for part in value]
    return msgspec.to_builtins(value, enc_hook=str)


def _default(field: msgspec.structs.FieldInfo) -> object:
    """Return a field's default; `msgspec.NODEFAULT` where it has none."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default
