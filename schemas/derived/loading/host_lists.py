"""Lists of hosts in files next to a spec, and the spec with its lists read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...diagnostics import Diagnostic, PathTuple, Severity, Span
from ...spec.sites.bare_metal import ListedHost
from ...spec.sites.host_line import host_of, read_line
from ...structure.document import Document, Structured
from ...structure.fix.patches import place_of
from ...structure.source import decode, read_source

_HOLDERS = ("data", "hosts", "instances", "nodes", "items")
_KEYS: dict[str, tuple[str, ...]] = {
    "address": ("address", "ip", "public_ip", "ip_address", "host"),
    "name": ("name",),
    "user": ("user", "ssh_user", "username"),
    "port": ("port", "ssh_port"),
    "host_key": ("host_key",),
}


class HostList(NamedTuple):
    """What a file gave."""

    hosts: tuple[ListedHost, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    unread: str = ""
    """Why the file itself can't be read."""


def read_file(path: Path) -> HostList:
    """Return the machines of a file; what can't be read of it is reported with its line (GC027)."""
    source = read_source(path)
    text = source if isinstance(source, Diagnostic) else decode(source, file=str(path))
    if isinstance(text, Diagnostic):
        return HostList((), unread=text.summary.replace(str(path), path.name))
    if text.lstrip()[:1] in {"[", "{"}:
        return _of_json(text, str(path))
    hosts: list[ListedHost] = []
    wrong: list[Diagnostic] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.split("#", 1)[0].strip():
            continue
        read = read_line(line)
        if isinstance(read, str):
            wrong.append(_wrong(str(path), f"this line names no host: {read}", number, len(line)))
        else:
            hosts.append(read)
    return _whole(tuple(hosts), tuple(wrong), str(path))


def _of_json(text: str, file: str) -> HostList:
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        return HostList((), (_wrong(file, f"this is no JSON: {error}", line, 1),))
    if isinstance(data, dict):
        data = next((data[key] for key in _HOLDERS if isinstance(data.get(key), list)), None)
    if not isinstance(data, list):
        return HostList((), (_wrong(file, f"no list under any of {', '.join(_HOLDERS)}", 1, 1),))
    hosts: list[ListedHost] = []
    wrong: list[Diagnostic] = []
    for number, item in enumerate(data, start=1):
        read = read_line(item) if isinstance(item, str) else _of_object(item)
        if isinstance(read, str):
            wrong.append(_wrong(file, f"item {number} names no host: {read}", 1, 1))
        else:
            hosts.append(read)
    return _whole(tuple(hosts), tuple(wrong), file)


def _of_object(item: Any) -> ListedHost | str:
    if not isinstance(item, dict):
        return "it is neither text nor an object"
    plain = _of_kubernetes(item) if isinstance(item.get("metadata"), dict) else item
    found = {key: _first(plain, words) for key, words in _KEYS.items()}
    return host_of(found) if found["address"] else "it has no address (ip, public_ip, host)"


def _of_kubernetes(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return name and address of a Node object; an address from outside goes before others."""
    status = node.get("status")
    listed = status.get("addresses") if isinstance(status, dict) else None
    addresses = {
        entry.get("type"): entry.get("address")
        for entry in (listed if isinstance(listed, list) else ())
        if isinstance(entry, dict)
    }
    address = addresses.get("ExternalIP") or addresses.get("InternalIP")
    return {"name": node["metadata"].get("name"), "address": address}


def _first(item: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((item[key] for key in keys if item.get(key) not in {None, ""}), None)


def _whole(hosts: tuple[ListedHost, ...], wrong: tuple[Diagnostic, ...], file: str) -> HostList:
    if not hosts and not wrong:
        wrong = (_wrong(file, "the list is empty", 1, 1),)
    return HostList(hosts, wrong)


def _wrong(file: str, summary: str, line: int, width: int) -> Diagnostic:
    return Diagnostic(
        code="GC027",
        severity=Severity.ERROR,
        summary=summary,
        file=file,
        span=Span(line=line, column=1, end_line=line, end_column=width + 1),
        hint="a line is ADDRESS [USER [PORT]] [name=NAME]",
    )


def repeated(hosts: tuple[ListedHost, ...]) -> Iterator[tuple[str, str]]:
    """Yield (what, word) of names and of addresses with their port that the list has twice."""
    seen: set[tuple[str, str]] = set()
    for host in hosts:
        port = f":{host.port}" if host.port else ""
        for what, word in (("name", host.name), ("address", f"{host.address}{port}")):
            if word is not None and (what, word) in seen:
                yield what, word
            elif word is not None:
                seen.add((what, word))


class WithLists(NamedTuple):
    """A spec, its lists read."""

    structured: Structured
    diagnostics: tuple[Diagnostic, ...]
    edits: tuple[tuple[int, int, str], ...]
    """Start, end and what replaces it in the spec's text: `hosts: [...]` for each `hosts_file`."""


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
        # Of a list that is wrong nothing is taken: what is missing in it would be reported again.
        whole = not (read.unread or read.diagnostics)
        sites[name] = msgspec.structs.replace(site, hosts=list(read.hosts) if whole else [])
        place = place_of(document, path)
        if place is not None:
            edits.append((place.start, place.end, _written(read.hosts)))
    value = structured.value
    replaced = msgspec.structs.replace(
        structured,
        parts={**structured.parts, "sites": sites},
        value=None if value is None else msgspec.structs.replace(value, sites=sites),
    )
    return WithLists(replaced, tuple(found), tuple(edits))


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
