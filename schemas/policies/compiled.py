"""Turn typed policies into ones that can be asked, and say where that is not possible."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..diagnostics import Diagnostic, PathTuple, Severity, Span, closest, listing
from ..structure.document import Document
from .cel import CompileError, Expression, compile_expression, parse
from .facts import shapes, written_shape
from .message import Template, TemplateError, pieces
from .place import offset_of, span_within
from .policy import Policy
from .references import MOST_GROWTH, References
from .shape import Shape


class CompiledPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that can be asked."""

    policy: Policy
    line: int
    """Where it stands in its file."""
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
        """Compile one policy that stands at `path`; None when something of it is wrong."""
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
                meant = closest(key, options)
                self._report(
                    "GC816",
                    f'{policy.applies_to} has no key "{key}" to point at',
                    (*path, "at"),
                    hint=f'did you mean "{meant}"?' if meant else f"keys: {listing(options)}",
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
        names = frozenset(variables)
        try:
            found = References(text, parse(text, names), variables)
            self._references(found, path, whole, start)
            if found.unknown or found.is_too_much:
                return None
            return compile_expression(text, names)
        except CompileError as error:
            for problem in error.problems:
                offset = offset_of(text, problem.line, problem.column)
                last = max(len(text.rstrip()) - 1, 0)
                place = None
                if offset is not None:
                    place = self._span(path, whole, start + min(offset, last), 1)
                self._report("GC811", f"not valid CEL: {problem.reason:.200}", path, place)
        return None

    def _references(self, found: References, path: PathTuple, whole: str, start: int) -> None:
        for unknown in found.unknown:
            hint = f'did you mean "{unknown.meant}"?' if unknown.meant else ""
            hint = hint or (unknown.options and f"there is: {unknown.options}")
            span = self._span(path, whole, start + unknown.offset, unknown.length)
            self._report("GC812", unknown.summary, path, span, hint)
        if found.growth > MOST_GROWTH:
            hint = "use each loop's variable less often, or make two policies of it"
            self._report("GC814", "the loops of this could grow too large", path, hint=hint)
        elif found.compares_lists:
            summary = "a loop compares, joins or searches whole lists in each round"
            hint = "compare single values, such as the items' names"
            self._report("GC814", summary, path, hint=hint)

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
