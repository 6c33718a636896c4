#!/usr/bin/python
"""Have a service run with files that changed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: service_restart
short_description: Restart a service after its files changed
description:
  - Starts a service that doesn't run, and restarts one where a file is newer than the last start by this module.
  - The files themselves are compared, and not what a task has just written, because an earlier run may have been
    killed in between.
author: The gcluster authors
options:
  name:
    description: Name of the service.
    type: str
    required: true
  files:
    description: What it reads when it starts.
    type: list
    elements: path
    required: true
attributes:
  check_mode: {support: full, description: Says whether it would be restarted.}
"""

EXAMPLES = r"""
- name: Run the database with its settings
  gcluster.cluster.service_restart: {name: mariadb, files: [/etc/mysql/mariadb.conf.d/60-gcluster.cnf]}
"""

RETURN = r"""
changes:
  description: What was done, one line each.
  returned: always
  type: list
  elements: str
  sample: [mariadb restarted]
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import is_active, journal_of, run, system_path
from ..module_utils.state import Failed, exit_with_progress

MARKS = "/run/gcluster"
"""Has a file for each service, as old as its last start by this module."""
START_LIMIT_S = 6 * 3600
"""A new version's slurmdbd converts its database first, which may take hours."""
ARGUMENTS: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "files": {"type": "list", "elements": "path", "required": True},
}


def is_current(name: str, mark: Path, files: list[str]) -> bool:
    """Return whether a service runs and was started after its files were written."""
    if not is_active(name) or not mark.exists():
        return False
    started = mark.stat().st_mtime_ns
    paths = [Path(file) for file in files]
    return not any(path.exists() and path.stat().st_mtime_ns > started for path in paths)


def restarted(name: str, files: list[str], *, act: bool) -> Iterator[str]:
    """Yield what is done."""
    mark = system_path(f"{MARKS}/{name}.taken-up")
    if is_current(name, mark, files):
        return
    if act:
        mark.parent.mkdir(parents=True, exist_ok=True)
        new = mark.with_name(f"{mark.name}.new")
        new.unlink(missing_ok=True)
        new.touch()  # before the start: what is written meanwhile counts as newer
        code, text = run("systemctl", "restart", name, timeout_s=START_LIMIT_S)
        if code:
            raise Failed(f"{name} doesn't start: {text}\n{journal_of(name, lines=10)}")
        new.replace(mark)
    yield f"{name} restarted"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_progress(module, restarted(**module.params, act=not module.check_mode))


if __name__ == "__main__":
    main()
