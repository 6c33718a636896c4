"""What an expression refers to: names that are not there, and loops that could grow too large.

The library knows the variables but not their fields. A field that does not exist would be an error
only when it is evaluated, and inside has() not even then. And the library counts the rounds of
loops, but not what one round costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

from ..diagnostics import closest, listing
from .facts import PLACES
from .shape import ANY, SCALAR, Shape, list_of
from .syntax_tree import Call, Const, Ident, Loop, Made, Node, Select

MOST_GROWTH = 1_000
"""Most that the uses of the loops' variables may give when multiplied."""
_TYPES = frozenset(
    {"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"}
)
"""CEL's own names of types: type(x) == double."""
_WALKS_BOTH_SIDES = frozenset({"_==_", "_!=_", "_+_", "@in"})
"""Operators that go through all of a list or map, however long it is."""
_KEEPS_SHAPE = frozenset({"_?_:_", "dyn"})


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """A name that is not there; `offset` counts characters of the expression from 0."""

    summary: str
    offset: int
    length: int
    meant: str | None
    options: str
    """What is there; "" when nothing is."""


Known: TypeAlias = "Mapping[str, Shape]"


class _Found(msgspec.Struct):
    """The shape of a node, and where its text ends at the earliest (for what follows it)."""

    shape: Shape
    end: int
    written: str = ""


class References:
    """The names of one expression, held against the shapes of its variables."""

    def __init__(self, text: str, tree: Node, variables: Known) -> None:
        """Walk the tree."""
        self.unknown: list[Unknown] = []
        self.growth = 1
        self.compares_lists = False
        """Whether a loop compares, joins or searches lists or maps of items in each round."""
        self._text = text
        self._depth = 0
        self._walk(tree, variables)

    @property
    def is_too_much(self) -> bool:
        """Whether evaluating it could take more time or memory than a policy may."""
        return self.growth > MOST_GROWTH or self.compares_lists

    def _walk(self, node: Node, known: Known) -> _Found:
        if isinstance(node, Ident):
            return self._ident(node, known)
        if isinstance(node, Select):
            return self._field(self._walk(node.operand, known), node.field)
        if isinstance(node, Call):
            return self._call(node, known)
        if isinstance(node, Loop):
            return self._loop(node, known)
        if isinstance(node, Made):
            found = [self._walk(part, known) for part in node.parts]
            plain = all(part.shape == SCALAR for part in found)
            end = max((part.end for part in found), default=0)
            return _Found(_WRITTEN if plain else ANY, end)
        return _Found(SCALAR, 0)

    def _ident(self, node: Ident, known: Known) -> _Found:
        end = node.place + len(node.name)
        if node.name in known:
            return _Found(known[node.name], end, node.name)
        if node.name in _TYPES:
            return _Found(SCALAR, end)
        seen = [name for name in known if not name.startswith("@")]
        self._add(f'there is no variable "{node.name}" here', node.name, node.place, seen)
        return _Found(ANY, end, node.name)

    def _field(self, holder: _Found, field: str) -> _Found:
        match = re.compile(rf"\.\s*({re.escape(field)})\b").search(self._text, holder.end)
        place = match.start(1) if match else holder.end
        written = f"{holder.written}.{field}" if holder.written else ""
        shape = holder.shape.field(field)
        if shape is None:
            fields = holder.shape.fields or {}
            what = holder.written or "this value"
            has = f'{what} has no field "{field}"' if fields else f"{what} has no fields"
            self._add(has, field, place, fields)
        return _Found(shape or ANY, place + len(field), written)

    def _call(self, node: Call, known: Known) -> _Found:
        found = [self._walk(argument, known) for argument in node.arguments]
        end = max((part.end for part in found), default=0)
        if node.function == "_[_]" and len(found) == 2:  # noqa: PLR2004  # of what, and which
            holder, key = found[0], node.arguments[1]
            if isinstance(key, Const) and key.text is not None:
                return self._key(holder, key.text)
            return _Found(holder.shape.items or ANY, end)
        if node.function in _KEEPS_SHAPE:
            return _Found(ANY, end)
        if node.function in _WALKS_BOTH_SIDES and not _is_step(node):
            shapes = [part.shape for part in found]
            self.compares_lists |= self._depth > 0 and not _is_quick(node.function, shapes)
            if node.function == "_+_" and SCALAR not in shapes:
                return _Found(ANY, end)
        return _Found(SCALAR, end)

    def _key(self, holder: _Found, key: str) -> _Found:
        shape = holder.shape.field(key)
        place = max(self._text.find(key, holder.end), 0)
        if shape is None:
            self._add(
                f'{holder.written or "this value"} has no field "{key}"',
                key,
                place,
                holder.shape.fields or {},
            )
        return _Found(shape or ANY, place + len(key), f'{holder.written}["{key}"]')

    def _loop(self, node: Loop, known: Known) -> _Found:
        over = self._walk(node.over, known)
        start = self._walk(node.start, known)
        item = over.shape.items or ANY
        bound = dict.fromkeys(node.variables, SCALAR if over.shape.is_map else item)
        inner = {**known, **bound, node.accumulator: ANY}
        uses = sum(_uses(part, frozenset(node.variables)) for part in node.body)
        self.growth = min(self.growth * max(1, uses), MOST_GROWTH + 1)
        self._depth += 1
        ends = [self._walk(part, inner).end for part in node.body]
        self._depth -= 1
        gives_list = isinstance(node.start, Made)
        return _Found(ANY if gives_list else SCALAR, max(over.end, start.end, *ends))

    def _add(
        self, summary: str, name: str, offset: int, options: Mapping[str, Shape] | list[str]
    ) -> None:
        self.unknown.append(
            Unknown(
                summary=summary,
                offset=offset,
                length=len(name),
                meant=None if name in PLACES else closest(name, options),
                options=listing(options),
            )
        )


_WRITTEN = list_of(SCALAR)
"""A list that the expression writes out, of single values."""


def _is_step(node: Call) -> bool:
    """Say whether this is how a macro spells out that it goes on: @result + [x]."""
    first = node.arguments[0]
    return isinstance(first, Ident) and first.name.startswith("@")


def _is_quick(function: str, shapes: list[Shape]) -> bool:
    """Say whether an operator looks at no more than one value, or a list of single values."""
    if function == "@in":
        where = shapes[1]
        return shapes[0] == SCALAR and (where.is_map or where.items == SCALAR)
    return SCALAR in shapes or _WRITTEN in shapes


def _uses(node: Node, names: frozenset[str]) -> int:
    """Count how often variables are named, inner loops that take the name over left out."""
    if isinstance(node, Ident):
        return node.name in names
    inner = names.difference(node.variables) if isinstance(node, Loop) else names
    outside = [node.over, node.start] if isinstance(node, Loop) else []
    parts = node.body if isinstance(node, Loop) else _parts(node)
    return sum(_uses(part, names) for part in outside) + sum(_uses(part, inner) for part in parts)


def _parts(node: Node) -> Iterator[Node]:
    if isinstance(node, Select):
        yield node.operand
    elif isinstance(node, Call):
        yield from node.arguments
    elif isinstance(node, Made):
        yield from node.parts
