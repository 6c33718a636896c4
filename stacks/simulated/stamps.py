"""What simulated nodes would carry on their disks: which step was applied there, as its digest.

One line per change is appended, so that thousands of nodes can be stamped one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ...schemas.structure.decoding import learn
from ..io import atomic
from ..provider import SiteContext


class _Line(msgspec.Struct, omit_defaults=True):
    host: str
    steps: dict[str, str] = {}
    gone: bool = False


def read_stamps(context: SiteContext) -> dict[str, dict[str, str]]:
    """Return host -> step -> digest, for every node that was stamped since it was made."""
    stamps: dict[str, dict[str, str]] = {}
    try:
        lines = _path(context).read_bytes().splitlines()
    except FileNotFoundError:
        return stamps
    learn(_Line)
    decoder = msgspec.json.Decoder(_Line)
    for line in lines:
        change = decoder.decode(line)
        if change.gone:
            stamps.pop(change.host, None)
        else:
            stamps.setdefault(change.host, {}).update(change.steps)
    return stamps


def write_stamps(context: SiteContext, done: Mapping[str, Mapping[str, str]]) -> None:
    """Set the digests of some steps (host -> step -> digest); the others stay as they are.

    A run that is killed leaves whole lines: each node's is one write.
    """
    for host, steps in done.items():
        _append(context, [_Line(host=host, steps=dict(steps))])


def forget(context: SiteContext, hosts: Iterable[str]) -> None:
    """Drop all stamps of removed nodes: a recreated one starts with none."""
    _append(context, [_Line(host=host, gone=True) for host in hosts])


def _append(context: SiteContext, lines: list[_Line]) -> None:
    if not lines:
        return
    path = _path(context)
    with atomic.locked(path.with_suffix(".lock")), path.open("ab") as handle:
        handle.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def _path(context: SiteContext) -> Path:
    return context.workdir / f"simulated-{context.site}" / "stamps.jsonl"
