#!/usr/bin/python
"""Fail where a bucket isn't mounted as wanted, with the reason."""

from __future__ import annotations

DOCUMENTATION = r"""
module: object_mounts_check
short_description: Check the buckets that are mounted on a host
description:
  - Each unit runs, is mounted by FUSE, read-only or not as requested, and lists its objects in time, and no key is in
    the unit, because nodes use their own identity.
author: The gcluster authors
options:
  mounts:
    description: Mounts with their name, path and read_only.
    type: list
    elements: dict
    required: true
  seconds:
    description: Seconds that a mount may take to list its objects.
    type: int
    required: true
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Check every mount
  gcluster.cluster.object_mounts_check:
    mounts: [{name: data, path: /data, read_only: true}]
    seconds: 60
"""

RETURN = r"""
differences:
  description: What isn't as it must be, one line each.
  returned: failure
  type: list
  elements: str
  sample: ["/data: mounted rw, not ro"]
"""

import os
import re
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import first_line, is_active, run, run_detached, system_path
from ..module_utils.state import exit_with_differences

KIND = os.environ.get("GCLUSTER_OBJECT_FSTYPE", "fuse")
"""The variable replaces the type of such a mount where a test can't have one."""
KEYS = re.compile(r"AWS_(SECRET_)?ACCESS_KEY|key-file|account-key")
ARGUMENTS: dict[str, Any] = {
    "mounts": {"type": "list", "elements": "dict", "required": True},
    "seconds": {"type": "int", "required": True},
}


def differences(mounts: list[dict[str, Any]], seconds: int) -> Iterator[str]:
    """Yield what is wrong, at most one line a mount."""
    for mount in mounts:
        mode = "ro" if mount.get("read_only") else "rw"
        wrong = problem_of(f"object-{mount['name']}.service", mount["path"], mode, seconds)
        if wrong:
            yield f"{mount['path']}: {wrong}"


def problem_of(unit: str, path: str, mode: str, seconds: int) -> str:
    """Return what is wrong with a mount."""
    if not is_active(unit):
        last = ("--lines", "3", "--output", "cat")
        said = run("journalctl", f"_SYSTEMD_UNIT={unit}", *last)[1]
        return f"{unit} isn't running: {' '.join(said.split())}"
    rows = [line.split() for line in first_line(system_path("/proc/self/mounts")).splitlines()]
    kind, options = next(((row[2], row[3]) for row in reversed(rows) if row[1] == path), ("", ""))
    if kind != KIND and not kind.startswith(f"{KIND}."):
        return f"not mounted, but a file system of type {kind}" if kind else "not mounted"
    if mode not in options.split(","):
        return f"mounted {options.split(',')[0]}, not {mode}"
    if run_detached("ls", "-U", path, timeout_s=seconds)[0]:
        return (
            f"does not list its objects within {seconds} s: the node's identity may not read the"
            " bucket"
        )
    if KEYS.search(run("systemctl", "show", "--property", "Environment,ExecStart", unit)[1]):
        return f"a key is in {unit}: nodes use their own identity"
    return ""


def main() -> None:
    """Fail with everything that is wrong."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_differences(module, lambda: differences(**module.params))


if __name__ == "__main__":
    main()
