#!/usr/bin/python
"""Fail where a host's part of self-convergence doesn't work, with the reason."""

from __future__ import annotations

DOCUMENTATION = r"""
module: self_converge_check
short_description: Check that a host converges itself
description:
  - On a node the timer runs, a signer is configured and the program starts. On a controller the collector runs
    and takes reports of this cluster's roots.
author: The gcluster authors
options:
  role:
    description: The host's part.
    type: str
    choices: [node, collector]
    required: true
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Check that the node converges itself
  gcluster.cluster.self_converge_check: {role: node}
"""

RETURN = r"""
differences:
  description: What isn't as it must be, one line each.
  returned: failure
  type: list
  elements: str
  sample: [gcluster-self-converge.timer would not start with the machine]
"""

from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import first_line, journal_of, run, system_path
from ..module_utils.state import exit_with_differences

PROGRAMS = "/usr/libexec/gcluster"
SIGNERS = "/etc/gcluster/converge-signers"
UNITS = {"node": "gcluster-self-converge.timer", "collector": "gcluster-converge-collector.service"}
ARGUMENTS: dict[str, Any] = {
    "role": {"type": "str", "choices": ["node", "collector"], "required": True},
}


def differences(role: str) -> Iterator[str]:
    """Yield what isn't as it must be."""
    unit = UNITS[role]
    if run("systemctl", "is-active", unit)[1] != "active":
        yield f"{unit} isn't running: {journal_of(unit, lines=3)}"
        return
    if run("systemctl", "is-enabled", unit)[1] != "enabled":
        yield f"{unit} would not start with the machine"
    if role == "collector":
        code, said = run(f"{PROGRAMS}/converge-collector", "--check")
        if code:
            yield said
        return
    if not first_line(system_path(SIGNERS)):
        yield f"no signature is accepted: {SIGNERS} is gone"
    code, said = run(f"{PROGRAMS}/self-converge", "--help")
    if code:
        yield f"self-converge doesn't start: {said.splitlines()[-1] if said else code}"


def main() -> None:
    """Fail with everything that isn't as it must be."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_differences(module, lambda: differences(**module.params))


if __name__ == "__main__":
    main()
