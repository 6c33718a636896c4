#!/usr/bin/python
"""Install packages at exact versions, hold them there, and keep others off the node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: package_pinned
short_description: Install packages at exact versions and hold them there
description:
  - Installs the newest version that fits each pattern, pins and holds it.
  - Refuses to replace a newer version by an older one unless O(allow_downgrade) is set.
  - Starts no service that it installs.
author: The gcluster authors
options:
  name:
    description: What the packages are for; the file of apt's pins is named after it.
    type: str
    required: true
  packages:
    description: Package to version, which may hold C(*).
    type: dict
    default: {}
  also:
    description: Packages to install in whatever version there is.
    type: list
    elements: str
    default: []
  pins:
    description: Further pins for what the packages bring with them, names to version (apt).
    type: dict
    default: {}
  never:
    description: Patterns of packages that nothing may bring.
    type: list
    elements: str
    default: []
  allow_downgrade:
    description: Whether an older version may take a newer one's place.
    type: bool
    default: false
  hint:
    description: How to request an older version; part of the message of a refusal.
    type: str
    default: ""
attributes:
  check_mode:
    description: Says what would change and changes nothing.
    support: full
  diff_mode:
    description: Shows the file of pins.
    support: full
"""

EXAMPLES = r"""
- name: Install CUDA's toolkit and no driver
  gcluster.cluster.package_pinned:
    name: cuda
    packages: {cuda-toolkit-13-0: "13.0.2-*"}
    never: [cuda-drivers*]
"""

RETURN = r"""
changes:
  description: What was pinned, installed and held, one line each.
  returned: success
  type: list
  elements: str
  sample: [cuda-toolkit-13-0 13.0.2-1]
"""

import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import fits
from ..module_utils.packages import PackageManager, package_manager

ARGUMENTS: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "packages": {"type": "dict", "default": {}},
    "also": {"type": "list", "elements": "str", "default": []},
    "pins": {"type": "dict", "default": {}},
    "never": {"type": "list", "elements": "str", "default": []},
    "allow_downgrade": {"type": "bool", "default": False},
    "hint": {"type": "str", "default": ""},
}


class Refused(Exception):  # noqa: N818  # named for what happened
    """Why nothing was installed."""


def newest(manager: PackageManager, fitting: list[str]) -> str:
    """Return the newest of some versions."""
    best = fitting[0]
    for version in fitting[1:]:
        if manager.is_newer(version, best):
            best = version
    return best


def resolved(manager: PackageManager, packages: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return package -> version to install, and a message for each that no repository has."""
    exact, missing = {}, []
    for name, pattern in packages.items():
        offered = manager.offered(name)
        fitting = [version for version in offered if fits(version, pattern)]
        if fitting:
            exact[name] = newest(manager, fitting)
        else:
            has = f"have {', '.join(offered)}" if offered else "have none"
            missing.append(f"no {name} {pattern} in the node's repositories; they {has}")
    return exact, missing


def downgrades(manager: PackageManager, exact: dict[str, str], hint: str) -> list[str]:
    """Return a message for each package that would be replaced by an older one."""
    return [
        f"{name} {here} is installed here and {version} is older{hint and ': '}{hint}"
        for name, version in exact.items()
        if (here := manager.installed(name)) and manager.is_newer(here, version)
    ]


def reasons(text: str) -> str:
    """Return the lines of a package manager's error with the reason."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if re.match(r"(E:|Error|dpkg: error)|.* Depends: ", line)]
    return "; ".join(dict.fromkeys(found or lines[-3:]))


def installed(
    manager: PackageManager, wanted: dict[str, Any], due: bool, also: list[str]
) -> list[str]:
    """Pin and install; return what was installed. Raises Refused."""
    exact: dict[str, str] = {}
    if due:
        exact, missing = resolved(manager, wanted["packages"])
        if missing:
            manager.refresh()
            exact, missing = resolved(manager, wanted["packages"])
        older = [] if wanted["allow_downgrade"] else downgrades(manager, exact, wanted["hint"])
        if missing or older:
            raise Refused("\n".join(missing or older))
    manager.pin(wanted, act=True)
    if exact or also:
        code, text = manager.install(exact, also, wanted)
        if code and "E: dpkg was interrupted" not in text:
            manager.refresh()
            code, text = manager.install(exact, also, wanted)
        if code:
            raise Refused(f"{wanted['name']}: {reasons(text)}")
    return [*(f"{name} {version}" for name, version in exact.items()), *also]


def main() -> None:
    """Install what isn't in the wanted version."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    wanted, manager = module.params, package_manager()
    diff = manager.pin(wanted, act=False)
    changes = [f"pins in {each['after_header']}" for each in diff]
    due = [
        f"{name} {pattern}"
        for name, pattern in wanted["packages"].items()
        if not ((here := manager.installed(name)) and fits(here, pattern))
    ]
    also = [name for name in wanted["also"] if not manager.installed(name)]
    if module.check_mode:
        changes += [*due, *also]
    else:
        try:
            changes += installed(manager, wanted, bool(due), also)
            held = manager.hold(list(wanted["packages"]), installed_only=False, act=True)
        except (Refused, OSError) as error:
            module.fail_json(msg=str(error))
        changes += [f"{name} held" for name in held]
    module.exit_json(changed=bool(changes), changes=changes, diff=diff if module._diff else [])


if __name__ == "__main__":
    main()
