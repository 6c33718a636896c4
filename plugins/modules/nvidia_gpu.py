#!/usr/bin/python
"""Load NVIDIA's installed driver and set the GPUs, or verify what runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_gpu
short_description: Load NVIDIA's GPU driver and configure the GPUs, or verify them
description:
  - Loads the installed driver where another version, or none, runs, and sets MIG and ECC.
  - Nothing is changed while a job or any other process uses a GPU.
  - With O(state=verified) asks the driver that runs, not the packages.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  version:
    description: Version of the driver, or its branch; empty for any.
    type: str
    required: true
  open_modules:
    description: Whether the open kernel modules must run; else the proprietary ones.
    type: bool
    default: true
  from_image:
    description: The node came with the driver, so that neither its kind nor its daemons are looked at.
    type: bool
    default: false
  gpus:
    description: Number of GPUs of the machine.
    type: int
    required: true
  mig:
    description: Multi-instance mode of all GPUs.
    type: str
    choices: [enabled, disabled, unmanaged]
    default: unmanaged
  ecc:
    description: Error correction of all GPUs' memory.
    type: str
    choices: [enabled, disabled, unmanaged]
    default: unmanaged
  peer_memory:
    description: How adapters reach the GPUs' memory; V(nvidia-peermem) has a module of its own.
    type: str
    default: ""
  fabric_manager:
    description: Version of the fabric manager, or its branch; empty where the machine has no NVSwitch.
    type: str
    default: ""
  services:
    description: The driver's daemons, which are stopped while its modules are loaded again.
    type: list
    elements: str
    default: []
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Load the installed driver
  gcluster.cluster.nvidia_gpu:
    version: 595.58.03
    gpus: 8
    mig: disabled
    services: [nvidia-persistenced]

- name: Verify driver and GPUs
  gcluster.cluster.nvidia_gpu: {version: 595.58.03, gpus: 8, state: verified}
"""

RETURN = r"""
changes:
  description: What was changed, or would be in check mode.
  returned: state is present
  type: list
  elements: str
differences:
  description: Everything that isn't as asked.
  returned: verification failed
  type: list
  elements: str
"""

