#!/usr/bin/python
"""Fail where Slurm's accounting doesn't work on a host, with the reason."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurmdbd_check
short_description: Check that Slurm's accounting works on a host
description:
  - slurmdbd answers, knows the cluster, and its password is readable by it alone. Beside the database also that it runs
    with its buffer pool, and that it is written away at night.
author: The gcluster authors
options:
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  buffer_pool_mib:
    description: MiB of the database's buffer pool; 0 where the database is elsewhere.
    type: int
    default: 0
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Check slurmdbd and its database
  gcluster.cluster.slurmdbd_check: {cluster: campus, buffer_pool_mib: 4096}
"""

RETURN = r"""
differences:
  description: What isn't as it must be, one line each.
  returned: failure
  type: list
  elements: str
  sample: [slurmdbd doesn't know the cluster campus]
"""

import pwd
import time
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import is_active, journal_of, run, system_path
from ..module_utils.slurmdbd import SETTINGS, known_clusters, sql
from ..module_utils.state import exit_with_differences

OWNER = "slurm 600"
START_LIMIT_S, ANSWER_LIMIT_S = 60, 15
BACKUP_TIMER = "gcluster-slurmdbd-backup.timer"
ARGUMENTS: dict[str, Any] = {
    "cluster": {"type": "str", "required": True},
    "buffer_pool_mib": {"type": "int", "default": 0},
}


def differences(cluster: str, buffer_pool_mib: int) -> Iterator[str]:
    """Yield what isn't as it must be."""
    if not runs():
        yield f"slurmdbd isn't running: {journal_of('slurmdbd')}"
        return
    if cluster not in known_clusters(ANSWER_LIMIT_S):
        yield f"slurmdbd doesn't know the cluster {cluster}"
    owner = owner_of(SETTINGS)
    if owner != OWNER:
        yield f"{SETTINGS} belongs to {owner}, and must to {OWNER}: it holds a password"
    if not buffer_pool_mib:
        return
    has = int(sql("SELECT @@innodb_buffer_pool_size DIV 1048576;"))
    if has < buffer_pool_mib:
        yield f"the database runs with a buffer pool of {has} MiB, not {buffer_pool_mib}"
    if not is_active(BACKUP_TIMER):
        yield "no backup is written at night: its timer isn't active"


def owner_of(path: str) -> str:
    """Return a file's owner and mode in octal."""
    status = system_path(path).stat()
    try:
        name = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        name = str(status.st_uid)
    return f"{name} {status.st_mode & 0o7777:o}"


def runs() -> bool:
    """Return whether slurmdbd runs.

    One that found no database yet, of a host that was still at work, is started again by systemd.
    """
    until = time.monotonic() + START_LIMIT_S
    while (state := run("systemctl", "is-active", "slurmdbd")[1]) == "activating":
        if time.monotonic() >= until:
            break
        time.sleep(1)
    return state == "active"


def main() -> None:
    """Fail with everything that isn't as it must be."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_differences(module, lambda: differences(**module.params))


if __name__ == "__main__":
    main()
