"""Read YAML into a document with marks: YAML 1.2 scalars, duplicate keys found."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from .decoding import convert
from .document import Composed, Document, pack
from .source import report_character, report_syntax

_T = TypeVar("_T")
Event: TypeAlias = Any
"""An event of the parser; PyYAML's stubs do not promise the marks that every event has."""

MAX_DEPTH = 64
"""Deepest nesting; a spec needs about eight levels."""
MAX_VALUES = 1_000_000
"""Most values in one file: about ten times what 100,000 hosts need."""
MAX_ALIASED = 100_000
"""Most values that aliases (*name) may expand to, all together."""


class _StopReadingError(Exception):
    """Nothing after this point can be read; the reason is reported already."""


def compose(text: str, *, file: str) -> Composed:
    """Read one YAML document; never raises for anything the text may hold."""
    result = Composed(text, file)
    try:
        _Composer(text, result).run()
    except _StopReadingError:
        pass
    except MarkedYAMLError as error:
        report_syntax(result, text, error)
    except (YAMLError, UnicodeError):
        report_character(result, text)
    return result


def read_data_file(path: Path, kind: type[_T]) -> _T:
    """Return a YAML file that comes with gcluster as a type.

    Raises:
        OSError: it can't be read.
        msgspec.ValidationError: it isn't of this type.
    """
    document = compose(path.read_text(encoding="utf-8"), file=path.name).document
    return convert(None if document is None else document.data, kind)


class _Composer:
    """One pass over the events. `path` is where the pass is; marks are by container id."""

    def __init__(self, text: str, result: Composed) -> None:
        self.text = text
        self.result = result
        self.next: Any = _parser(text).get_event
        self.path: list[str | int] = []
        self.marks: dict[int, Any] = {}
        self.anchors: dict[str, tuple[Any, int] | None] = {}
        self.values = 0
        self.aliased = 0

    def run(self) -> None:
        self.next()  # stream start
        if isinstance(self.next(), StreamEndEvent):
            return
        event = self.next()
        data, start, end = self.node(event)
        self.next()  # document end
        after = self.next()
        if not isinstance(after, StreamEndEvent):
            place = after.start_mark.index
            self.stop(
                "GC015",
                "several documents in one file: one file holds one cluster",
                place,
                place + 3,
                'remove the "---" line, or put each cluster into a file of its own',
            )
        self.result.document = Document(
            data=data, text=self.text, root=pack(start, end), marks=self.marks
        )

    def stop(self, code: str, summary: str, start: int, end: int, hint: str = "") -> NoReturn:
        """Report an error after which nothing can be read."""
        self.result.report(code, summary, start, end, hint)
        raise _StopReadingError

    def node(self, event: Event) -> tuple[Any, int, int]:
        """Return the value that an event starts, with its character offsets."""
        self.values += 1
        if self.values > MAX_VALUES:
            self.stop("GC020", f"more than {MAX_VALUES:,} values in one file", *_offsets(event))
        if type(event) is ScalarEvent:
            start, end = _offsets(event)
            if event.tag is not None:
                value = self.tagged(event, start, end)
            elif event.implicit[0]:
                value = self.plain(event.value, start, end)
            else:
                value = event.value
            if event.anchor is not None:
                self.anchors[event.anchor] = value, 1
            return value, start, end
        if type(event) is AliasEvent:
            return self.alias(event)
        return self.collection(event)

    def plain(self, text: str, start: int, end: int) -> Any:
        """Read a plain scalar; a number that can't be kept exactly is an error."""
        try:
            return resolve(text)
        except ValueError as error:
            self.result.report("GC023", f"{text[:40]} is {error}", start, end)
            self.result.broken.add(tuple(self.path))
            return text

    def tagged(self, event: Event, start: int, end: int) -> Any:
        """Read a scalar with an explicit tag."""
        if event.tag in {"!", "tag:yaml.org,2002:str"}:
            return event.value
        if event.tag in CORE_TAGS:
            value = self.plain(event.value, start, end)
            if fits_tag(event.tag, value):
                return value
        self.refuse_tag(event, start, end)
        return event.value

    def refuse_tag(self, event: Event, start: int, end: int) -> None:
        """Report a tag; the value it is on is not checked any more."""
        shown = event.tag.replace("tag:yaml.org,2002:", "!!")
        self.result.report(
            "GC013",
            f"the tag {shown} is not allowed here",
            start,
            end,
            "a spec is plain data: write the value without a tag",
        )
        self.result.broken.add(tuple(self.path))

    def alias(self, event: Event) -> tuple[Any, int, int]:
        """Return what an alias expands to; it shares the anchored value and its marks."""
        start, end = _offsets(event)
        known = self.anchors.get(event.anchor)
        if known is None and event.anchor in self.anchors:
            self.stop("GC014", f"*{event.anchor} refers to itself", start, end)
        if known is None:
            self.result.report(
                "GC014", f"*{event.anchor} has no anchor &{event.anchor} before it", start, end
            )
            self.result.broken.add(tuple(self.path))
            return None, start, end
        value, size = known
        self.values += size
        self.aliased += size
        if self.aliased > MAX_ALIASED:
            self.stop(
                "GC014",
                f"aliases expand to more than {MAX_ALIASED:,} values",
                start,
                end,
                "write the values out, or name hosts by a range such as gpu[001-512]",
            )
        return value, start, end

    def collection(self, event: Event) -> tuple[Any, int, int]:
        """Return a mapping or sequence with everything in it."""
        if len(self.path) >= MAX_DEPTH:
            self.stop("GC019", f"nested more than {MAX_DEPTH} levels deep", *_offsets(event))
        if event.tag is not None and event.tag not in CORE_TAGS | {"!"}:
            self.refuse_tag(event, *_offsets(event))
        before = self.values
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        is_mapping = type(event) is MappingStartEvent
        value, end = self.mapping() if is_mapping else self.sequence()
        if event.anchor is not None:
            self.anchors[event.anchor] = value, self.values - before + 1
        return value, event.start_mark.index, end

    def sequence(self) -> tuple[list[Any], int]:
        """Read items until the sequence ends."""
        items: list[Any] = []
        marks = self.marks[id(items)] = list[int]()
        path = self.path
        path.append(0)
        while type(event := self.next()) is not SequenceEndEvent:
            path[-1] = len(items)
            value, start, end = self.node(event)
            items.append(value)
            marks.append(pack(start, end))
        path.pop()
        return items, _offsets(event)[1]

    def mapping(self) -> tuple[dict[str, Any], int]:
        """Read keys and values until the mapping ends; the first of two equal keys counts."""
        entries: dict[str, Any] = {}
        marks = self.marks[id(entries)] = dict[str, int]()
        merged: list[Any] = []
        path = self.path
        path.append("")
        while type(event := self.next()) is not MappingEndEvent:
            key_start, key_end = _offsets(event)
            key = self.key(event, key_start, key_end)
            repeated = key in entries
            if repeated:
                self.duplicate(key, marks[key], key_start, key_end)
            path[-1] = key
            value, start, end = self.node(self.next())
            if key == "<<":
                merged += value if isinstance(value, list) else [value]
            elif not repeated:
                entries[key] = value
                marks[key] = pack(start, end, key_start, key_end)
        path.pop()
        for part in merged:  # refused; but what they expand to isn't missing as well
            for key in part if isinstance(part, dict) else ():
                if key not in entries:
                    entries[key] = part[key]
                    marks[key] = self.marks[id(part)][key]
        return entries, _offsets(event)[1]

    def key(self, event: Event, start: int, end: int) -> str:
        """Return a key as text; a key of another kind is reported and goes on as its source."""
        if type(event) is ScalarEvent and event.tag is None and event.anchor is None:
            self.values += 1
            value = _key_value(event)
        else:
            value, start, end = self.node(event)
        if isinstance(value, str) and value != "<<":
            return value
        source = self.text[start:end][:40]
        fix = None
        if value == "<<":
            summary, hint = "merge keys (<<) are not part of YAML 1.2", "write the keys out"
        else:
            summary, hint = f"a key must be text, not {source}", f'write it in quotes: "{source}"'
            is_plain = type(event) is ScalarEvent and event.implicit[0] and event.anchor is None
            fix = (end, f'"{self.text[start:end]}"') if is_plain and value is not None else None
        if isinstance(value, dict | list):
            hint = "a key is a word followed by a colon; { } and [ ] can only be values"
        self.result.report("GC022", summary, start, end, hint, fix=fix)
        self.path[-1] = source
        self.result.broken.add(tuple(self.path))
        return source

    def duplicate(self, key: str, first: int, start: int, end: int) -> None:
        """Report a key that is there twice, naming the first place."""
        first_start = first >> 48 & 0xFFFFFF
        self.result.report(
            "GC012",
            f'duplicate key "{key[:60]}": first given in line {self.result.line_of(first_start)}',
            start,
            end,
            "keep one of the two",
        )


