"""CEL by cel-expr-python, the CEL project's own wrapper of its C++ implementation.

Only this module knows the library. It is imported when there is a policies file.

An expression is compiled twice. Once against the spec's types, which CEL takes as descriptions of
Protocol Buffers messages: so its own checker finds names and fields that are not there, inside
has() and loops too. And once over plain data, which is what it is evaluated with: there a value
that is not known is null, where a message would be filled with defaults.

What bounds an expression: its length (policy.py); the library's parser (nesting of 32); the
library's evaluator (10,000 rounds of loops in one evaluation, regular expressions by RE2, which
takes linear time); and `loops.py` (what one round may cost). The language has no functions of its
own making, no recursion, and no way to files or the network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, struct_pb2, wrappers_pb2

from .shape import Shape

_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_NOISE = re.compile(r" \(in container ''\)| expecting .*")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_OVERLOAD = re.compile(r"No matching overloads found : (?:\((.*?)\)\.)?(\S+?)\((.*)\)")
_MISSING = re.compile(r'Key not found in map : "(.*)"')
_NO_VARIABLE = re.compile(r"undeclared reference to '([\w.]+)'")
_NO_FIELD = re.compile(r"undefined field '(\w+)' not found in struct '([\w.]+)'")
_NO_FIELDS = re.compile(r"type '.*' (?:does not support field|cannot be the operand of a select)")
_LIST_OR_NULL = re.compile(r"overload for '_[!=]=_' applied to '\((?=.*null_type).*list\(")
_MESSAGE = re.compile(r"wrapper\((\w+)\)|gcluster\.(\w+)")
_KEY = re.compile(r"(?<=[\w)\]])(?<!\bin)\[([\"'])([A-Za-z_]\w*)\1\]")
_CHAIN = re.compile(r"""[A-Za-z_][\w.\[\]"']*$""")
_KINDS = {
    "null_type": "null (not known)",
    "null type": "null (not known)",
    "int": "a whole number (int)",
    "int64": "a whole number (int)",
    "double": "a number (double)",
    "bool": "true or false",
    "string": "text",
}


class CompileProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing wrong with an expression."""

    reason: str
    offset: int | None = None
    """Its place: characters of the expression, from 0; None when it isn't known."""
    unknown: str | None = None
    """The variable or field that is not there."""
    options: tuple[str, ...] = ()
    """What is there instead of it."""


class CompileError(Exception):
    """An expression that can't be compiled."""

    def __init__(self, problems: tuple[CompileProblem, ...]) -> None:
        """Hold what is wrong with it."""
        super().__init__(problems[0].reason)
        self.problems = problems


class EvaluationError(Exception):
    """An expression that gives no value for an item; the message says why."""


class Expression:
    """A compiled expression."""

    def __init__(self, program: Any) -> None:
        """Hold the library's program."""
        self._program = program

    @property
    def gives_yes_or_no(self) -> bool:
        """Whether its value may be true or false, as far as that is known before evaluation."""
        return self._program.return_type() in (cel.Type.BOOL, cel.Type.DYN)

    def value(self, variables: Mapping[str, Any]) -> Any:
        """Return its value as plain data.

        Raises:
            EvaluationError: a value is missing or of the wrong kind, or it took too many steps.
        """
        try:
            result = self._program.eval(data=variables)
        except RuntimeError as error:
            raise EvaluationError(_as_text(str(error))) from None
        if result.type() == cel.Type.ERROR:
            raise EvaluationError(_as_text(str(result.value())))
        return result.plain_value()

    def holds(self, variables: Mapping[str, Any]) -> bool:
        """Return its value, which must be true or false.

        Raises:
            EvaluationError: as for `value`, or the value is something else.
        """
        value = self.value(variables)
        if not isinstance(value, bool):
            raise EvaluationError(f"it gives {value!r:.60}, not true or false")
        return value


