"""A node that is slow by the word of a job that had it: who is believed, and until when.

The gate after a job (role slurm, job_launch/gate.py) leaves a file on a node that became slow; a
unit of systemd sees it and starts the check. Anybody may leave one, so it counts only from the
owner of a job that runs, has this node to itself, and has two others to compare it with; and only
while few nodes are out by such words. It holds until it is acknowledged.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..finding import CheckIncomplete, Finding, note
from ..probe import Probe
from ..store import Store
from .slurm import PREFIX, TIMEOUT_S

FOLDER = "/var/spool/gcluster-slow-nodes"
"""Of gcluster-node-health.path, which makes it."""
FILE = "slow"
CODE = "network-slow"
FEWEST_NODES = 3
MOST_SHARE = 0.05
"""Share of the cluster's nodes that may be out by such words at once, one in any case: more of them
is a matter of the network, or of a user who lies."""
_MOST_BYTES = 256
_MOST_FILES = 20
_FIELDS = 4


def check_slow(node: str, store: Store, probe: Probe) -> Iterator[Finding]:
    """Yield what jobs have said of this node; new words are read, and gone then.

    Raises:
        CheckIncomplete: what is kept can't be read or written.
    """
    kept = store.read(FILE)
    for job, words, owner in _reports(probe.path(FOLDER)):
        if kept is not None:
            continue
        try:
            refused = _refused(node, job, owner, probe)
        except CheckIncomplete as error:
            refused = str(error)
        if refused:
            yield note("network-slow-not-believed", f"job {job}: {refused}")
            continue
        kept = {"job": job, **words}
        store.write(FILE, kept)
    if kept is not None:
        yield Finding(
            CODE,
            f"{kept.get('best', 0):.2f} GB/s with its best peer, {kept.get('middle', 0):.2f} in "
            f"the middle of job {kept.get('job', '?')}",
        )


def _reports(folder: Path) -> Iterator[tuple[str, dict[str, float], int]]:
    """Yield job, figures and owner of each file, and remove it."""
    try:
        paths = sorted(folder.iterdir())[:_MOST_FILES]
    except OSError:
        return
    for path in paths:
        found = _read(path) if path.name.isdigit() else None
        try:
            path.unlink()
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
        if found is not None:
            yield path.name, *found


def _read(path: Path) -> tuple[dict[str, float], int] | None:
    """Return figures and owner of a report; None: it is none."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(file)
        return None
    with os.fdopen(file, "rb") as reader:
        try:
            said: dict[str, Any] = json.loads(reader.read(_MOST_BYTES))
            return {key: float(said[key]) for key in ("best", "middle")}, found.st_uid
        except (ValueError, KeyError, TypeError):
            return None


def _refused(node: str, job: str, owner: int, probe: Probe) -> str:
    """Return why a job's word doesn't count; "": it does.

    Raises:
        CheckIncomplete: the controller doesn't answer, or doesn't know the job.
    """
    # Nothing of this is the user's to choose, as a job's name or comment is.
    words = ("squeue", "--noheader", f"--jobs={job}", "--format=%U %T %h %N")
    shown = probe.run(*words, timeout_s=TIMEOUT_S).split()
    if len(shown) != _FIELDS or not shown[0].isdigit():
        return "it has no nodes"
    uid, state, shared, listed = shown
    names = probe.run("scontrol", "show", "hostnames", listed, timeout_s=TIMEOUT_S).split()
    if int(uid) != owner:
        return "it is another user's"
    if state not in {"RUNNING", "COMPLETING"}:
        return "it doesn't run"
    if node not in names or shared != "NO":
        return "it doesn't have this node to itself"
    if len(names) < FEWEST_NODES:
        return f"of {len(names)} nodes none can be called the slow one"
    return _too_many(node, probe)


def _too_many(node: str, probe: Probe) -> str:
    """Return why no further node goes out by such words; "": one may.

    Raises:
        CheckIncomplete: the controller doesn't answer.
    """
    words = ("sinfo", "--noheader", "--Node", "--format=%N %E")
    lines = probe.run(*words, timeout_s=TIMEOUT_S).splitlines()
    reasons = dict(line.partition(" ")[::2] for line in lines if line.strip())
    mark = f"{PREFIX}{CODE}"
    out = {name for name, why in reasons.items() if why.strip().startswith(mark)} - {node}
    if len(out) + 1 > max(1, MOST_SHARE * len(reasons)):
        return f"{len(out)} of {len(reasons)} nodes are out as slow already"
    return ""
