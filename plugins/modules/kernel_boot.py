#!/usr/bin/python
"""Let EL's boot loader start a kernel with the cluster's parameters."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_boot
short_description: Set the default kernel and its parameters with grubby
description:
  - Parameters that an earlier run added and that are no longer requested are removed; others are left alone.
author: The gcluster authors
options:
  release:
    description: Release of the kernel to start; empty for the one that is the default.
    type: str
    default: ""
  parameters:
    description: Parameters of every kernel.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Says what would change.}
"""

EXAMPLES = r"""
- name: Set the kernel's parameters
  gcluster.cluster.kernel_boot: {parameters: [iommu=pt]}
"""

RETURN = r"""
changes:
  description: What was changed, one line each.
  returned: always
  type: list
  elements: str
  sample: ["parameters: iommu=pt"]
"""

from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, commands, exit_with_changes
from ..module_utils.node import first_line, run, system_path

OURS = "/etc/kernel/gcluster-parameters"
ARGUMENTS: dict[str, Any] = {
    "release": {"type": "str", "default": ""},
    "parameters": {"type": "list", "elements": "str", "default": []},
}


def pending_changes(release: str, parameters: list[str]) -> Iterator[Change]:
    """Yield the changes to the boot loader."""
    had, wanted = first_line(system_path(OURS)), " ".join(parameters)
    if had != wanted:
        every = ("grubby", "--update-kernel=ALL")
        update = commands(
            *([[*every, f"--remove-args={had}"]] if had else []),
            *([[*every, f"--args={wanted}"]] if wanted else []),
        )

        def apply() -> None:
            update()
            system_path(OURS).write_text(f"{wanted}\n")

        yield Change(f"parameters: {wanted or 'none'}", apply)
    kernel = f"/boot/vmlinuz-{release}"
    if release and run("grubby", "--default-kernel")[1] != kernel:
        yield Change(f"default: {release}", commands(["grubby", f"--set-default={kernel}"]))


def main() -> None:
    """Set the boot loader."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    exit_with_changes(
        module, lambda: pending_changes(requested["release"], requested["parameters"])
    )


if __name__ == "__main__":
    main()