def compile_expression(text: str, variables: Mapping[str, Shape]) -> Expression:
    """Compile an expression over these variables.

    Raises:
        CompileError: the syntax is wrong, a name is unknown, or kinds don't go together.
    """
    names = frozenset(variables)
    types = _TYPES.get(names) or _TYPES.setdefault(names, _TypedEnvironment(variables))
    if problems := types.problems(text):
        raise CompileError(problems)
    try:
        return Expression(_plain_environment(names).compile(text))
    except RuntimeError as error:
        raise CompileError(types.read(str(error), text)) from None


@lru_cache(maxsize=16)
def _plain_environment(variables: frozenset[str]) -> Any:
    return cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN))


class _TypedEnvironment:
    """CEL's checker with the shapes of variables as messages: it knows each field's name.

    Only names are described, and which values are text: numbers, lists of single values and what
    has more than one form are of any type, as they are when an expression is evaluated.
    """

    def __init__(self, variables: Mapping[str, Shape]) -> None:
        """Describe the shapes."""
        self._variables = tuple(variables)
        self._records: dict[str, Shape] = {}
        self._file = descriptor_pb2.FileDescriptorProto(
            name="gcluster.proto", package="gcluster", syntax="proto3"
        )
        types = {name: self._type(shape) for name, shape in variables.items()}
        pool = descriptor_pool.DescriptorPool()
        for known in (struct_pb2.DESCRIPTOR, wrappers_pb2.DESCRIPTOR):
            pool.AddSerializedFile(known.serialized_pb)
            self._file.dependency.append(known.name)
        pool.AddSerializedFile(self._file.SerializeToString())
        self._environment = cel.NewEnv(pool, variables=types)

    def problems(self, text: str) -> tuple[CompileProblem, ...]:
        """Return what is wrong with an expression; empty when nothing is."""
        # A field may be written as a key, storage["import"]: the checker knows fields of messages.
        written = _KEY.sub(r" .\2  ", text)
        try:
            self._environment.compile(written)
        except RuntimeError as error:
            found = self.read(str(error), text)
            # A list of the spec may be null, one of messages never is.
            return tuple(each for each in found if not _LIST_OR_NULL.search(each.reason))
        return ()

    def read(self, message: str, text: str) -> tuple[CompileProblem, ...]:
        """Return the problems that a message of the library names, each once."""
        found = [
            self._problem(_NOISE.sub("", reason), text, int(line), int(column))
            for line, column, reason in _ERROR.findall(_STATUS.sub("", message))
        ]
        whole = CompileProblem(reason=_first_lower(_STATUS.sub("", message.splitlines()[0])))
        return tuple(dict.fromkeys(found)) or (whole,)

    def _problem(self, reason: str, text: str, line: int, column: int) -> CompileProblem:
        words = _first_lower(_MESSAGE.sub(lambda found: found[1] or "record", reason))
        if line <= 0:
            return CompileProblem(reason=words)
        before = sum(len(each) + 1 for each in text.split("\n")[: line - 1])
        offset = min(before + column - 1, max(len(text.rstrip()) - 1, 0))
        if match := _NO_VARIABLE.fullmatch(reason):
            name = match[1].partition(".")[0]
            offset = max(text.rfind(name, 0, offset + len(name)), 0)  # it may be the last dot's
            if not text[offset + len(name) :].lstrip().startswith("("):
                summary = f'there is no variable "{name}" here'
                return _unknown(summary, name, offset, self._variables)
        if match := _NO_FIELD.fullmatch(reason):
            fields = self._records[match[2]].fields or {}
            return _unknown_field(text, offset, match[1], tuple(fields))
        if _NO_FIELDS.search(reason):
            return _unknown_field(text, offset, r"\w+", ())
        return CompileProblem(reason=words, offset=offset)

    def _type(self, shape: Shape) -> Any:
        items = shape.items
        if shape.fields is None and items is not None and items.is_plain_record:
            inner = cel.Type(f"gcluster.{self._message(items)}")
            return cel.Type.Map(cel.Type.STRING, inner) if shape.is_map else cel.Type.List(inner)
        if shape.is_plain_record:
            return cel.Type(f"gcluster.{self._message(shape)}")
        return cel.Type.DYN

    def _message(self, shape: Shape) -> str:
        """Describe a record, once, and return its name."""
        same = (name for name, known in self._records.items() if known == shape)
        if described := next(same, None):
            return described.removeprefix("gcluster.")
        name = f"Record{len(self._records)}"
        self._records[f"gcluster.{name}"] = shape
        message = self._file.message_type.add(name=name)
        for number, (key, inner) in enumerate((shape.fields or {}).items(), start=1):
            self._add_field(message, number, key, inner)
        return name

    def _add_field(
        self, message: descriptor_pb2.DescriptorProto, number: int, key: str, shape: Shape
    ) -> None:
        field = message.field.add(name=key, json_name=f"f{number}", number=number)
        field.label = field.LABEL_OPTIONAL
        field.type = field.TYPE_MESSAGE
        items = shape.items
        if shape.is_plain_record:
            field.type_name = f".gcluster.{self._message(shape)}"
        elif shape.fields is None and items is not None and items.is_plain_record:
            field.label = field.LABEL_REPEATED
            field.type_name = f".gcluster.{self._message(items)}"
            if shape.is_map:
                field.type_name = _add_entry(message, key, field.type_name)
        elif shape.is_text:
            field.type_name = ".google.protobuf.StringValue"
        else:
            field.type_name = ".google.protobuf.Value"


