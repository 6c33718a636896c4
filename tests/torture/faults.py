"""What goes wrong, as a table: add a row, and every run of `make torture` may draw it.

A fault works inside a process while it runs (`inject`, called in it before the command), or on the
cluster's places between two commands (`between`). `draw` gives it its moment, object or way.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

from gcluster.lifecycle.state import process as identity
from gcluster.lifecycle.state import store as state_store
from gcluster.lifecycle.state.bucket import DirectoryBucket, broken
from gcluster.schemas.structure.decoding import learn

from .cluster import TortureCluster
from .process import Injection, at_moment

LATEST = 60
"""Moments that most commands have, about: a later one is passed by none."""


class Fault(NamedTuple):
    """One row of the table."""

    name: str
    inject: Callable[[Random], Injection] | None = None
    """What happens in the process, drawn."""
    between: Callable[[TortureCluster, Random], str] | None = None
    """What happens to the places before the command; returns what was hit, for the report."""
    weight: int = 1
    """How often it is drawn, relatively: what hits the process itself has many moments."""


# In the process


def _kill(draw: Random) -> Injection:
    number = draw.randint(1, LATEST)
    return lambda: at_moment(number, lambda: os.kill(os.getpid(), signal.SIGKILL))


def _kill_elsewhere(draw: Random) -> Injection:
    """Killed on another machine: it can't be seen here that the lock's holder is gone."""
    kill = _kill(draw)

    def inject() -> None:
        identity._machine.cache_clear()  # noqa: SLF001
        identity._machine = lambda: "anothermachine00"  # type: ignore[assignment]  # noqa: SLF001
        kill()

    return inject


def _signal(number: signal.Signals) -> Callable[[Random], Injection]:
    def drawn(draw: Random) -> Injection:
        moment = draw.randint(1, LATEST)
        return lambda: at_moment(moment, lambda: os.kill(os.getpid(), number))

    return drawn


def _stop(draw: Random) -> Injection:
    """Hang: the runner lets others work, then has it go on."""
    number = draw.randint(1, LATEST)
    return lambda: at_moment(number, lambda: os.kill(os.getpid(), signal.SIGSTOP))


def _disk(error: int, *, lasts: bool) -> Callable[[Random], Injection]:
    """The state's disk refuses writes from one on: for ever, or this once. A double of the disk."""

    def drawn(draw: Random) -> Injection:
        first = draw.randint(1, 20)

        def inject() -> None:
            write, passed = DirectoryBucket._write, [0]  # noqa: SLF001

            def refused(bucket: DirectoryBucket, act: object, key: str) -> None:
                passed[0] += 1
                if passed[0] == first or (lasts and passed[0] > first):
                    raise broken("the disk", key, OSError(error, os.strerror(error)))
                write(bucket, act, key)  # type: ignore[arg-type]  # as given

            DirectoryBucket._write = refused  # type: ignore[method-assign]  # noqa: SLF001

        return inject

    return drawn


def _clock(draw: Random) -> Injection:
    step = timedelta(seconds=draw.choice([-86400, -3600, -5, 5, 3600, 400 * 86400]))

    def inject() -> None:
        real = time.time
        learn(state_store.ClusterIdentity)  # by the true `datetime`

        class Stepped(datetime):
            @classmethod
            def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # UTC alone
                del tz
                return datetime.fromtimestamp(real(), UTC) + step

        state_store.datetime = Stepped  # type: ignore[misc]  # what `utc_now` calls
        time.time = lambda: real() + step.total_seconds()

    return inject


def _full_output(_: Random) -> Injection:
    return lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1) and None  # type: ignore[func-returns-value]


def _closed_output(_: Random) -> Injection:
    def inject() -> None:
        import sys  # noqa: PLC0415

        os.close(1)
        sys.stdout = None  # type: ignore[assignment]  # as the interpreter starts then

    return inject


# Between two commands


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _garbage(path: Path) -> None:
    path.write_bytes(b"\x93\x00\xff{]\n" * 30)


def _edited(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:] if len(data) > 1 else b"x")


def _removed(path: Path) -> None:
    path.unlink()


WAYS: dict[str, Callable[[Path], None]] = {
    "emptied": _empty,
    "cut": _cut,
    "garbled": _garbage,
    "edited": _edited,
    "removed": _removed,
}
"""The five ways in which every object of the state is damaged."""


