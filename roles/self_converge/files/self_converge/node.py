"""One pass of a node: read its pool's bundle and the stamps, and run the missing steps."""

from __future__ import annotations

import argparse
import fcntl
import json
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from self_converge import munge, slurm
from self_converge.bundle import Away, Refused, manifest, unpacked
from self_converge.play import Failure, Interrupted, play
from self_converge.settings import (
    GRANTED,
    JOB_PREFIX,
    LOCK,
    STATE,
    Settings,
    load_settings,
    read_json,
    write_atomically,
)
from self_converge.stamps import read_stamps

JOINED = "slurm.join"
"""The step whose stamp shows that jobs may run here, as in lifecycle/operations/rolling."""

RETRY_S = 900
"""Seconds until a bundle that failed is tried again unasked; a newer one is tried at once."""

HOST_KEY = Path("/etc/ssh/ssh_host_ed25519_key.pub")


@dataclass
class Outcome:
    """The result of a pass, as reported to the collector."""

    state: str
    """converged, converging, failed, waiting (for a grant), blocked (by a pushed step), refused,
    away (no package mirror, or nothing published)."""
    serial: int = 0
    reason: str = ""
    step: str = ""
    task: str = ""
    drain: bool = False
    """The node was, or must be, out of service for it."""
    at: float = 0.0


def main(arguments: list[str]) -> int:
    """Do one pass and report it; exit 0 unless something failed or was refused."""
    parser = argparse.ArgumentParser(prog="self-converge", description=__doc__)
    parser.add_argument("--granted", action="store_true", help="Slurm gave this node for a change")
    options = parser.parse_args(arguments)
    settings = load_settings()
    node = socket.gethostname().partition(".")[0]
    with LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if options.granted else fcntl.LOCK_NB))
        except BlockingIOError:
            return 0  # a pass is running
        outcome = follow_published(settings, node, granted=options.granted)
        outcome.at = outcome.at or time.time()
        last = read_json(STATE / "state.json")
        serial = max(outcome.serial, int(last.get("serial", 0)))
        write_atomically(
            STATE / "state.json", json.dumps(asdict(outcome) | {"serial": serial}).encode()
        )
        error = _report(settings, node, outcome)
    if outcome.reason:
        sys.stdout.write(outcome.state + ": " + outcome.reason + "\n")
    if error:
        sys.stderr.write("the collector was not reached: " + error + "\n")
    return 1 if outcome.state in {"failed", "refused"} else 0


def follow_published(settings: Settings, node: str, *, granted: bool) -> Outcome:
    """Read what is published and apply it; errors are in the outcome."""
    try:
        wanted = manifest(settings)
        return _follow(settings, node, wanted, granted=granted)
    except Away as away:
        return Outcome(state="away", serial=_last_serial(), reason=str(away))
    except Refused as refused:
        return Outcome(state="refused", serial=_last_serial(), reason=str(refused))


def _last_serial() -> int:
    return int(read_json(STATE / "state.json").get("serial", 0))


def _follow(settings: Settings, node: str, wanted: dict[str, Any], *, granted: bool) -> Outcome:
    """Do what differs; raises Away and Refused before anything was touched."""
    serial = int(wanted["serial"])
    stamps = read_stamps()
    differing = [step for step in wanted["steps"] if stamps.get(step["key"]) != step["digest"]]
    if not differing:
        return Outcome(state="converged", serial=serial)
    steps, pushed = _until_pushed(differing)
    blocked = Outcome(
        state="blocked", serial=serial, step=pushed, reason=pushed + " is put here by gcluster up"
    )
    if not steps:
        return blocked
    last = read_json(STATE / "state.json")
    failed = last.get("state") == "failed" and last.get("serial") == serial
    if failed and not granted and time.time() - float(last.get("at", 0)) < RETRY_S:
        return Outcome(**last)
    felt = JOINED in stamps and any(step["drain"] for step in steps)
    use = None
    if felt:
        use = _use(node)
        why = must_wait(use, node, granted=granted)
        if why:
            return Outcome(state="waiting", serial=serial, reason=why, drain=True)
    bundle = unpacked(settings, wanted["bundle"], "bundle")
    runtime = unpacked(settings, wanted["runtime"], "runtime")
    _report(
        settings, node, Outcome(state="converging", serial=serial, step=steps[0]["key"], drain=felt)
    )
    with _granted_by(use):
        failure = _play(node, bundle, runtime, [step["key"] for step in steps])
    carried = read_stamps()
    left = [step["key"] for step in steps if carried.get(step["key"]) != step["digest"]]
    if left:
        failure = failure or Failure(task="", message="it left no stamp")
        outcome = Outcome(
            state="failed", serial=serial, step=left[0], task=failure.task,
            reason=left[0] + " failed: " + failure.message, drain=felt,
        )  # fmt: skip
    else:
        outcome = blocked if pushed else Outcome(state="converged", serial=serial, drain=felt)
    if felt:
        _settle(node, outcome, use)
    return outcome


def _until_pushed(differing: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """Return the steps before the first that only comes over SSH, and that one's name."""
    for number, step in enumerate(differing):
        if step["pushed"]:
            return differing[:number], str(step["key"])
    return differing, ""


def _use(node: str) -> slurm.Use | None:
    try:
        return slurm.node_use(node)
    except slurm.Silent:
        return None


def must_wait(use: slurm.Use | None, node: str, *, granted: bool) -> str:
    """Return why the node can't be changed now; "": nothing runs here and nothing can start."""
    if use is None:
        return "Slurm doesn't answer, so the jobs here are unknown"
    others = [job for job in use.jobs if job != JOB_PREFIX + node]
    if others:
        return "jobs run here: " + " ".join(others)
    if (granted and use.jobs) or use.out:
        return ""
    return "in service: it waits until Slurm gives it for the change"


@contextmanager
def _granted_by(use: slurm.Use | None) -> Iterator[None]:
    """Pass roles the job that holds the node for them, which they must not spare."""
    if use is None or not use.granted:
        yield
        return
    GRANTED.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    write_atomically(GRANTED, (use.granted + "\n").encode())
    try:
        yield
    finally:
        GRANTED.unlink()


def _play(node: str, bundle: Path, runtime: Path, keys: list[str]) -> Failure | None:
    try:
        return play(node, bundle, runtime, keys)
    except Interrupted as interrupted:
        return Failure(task="", message=str(interrupted))


def _settle(node: str, outcome: Outcome, use: slurm.Use | None) -> None:
    """Keep a failed node from jobs; give back one that we had kept."""
    try:
        if outcome.state == "failed":
            if use is None or not use.out or use.ours:
                slurm.drain(node, outcome.reason)
        elif use is not None and use.ours:
            slurm.give_back(node)
    except slurm.Silent as silent:
        outcome.reason += f"; and Slurm doesn't answer: {silent}"


def _report(settings: Settings, node: str, outcome: Outcome) -> str:
    """Report to the collector; return why that was not possible, "" when it was."""
    report = {
        **asdict(outcome),
        "node": node,
        "pool": settings.pool,
        "interval": settings.interval,
        "stamps": read_stamps(),
        "host_key": _host_key(),
    }
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        credential = munge.encode(json.dumps(report).encode())
        with opener.open(settings.collector, data=credential, timeout=20):
            return ""
    except OSError as error:
        return str(error)


def _host_key() -> str:
    """Return type and key: the identity of the machine, independent of its name."""
    try:
        return " ".join(HOST_KEY.read_text(encoding="ascii").split()[:2])
    except OSError:
        return ""
