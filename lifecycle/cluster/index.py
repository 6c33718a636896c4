"""The clusters that this machine has opened, so that a name alone finds one."""

from __future__ import annotations

import difflib
from contextlib import suppress
from pathlib import Path

import msgspec

from ...schemas.structure.decoding import decode_json
from . import places
from .outcome import Exit, failure


class IndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    """This machine's index entry of a cluster, by which its name alone finds it."""

    id: str
    name: str
    spec_path: str
    state_url: str
    ended: bool = False
    """Whether `down` removed everything; an `up` begins it again."""


def _index() -> Path:
    return places.data_home() / "clusters"


def remember(entry: IndexEntry) -> None:
    """Add the cluster to the index; whether it has ended is left unchanged.

    A state has one identity: an entry with another id is of an earlier cluster.
    """
    before = _read(entry.id)
    for other in _entries():
        if other.state_url == entry.state_url and other.id != entry.id:
            forget(other.id)
    _write(msgspec.structs.replace(entry, ended=before is not None and before.ended))


def set_ended(cluster_id: str, *, ended: bool) -> None:
    """Note that a cluster was taken down, or that it is being brought up."""
    entry = _read(cluster_id)
    if entry is not None:
        _write(msgspec.structs.replace(entry, ended=ended))


def forget(cluster_id: str) -> None:
    """Remove a cluster from the index."""
    (_index() / f"{cluster_id}.json").unlink(missing_ok=True)


def _read(cluster_id: str) -> IndexEntry | None:
    return next((entry for entry in _entries() if entry.id == cluster_id), None)


def _write(entry: IndexEntry) -> None:
    if _read(entry.id) == entry:
        return
    path = places.private_directory(_index()) / f"{entry.id}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(msgspec.json.encode(entry))
    temporary.replace(path)


def known_clusters() -> list[IndexEntry]:
    """Return every cluster that this machine has opened and whose state is still there."""
    return [entry for entry in _entries() if _has_place(entry)]


def remembered(state_url: str) -> list[IndexEntry]:
    """Return the clusters that had this state and were not taken down, as far as is known here."""
    return [entry for entry in _entries() if entry.state_url == state_url and not entry.ended]


def _entries() -> list[IndexEntry]:
    """Return all that is recorded; a file that can't be read is none: opening writes it again."""
    found = []
    for path in sorted(_index().glob("*.json")) if _index().is_dir() else ():
        with suppress(FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            found.append(decode_json(path.read_bytes(), IndexEntry))
    return found


def _has_place(entry: IndexEntry) -> bool:
    place = entry.state_url.removeprefix("file://")
    return place == entry.state_url or Path(place).is_dir()


def find(name: str) -> IndexEntry:
    """Return the one cluster of this name; of several, the one that wasn't taken down.

    One whose state is gone counts where it was not taken down and no other has the name.

    Raises:
        LifecycleError: none or several have it.
    """
    entries = known_clusters()
    named = [entry for entry in entries if entry.name == name] or [
        entry for entry in _entries() if entry.name == name and not entry.ended
    ]
    found = [entry for entry in named if not entry.ended] or named
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        paths = ", ".join(dict.fromkeys(entry.spec_path for entry in found))
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
