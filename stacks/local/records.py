"""Records of a local site on this machine: assigned addresses, and which nodes are ready."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ...schemas.structure.decoding import decode_json
from ..io import atomic
from ..provider import SiteContext


class Ready(msgspec.Struct, frozen=True):
    """A node that answered over SSH, recorded in the ledger."""

    container: str
    host_keys: tuple[str, ...]


class Records(msgspec.Struct):
    """Kept in addition to the labels: without it, nodes are queried and recorded again."""

    addresses: dict[str, str] = {}
    """Node -> address; a recreated node gets the same."""
    ready: dict[str, Ready] = {}
    ids: dict[str, str] = {}
    """Resource key -> id of the object whose creation is in the ledger."""


def directory(context: SiteContext) -> Path:
    """Return where this site's key and records are."""
    return context.workdir / f"local-{context.site}"


def load(context: SiteContext) -> Records:
    """Return what is recorded; nothing when the file is missing or not ours."""
    try:
        return decode_json((directory(context) / "nodes.json").read_bytes(), Records)
    except (FileNotFoundError, msgspec.MsgspecError):
        return Records()


@contextmanager
def updated(context: SiteContext) -> Iterator[Records]:
    """Yield the records to change, and save them; other threads and processes wait."""
    home = directory(context)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with atomic.locked(home / ".nodes.lock"):
        records = load(context)
        yield records
        atomic.write(home / "nodes.json", msgspec.json.encode(records))


def forget(context: SiteContext) -> None:
    """Remove everything that is kept on this machine for the site, keys included."""
    shutil.rmtree(directory(context), ignore_errors=True)
