"""The promise of `apiVersion`: what is published keeps loading, what is newer is said to be so."""

from __future__ import annotations

import re

from ..diagnostics import Diagnostic, Severity
from ..text.document import Document

_LATEST = 1
"""Highest number of an `apiVersion` that this gcluster reads."""


def newer_version(document: Document, *, file: str) -> Diagnostic | None:
    """Return the error of a spec that is written for a newer gcluster, or None.

    Nothing else can be said about such a file: what looks wrong may be right there.
    """
    written = document.data.get("apiVersion") if isinstance(document.data, dict) else None
    match = re.fullmatch(r"gcluster/v([0-9]{1,6})", written) if isinstance(written, str) else None
    if match is None or int(match[1]) <= _LATEST:
        return None
    return Diagnostic(
        code="GC026",
        severity=Severity.ERROR,
        summary=f"this gcluster is too old for the spec: it reads gcluster/v{_LATEST}, "
        f"the file is {written}",
        path=("apiVersion",),
        file=file,
        span=document.locate(("apiVersion",)),
        hint="upgrade gcluster on this machine",
    )
