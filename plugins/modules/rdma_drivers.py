#!/usr/bin/python
"""Load the installed RDMA kernel modules, or verify those that run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_drivers
short_description: Load the RDMA kernel modules or verify them
description:
  - Loads modules that are missing, and DOCA-OFED's again where others run than are installed; never under a job.
  - nvidia-peermem, which is built for these modules, is taken out meanwhile, and built again where it no longer fits.
  - With O(state=verified) looks at DOCA-OFED and at the memory that jobs may lock, too.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  drivers:
    description: Whose drivers the node has.
    type: str
    choices: [doca, inbox, image]
    required: true
  modules:
    description: Kernel modules that have to be loaded.
    type: list
    elements: str
    required: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Load the installed modules
  gcluster.cluster.rdma_drivers: {drivers: doca, modules: [mlx5_core, mlx5_ib]}
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

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, applied, commands, refuse_under_job
from ..module_utils.kernel_modules import PEER_MEMORY, is_loaded, load_peer_memory
from ..module_utils.node import first_line, run, system_path
from ..module_utils.state import STATE, Failed, exit_with_state

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "drivers": {"type": "str", "choices": ["doca", "inbox", "image"], "required": True},
    "modules": {"type": "list", "elements": "str", "required": True},
}
CORE = "mlx5_core"
OPENIBD = "/etc/init.d/openibd"


def running(module: str, name: str) -> str:
    """Return a loaded module's version or the hash of its source, from the kernel."""
    return first_line(system_path("/sys/module") / module / name)


def changes(drivers: str, modules: list[str]) -> list[Change]:
    """Return the changes that let the installed modules run."""
    missing = [name for name in modules if not (system_path("/sys/module") / name).exists()]
    installed = run("modinfo", "--field", "srcversion", CORE)[1]
    due = []
    if CORE not in missing and drivers == "doca" and installed != running(CORE, "srcversion"):
        what = f"{CORE} {running(CORE, 'version')} runs, another one is installed"
        due.append(Change(what, restart))
    if missing:
        load = commands(("modprobe", "--all", *missing))
        due.append(Change(f"not loaded: {', '.join(missing)}", load))
    return due


def restart() -> None:
    """Let DOCA-OFED's modules run instead of those that do, with the GPUs' peer memory taken out.

    Raises:
        Failed: something else uses them, or they don't load.
    """
    uses = is_loaded(PEER_MEMORY)
    if uses:
        commands(("rmmod", PEER_MEMORY))()
    code, text = run(OPENIBD, "restart", timeout_s=600)
    if uses:
        load_peer_memory()
    if code:
        raise Failed(f"openibd doesn't restart: {text}; a reboot of the drained node loads them")


def differences(drivers: str, modules: list[str]) -> list[str]:
    """Return all differences on the running node."""
    wrong = [change.description for change in changes(drivers, modules)]
    if drivers == "doca":
        code, text = run("ofed_info", "-s")
        if code:
            wrong.append(f"ofed_info doesn't answer: {text}")
        if run("systemctl", "is-enabled", "--quiet", "openibd")[0]:
            wrong.append("openibd doesn't start with the node")
    _, text = run("systemctl", "show", "--property=LoadState,LimitMEMLOCK", "slurmd.service")
    unit = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if unit.get("LoadState") == "loaded" and unit.get("LimitMEMLOCK") != "infinity":
        wrong.append(f"jobs may lock {unit.get('LimitMEMLOCK')} bytes of memory, not all of it")
    return wrong


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    drivers, modules = module.params["drivers"], module.params["modules"]
    act = not module.check_mode
    exit_with_state(
        module,
        applied(lambda: refuse_under_job(changes(drivers, modules), act=act)),
        lambda: differences(drivers, modules),
    )


if __name__ == "__main__":
    main()
