"""Whose lock a stack is under, by the engine's own words, and whether its owner can still be there.

A self-managed backend locks by a file that names user, machine and process
(pulumi/pulumi, pkg/backend/diy/lock.go, read November 2026); a killed engine leaves it behind.
"""

from __future__ import annotations

import os
import re
import socket

_OWNER = re.compile(r"created by \S+@(?P<host>\S+) \(pid (?P<pid>\d+)\)")


def is_left_behind(refusal: str) -> bool:
    """Say whether every lock that the refusal names is of a process of this machine that is gone.

    A lock of another machine is never taken to be left behind: `gcluster unlock` is for a person
    who knows.
    """
    owners = _OWNER.findall(refusal)
    here = socket.gethostname()
    return bool(owners) and all(host == here and not _runs(int(pid)) for host, pid in owners)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is there, and another's
        return True
    return True
