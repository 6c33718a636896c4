"""Read the data of this folder: YAML that comes with gcluster and is right by its tests."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from ..decoding import convert
from ..text.compose import compose

FOLDER = Path(__file__).parent
TEXTS = ("structure.yaml", "running.yaml", "kubernetes.yaml", "upkeep.yaml")
"""Files of codes that are no rules of meaning."""
_T = TypeVar("_T")


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a code means, as data."""

    summary: str
    explanation: str


def read(name: str, kind: type[_T]) -> _T:
    """Return the typed content of a file beside this module."""
    composed = compose((FOLDER / name).read_text(encoding="utf-8"), file=name)
    return convert(composed.document and composed.document.data, kind)
