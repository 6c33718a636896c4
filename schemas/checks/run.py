"""Run every check over the parts that hold and turn what they find into located diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import structs

from ..diagnostics import Diagnostic, Patch, PathTuple
from ..mend.patches import patch_of, word_patch
from ..text.document import Document
from .context import CheckContext
from .groups import import_for
from .registry import CHECKS, Finding


def run_checks(
    context: CheckContext,
    document: Document,
    *,
    file: str,
    spoilt: frozenset[PathTuple],
    original: Callable[[PathTuple], PathTuple],
) -> Iterator[Diagnostic]:
    """Yield what all checks find, in the order of their codes.

    Only modules of checks that the spec needs are imported; those that are loaded already run too.

    Args:
        context: the parts to check.
        document: where things stand.
        file: name for the diagnostics.
        spoilt: paths whose value is unknown; findings that rely on one are left out.
        original: from the parts' paths to the document's.
    """
    import_for(context)
    holders = {path[:length] for path in spoilt for length in range(len(path))}
    for code in sorted(CHECKS):
        for finding in CHECKS[code].run(context):
            needs = [original(need) for need in finding.relies_on or (finding.path,)]
            if spoilt and any(_is_spoilt(need, spoilt, holders) for need in needs):
                continue
            yield _diagnostic(code, finding, document, file, original)


def _is_spoilt(need: PathTuple, spoilt: frozenset[PathTuple], holders: set[PathTuple]) -> bool:
    """Say whether something at, above or below `need` is unknown."""
    if "*" in need:
        return any(all(a in ("*", b) for a, b in zip(need, path, strict=False)) for path in spoilt)
    return need in holders or any(need[:length] in spoilt for length in range(len(need) + 1))


def _diagnostic(
    code: str,
    finding: Finding,
    document: Document,
    file: str,
    original: Callable[[PathTuple], PathTuple],
) -> Diagnostic:
    path = original(finding.path)
    return Diagnostic(
        code=code,
        severity=finding.severity,
        summary=finding.summary,
        detail=finding.detail,
        path=path,
        file=file,
        span=document.locate(path, key=finding.at_key),
        hint=finding.hint,
        patch=_patch(finding, document, original),
        is_secret=finding.is_secret,
    )


def _patch(
    finding: Finding, document: Document, original: Callable[[PathTuple], PathTuple]
) -> Patch | None:
    """Return the patch of a finding that says how it is mended."""
    if finding.fix is None and finding.meant is None:
        return None

    if finding.fix is None:
        path, word = original(finding.path), finding.meant or ""
        return word_patch(document, path, word, at_key=finding.at_key)
    return patch_of(structs.replace(finding.fix, path=original(finding.fix.path)), document)
