"""Load a spec: text, structure, checks; and the catalog files that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .catalog import Catalog, CatalogError, load_catalog
from .checks import CheckContext, run_checks
from .diagnostics import (
    Diagnostic,
    PathTuple,
    Severity,
    Span,
    in_file_order,
)
from .spec import ClusterSpec
from .structure.compose import compose
from .structure.document import Document, Structured
from .structure.fit import fit
from .structure.source import decode, read_source

if TYPE_CHECKING:
    from .derived.loading.hook_files import WithHooks
    from .derived.loading.host_lists import WithLists
    from .derived.loading.machine_requirements import WithMachines


class OwnCatalogs:
    """A spec's own catalogs over gcluster's. What is wrong with them is kept in `diagnostics`."""

    def __init__(
        self, written: Iterable[str], folder: Path | None, *, given: Catalog | None = None
    ) -> None:
        """Know the files.

        Args:
            written: paths as in the spec.
            folder: where they start; None: the current folder.
            given: a catalog to use instead of all this.
        """
        start = folder or Path()
        self._given = given
        self.paths = tuple(start / name for name in written)
        self.diagnostics: tuple[Diagnostic, ...] = ()
        self._loaded: Catalog | None = None

    def load(self) -> Catalog:
        """Return the catalog; files that are wrong are left out and reported."""
        if self._given is not None:
            return self._given

        if self._loaded is not None:
            return self._loaded
        good: list[Path] = []
        for path in self.paths:
            try:
                load_catalog([path])
            except CatalogError as error:
                self.diagnostics += error.diagnostics
            else:
                good.append(path)
        complete = not self.diagnostics
        self._loaded = msgspec.structs.replace(load_catalog(good), complete=complete)
        return self._loaded


_LATEST = 1
"""Highest number of an `apiVersion` that this gcluster reads."""
API_VERSION = f"gcluster/v{_LATEST}"
"""The version of the spec language that the types describe."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A spec file, read: the typed spec, or why there is none."""

    spec: ClusterSpec | None
    """None when any diagnostic is an error."""
    diagnostics: tuple[Diagnostic, ...]
    """Everything found, warnings included, in file order."""
    text: str
    """The source, for excerpts; "" when it could not be read."""
    file: str
    document: Document | None
    """The plain data with its places; None when the text is no readable YAML mapping."""
    whole_text: str = ""
    """The source with the lists of hosts and the files of hooks put in that it names, and the
    machine types that meet its requirements: nothing else is needed."""
    catalogs: tuple[Path, ...] = ()
    """Catalog files of the user's that the spec names, for `load_catalog`."""
    failover: Mapping[str, tuple[str, ...]] = {}
    """Pool -> the sites that it may be made at, in their order, for pools with several."""


def load(
    path: Path, *, catalog: Catalog | None = None, sites: Mapping[str, str] | None = None
) -> Loaded:
    """Read and check a spec file.

    Args:
        path: a YAML file; a missing or unreadable one is a diagnostic.
        catalog: machine types to check against; default: the catalog that comes with gcluster.
        sites: pool -> which of its sites it is at; default: the first.
    """
    source = read_source(path)
    if isinstance(source, Diagnostic):
        return _unreadable(source, str(path))
    return load_text(source, file=str(path), catalog=catalog, folder=path.parent, sites=sites)


def load_text(
    text: str | bytes,
    *,
    file: str = "<text>",
    catalog: Catalog | None = None,
    folder: Path | None = None,
    check: bool = True,
    sites: Mapping[str, str] | None = None,
) -> Loaded:
    """Check a spec given as text or as the bytes of a file.

    Args:
        text: the spec.
        file: name for the diagnostics.
        catalog: machine types to check against; default: gcluster's, with the files that the
            spec names.
        folder: where the spec is: paths in it start there; default: the current folder.
        check: also run the checks of meaning; without, a spec of the right structure is taken.
        sites: pool -> which of its sites it is at; default: the first.
    """
    decoded = decode(text, file=file)
    if isinstance(decoded, Diagnostic):
        return _unreadable(decoded, file)
    composed = compose(decoded, file=file)
    document = composed.document
    if document is None or not isinstance(document.data, dict):
        found = composed.diagnostics or [_wrong_root(document, file)]
        return Loaded(spec=None, diagnostics=_sorted(found), text=decoded, file=file, document=None)
    if (newer := _newer(document, file)) is not None:
        return msgspec.structs.replace(_unreadable(newer, file), text=decoded, document=document)
    spoilt = frozenset(composed.broken)
    structured = fit(ClusterSpec, document, file=file, spoilt=spoilt)
    found = [*composed.diagnostics, *structured.diagnostics]
    edits: list[tuple[int, int, str]] = []
    for read in (_host_lists, partial(_hook_files, check=check)):
        named = read(structured, document, file, folder)
        if named is not None:
            structured = named.structured
            found += named.diagnostics
            edits += named.edits
    own = OwnCatalogs(structured.parts.get("catalog", ()), folder, given=catalog)
    written = structured
    if (chosen := _requirements(structured, document, file, own)) is not None:
        structured = chosen.structured
        found += chosen.diagnostics
        edits += chosen.edits
    found += _checked(structured, document, file, own.load) if check else []
    orders: Mapping[str, tuple[str, ...]] = {}
    if not any(diagnostic.is_error for diagnostic in found) and _has_failover(structured):
        from .derived.loading.failover import with_sites  # noqa: PLC0415  # few specs have it

        placed = with_sites(
            structured,
            document,
            written=written,
            catalog=own.load,
            check=(lambda each: _checked(each, document, file, own.load)) if check else None,
            known=found,
            chosen=sites or {},
            spec=file,
        )
        structured, orders = placed.structured, placed.orders
        found += placed.diagnostics
        edits += placed.edits
    found += own.diagnostics
    has_error = any(diagnostic.is_error for diagnostic in found)
    return Loaded(
        spec=None if has_error else structured.value,
        diagnostics=_sorted(found),
        text=decoded,
        whole_text=_edited(document.text, edits) if edits else decoded,
        file=file,
        document=document,
        catalogs=own.paths,
        failover=orders,
    )