def _key_value(event: Event) -> Any:
    """Read a key: quoted ones are text; a plain number, true or null is not."""
    if not event.implicit[0]:
        return event.value
    try:
        return resolve(event.value)
    except ValueError:
        return None


def _offsets(event: Event) -> tuple[int, int]:
    return event.start_mark.index, event.end_mark.index


def _parser(text: str) -> Any:
    """Return the C parser, or PyYAML's own where it was built without libyaml (same events)."""
    try:
        from yaml._yaml import CParser  # noqa: PLC0415  # not there on every platform
    except ImportError:
        from yaml import SafeLoader  # noqa: PLC0415  # as above

        return SafeLoader(text)
    return CParser(text)


Scalar: TypeAlias = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMBER_STARTS = frozenset("0123456789+-.")
_LONGEST_NUMBER = 64
_INT64 = 2**63

CORE_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")
)
"""The tags that mean what the value is anyway; every other tag is refused."""


def resolve(text: str) -> Scalar:
    """Return what a plain (unquoted) scalar means.

    Raises:
        ValueError: it is a number that can't be kept exactly: infinite, not a number, or a whole
            number beyond 64 bits.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    return _number(text)


def _number(text: str) -> Scalar:
    if _INT.fullmatch(text):
        whole = int(text, 0 if text[:2] in {"0o", "0x"} else 10) if _fits(text) else _INT64
        if not -_INT64 <= whole < _INT64:
            raise ValueError("a whole number beyond 64 bits")
        return whole
    is_float = _FLOAT.fullmatch(text) is not None
    if _NOT_FINITE.fullmatch(text) or (is_float and not _is_finite(text)):
        raise ValueError("not a finite number")
    return float(text) if is_float else text


def _fits(text: str) -> bool:
    """Say whether a number is short enough to be read at all (reading is quadratic in it)."""
    return len(text) <= _LONGEST_NUMBER


def _is_finite(text: str) -> bool:
    return _fits(text) and math.isfinite(float(text))


def fits_tag(tag: str, value: object) -> bool:
    """Say whether a scalar with an explicit core tag is of that kind ("!!int four" is not)."""
    kind = tag.rsplit(":", 1)[-1]
    kinds: dict[str, type | tuple[type, ...]] = {
        "int": int, "float": (int, float), "bool": bool, "null": type(None),
    }  # fmt: skip
    if kind not in kinds:
        return False
    return isinstance(value, kinds[kind]) and (kind == "bool" or not isinstance(value, bool))
