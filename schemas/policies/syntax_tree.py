"""The syntax tree of a CEL expression, read from the form in which the library serialises it.

That form is cel.expr.ParsedExpr of the CEL specification (proto/cel/expr/syntax.proto) in
Protocol Buffers' wire format. Its numbers are fixed by the specification; reading the few fields
that are needed costs less than a dependency on a protobuf runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

Fields: TypeAlias = dict[int, list[int | bytes]]

# Numbers of cel.expr.Expr's kinds and of their fields.
_CONST, _IDENT, _SELECT, _CALL, _LIST, _MAP, _LOOP = 3, 4, 5, 6, 7, 8, 9


class Const(msgspec.Struct, frozen=True):
    """A literal; only texts carry their value."""

    text: str | None


class Ident(msgspec.Struct, frozen=True):
    """A variable; `place` is the offset of its first character."""

    name: str
    place: int


class Select(msgspec.Struct, frozen=True):
    """operand.field, has() included."""

    operand: Node
    field: str


class Call(msgspec.Struct, frozen=True):
    """A function or an operator; a method's target comes first."""

    function: str
    arguments: tuple[Node, ...]


class Made(msgspec.Struct, frozen=True):
    """A list or a map that the expression writes out."""

    parts: tuple[Node, ...]


class Loop(msgspec.Struct, frozen=True):
    """A macro such as all() or map(), spelled out."""

    variables: tuple[str, ...]
    over: Node
    accumulator: str
    start: Node
    body: tuple[Node, ...]
    """Condition, step and result."""


Node: TypeAlias = Const | Ident | Select | Call | Made | Loop


def read_tree(serialized: bytes) -> Node:
    """Return the tree of a serialised, unchecked expression."""
    envelope = _fields(serialized)
    parsed = _fields(_bytes(envelope, 2))
    places: dict[int, int] = {}
    for entry in _all(_fields(_bytes(parsed, 3)), 4):
        pair = _fields(entry)
        places[_number(pair, 1)] = _number(pair, 2)
    return _node(_bytes(parsed, 2), places)


def _node(message: bytes, places: dict[int, int]) -> Node:
    expr = _fields(message)
    kind = next(number for number in (_CONST, _IDENT, *_READERS) if number in expr)
    inner = _fields(_bytes(expr, kind))
    if kind == _IDENT:
        return Ident(_text(inner, 1), places.get(_number(expr, 2), 0))
    return _READERS[kind](inner, places) if kind in _READERS else _const(inner)


def _const(const: Fields) -> Const:
    return Const(_text(const, 6) if 6 in const else None)  # noqa: PLR2004  # string_value


def _select(select: Fields, places: dict[int, int]) -> Select:
    return Select(_node(_bytes(select, 1), places), _text(select, 2))


def _call(call: Fields, places: dict[int, int]) -> Call:
    parts = (*_all(call, 1), *_all(call, 3))
    return Call(_text(call, 2), tuple(_node(part, places) for part in parts))


def _list(made: Fields, places: dict[int, int]) -> Made:
    return Made(tuple(_node(part, places) for part in _all(made, 1)))


def _map(made: Fields, places: dict[int, int]) -> Made:
    entries = [_fields(entry) for entry in _all(made, 2)]
    parts = [part for entry in entries for number in (3, 4) for part in _all(entry, number)]
    return Made(tuple(_node(part, places) for part in parts))


def _loop(loop: Fields, places: dict[int, int]) -> Loop:
    return Loop(
        variables=tuple(_text(loop, number) for number in (1, 8) if number in loop),
        over=_node(_bytes(loop, 2), places),
        accumulator=_text(loop, 3),
        start=_node(_bytes(loop, 4), places),
        body=tuple(_node(_bytes(loop, number), places) for number in (5, 6, 7)),
    )


_READERS: dict[int, Callable[[Fields, dict[int, int]], Node]] = {
    _SELECT: _select,
    _CALL: _call,
    _LIST: _list,
    _MAP: _map,
    _LOOP: _loop,
}


def _fields(message: bytes) -> Fields:
    """Return the values of a message by field number."""
    found: Fields = {}
    for number, value in _values(message):
        found.setdefault(number, []).append(value)
    return found


def _values(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        if wire == 2:  # noqa: PLR2004  # length-delimited, in the wire format's own number
            size, at = _varint(message, at)
        else:
            size = {1: 8, 5: 4}[wire]
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004  # the last byte has no continuation bit
            return value, at


def _all(fields: Fields, number: int) -> list[bytes]:
    return [value for value in fields.get(number, ()) if isinstance(value, bytes)]


def _bytes(fields: Fields, number: int) -> bytes:
    values = _all(fields, number)
    return values[-1] if values else b""


def _text(fields: Fields, number: int) -> str:
    return _bytes(fields, number).decode()


def _number(fields: Fields, number: int) -> int:
    value = fields.get(number, [0])[-1]
    return value if isinstance(value, int) else 0
