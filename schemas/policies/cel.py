"""CEL by cel-expr-python, the CEL project's own wrapper of its C++ implementation.

Only this module knows the library. It is imported when there is a policies file.

What bounds an expression: its length (policy.py); the library's parser (nesting of 32); the
library's evaluator (10,000 rounds of loops in one evaluation, regular expressions by RE2, which
takes linear time); and `references.py` (how often loops may repeat their variables). The language
has no functions of its own making, no recursion, and no way to files or the network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from cel_expr_python import cel

from .syntax_tree import Node, read_tree

_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_NOISE = re.compile(r" \(in container ''\)| expecting .*")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_OVERLOAD = re.compile(r"No matching overloads found : (?:\((.*?)\)\.)?(\S+?)\((.*)\)")
_MISSING = re.compile(r'Key not found in map : "(.*)"')
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
    """One thing wrong with an expression; line and column count from 1, None when not told."""

    reason: str
    line: int | None = None
    column: int | None = None


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
            raise EvaluationError(_in_words(str(error))) from None
        if result.type() == cel.Type.ERROR:
            raise EvaluationError(_in_words(str(result.value())))
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


def parse(text: str, variables: frozenset[str]) -> Node:
    """Return the syntax tree of an expression; names and kinds are not looked at.

    Raises:
        CompileError: the syntax is wrong.
    """
    return read_tree(_compiled(text, variables, disable_check=True).serialize())


def compile_expression(text: str, variables: frozenset[str]) -> Expression:
    """Compile an expression over these variables.

    Raises:
        CompileError: the syntax is wrong, a name is unknown, or kinds don't go together.
    """
    return Expression(_compiled(text, variables, disable_check=False))


def _compiled(text: str, variables: frozenset[str], *, disable_check: bool) -> Any:
    try:
        return _environment(variables).compile(text, disable_check=disable_check)
    except RuntimeError as error:
        raise CompileError(_problems(str(error))) from None


@lru_cache(maxsize=16)
def _environment(variables: frozenset[str]) -> Any:
    return cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN))


def _problems(message: str) -> tuple[CompileProblem, ...]:
    found = [
        CompileProblem(
            reason=_first_lower(_NOISE.sub("", reason)),
            line=int(line) if int(line) > 0 else None,
            column=int(column) if int(line) > 0 else None,
        )
        for line, column, reason in _ERROR.findall(_STATUS.sub("", message))
    ]
    whole = CompileProblem(reason=_first_lower(_STATUS.sub("", message.splitlines()[0])))
    return tuple(dict.fromkeys(found)) or (whole,)


def _in_words(message: str) -> str:
    """Say the library's reason in the words of the documentation."""
    reason = _STATUS.sub("", _STATUS.sub("", message))
    if match := _MISSING.search(reason):
        return f'there is no "{match[1]}"'
    if match := _OVERLOAD.search(reason):
        return _mismatch(match)
    if "SELECT to non-message" in reason:
        return "a field is asked of something that is null (not known) or has no fields"
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
