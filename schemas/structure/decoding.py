"""Typed decoding that is safe in several threads.

msgspec (0.22.0) learns a type at its first use, and a second thread that meets it half learnt ends
the whole process by a segmentation fault. So each type is learnt here, by one thread at a time,
before it is used; afterwards nothing is locked. Other modules don't call msgspec's own functions
(tests/repository/test_decoding.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

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
