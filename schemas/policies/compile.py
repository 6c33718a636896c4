"""Turn typed policies into ones that can be evaluated, and say where that is not possible."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..diagnostics import Diagnostic, PathTuple, Severity, Span, closest, listing
from ..structure.document import Document
from .cel import (
    CompileError,
    CompileProblem,
    EvaluationError,
    Expression,
    compile_expression,
)
from .facts import PLACES, shapes, written_shape
from .loops import too_costly
from .policy import Policy
from .shape import Shape

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|([{}])")
_LONGEST = 200
"""Most characters of one value that are shown."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a message: words, or an expression and where it begins in the message."""

    text: str
    offset: int
    is_expression: bool = False


class TemplateError(Exception):
    """A message whose braces don't match; `offset` says where."""

    def __init__(self, offset: int) -> None:
        """Hold the place of the brace."""
        super().__init__("a brace without its other half")
        self.offset = offset


def pieces(template: str) -> list[Piece]:
    """Split a message.

    Raises:
        TemplateError: a brace has no other half.
    """
    found: list[Piece] = []
    at = 0
    for match in _PIECE.finditer(template):
        if match[2]:
            raise TemplateError(match.start())
        found.append(Piece(text=template[at : match.start()], offset=at))
        if match[1] is None:
            found.append(Piece(text=match[0][0], offset=match.start()))
        else:
            found.append(Piece(text=match[1], offset=match.start(1), is_expression=True))
        at = match.end()
    return [*found, Piece(text=template[at:], offset=at)]


class Template(msgspec.Struct, frozen=True):
    """A message that is ready to be put together."""

    parts: tuple[str | Expression, ...]

    def text(self, variables: Mapping[str, Any]) -> str:
        """Return the message for one item, on one line; "?" is shown for what has no value."""
        messages = [
            part if isinstance(part, str) else _value_text(part, variables) for part in self.parts
        ]
        return " ".join("".join(messages).split())


def _value_text(expression: Expression, variables: Mapping[str, Any]) -> str:
    try:
        return written(expression.value(variables))[:_LONGEST]
    except EvaluationError:
        return "?"


def written(value: Any) -> str:
    """Write a value as a person would read it."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    if isinstance(value, list):
        return ", ".join(written(item) for item in value[:_LONGEST]) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {written(item)}" for key, item in sorted(value.items())) or "none"
    return str(value)


class CompiledPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that can be evaluated."""

    policy: Policy
    line: int
    """Its place in its file."""
    rule: Expression
    when: Expression | None
    message: Template


