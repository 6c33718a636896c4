"""What the composer hands over: a document, its findings, and the places they spoil."""

from __future__ import annotations

from ..diagnostics import Diagnostic, Patch, PathTuple, Severity
from .document import Document


class Composed:
    """What came out: the document (None when the text can't be read), findings, spoilt places."""

    def __init__(self, text: str, file: str) -> None:
        """Start with nothing read."""
        self.document: Document | None = None
        self.diagnostics: list[Diagnostic] = []
        self.broken: set[PathTuple] = set()
        """Paths whose value was reported here already: nothing more is to be said about them."""
        self._places = Document(data=None, text=text, root=0, marks={})
        self._file = file

    def report(
        self,
        code: str,
        summary: str,
        start: int,
        end: int,
        hint: str = "",
        *,
        mend: tuple[int, str] | None = None,
    ) -> None:
        """Add an error at character offsets.

        Args:
            code: of the diagnostic.
            summary: what is wrong.
            start: first character to blame.
            end: behind the last.
            hint: what to write instead.
            mend: the certain mend: where what it replaces ends, and the text that replaces it.
        """
        patch = None
        if mend is not None:
            patch = Patch(span=self._places.exact(start, mend[0]), replacement=mend[1])
        self.diagnostics.append(
            Diagnostic(
                code=code,
                severity=Severity.ERROR,
                summary=summary,
                file=self._file,
                span=self._places.span(start, end),
                hint=hint,
                patch=patch,
            )
        )

    def line_of(self, offset: int) -> int:
        """Return the line, from 1, that a character offset is on."""
        return self._places.span(offset, offset).line
