#!/usr/bin/python
"""Verify that a node would load kernel modules that it builds itself."""

from __future__ import annotations

DOCUMENTATION = r"""
module: secure_boot_check
short_description: Verify that a node would load modules of its own
description:
  - Under UEFI's secure boot a kernel loads only modules that are signed with a key the machine knows. DKMS signs what it
    builds with a key of the node's own, which a person at the console has to confirm once (MOK).
  - Fails before anything is built where that key is not enrolled.
options:
  what:
    description: Whose modules are built, for the message.
    type: str
    required: true
  instead:
    description: What else may be written in the spec, for the message.
    type: str
    default: ""
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Check that the node would load the driver
  gcluster.cluster.secure_boot_check: {what: the NVIDIA driver}
"""

RETURN = r"""
differences:
  description: Why the modules would not be loaded.
  returned: failure
  type: list
  elements: str
"""

from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import run, system_path
from ..module_utils.state import exit_with_differences

ARGUMENTS: dict[str, Any] = {
    "what": {"type": "str", "required": True},
    "instead": {"type": "str", "default": ""},
}
VARIABLE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
"""UEFI's variable; the kernel puts its four bytes of attributes before the value."""
KEYS = ("/var/lib/shim-signed/mok/MOK.der", "/var/lib/dkms/mok.pub")
"""What DKMS signs with on Ubuntu, elsewhere (dkms(8), "SIGNING"; read 2026-11)."""
ENROLLED = "is already enrolled"


def is_on() -> bool:
    """Return whether the node was started with secure boot."""
    try:
        return system_path(VARIABLE).read_bytes()[-1:] == b"\x01"
    except OSError:
        return False  # no UEFI


def differences(what: str, instead: str) -> Iterator[str]:
    """Yield why modules that are built here would not be loaded."""
    if not is_on():
        return
    key = next((key for key in KEYS if system_path(key).exists()), None)
    if key and ENROLLED in run("mokutil", "--test-key", str(system_path(key)))[1]:
        return
    first = "" if key else "dkms generate_mok; "
    then = f"{first}mokutil --import {key or KEYS[-1]}"
    yield (
        f"secure boot is on, and the machine doesn't know the key that modules of {what} are signed with: "
        f"enrol it ({then}; reboot, and confirm at the console), or turn secure boot off"
        + (f", or {instead}" if instead else "")
    )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    what, instead = module.params["what"], module.params["instead"]
    exit_with_differences(module, lambda: differences(what, instead))


if __name__ == "__main__":
    main()
