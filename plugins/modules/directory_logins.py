#!/usr/bin/python
"""Configure logins to use SSSD, with or without home directories created at first login."""

from __future__ import annotations

DOCUMENTATION = r"""
module: directory_logins
short_description: Configure logins by SSSD
description:
  - Selects SSSD with authselect on EL. Debian's packages of SSSD add themselves to PAM and nsswitch.conf, and only
    the creation of home directories is chosen there.
author: The gcluster authors
options:
  make_homes:
    description: Whether home directories are created at the first login.
    type: bool
    required: true
attributes:
  check_mode: {support: full, description: Says what would change.}
"""

EXAMPLES = r"""
- name: Configure logins by SSSD
  gcluster.cluster.directory_logins: {make_homes: true}
"""

RETURN = r"""
changes:
  description: What was changed, one line each.
  returned: always
  type: list
  elements: str
  sample: ["authselect: sssd with-mkhomedir"]
"""

import shutil
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, exit_with_changes
from ..module_utils.node import run, system_path
from ..module_utils.state import Failed

PAM = "/etc/pam.d/common-session"
ARGUMENTS: dict[str, Any] = {"make_homes": {"type": "bool", "required": True}}


def required(*argv: str) -> None:
    """Run a program without questions.

    Raises:
        Failed: with what it printed.
    """
    code, text = run(*argv, environment={"DEBIAN_FRONTEND": "noninteractive"})
    if code:
        raise Failed(f"{' '.join(argv)}: {text}")


def pending_changes(*, make_homes: bool) -> Iterator[Change]:
    """Yield the change that is due, if one is."""
    if shutil.which("authselect"):
        profile = ["sssd", *(["with-mkhomedir"] if make_homes else [])]

        def select() -> None:
            required("authselect", "select", *profile, "--force")
            if make_homes:
                required("systemctl", "enable", "--now", "--quiet", "oddjobd")

        if run("authselect", "current", "--raw") != (0, " ".join(profile)):
            yield Change(f"authselect: {' '.join(profile)}", select)
    elif ("pam_mkhomedir" in system_path(PAM).read_text()) != make_homes:
        verb = "--enable" if make_homes else "--disable"
        yield Change(
            f"pam-auth-update: {verb[2:]} mkhomedir",
            lambda: required("pam-auth-update", verb, "mkhomedir"),
        )


def main() -> None:
    """Configure logins to use SSSD."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_changes(module, lambda: pending_changes(make_homes=module.params["make_homes"]))


if __name__ == "__main__":
    main()
