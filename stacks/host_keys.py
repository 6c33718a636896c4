"""Waits for the host keys that new machines show through their cloud, and remembers who was silent.

Nobody logs in to a machine whose key was not read that way. A machine is waited for once: one that
stayed silent is looked at again by later commands, and no longer waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from ..schemas.decoding import decode_json
from . import atomic

_AT_ONCE = 8
"""Machines asked at the same time: an account's request rate is shared with everybody in it."""
_PAUSE_S = 10.0


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """How long a provider waits, and who is told."""

    patience_s: float = 0.0
    """Seconds from the first look until machines without a key are taken for silent."""
    progress: Callable[[int, int], None] = lambda _done, _total: None
    """Called after each look with how many have shown a key, and of how many."""
    pause_s: float = _PAUSE_S
    at_once: int = _AT_ONCE


class HostKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What machines have shown."""

    keys: dict[str, tuple[str, ...]] = {}
    """Machine -> public host keys."""
    silent: dict[str, float] = {}
    """Machine -> seconds that it was waited for in vain."""


def await_host_keys(
    machines: Iterable[str],
    read: Callable[[str], tuple[str, ...]],
    *,
    cache: Path,
    waiting: Waiting | None = None,
) -> HostKeys:
    """Return the host keys of machines, and which stayed silent.

    Keys are kept in `cache`: a console holds its last part only, and a machine never changes its
    key. One with another key is another machine, or somebody in between.

    Args:
        machines: ids in the cloud, which are never given to another machine.
        read: reads the keys of one machine; () where it shows none yet.
        cache: file on this machine; who was silent is in a file beside it.
        waiting: how long; None: one look.
    """
    waiting = waiting or Waiting()
    ids = list(dict.fromkeys(machines))
    silence = cache.with_suffix(".silent.json")
    known, gave_up = _keys(cache), _silent(silence)
    until = time.monotonic() + waiting.patience_s
    while missing := [i for i in ids if i not in known]:
        with ThreadPoolExecutor(min(waiting.at_once, len(missing))) as pool:
            found = dict(zip(missing, pool.map(read, missing), strict=True))
        new = {i: keys for i, keys in found.items() if keys}
        known = _merge(cache, new) if new else known
        waiting.progress(sum(i in known for i in ids), len(ids))
        left = [i for i in missing if i not in known and i not in gave_up]
        if not left or time.monotonic() >= until:
            break
        time.sleep(min(waiting.pause_s, max(0.0, until - time.monotonic())))
    silent = {i: gave_up.get(i, waiting.patience_s) for i in ids if i not in known}
    if silent != {i: gave_up[i] for i in ids if i in gave_up}:
        with atomic.locked(cache.with_suffix(".lock")):
            others = {i: s for i, s in _silent(silence).items() if i not in ids}
            atomic.write(silence, msgspec.json.encode(others | silent))
    return HostKeys(keys={i: tuple(known[i]) for i in ids if i in known}, silent=silent)


def silence(waited_s: float, title: str) -> str:
    """Return why nobody logs in to a machine that showed no key, in one line.

    Args:
        waited_s: seconds that it was waited for.
        title: the cloud as people call it.
    """
    return f"it showed no host key through {title} within {waited_s:.0f} s, and is not waited for"


def _merge(cache: Path, new: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Add keys; what another process has read first stays."""
    with atomic.locked(cache.with_suffix(".lock")):
        known = {**new, **_keys(cache)}
        atomic.write(cache, msgspec.json.encode(known))
    return known


def _keys(cache: Path) -> dict[str, tuple[str, ...]]:
    with suppress(FileNotFoundError, msgspec.MsgspecError):
        return decode_json(cache.read_bytes(), dict[str, tuple[str, ...]])
    return {}


def _silent(path: Path) -> dict[str, float]:
    with suppress(FileNotFoundError, msgspec.MsgspecError):
        return decode_json(path.read_bytes(), dict[str, float])
    return {}
