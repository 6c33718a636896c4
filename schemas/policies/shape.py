"""The shape of what expressions see: which fields there are, derived from the spec's own types."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What can be read from a value."""

    fields: dict[str, Shape] | None = None
    """Its fields by name; None: it has none that are fixed."""
    items: Shape | None = None
    """What a list holds, or a map under any key."""
    is_map: bool = False
    """Any key may be read."""
    is_open: bool = False
    """Nothing is known about it, so anything may be read."""
    is_text: bool = False
    """It is text or null."""

    @property
    def is_plain_record(self) -> bool:
        """Whether it has fields that are fixed, and no other form."""
        return self.fields is not None and self.items is None and not self.is_open

    def field(self, name: str) -> Shape | None:
        """Return the shape of a field; None when there is no such field."""
        if self.fields is not None and name in self.fields:
            return self.fields[name]
        if self.is_map and self.items is not None:
            return self.items
        return ANY if self.is_open else None


ANY = Shape(is_open=True)
SCALAR = Shape()
TEXT = Shape(is_text=True)
_NULL = Shape()


def record(**fields: Shape) -> Shape:
    """Return the shape of a map with just these fields."""
    return Shape(fields=fields)


def list_of(items: Shape) -> Shape:
    """Return the shape of a list."""
    return Shape(items=items)


def with_fields(shape: Shape, **fields: Shape) -> Shape:
    """Return a shape with more fields, or other ones in their place."""
    return msgspec.structs.replace(shape, fields={**(shape.fields or {}), **fields})


@lru_cache(maxsize=16)
def shape_of(kind: Any) -> Shape:
    """Return the shape of a type as `facts.plain` writes its values."""
    return _shape(inspect.type_info(kind))


def filled(value: Any, shape: Shape) -> Any:
    """Give every field of the shape that is not there the value null.

    An item of one provider then has the fields of the others too, and a rule needs no has().
    """
    if isinstance(value, list) and shape.items is not None:
        return [filled(item, shape.items) for item in value]
    if not isinstance(value, dict):
        return value
    known = shape.fields or {}
    return {
        **{name: None for name in known if name not in value},
        **{key: filled(item, shape.field(key) or ANY) for key, item in value.items()},
    }


def _shape(info: inspect.Type) -> Shape:
    if isinstance(info, inspect.Metadata):
        return _shape(info.type)
    if isinstance(info, inspect.StructType):
        fields = {field.encode_name: _shape(field.type) for field in info.fields}
        tag = {info.tag_field: TEXT} if info.tag_field else {}
        return Shape(fields={**tag, **fields})
    if isinstance(info, inspect.UnionType):
        return _merged([_shape(part) for part in info.types])
    if isinstance(info, inspect.DictType):
        return Shape(items=_shape(info.value_type), is_map=True)
    if isinstance(info, inspect.ListType | inspect.VarTupleType | inspect.SetType):
        return Shape(items=_shape(info.item_type))
    return next((shape for kinds, shape in _SINGLE if isinstance(info, kinds)), _literal(info))


_SINGLE: tuple[tuple[type, Shape], ...] = (
    (inspect.NoneType, _NULL),
    (inspect.StrType, TEXT),
    (inspect.AnyType, ANY),
)


def _literal(info: inspect.Type) -> Shape:
    """Return the shape of one of several words; of anything else that is a single value."""
    words = info.values if isinstance(info, inspect.LiteralType) else [None]
    return TEXT if all(isinstance(word, str) for word in words) else SCALAR


def _merged(shapes: list[Shape]) -> Shape:
    """Return what can be read from a value that has one of these shapes."""
    shapes = [shape for shape in shapes if shape is not _NULL] or [SCALAR]
    named = [shape.fields for shape in shapes if shape.fields is not None]
    names = dict.fromkeys(name for fields in named for name in fields)
    inner = [shape.items for shape in shapes if shape.items is not None]
    fields = {name: _merged([part[name] for part in named if name in part]) for name in names}
    return Shape(
        fields=fields if named else None,
        items=_merged(inner) if inner else None,
        is_map=any(shape.is_map for shape in shapes),
        is_open=any(shape.is_open for shape in shapes),
        is_text=all(shape.is_text for shape in shapes),
    )
