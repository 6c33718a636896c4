#!/usr/bin/python
"""Tune a machine with GPUs, or verify how it is tuned."""

from __future__ import annotations

DOCUMENTATION = r"""
module: tuning
short_description: Tune a machine with GPUs or verify it
description:
  - Sets processors' governor and idle states, PCI Express' access control, read requests and ordering, and what moves pages.
  - With O(state=verified) reads the same registers and files.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  processors:
    description: Governor performance, and no idle state that takes long to leave.
    type: bool
    default: false
  pcie:
    description: Bridges let devices reach each other, adapters read 4096 bytes at once and in relaxed order.
    type: bool
    default: false
  numa_balancing:
    description: The kernel doesn't move pages between NUMA nodes by itself.
    type: bool
    default: false
  transparent_hugepages:
    description: V(always), V(madvise) or V(never); empty leaves it as it is.
    type: str
    choices: ["", always, madvise, never]
    default: ""
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Tune the machine
  gcluster.cluster.tuning: {processors: true, pcie: true, numa_balancing: true}
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

from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.state import STATE, Failed, exit_with_state
from ..module_utils.tuning import TuningError, differing

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "processors": {"type": "bool", "default": False},
    "pcie": {"type": "bool", "default": False},
    "numa_balancing": {"type": "bool", "default": False},
    "transparent_hugepages": {
        "type": "str",
        "choices": ["", "always", "madvise", "never"],
        "default": "",
    },
}


def change(requested: dict[str, Any], *, act: bool) -> Iterator[str]:
    """Yield what differs, and set it if `act`. Raises Failed: it can't be set."""
    for tuned in list(differing(requested)):
        try:
            if act:
                tuned.set()
        except TuningError as error:
            raise Failed(f"not {tuned.description}: {error}") from error
        yield tuned.description


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    exit_with_state(
        module,
        lambda act: change(requested, act=act),
        lambda: [f"not {tuned.description}" for tuned in differing(requested)],
    )


if __name__ == "__main__":
    main()