from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, applied, commands
from ..module_utils.node import is_active, is_of_branch, job_runs, run, system_path
from ..module_utils.state import STATE, Failed, exit_with_state

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "version": {"type": "str", "required": True},
    "open_modules": {"type": "bool", "default": True},
    "from_image": {"type": "bool", "default": False},
    "gpus": {"type": "int", "required": True},
    "mig": {"type": "str", "choices": ["enabled", "disabled", "unmanaged"], "default": "unmanaged"},
    "ecc": {"type": "str", "choices": ["enabled", "disabled", "unmanaged"], "default": "unmanaged"},
    "peer_memory": {"type": "str", "default": ""},
    "fabric_manager": {"type": "str", "default": ""},
    "services": {"type": "list", "elements": "str", "default": []},
}
GPU_FIELDS = ("index", "driver_version", "persistence_mode", "ecc.mode.current", "mig.mode.current")
KERNEL_MODULES = ("nvidia_peermem", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia")
OPEN_LICENSE = "Dual MIT/GPL"
SETTINGS = (("mig", "mig.mode.current", "-mig"), ("ecc", "ecc.mode.current", "-e"))
"""Option, field of nvidia-smi's query, and the flag that sets it."""


def query_gpus() -> tuple[list[dict[str, str]], str]:
    """Return what the driver says of each GPU; a message when it doesn't answer."""
    code, text = run("nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader")
    if code:
        return [], f"nvidia-smi doesn't answer: {text}"
    rows = [line.split(", ") for line in text.splitlines()]
    return [dict(zip(GPU_FIELDS, row)) for row in rows if len(row) == len(GPU_FIELDS)], ""


def runs(gpu: dict[str, str], version: str) -> bool:
    """Return whether a GPU runs this driver, or any where no version is asked for."""
    return not version or is_of_branch(gpu["driver_version"], version)


def setting_changes(asked: dict[str, Any], found: list[dict[str, str]]) -> Iterator[Change]:
    """Yield the changes of GPU settings that are not as asked."""
    for option, field, flag in SETTINGS:
        wanted = asked[option]
        for gpu in found if wanted != "unmanaged" else ():
            if gpu[field] != wanted.capitalize():
                value = "1" if wanted == "enabled" else "0"
                command = ("nvidia-smi", "-i", gpu["index"], flag, value)
                yield Change(f"{option} {wanted} on GPU {gpu['index']}", commands(command))


def users() -> str:
    """Return who uses the GPUs, or nothing."""
    if job_runs():
        return "a job runs here"
    code, text = run("nvidia-smi", "--query-compute-apps=pid,name", "--format=csv,noheader")
    return f"GPUs are used by {'; '.join(text.splitlines())}" if code == 0 and text else ""


def reload_driver(services: list[str]) -> None:
    """Load the installed modules instead of those that run."""
    for service in services:
        run("systemctl", "stop", service)
    loaded = [name for name in KERNEL_MODULES if system_path(f"/sys/module/{name}").exists()]
    commands(
        *[("rmmod", name) for name in loaded],
        ("modprobe", "nvidia"),
        ("modprobe", "nvidia-uvm"),
        hint="; a reboot of the drained node brings the new driver",
    )()
    for service in services:
        run("systemctl", "start", service)


def changes(asked: dict[str, Any], *, act: bool) -> list[Change]:
    """Return what brings the node to what was asked for.

    Raises:
        Failed: something is to be changed and the GPUs are in use.
    """
    found, _ = query_gpus()
    due = []
    version = asked["version"]
    wanted = f"driver {version}" if version else "the image's driver"
    if not found or not all(runs(gpu, version) for gpu in found):
        running = found[0]["driver_version"] if found else "none"
        change = Change(f"{wanted} instead of {running}", lambda: reload_driver(asked["services"]))
        due.append(change)
    due += setting_changes(asked, found)
    if due and act and (user := users()):
        raise Failed(f"{user}: not changed: {'; '.join(change.description for change in due)}")
    return due


def differences(asked: dict[str, Any]) -> list[str]:
    """Return everything that isn't as asked on the running node."""
    found, error = query_gpus()
    wrong = [error] if error else []
    if not error and len(found) != asked["gpus"]:
        wrong.append(f"{len(found)} GPUs answer, not {asked['gpus']}")
    for gpu in found:
        who = f"GPU {gpu['index']}"
        if not runs(gpu, asked["version"]):
            wrong.append(f"{who} runs driver {gpu['driver_version']}, not {asked['version']}")
        if gpu["persistence_mode"] != "Enabled" and not asked["from_image"]:
            wrong.append(f"{who} has persistence mode {gpu['persistence_mode']}")
    wrong += [f"not {change.description}" for change in setting_changes(asked, found)]
    wrong += [f"{service} isn't running" for service in asked["services"] if not is_active(service)]
    return (
        wrong
        + ([] if asked["from_image"] else kind_differences(open_modules=asked["open_modules"]))
        + module_differences(asked["peer_memory"])
        + fabric_differences(asked["fabric_manager"])
    )


def kind_differences(*, open_modules: bool) -> list[str]:
    """Return what is wrong with the kind of the driver's modules."""
    license_ = run("modinfo", "--field", "license", "nvidia")[1]
    if (license_ == OPEN_LICENSE) == open_modules:
        return []
    kind = "open" if open_modules else "proprietary"
    return [f"the module nvidia isn't the {kind} one: {license_}"]


def module_differences(peer_memory: str) -> list[str]:
    """Return what is wrong with the kernel's other modules."""
    wrong = []
    if system_path("/sys/module/nouveau").exists():
        wrong.append("nouveau is loaded")
    if peer_memory == "nvidia-peermem" and not system_path("/sys/module/nvidia_peermem").exists():
        wrong.append("nvidia-peermem isn't loaded")
    return wrong


def fabric_differences(fabric_manager: str) -> list[str]:
    """Return what is wrong with the NVLink fabric of the node."""
    if not fabric_manager:
        return []
    wrong = []
    _, text = run("nv-fabricmanager", "--version")
    version = text.split()[-1] if text else "none"
    if not is_of_branch(version, fabric_manager):
        wrong.append(f"the fabric manager is {version}, not {fabric_manager}")
    _, text = run("nvidia-smi", "--query-gpu=fabric.state,fabric.status", "--format=csv,noheader")
    states = set(text.splitlines())
    if states != {"Completed, Success"}:
        wrong.append(f"the NVLink fabric is not ready: {'; '.join(sorted(states))}")
    return wrong


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    asked = module.params
    act = not module.check_mode
    exit_with_state(module, applied(lambda: changes(asked, act=act)), lambda: differences(asked))


if __name__ == "__main__":
    main()