def _object(prefix: str, way: str) -> Callable[[TortureCluster, Random], str]:
    def between(cluster: TortureCluster, draw: Random) -> str:
        keys = [key for key in cluster.objects() if key.startswith(prefix)]
        if not keys:
            return "nothing"
        key = draw.choice(keys)
        WAYS[way](cluster.state / key)
        return key

    return between


def _folder(name: str) -> Callable[[TortureCluster, Random], str]:
    def between(cluster: TortureCluster, _: Random) -> str:
        shutil.rmtree(cluster.folder / name, ignore_errors=True)
        return name

    return between


def _index(way: str) -> Callable[[TortureCluster, Random], str]:
    def between(cluster: TortureCluster, draw: Random) -> str:
        entries = sorted((cluster.folder / "data/gcluster/clusters").glob("*.json"))
        if entries:
            WAYS[way](draw.choice(entries))
        return "the index of this machine"

    return between


def _spec_text(text: bytes) -> Callable[[TortureCluster, Random], str]:
    def between(cluster: TortureCluster, _: Random) -> str:
        cluster.spec.write_bytes(text)
        return "the spec file"

    return between


def _machine_lost(cluster: TortureCluster, draw: Random) -> str:
    import json  # noqa: PLC0415

    for path in (cluster.folder / "data/gcluster/work").glob("*/simulated-lab/nodes.json"):
        site = json.loads(path.read_bytes())
        if site["nodes"]:
            name = draw.choice(sorted(site["nodes"]))
            del site["nodes"][name]
            path.write_text(json.dumps(site), encoding="utf-8")
            return name
    return "nothing"


def _site(keys: str) -> Callable[[TortureCluster, Random], str]:
    def between(cluster: TortureCluster, draw: Random) -> str:
        cluster.write(site=f", {keys.format(seed=draw.randint(0, 9999))}")
        return "the site's answers"

    return between


PREFIXES = (
    "format.json", "cluster.json", "applied/", "events/", "lock/", "keyring/", "secrets/",
    "observed.json",
)  # fmt: skip
_SITE_FAULTS = {
    "creations are refused": "create_failure_rate: 0.4",
    "answers get lost": "lost_response_rate: 0.4",
    "nodes don't boot": "boot_failure_rate: 0.4",
    "deletions are ignored": "delete_failure_rate: 0.4",
    "calls come too often": "throttle_rate: 0.3",
}

FAULTS: tuple[Fault, ...] = (
    Fault("killed", _kill, weight=8),
    Fault("killed elsewhere", _kill_elsewhere, weight=8),
    Fault("interrupted", _signal(signal.SIGINT), weight=8),
    Fault("terminated", _signal(signal.SIGTERM), weight=8),
    Fault("stopped while others work", _stop, weight=8),
    Fault("disk full", _disk(errno.ENOSPC, lasts=True), weight=4),
    Fault("disk full for a moment", _disk(errno.ENOSPC, lasts=False), weight=4),
    Fault("disk read-only", _disk(errno.EROFS, lasts=True), weight=4),
    Fault("clock stepped", _clock, weight=4),
    Fault("output full", _full_output),
    Fault("output closed", _closed_output),
    *(
        Fault(f"{prefix.rstrip('/')} {way}", between=_object(prefix, way))
        for prefix in PREFIXES
        for way in WAYS
    ),
    *(Fault(f"index {way}", between=_index(way)) for way in WAYS),
    Fault("state lost", between=_folder(".gcluster")),
    Fault("events lost", between=_folder(".gcluster/torture/events")),
    Fault("locks lost", between=_folder(".gcluster/torture/lock")),
    Fault("applied lost", between=_folder(".gcluster/torture/applied")),
    Fault("index lost", between=_folder("data/gcluster/clusters")),
    Fault("caches lost", between=_folder("cache")),
    Fault("spec emptied", between=_spec_text(b"")),
    Fault("spec garbled", between=_spec_text(b"\x93\x00\xff: [")),
    Fault("spec removed", between=lambda c, _: (c.spec.unlink(missing_ok=True), "the spec")[1]),
    Fault("machine lost", between=_machine_lost),
    *(
        Fault(name, between=_site(f"faults: {{{{seed: {{seed}}, {keys}}}}}"))
        for name, keys in _SITE_FAULTS.items()
    ),
)
