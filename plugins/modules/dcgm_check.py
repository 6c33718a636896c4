#!/usr/bin/python
"""Verify DCGM's running host engine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: dcgm_check
short_description: Verify DCGM's host engine
description:
  - Checks the running host engine for its version and for the GPUs that it sees; fails with everything that differs.
options:
  version:
    description: Version of DCGM, or its branch.
    type: str
    required: true
  gpus:
    description: Number of GPUs of the machine.
    type: int
    required: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Check the host engine and the GPUs that it sees
  gcluster.cluster.dcgm_check: {version: 4.5.1, gpus: 8}
"""

RETURN = r"""
differences:
  description: Everything that isn't as requested.
  returned: failure
  type: list
  elements: str
"""

import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import is_active, is_of_branch, run
from ..module_utils.state import exit_with_differences

ARGUMENTS: dict[str, Any] = {
    "version": {"type": "str", "required": True},
    "gpus": {"type": "int", "required": True},
}


def differences(version: str, gpus: int) -> list[str]:
    """Return all differences on the running node."""
    if not is_active("nvidia-dcgm"):
        return ["nvidia-dcgm isn't running"]
    code, text = run("dcgmi", "-v")
    engine = re.search(r"Hostengine build info:\s+Version : (\S+)", text)
    if code or not engine:
        return [f"the host engine doesn't answer: {text}"]
    wrong = []
    if not is_of_branch(engine.group(1), version):
        wrong.append(f"the host engine is {engine.group(1)}, not {version}")
    code, text = run("dcgmi", "discovery", "-l")
    found = re.search(r"(?m)^(\d+) GPUs? found", text)
    if code or not found:
        wrong.append(f"the host engine sees no GPUs: {text}")
    elif int(found.group(1)) != gpus:
        wrong.append(f"the host engine sees {found.group(1)} GPUs, not {gpus}")
    return wrong


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    version, gpus = module.params["version"], module.params["gpus"]
    exit_with_differences(module, lambda: differences(version, gpus))


if __name__ == "__main__":
    main()
