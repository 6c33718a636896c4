"""Cut broken parts out of a document, so that the rest can still be typed and checked.

What is cut is the smallest thing that can be missing: an entry of a map or list, or an optional
key. Keys of the root can always be cut: each is a part of its own.
"""

from __future__ import annotations

from typing import Any

from ..diagnostics import PathTuple
from .errors import branch_for
from .json_schema import Schema


class Pruned:
    """A document without its broken parts, and the way back to the places in the file."""

    def __init__(self, data: Any, schema: Schema) -> None:
        """Start with nothing cut."""
        self._original = data
        self._schema = schema
        self._cuts: dict[PathTuple, set[str | int]] = {}
        self.data = data

    def cut(self, paths: list[PathTuple]) -> None:
        """Cut the smallest parts that hold these paths (in the coordinates of the file)."""
        for path in paths:
            where = self._removable(path)
            if where:
                self._cuts.setdefault(where[:-1], set()).add(where[-1])
        ancestors = {path[:length] for path in self._cuts for length in range(len(path) + 1)}
        self.data = self._rebuilt(self._original, (), ancestors)

    @property
    def cuts(self) -> frozenset[PathTuple]:
        """What was cut, in the coordinates of the file."""
        return frozenset((*holder, step) for holder, steps in self._cuts.items() for step in steps)

    def original(self, path: PathTuple) -> PathTuple:
        """Translate a path of the pruned document to the file: list indexes move."""
        if not self._cuts:
            return path
        there: PathTuple = ()
        for step in path:
            gone = self._cuts.get(there, set())
            index = step
            if isinstance(step, int) and gone:
                for cut in sorted(cut for cut in gone if isinstance(cut, int)):
                    index = index + 1 if isinstance(index, int) and cut <= index else index
            there = (*there, index)
        return there

    def _removable(self, path: PathTuple) -> PathTuple:
        """Return the longest part of `path` that may be missing."""
        node: Any = self._schema
        value = self._original
        best: PathTuple = ()
        for depth, step in enumerate(path):
            branch = branch_for(node, value)
            if branch is None:
                break
            child, optional = _child(branch, step)
            if optional or depth == 0:
                best = path[: depth + 1]
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                break
            if not isinstance(child, dict):
                break
            node = child
        return best

    def _rebuilt(self, value: Any, path: PathTuple, ancestors: set[PathTuple]) -> Any:
        """Copy what changes; share the rest."""
        if path not in ancestors:
            return value
        gone = self._cuts.get(path, set())
        if isinstance(value, list):
            return [
                self._rebuilt(item, (*path, index), ancestors)
                for index, item in enumerate(value)
                if index not in gone
            ]
        if isinstance(value, dict):
            return {
                key: self._rebuilt(item, (*path, key), ancestors)
                for key, item in value.items()
                if key not in gone
            }
        return value


def _child(schema: Schema, step: str | int) -> tuple[Any, bool]:
    """Return the schema one step down, and whether the value there may be missing."""
    if isinstance(step, int):
        return schema.get("items"), True
    properties = schema.get("properties", {})
    if step in properties:
        return properties[step], step not in schema.get("required", ())
    return schema.get("additionalProperties"), True
