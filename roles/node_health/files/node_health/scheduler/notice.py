"""A node without a scheduler: a notice at each login shows why it is out of service.

`gcluster` reads and writes the same file (lifecycle/scheduler/processes.py); pam_motd(8) shows it.
"""

from __future__ import annotations

from pathlib import Path

from ..finding import CheckIncomplete
from .slurm import MOST_REASON, PREFIX

FILE = "etc/motd.d/gcluster"
HEAD = "This node is out of service: "


def read(root: Path) -> str:
    """Return why the node is out of service; "": it is in service.

    Raises:
        CheckIncomplete: the notice can't be read.
    """
    try:
        text = (root / FILE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CheckIncomplete(f"{root / FILE}: {error.strerror}") from error
    return text.strip().removeprefix(HEAD)


def drain(reason: str, root: Path) -> str:
    """Write the notice unless there is one; return a text of what was done.

    Raises:
        CheckIncomplete: it can't be written.
    """
    ours = (PREFIX + " ".join(reason.split()))[:MOST_REASON]
    now = read(root)
    if now and not now.startswith(PREFIX):
        return f"was out of service already: {now}"
    if now == ours:
        return "is out of service"
    try:
        (root / FILE).parent.mkdir(parents=True, exist_ok=True)
        (root / FILE).write_text(f"{HEAD}{ours}\n", encoding="utf-8")
    except OSError as error:
        raise CheckIncomplete(f"{root / FILE}: {error.strerror}") from error
    return "out of service"


def lift(root: Path) -> str:
    """Remove a notice of ours; return a text of what was done, "" for nothing.

    Raises:
        CheckIncomplete: it can't be read or removed.
    """
    now = read(root)
    if not now.startswith(PREFIX):
        return ""
    try:
        (root / FILE).unlink()
    except OSError as error:
        raise CheckIncomplete(f"{root / FILE}: {error.strerror}") from error
    return f"in service again: {now.removeprefix(PREFIX)}"