class Compiler:
    """Compiles the policies of one file and collects what is wrong with them."""

    def __init__(self, document: Document, file: str) -> None:
        """Start with nothing found."""
        self.diagnostics: list[Diagnostic] = []
        self._document = document
        self._file = file
        self._lines: dict[str, int] = {}

    def compile(self, policy: Policy, path: PathTuple) -> CompiledPolicy | None:
        """Compile one policy at `path`; None when something of it is wrong."""
        before = len(self.diagnostics)
        line = self._unique(policy.name, path)
        if policy.at is not None:
            self._at(policy.at, policy, path)
        variables = shapes(policy.applies_to)
        rule = self._yes_or_no(policy.rule, (*path, "rule"), variables)
        when = (
            None
            if policy.when is None
            else self._yes_or_no(policy.when, (*path, "when"), variables)
        )
        message = self._message(policy, path, variables)
        if len(self.diagnostics) > before or rule is None or message is None:
            return None
        return CompiledPolicy(policy=policy, line=line, rule=rule, when=when, message=message)

    def _unique(self, name: str, path: PathTuple) -> int:
        span = self._document.locate((*path, "name"))
        line = span.line if span is not None else 0
        if name in self._lines:
            hint = f"the other one is on line {self._lines[name]}"
            self._report("GC815", f'there are two policies "{name}"', (*path, "name"), hint=hint)
        return self._lines.setdefault(name, line)

    def _at(self, at: str, policy: Policy, path: PathTuple) -> None:
        shape = written_shape(policy.applies_to)
        for key in at.split("."):
            inner = shape.field(key)
            if inner is None:
                options = shape.fields or {}
                near = closest(key, options)
                self._report(
                    "GC816",
                    f'{policy.applies_to} has no key "{key}" to point at',
                    (*path, "at"),
                    hint=f'did you mean "{near}"?' if near else f"keys: {listing(options)}",
                )
                return
            shape = inner

    def _message(
        self, policy: Policy, path: PathTuple, variables: Mapping[str, Shape]
    ) -> Template | None:
        if policy.message is None:
            return Template((policy.description,))
        where = (*path, "message")
        try:
            found = pieces(policy.message)
        except TemplateError as error:
            hint = "write {{ or }} for a brace that is meant as one"
            span = self._span(where, policy.message, error.offset, 1)
            self._report("GC817", "a brace in the message has no other half", where, span, hint)
            return None
        parts: list[str | Expression] = []
        for piece in found:
            if not piece.is_expression:
                parts.append(piece.text)
                continue
            value = self._expression(piece.text, where, variables, policy.message, piece.offset)
            if value is not None:
                parts.append(value)
        return Template(tuple(parts))

    def _yes_or_no(
        self, text: str, path: PathTuple, variables: Mapping[str, Shape]
    ) -> Expression | None:
        expression = self._expression(text, path, variables, text, 0)
        if expression is not None and not expression.gives_yes_or_no:
            hint = "compare it with something: ==, <=, in"
            self._report("GC813", "this never gives true or false", path, hint=hint)
            return None
        return expression

    def _expression(
        self, text: str, path: PathTuple, variables: Mapping[str, Shape], whole: str, start: int
    ) -> Expression | None:
        """Compile a part of the text `whole` at `path` that begins at `start`."""
        try:
            expression = compile_expression(text, variables)
        except CompileError as error:
            for problem in error.problems:
                self._problem(problem, path, whole, start)
            return None
        if costly := too_costly(text, variables):
            self._report("GC814", costly[0], path, hint=costly[1])
            return None
        return expression

    def _problem(self, problem: CompileProblem, path: PathTuple, whole: str, start: int) -> None:
        name, offset = problem.unknown, problem.offset
        length = 1 if name is None else len(name)
        span = None if offset is None else self._span(path, whole, start + offset, length)
        if name is None:
            self._report("GC811", f"not valid CEL: {problem.reason:.200}", path, span)
            return
        # A kind that the policy isn't about is no slip of the pen.
        near = None if name in PLACES else closest(name, problem.options)
        others = listing(problem.options)
        hint = f'did you mean "{near}"?' if near else others and f"there is: {others}"
        self._report("GC812", problem.reason, path, span, hint)

    def _span(self, path: PathTuple, whole: str, offset: int, length: int) -> Span:
        return span_within(self._document, path, whole, offset, length)

    def _report(
        self, code: str, summary: str, path: PathTuple, span: Span | None = None, hint: str = ""
    ) -> None:
        self.diagnostics.append(
            Diagnostic(
                code=code,
                severity=Severity.ERROR,
                summary=summary,
                path=path,
                file=self._file,
                span=span or self._document.locate(path),
                hint=hint,
            )
        )


_BLOCK = re.compile(r"[|>][-+0-9]*[ \t]*(#[^\n]*)?\n")


def span_within(document: Document, path: PathTuple, text: str, offset: int, length: int) -> Span:
    """Return the place of `text[offset : offset + length]`, the value at `path`.

    Falls back to the whole value where YAML writes the text in another way (escapes in quotes).
    """
    whole = document.locate(path) or Span(line=1, column=1, end_line=1, end_column=2)
    key = document.locate(path, key=True)
    if key is None or offset >= len(text):
        return whole
    lines = document.text.split("\n")
    start = sum(len(line) + 1 for line in lines[: key.end_line - 1]) + key.end_column - 1
    at = _aligned(document.text, _value_start(document.text, start), text, offset)
    if at is None:
        return whole
    found = document.span(at, at + max(1, length))
    return found if found.column > 0 else whole


def _value_start(source: str, after_key: int) -> int:
    """Return where the characters of a value begin: after the colon and what introduces it."""
    at = source.find(":", after_key) + 1
    while at < len(source) and source[at] in " \t\r\n":
        at += 1
    if block := _BLOCK.match(source, at):
        return block.end()
    return at + 1 if source[at : at + 1] in {'"', "'"} else at


def _aligned(source: str, at: int, text: str, offset: int) -> int | None:
    """Walk source and text, white space aside; return the place of `text[offset]`."""
    for index, character in enumerate(text):
        if character.isspace():
            continue
        while at < len(source) and source[at].isspace():
            at += 1
        if source[at : at + 1] != character:
            return None
        if index >= offset:
            return at
        at += 1
    return None
