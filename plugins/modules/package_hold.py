#!/usr/bin/python
"""Hold packages at the version they have, so that only gcluster changes them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: package_hold
short_description: Hold packages at their version
description:
  - Holds packages with C(apt-mark hold) or C(dnf versionlock).
author: The gcluster authors
options:
  name:
    description:
      - Packages, as C(NAME) or C(NAME=VERSION); the version is for packages of EL that come in several.
    type: list
    elements: str
    required: true
  installed_only:
    description: Leave out what isn't installed.
    type: bool
    default: false
attributes:
  check_mode:
    description: Says what would be held and holds nothing.
    support: full
"""

EXAMPLES = r"""
- name: Hold the kernel
  gcluster.cluster.package_hold:
    name: [linux-image-amd64, linux-headers-amd64]
    installed_only: true
"""

RETURN = r"""
held:
  description: The packages that were not held before.
  returned: success
  type: list
  elements: str
  sample: [linux-image-amd64]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.packages import package_manager

ARGUMENTS: dict[str, Any] = {
    "name": {"type": "list", "elements": "str", "required": True},
    "installed_only": {"type": "bool", "default": False},
}


def main() -> None:
    """Hold what is not held."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    wanted = module.params
    try:
        held = package_manager().hold(
            wanted["name"], installed_only=wanted["installed_only"], act=not module.check_mode
        )
    except OSError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(held), held=held)


if __name__ == "__main__":
    main()