def _has_failover(structured: Structured) -> bool:
    return any(pool.failover for pool in structured.parts.get("pools", {}).values())


def _host_lists(
    structured: Structured, document: Document, file: str, folder: Path | None
) -> WithLists | None:
    """Read the lists of hosts that sites name by file; None where there are none."""
    sites = structured.parts.get("sites", {}).values()
    if all(getattr(site, "hosts_file", None) is None for site in sites):
        return None
    from .derived.loading.host_lists import with_lists  # noqa: PLC0415  # few specs have lists

    return with_lists(structured, document, folder=folder or Path(), spec=file)


def _hook_files(
    structured: Structured, document: Document, file: str, folder: Path | None, *, check: bool
) -> WithHooks | None:
    """Read the files that hooks name; None where there are no hooks."""
    if not structured.parts.get("hooks"):
        return None
    from .derived.loading.hook_files import with_hooks  # noqa: PLC0415  # few specs have hooks

    return with_hooks(structured, document, folder=folder or Path(), spec=file, check=check)


def _requirements(
    structured: Structured, document: Document, file: str, own: OwnCatalogs
) -> WithMachines | None:
    """Choose the machine types of pools that say what theirs has to have; None: no pool does."""
    pools = structured.parts.get("pools", {}).values()
    if all(pool.machine is None or isinstance(pool.machine, str) for pool in pools):
        return None
    from .derived.loading.machine_requirements import with_machines  # noqa: PLC0415  # few specs have them

    return with_machines(structured, document, catalog=own.load(), spec=file)


def _edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with parts of it replaced: start, end and the new text."""
    for start, end, written in sorted(edits, reverse=True):
        text = text[:start] + written + text[end:]
    return text


def _newer(document: Document, file: str) -> Diagnostic | None:
    """Return the error of a spec that is written for a newer gcluster, or None.

    Nothing else can be said about such a file: what looks wrong may be right there.
    """
    written = document.data.get("apiVersion")
    match = re.fullmatch(r"gcluster/v([0-9]{1,6})", written) if isinstance(written, str) else None
    if match is None or int(match[1]) <= _LATEST:
        return None
    return Diagnostic(
        code="GC026",
        severity=Severity.ERROR,
        summary=f"this gcluster is too old for the spec: it reads {API_VERSION}, "
        f"the file is {written}",
        path=("apiVersion",),
        file=file,
        span=document.locate(("apiVersion",)),
        hint="upgrade gcluster on this machine",
    )


def _sorted(found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(in_file_order(found))


def _unreadable(diagnostic: Diagnostic, file: str) -> Loaded:
    return Loaded(spec=None, diagnostics=(diagnostic,), text="", file=file, document=None)


def _wrong_root(document: Document | None, file: str) -> Diagnostic:
    """Return the error of a document that is empty or no mapping."""
    data = document.data if document is not None else None
    if data is None:
        code, summary = "GC016", "the file is empty"
    else:
        kind = "a list" if isinstance(data, list) else "a single value"
        code, summary = "GC018", f"the file holds {kind}, not a mapping (key: value)"
    return Diagnostic(
        code=code,
        severity=Severity.ERROR,
        summary=summary,
        file=file,
        span=Span(line=1, column=1, end_line=1, end_column=2),
        hint="a spec starts with: apiVersion: gcluster/v1   (gcluster init writes one)",
    )


def _checked(
    structured: Structured, document: Document, file: str, catalog: Callable[[], Catalog]
) -> list[Diagnostic]:
    """Run the checks over the parts whose structure holds."""
    if not structured.parts:
        return []

    def declared(key: str) -> Iterable[str] | None:
        entries = document.data
        for step in key.split("."):
            entries = entries.get(step) if isinstance(entries, dict) else None
        return entries if isinstance(entries, dict) else None

    def line_of(path: PathTuple) -> int | None:
        span = document.locate(structured.original(path))
        return None if span is None else span.line

    context = CheckContext(
        structured.parts,
        declared=declared,
        catalog=catalog,
        line_of=line_of,
    )
    return list(
        run_checks(
            context,
            document,
            file=file,
            spoilt=structured.spoilt,
            original=structured.original,
        )
    )
