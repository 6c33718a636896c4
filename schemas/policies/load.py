"""Load a policies file: typed, its expressions compiled, every mistake a located diagnostic."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..diagnostics import Diagnostic, Severity, Span, in_file_order
from ..structure.compose import compose
from ..structure.document import Document
from ..structure.fit import fit
from ..structure.source import decode, read_source
from .compile import CompiledPolicy, Compiler
from .policy import PolicyFile


class LoadedPolicies(msgspec.Struct, frozen=True, kw_only=True):
    """A policies file, read."""

    policies: tuple[CompiledPolicy, ...]
    """The policies that hold together; the others are in `diagnostics`."""
    diagnostics: tuple[Diagnostic, ...]
    """What is wrong with the file, in file order."""
    text: str
    """The source, for excerpts; "" when it could not be read."""
    file: str

    @property
    def has_errors(self) -> bool:
        """Whether a policy could not be read: nothing that it guards may go on."""
        return any(diagnostic.is_error for diagnostic in self.diagnostics)


def load_policies(path: Path) -> LoadedPolicies:
    """Read a policies file; a missing or unreadable one is a diagnostic."""
    source = read_source(path)
    if isinstance(source, Diagnostic):
        return _nothing(source, "", str(path))
    return load_policies_text(source, file=str(path))


def load_policies_text(content: str | bytes, *, file: str) -> LoadedPolicies:
    """Read policies given as text or as the bytes of a file; `file` names it in diagnostics."""
    text = decode(content, file=file)
    if isinstance(text, Diagnostic):
        return _nothing(text, "", file)
    composed = compose(text, file=file)
    document = composed.document
    if document is None or not isinstance(document.data, dict):
        found = composed.diagnostics or [_wrong_root(document, file)]
        return LoadedPolicies(policies=(), diagnostics=tuple(found), text=text, file=file)
    structured = fit(PolicyFile, document, file=file, spoilt=frozenset(composed.broken))
    compiler = Compiler(document, file)
    policies = [
        compiler.compile(policy, structured.original(("policies", index)))
        for index, policy in enumerate(structured.parts.get("policies", ()))
    ]
    found = [*composed.diagnostics, *structured.diagnostics, *compiler.diagnostics]
    return LoadedPolicies(
        policies=tuple(policy for policy in policies if policy is not None),
        diagnostics=tuple(in_file_order(found)),
        text=text,
        file=file,
    )


def _nothing(diagnostic: Diagnostic, text: str, file: str) -> LoadedPolicies:
    return LoadedPolicies(policies=(), diagnostics=(diagnostic,), text=text, file=file)


def _wrong_root(document: Document | None, file: str) -> Diagnostic:
    """Return the error of a file that is empty or no mapping."""
    is_empty = document is None or document.data is None
    summary = "the file is empty" if is_empty else "the file holds no mapping (key: value)"
    return Diagnostic(
        code="GC016" if is_empty else "GC018",
        severity=Severity.ERROR,
        summary=summary,
        file=file,
        span=Span(line=1, column=1, end_line=1, end_column=2),
        hint="a policies file starts with: apiVersion: gcluster/policies/v1",
    )
