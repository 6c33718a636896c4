#!/usr/bin/python
"""Start NVIDIA's IMEX with the nodes of its NVLink domain, or verify that the domain is ready."""

from __future__ import annotations

DOCUMENTATION = r"""
module: imex
short_description: Run IMEX in an NVLink domain of several nodes
description:
  - Creates the channel that programs open, and starts IMEX, again where its list of nodes is newer than it; never under a job.
  - With O(state=verified) waits until the daemon says that it is ready, which it is when it has met the others.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  seconds:
    description: How long the others may take to be there.
    type: int
    default: 180
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Start IMEX
  gcluster.cluster.imex: {}

- name: Wait until the NVLink domain is ready
  gcluster.cluster.imex: {state: verified}
"""

RETURN = r"""
changes:
  description: What was changed, or would be in check mode.
  returned: state is present
  type: list
  elements: str
differences:
  description: Everything that isn't as requested.
  returned: verification failed
  type: list
  elements: str
"""

import os
import re
import stat
import time
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, applied, commands, refuse_under_job
from ..module_utils.node import is_active, run, system_path
from ..module_utils.state import STATE, Failed, exit_with_state

ARGUMENTS: dict[str, Any] = {"state": STATE, "seconds": {"type": "int", "default": 180}}
UNIT, NODES = "nvidia-imex", "/etc/nvidia-imex/nodes_config.cfg"
CHANNEL = "/dev/nvidia-caps-imex-channels/channel0"
READY = "READY"
"""Output of `nvidia-imex-ctl -q` for a daemon that is connected to the others (NVIDIA, IMEX
guide).
"""
POLL_S = 2


def major() -> int:
    """Return the driver's number for channels. Raises Failed: it has none."""
    devices = system_path("/proc/devices")
    text = devices.read_text() if devices.exists() else ""
    found = re.search(r"^ *(\d+) nvidia-caps-imex-channels$", text, re.MULTILINE)
    if found is None:
        raise Failed("the driver has no IMEX channels: does it run, and is it the open one?")
    return int(found[1])


def create_channel() -> None:
    """Create the channel that all programs of the node share (NVIDIA, IMEX guide, "Channels")."""
    path = system_path(CHANNEL)
    path.parent.mkdir(mode=0o755, exist_ok=True)
    os.mknod(path, stat.S_IFCHR, os.makedev(major(), 0))
    path.chmod(0o666)


def is_stale() -> bool:
    """Return whether the daemon was started with an older list of nodes."""
    _, text = run("systemctl", "show", "--property=ActiveEnterTimestamp", "--timestamp=unix", UNIT)
    since = re.search(r"=@(\d+)", text)
    path = system_path(NODES)
    return since is None or not path.exists() or int(since[1]) < path.stat().st_mtime


def changes(*, act: bool) -> Iterator[Change]:
    """Yield what is due. Raises Failed: a job runs that the restart would end."""
    if not system_path(CHANNEL).exists():
        yield Change("channel 0", create_channel)
    if not is_active(UNIT):
        yield Change(f"{UNIT} runs", commands(("systemctl", "start", UNIT)))
    elif is_stale():
        due = [Change(f"{UNIT} knows its nodes", commands(("systemctl", "restart", UNIT)))]
        yield from refuse_under_job(due, act=act)


def differences(seconds: int) -> Iterator[str]:
    """Yield all differences on the running node."""
    if not system_path(CHANNEL).exists():
        yield f"there is no {CHANNEL}"
    if not is_active(UNIT):
        yield f"{UNIT} isn't running"
        return
    if is_stale():
        yield f"{UNIT} was started with another list of nodes"
    end, said = time.monotonic() + seconds, ""
    while (said := run("nvidia-imex-ctl", "-q")[1]) != READY and time.monotonic() < end:
        time.sleep(POLL_S)
    if said != READY:
        nodes = [line for line in system_path(NODES).read_text().splitlines() if line[:1] != "#"]
        yield f"the NVLink domain of {len(nodes)} nodes isn't ready: IMEX says {said or 'nothing'}"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    act = not module.check_mode
    exit_with_state(
        module,
        applied(lambda: changes(act=act)),
        lambda: differences(module.params["seconds"]),
    )


if __name__ == "__main__":
    main()