_TYPES: dict[frozenset[str], _TypedEnvironment] = {}
"""By the names of the variables, which show what they are of: see `facts.shapes`."""


def _add_entry(message: descriptor_pb2.DescriptorProto, key: str, inner: str) -> str:
    """Describe the entries of a map from text to `inner`; return the type of its field."""
    entry = message.nested_type.add(name="".join(w.capitalize() for w in key.split("_")) + "Entry")
    entry.options.map_entry = True
    for number, name in ((1, "key"), (2, "value")):
        field = entry.field.add(name=name, number=number)
        field.label = field.LABEL_OPTIONAL
        field.type = field.TYPE_STRING if name == "key" else field.TYPE_MESSAGE
    entry.field[1].type_name = inner
    return f".gcluster.{message.name}.{entry.name}"


def _unknown(summary: str, name: str, offset: int, options: tuple[str, ...]) -> CompileProblem:
    return CompileProblem(reason=summary, offset=offset, unknown=name, options=options)


def _unknown_field(text: str, offset: int, field: str, options: tuple[str, ...]) -> CompileProblem:
    """Return the problem of a field that is not there; the library reports its dot or less.

    Args:
        text: the expression.
        offset: a place before the field.
        field: its name, or a pattern of names.
        options: the fields that are there; none: there are no fields at all.
    """
    match = re.compile(rf"[.\[][\s\"']*({field})\b").search(text, max(offset - 1, 0))
    if match is None:
        return CompileProblem(reason=f'there is no field "{field}"', offset=offset)
    holder = _CHAIN.search(re.sub(r"\s*\.\s*", ".", text[: match.start()].rstrip()))
    what = holder[0] if holder else "this value"
    summary = f'{what} has no field "{match[1]}"' if options else f"{what} has no fields"
    return _unknown(summary, match[1], match.start(1), options)


def _as_text(message: str) -> str:
    """Say the library's reason in the words of the documentation."""
    reason = _STATUS.sub("", _STATUS.sub("", message))
    if match := _MISSING.search(reason):
        return f'there is no "{match[1]}"'
    if match := _OVERLOAD.search(reason):
        return _mismatch(match)
    if "SELECT to non-message" in reason:
        return "a field is read of something that is null (unknown) or has no fields"
    if "Iteration budget exceeded" in reason:
        return "it takes more than 10,000 rounds of loops"
    return _first_lower(reason)


def _mismatch(match: re.Match[str]) -> str:
    """Say which kinds an operator or function was given that it does not take."""
    target = [match[1]] if match[1] else []
    kinds = [*target, *(kind for kind in match[3].split(", ") if kind)]
    words = " and ".join(_KINDS.get(kind, kind) for kind in kinds)
    mixed = set(kinds) & {"int", "int64"} and "double" in kinds
    return f"{match[2].strip('_')} does not take {words}{': write 2.0, not 2' if mixed else ''}"


def _first_lower(reason: str) -> str:
    return reason[:1].lower() + reason[1:]
