#!/usr/bin/python
"""Verify Google's NCCL plugin gIB."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gib_check
short_description: Verify Google's NCCL plugin gIB
description:
  - Checks a login shell for its environment, the loader for the plugin and the kernel for its RDMA links.
options:
  version:
    description: Version of the package, or what it begins with.
    type: str
    required: true
  interfaces:
    description: Number of RDMA interfaces of the machine.
    type: int
    required: true
  daemon:
    description: Whether the machine runs ASAPd Lite, without which bare metal's RDMA interfaces do not work.
    type: bool
    default: false
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Check the plugin's environment and the RDMA links
  gcluster.cluster.gib_check: {version: 1.1.0, interfaces: 8}
"""

RETURN = r"""
differences:
  description: Everything that isn't as requested.
  returned: failure
  type: list
  elements: str
"""

import ctypes
import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import is_active, run, run_json
from ..module_utils.state import exit_with_differences

ARGUMENTS: dict[str, Any] = {
    "version": {"type": "str", "required": True},
    "interfaces": {"type": "int", "required": True},
    "daemon": {"type": "bool", "default": False},
}
LIBRARIES = Path("/usr/local/gib/lib64")
PACKAGE = "nccl-gib"
DAEMON = "gcluster-asapd.service"
NOT_FOUND = 127
SHELL = r'printf "%s\n" "$NCCL_NET" "$NCCL_TUNER_CONFIG_PATH" "$LD_LIBRARY_PATH"'


def package_differences(version: str) -> list[str]:
    """Return what is wrong with the installed package."""
    code, text = run("dpkg-query", "--show", "--showformat", "${Version}", PACKAGE)
    if code == NOT_FOUND:
        code, text = run("rpm", "-q", "--queryformat", "%{VERSION}-%{RELEASE}", PACKAGE)
    if code:
        return [f"{PACKAGE} is not installed"]
    return [] if text.startswith(version) else [f"{PACKAGE} is {text}, not {version}"]


def environment_differences() -> list[str]:
    """Return what is wrong with the environment that jobs' shells get."""
    _, text = run("bash", "--login", "-c", SHELL)
    net, tuner, libraries, *_ = [*text.splitlines(), "", "", ""]
    wrong = []
    if net != "gIB":
        wrong.append(
            f"a login shell has NCCL_NET={net or 'nothing'}, not gIB: NCCL would take another network"
        )
    if str(LIBRARIES) not in libraries.split(":"):
        wrong.append(f"a login shell doesn't look for libraries in {LIBRARIES}")
    if tuner and not Path(tuner).exists():
        wrong.append(f"the tuner's configuration {tuner} is not there")
    return wrong


def plugin_differences() -> list[str]:
    """Return why the plugin can't be loaded, if it can't."""
    found = sorted(LIBRARIES.glob("libnccl-net*.so*"))
    if not found:
        return [f"no NCCL plugin in {LIBRARIES}"]
    try:
        ctypes.CDLL(str(found[0]), mode=os.RTLD_LAZY)
    except OSError as error:
        return [f"the plugin doesn't load: {error}"]
    return []


def link_differences(count: int) -> list[str]:
    """Return what is wrong with the RDMA links."""
    links, error = run_json("rdma", "--json", "link", "show")
    if error:
        return [error]
    up = [link["ifname"] for link in links if link.get("state") == "ACTIVE"]
    down = sorted(link["ifname"] for link in links if link.get("state") != "ACTIVE")
    if len(up) == count and not down:
        return []
    listed = f": down are {', '.join(down)}" if down else ""
    return [f"{len(up)} RDMA links are active, not {count}{listed}"]


def daemon_differences() -> list[str]:
    """Return what is wrong with the daemon of bare metal."""
    if is_active(DAEMON):
        return []
    return [f"{DAEMON} isn't running: journalctl --unit {DAEMON} says why"]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    version, interfaces = module.params["version"], module.params["interfaces"]
    exit_with_differences(
        module,
        lambda: [
            *package_differences(version),
            *environment_differences(),
            *plugin_differences(),
            *(daemon_differences() if module.params["daemon"] else []),
            *link_differences(interfaces),
        ],
    )


if __name__ == "__main__":
    main()
