#!/usr/bin/python
"""Have slurmctld and its nodes take up what changed in /etc/slurm."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_reconfigure
short_description: Reconfigure slurmctld and its nodes
description:
  - Running jobs go on.
  - From Slurm 23.11 on a reconfiguration may add and remove nodes, is refused when the new files are wrong (the old
    ones stay in force), and reaches the nodes. Before, slurmctld is restarted first.
author: The gcluster authors
options:
  wait_seconds:
    description: Seconds to wait until slurmctld answers.
    type: int
    default: 10
attributes:
  check_mode: {support: full, description: Requests no reconfiguration.}
"""

EXAMPLES = r"""
- name: Reconfigure slurmctld and its nodes
  gcluster.cluster.slurm_reconfigure: {wait_seconds: 20}
"""

RETURN = r"""
changes:
  description: What was done, one line each.
  returned: always
  type: list
  elements: str
  sample: [reconfigured]
"""

import re
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import commands
from ..module_utils.node import run
from ..module_utils.slurm import wait_for_controller
from ..module_utils.state import Failed, exit_with_progress

ADDS_NODES = (23, 11)
"""From this version on a reconfiguration does all of it (slurm.schedmd.com/scontrol.html)."""
ARGUMENTS: dict[str, Any] = {"wait_seconds": {"type": "int", "default": 10}}


def reconfigured(wait_s: int, *, act: bool) -> Iterator[str]:
    """Yield what is done."""
    text = run("scontrol", "--version")[1]
    found = re.search(r"(\d+)\.(\d+)", text)
    if not found:
        raise Failed(f"scontrol doesn't say its version: {text}")
    if (int(found[1]), int(found[2])) < ADDS_NODES:
        if act:
            commands(("systemctl", "restart", "slurmctld"))()
        yield "slurmctld restarted"
    if act:
        wait_for_controller(wait_s)
        commands(("scontrol", "reconfigure"))()
    yield "reconfigured"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    wait_s = module.params["wait_seconds"]
    exit_with_progress(module, reconfigured(wait_s, act=not module.check_mode))


if __name__ == "__main__":
    main()
