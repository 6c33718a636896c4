"""The clusters that this machine has opened, so that a name alone finds one."""

from __future__ import annotations

import difflib
from pathlib import Path

import msgspec

from gcluster.lifecycle import places
from gcluster.lifecycle.outcome import Exit, failure


class IndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine remembers of a cluster, so that its name alone finds it."""

    id: str
    name: str
    spec_path: str
    state_url: str


def _index() -> Path:
    return places.data_home() / "clusters"


def remember(entry: IndexEntry) -> None:
    """Let the cluster be found by its name from now on."""
    path = places.private_directory(_index()) / f"{entry.id}.json"
    content = msgspec.json.encode(entry)
    if path.exists() and path.read_bytes() == content:
        return
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


def known_clusters() -> list[IndexEntry]:
    """Return every cluster that this machine has opened and whose state is still there."""
    if not _index().is_dir():
        return []
    entries = [
        msgspec.json.decode(path.read_bytes(), type=IndexEntry)
        for path in sorted(_index().glob("*.json"))
    ]
    return [
        entry
        for entry in entries
        if not entry.state_url.startswith("file://")
        or Path(entry.state_url.removeprefix("file://")).is_dir()
    ]


def find(name: str) -> IndexEntry:
    """Return the one cluster of this name.

    Raises:
        LifecycleError: none or several have it.
    """
    entries = known_clusters()
    found = [entry for entry in entries if entry.name == name]
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        paths = ", ".join(entry.spec_path for entry in found)
        raise failure(
            "GC907",
            f'several clusters are called "{name}"',
            hint=f"give the path of the spec instead: {paths}",
            exit_code=Exit.USAGE,
        )
    near = difflib.get_close_matches(name, [entry.name for entry in entries], n=1)
    raise failure(
        "GC907",
        f'no cluster "{name}" is known on this machine, and no file has that name',
        hint=f'did you mean "{near[0]}"?' if near else "give the path of its spec",
        exit_code=Exit.USAGE,
    )
