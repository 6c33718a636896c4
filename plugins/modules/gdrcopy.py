#!/usr/bin/python
"""Load GDRCopy's kernel module in a version, or verify module, device and library."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gdrcopy
short_description: Load GDRCopy's kernel module or verify it
description:
  - Loads the module gdrdrv where another version, or none, runs; never another one under a job.
  - With O(state=verified) compares the running module and the library, of which GDRCopy refuses different
    major versions when it is first used, and looks at the rights of the device.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  version:
    description: Version of module and library.
    type: str
    required: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Load the installed module
  gcluster.cluster.gdrcopy: {version: 2.5.2}

- name: Verify it
  gcluster.cluster.gdrcopy: {version: 2.5.2, state: verified}
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
import stat
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, applied, reload_kernel_module
from ..module_utils.node import first_line, is_of_branch, system_path
from ..module_utils.state import STATE, exit_with_state

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "version": {"type": "str", "required": True},
}
MODULE = "/sys/module/gdrdrv"
DEVICE = "/dev/gdrdrv"
FOR_ALL = stat.S_IROTH | stat.S_IWOTH
LIBRARIES = ("/usr/lib", "/usr/lib64")


def running() -> str:
    """Return the version of the module that runs; nothing where none does."""
    return first_line(system_path(MODULE) / "version")


def changes(version: str) -> list[Change]:
    """Return the change that loads the module, where its version doesn't run."""
    was = running()
    if is_of_branch(was, version):
        return []
    return reload_kernel_module(
        "gdrdrv",
        was,
        version,
        unload=("rmmod", "gdrdrv"),
        hint="",
        refusal=f"gdrdrv {was} runs and a job may use it: not changed" if was else "",
    )


def library_version() -> str:
    """Return the version of the library that programs load; nothing where there is none."""
    for folder in LIBRARIES:
        for path in sorted(Path(folder).glob("**/libgdrapi.so.2")):
            return os.path.realpath(path).rpartition(".so.")[2]
    return ""


def differences(version: str) -> list[str]:
    """Return all differences on the running node."""
    wrong = []
    if not system_path(MODULE).exists():
        wrong.append("gdrdrv isn't loaded")
    elif not is_of_branch(running(), version):
        wrong.append(f"gdrdrv {running()} runs, not {version}")
    try:
        mode = system_path(DEVICE).stat().st_mode
        if mode & FOR_ALL != FOR_ALL:
            wrong.append(f"{DEVICE} can't be opened by users: {stat.filemode(mode)}")
    except OSError:
        wrong.append(f"there is no {DEVICE}")
    library = library_version()
    if not is_of_branch(library, version):
        wrong.append(f"the library is {library or 'not there'}, not {version}")
    return wrong


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    version = module.params["version"]
    exit_with_state(module, applied(lambda: changes(version)), lambda: differences(version))


if __name__ == "__main__":
    main()
