"""Read the software lock that comes with gcluster, once and only when something is asked of it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ..catalog.load import CatalogError
from ..structure.fit import fit
from ..text.compose import compose
from .lock import Lock

LOCK_FILE = Path(__file__).parent.parent / "catalog" / "stack.lock.yaml"


@lru_cache(maxsize=1)
def load_lock() -> Lock:
    """Return gcluster's software lock."""
    return read_lock(LOCK_FILE.read_text(encoding="utf-8"), file=LOCK_FILE.name)


def read_lock(text: str, *, file: str) -> Lock:
    """Type a lock's text.

    Raises:
        CatalogError: the text is no lock; its diagnostics say what is wrong and where.
    """
    composed = compose(text, file=file)
    if composed.document is None:
        raise CatalogError(*composed.diagnostics)
    structured = fit(Lock, composed.document, file=file, spoilt=frozenset(composed.broken))
    if not isinstance(structured.value, Lock):
        raise CatalogError(*composed.diagnostics, *structured.diagnostics)
    return structured.value
