"""Typed decoding that is safe in several threads.

msgspec (0.22.0) learns a type at its first use, and a second thread that meets it half learnt ends
the whole process by a segmentation fault. So each type is learnt here, by one thread at a time,
before it is used; afterwards nothing is locked. Other modules don't call msgspec's own functions
(tests/repository/test_decoding.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar, get_args, overload

import msgspec

T = TypeVar("T")

_LOCK = threading.Lock()
_LEARNT: set[Any] = set()


def learn(kind: Any) -> None:
    """Have msgspec learn a type and all that it holds, once, with other threads kept out."""
    if kind not in _LEARNT:
        with _LOCK:
            msgspec.json.Decoder(kind)
        _LEARNT.add(kind)


@overload
def decode_json(data: bytes | str, kind: type[T]) -> T: ...
@overload
def decode_json(data: bytes | str, kind: Any) -> Any: ...
def decode_json(data: bytes | str, kind: Any) -> Any:
    """Return JSON as a type.

    Raises:
        msgspec.DecodeError: it is no JSON.
        msgspec.ValidationError: it isn't of this type.
    """
    learn(kind)
    return msgspec.json.decode(data, type=kind)


@overload
def decode_yaml(data: bytes | str, kind: type[T]) -> T: ...
@overload
def decode_yaml(data: bytes | str, kind: Any) -> Any: ...
def decode_yaml(data: bytes | str, kind: Any) -> Any:
    """Return YAML as a type; raises as `decode_json` does."""
    learn(kind)
    return msgspec.yaml.decode(data, type=kind)


@overload
def convert(
    value: Any,
    kind: type[T],
    *,
    strict: bool = True,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> T: ...
@overload
def convert(
    value: Any,
    kind: Any,
    *,
    strict: bool = True,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> Any: ...
def convert(
    value: Any,
    kind: Any,
    *,
    strict: bool = True,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> Any:
    """Return plain values as a type; raises msgspec.ValidationError where they aren't of it."""
    learn(kind)
    return msgspec.convert(value, kind, strict=strict, dec_hook=dec_hook)


@lru_cache(maxsize=8)
def _lone_tags(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Return (key, tag key) of the root's fields that hold a tagged struct with no alternative."""
    found: list[tuple[str, str]] = []
    for field in msgspec.structs.fields(kind):
        structs = [part for part in _flat(field.type) if hasattr(part, "__struct_config__")]
        tags = [s.__struct_config__.tag_field for s in structs if s.__struct_config__.tag_field]
        if len(tags) == 1:
            found.append((field.encode_name, tags[0]))
    return tuple(found)


def _flat(annotation: Any) -> Iterator[Any]:
    """Yield a type and all that it is put together from."""
    yield annotation
    for part in get_args(annotation):
        yield from _flat(part)


def missing_tag(kind: type[msgspec.Struct], data: Any) -> str:
    """Return what is wrong when a tag is missing that msgspec forgives, else "".

    Where a tagged struct has no alternative yet, msgspec takes it without its tag. Files must
    carry the tag all the same: they would stop loading once there is an alternative.
    """
    for key, tag_key in _lone_tags(kind):
        part = data.get(key)
        if isinstance(part, dict) and tag_key not in part:
            return f"{key} has no {tag_key}"
    return ""
