"""Typed decoding that is safe in several threads.

msgspec (0.22.0) learns a type at its first use, and a second thread that meets it half learnt ends
the whole process by a segmentation fault. So each type is learnt here, by one thread at a time,
before it is used; afterwards nothing is locked. Other modules don't call msgspec's own functions
(tests/repository/test_decoding.py).
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_LOCK = threading.RLock()
_FREE = nullcontext()
_LEARNT: set[Any] = set()


def learn(kind: Any) -> None:
    """Have msgspec learn a type and all that it holds."""
    with _alone(kind):
        msgspec.json.Decoder(kind)
    _LEARNT.add(kind)


def _alone(kind: Any) -> AbstractContextManager[Any]:
    """Return what keeps other threads out while a type is learnt; nothing once it is."""
    return _FREE if kind in _LEARNT else _LOCK


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
    with _alone(kind):
        read = msgspec.json.decode(data, type=kind)
    _LEARNT.add(kind)
    return read


@overload
def decode_yaml(data: bytes | str, kind: type[T]) -> T: ...
@overload
def decode_yaml(data: bytes | str, kind: Any) -> Any: ...
def decode_yaml(data: bytes | str, kind: Any) -> Any:
    """Return YAML as a type; raises as `decode_json` does."""
    with _alone(kind):
        read = msgspec.yaml.decode(data, type=kind)
    _LEARNT.add(kind)
    return read


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
    with _alone(kind):
        read = msgspec.convert(value, kind, strict=strict, dec_hook=dec_hook)
    _LEARNT.add(kind)
    return read
