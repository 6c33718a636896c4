#!/usr/bin/python
"""Load the installed EFA kernel module, or verify EFA's interfaces."""

from __future__ import annotations

DOCUMENTATION = r"""
module: efa
short_description: Load EFA's kernel module or verify the fabric
description:
  - Loads the installed module where another one, or none, runs; never under a job.
  - With O(state=verified) checks libfabric, the kernel and the library cache, not the installer's list alone.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  version:
    description: Version of the EFA installer; needed to verify.
    type: str
  interfaces:
    description: Number of EFA interfaces of the machine; needed to verify.
    type: int
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Load the installed module where another one runs
  gcluster.cluster.efa: {state: present}

- name: Verify the interfaces
  gcluster.cluster.efa: {version: 1.51.0, interfaces: 32, state: verified}
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

import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, applied, reload_kernel_module
from ..module_utils.node import first_line, run, system_path
from ..module_utils.state import STATE, exit_with_state

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "version": {"type": "str"},
    "interfaces": {"type": "int"},
}
FI_INFO = "/opt/amazon/efa/bin/fi_info"
INSTALLED = "/opt/amazon/efa_installed_packages"
PLUGIN = re.compile(r"libnccl-net(-ofi)?\.so")


def module_versions() -> tuple[str, str]:
    """Return the version of the module that runs and of the one that is installed."""
    running = first_line(system_path("/sys/module/efa/version"))
    return running, run("modinfo", "--field", "version", "efa")[1]


def changes() -> list[Change]:
    """Return the change that loads the installed module, where another one, or none, runs."""
    running, installed = module_versions()
    return reload_kernel_module(
        "module efa",
        running,
        installed,
        unload=("rmmod", "efa"),
        hint="; a reboot of the drained node brings the new module",
        refusal="a job runs here: the module efa was not changed",
    )


def interfaces() -> tuple[set[str], str]:
    """Return the EFA devices that libfabric has endpoints for, and a message when it has none.

    Each has two providers, efa and efa-direct, so devices are counted and not answers.
    """
    tool = FI_INFO if Path(FI_INFO).exists() else "fi_info"
    code, text = run(tool, "-p", "efa", "-t", "FI_EP_RDM")
    if code:
        return set(), f"libfabric finds no EFA interface: {text}"
    domains = re.findall(r"^\s*domain: (\S+)", text, re.MULTILINE)
    return {re.sub(r"-(rdm|dgrm|direct)$", "", domain) for domain in domains}, ""


def port_states() -> dict[str, str]:
    """Return the state of the port of each RDMA device."""
    ports = system_path("/sys/class/infiniband").glob("*/ports/1/state")
    return {path.parent.parent.parent.name: first_line(path) for path in ports}


def differences(version: str, count: int) -> list[str]:
    """Return all differences on the running node."""
    wrong = []
    if f"installer version: {version}\n" not in first_line(system_path(INSTALLED)) + "\n":
        wrong.append(f"installer {version} is not what last ran here")
    found, error = interfaces()
    if error:
        wrong.append(error)
    elif len(found) != count:
        listed = ", ".join(sorted(found))
        wrong.append(f"libfabric sees {len(found)} EFA interfaces, not {count}: {listed}")
    running, installed = module_versions()
    if running != installed:
        wrong.append(f"the kernel runs module efa {running or 'none'}, {installed} is installed")
    wrong += [
        f"{device} is {state}"
        for device, state in sorted(port_states().items())
        if device in found and "ACTIVE" not in state
    ]
    if not PLUGIN.search(run("ldconfig", "-p")[1]):
        wrong.append(
            "the NCCL plugin (aws-ofi-nccl) is in no library path: NCCL would fall back to TCP"
        )
    if first_line(system_path("/proc/sys/kernel/yama/ptrace_scope")) not in {"", "0"}:
        wrong.append(
            "kernel.yama.ptrace_scope is not 0: ranks of a node can't read each other's memory"
        )
    return wrong


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        required_if=[("state", "verified", ("version", "interfaces"))],
        supports_check_mode=True,
    )
    requested = module.params
    exit_with_state(
        module, applied(changes), lambda: differences(requested["version"], requested["interfaces"])
    )


if __name__ == "__main__":
    main()
