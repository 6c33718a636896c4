"""A spec with the lists of hosts put in that its sites name by file: checked and kept as one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from .diagnostics import Diagnostic, PathTuple, Severity
from .host_lists import HostList, read_file
from .mend.places import place_of
from .spec.sites.listed_host import ListedHost
from .structure.fit import Structured
from .text.document import Document


class WithLists(NamedTuple):
    """A spec, its lists read."""

    structured: Structured
    diagnostics: tuple[Diagnostic, ...]
    text: str
    """The spec's text with `hosts: [...]` for each `hosts_file`."""


def with_lists(structured: Structured, document: Document, *, folder: Path, spec: str) -> WithLists:
    """Read the files and put their hosts into the typed sites and into the text.

    Args:
        structured: the typed parts; sites is one of them.
        document: the text.
        folder: where the paths of files start.
        spec: name of the spec's file, for diagnostics.
    """
    sites = dict(structured.parts["sites"])
    found: list[Diagnostic] = []
    edits: list[tuple[int, int, str]] = []
    for name, site in sites.items():
        file = getattr(site, "hosts_file", None)
        if file is None:
            continue
        path: PathTuple = ("sites", name, "hosts_file")
        read = read_file(folder / file)
        if site.hosts:
            wrong = "the hosts are listed here and in a file: keep one of the two"
            read = HostList((), (), wrong)
        if read.unread:
            found.append(_at(document, path, read.unread, spec))
        found += read.diagnostics
        # Of a list that is wrong nothing is taken: what is missing in it would be told once more.
        whole = not (read.unread or read.diagnostics)
        sites[name] = msgspec.structs.replace(site, hosts=list(read.hosts) if whole else [])
        place = place_of(document, path)
        if place is not None:
            edits.append((place.start, place.end, _written(read.hosts)))
    text = document.text
    for start, end, written in sorted(edits, reverse=True):
        text = text[:start] + written + text[end:]
    value = structured.value
    replaced = msgspec.structs.replace(
        structured,
        parts={**structured.parts, "sites": sites},
        value=None if value is None else msgspec.structs.replace(value, sites=sites),
    )
    return WithLists(replaced, tuple(found), text)


def _written(hosts: tuple[ListedHost, ...]) -> str:
    """Return the key and value as YAML on one line, which JSON is."""
    return f"hosts: {msgspec.json.encode(list(hosts)).decode()}"


def _at(document: Document, path: PathTuple, summary: str, spec: str) -> Diagnostic:
    return Diagnostic(
        code="GC027",
        severity=Severity.ERROR,
        summary=summary,
        path=path,
        file=spec,
        span=document.locate(path),
        hint="hosts_file is a path from the folder of the spec",
    )
