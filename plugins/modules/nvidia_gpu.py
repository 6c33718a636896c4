#!/usr/bin/python
"""Load NVIDIA's installed driver and set the GPUs, or verify what runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_gpu
short_description: Load NVIDIA's GPU driver and configure the GPUs, or verify them
description:
  - Loads the installed driver where another version, or none, runs, with the modules that use it (gdrdrv,
    nvidia-fs, nvidia-peermem); sets MIG and ECC, and resets the GPUs where those need it; starts the daemons.
  - Daemons that hold the driver are stopped for it and started again, whether or not it worked.
  - Nothing is changed while a job or any other process uses a GPU.
  - What only a reboot of the node brings is returned in RV(reboot) and is no failure.
  - With O(state=verified) checks the driver that runs, not the packages.
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
  load:
    description: Kernel modules that have to be loaded, in their order.
    type: list
    elements: str
    default: []
  fabric_manager:
    description: Version of the fabric manager, or its branch; empty where the machine has none of its own.
    type: str
    default: ""
  fabric:
    description:
      - Whether GPUs have to be a part of an NVLink fabric, however it is managed.
      - V(reported) lets one pass that says nothing of it (A100), V(none) requires none.
    type: str
    choices: [required, reported, none]
    default: none
  services:
    description: The driver's daemons, in the order to start them in.
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
reboot:
  description: What only a reboot brings; empty where none is due.
  returned: state is present
  type: str
differences:
  description: Everything that isn't as requested.
  returned: verification failed
  type: list
  elements: str
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import kernel_modules
from ..module_utils.node import is_active, is_of_branch, job_runs, run
from ..module_utils.state import STATE, Failed, exit_with_differences

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "version": {"type": "str", "required": True},
    "open_modules": {"type": "bool", "default": True},
    "from_image": {"type": "bool", "default": False},
    "gpus": {"type": "int", "required": True},
    "mig": {"type": "str", "choices": ["enabled", "disabled", "unmanaged"], "default": "unmanaged"},
    "ecc": {"type": "str", "choices": ["enabled", "disabled", "unmanaged"], "default": "unmanaged"},
    "load": {"type": "list", "elements": "str", "default": []},
    "fabric_manager": {"type": "str", "default": ""},
    "fabric": {"type": "str", "choices": ["required", "reported", "none"], "default": "none"},
    "services": {"type": "list", "elements": "str", "default": []},
}
GPU_FIELDS = (
    "index", "driver_version", "persistence_mode", "ecc.mode.current", "ecc.mode.pending",
    "mig.mode.current", "mig.mode.pending",
)  # fmt: skip
OPEN_LICENSE = "Dual MIT/GPL"
SETTINGS = (("mig", "mig.mode", "-mig"), ("ecc", "ecc.mode", "-e"))
"""Option, the beginning of its fields in nvidia-smi's query, and the flag that sets it."""
NOT_THERE = "[N/A]"
"""nvidia-smi's value of a field that a GPU doesn't have."""
HELD_S = 15.0
"""How long a program that has a GPU open may need to end."""
DEVICES = r"/dev/nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset|-nvswitch.*)"


def query_gpus() -> tuple[list[dict[str, str]], str]:
    """Return the driver's values of each GPU; a message when it doesn't respond."""
    code, text = run("nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader")
    if code:
        return [], f"nvidia-smi doesn't answer: {text}"
    rows = [line.split(", ") for line in text.splitlines()]
    return [dict(zip(GPU_FIELDS, row)) for row in rows if len(row) == len(GPU_FIELDS)], ""


def runs(gpu: dict[str, str], version: str) -> bool:
    """Return whether a GPU has this driver version, or any where none is wanted."""
    return not version or is_of_branch(gpu["driver_version"], version)


def unset(requested: dict[str, Any], found: list[dict[str, str]], when: str) -> Iterator[list[str]]:
    """Yield option, wanted mode, GPU and flag of the settings that differ.

    Args:
        requested: the module's arguments.
        found: the driver's values of each GPU.
        when: "current" for the modes that hold, "pending" for those after the next reset.

    Raises:
        Failed: a GPU doesn't have what is to be enabled.
    """
    for option, field, flag in SETTINGS:
        wanted = requested[option]
        for gpu in found if wanted != "unmanaged" else ():
            there = gpu[f"{field}.{when}"]
            if there == NOT_THERE and wanted == "enabled":
                raise Failed(f"GPU {gpu['index']} has no {option.upper()} that could be enabled")
            if there not in {wanted.capitalize(), NOT_THERE}:
                yield [option, wanted, gpu["index"], flag]


def described(settings: list[list[str]]) -> str:
    """Return settings that differ, as text."""
    return "; ".join(f"{option} {wanted} on GPU {gpu}" for option, wanted, gpu, _ in settings)


def users() -> str:
    """Return who uses the GPUs, or nothing."""
    if job_runs():
        return "a job runs here"
    code, text = run("nvidia-smi", "--query-compute-apps=pid,name", "--format=csv,noheader")
    return f"GPUs are used by {'; '.join(text.splitlines())}" if code == 0 and text else ""


class Node:
    """Brings a node's driver and GPUs to the wanted state, step by step."""

    def __init__(self, requested: dict[str, Any], *, act: bool) -> None:
        """Take the module's arguments, and whether changes are made or only described."""
        self.requested, self.act = requested, act
        self.reboot: list[str] = []
        """What only a reboot brings."""

    def changes(self) -> Iterator[str]:
        """Make the changes that are due, or only describe them.

        Raises:
            Failed: something is to be changed and the GPUs are in use, or it didn't work.
        """
        yield from self._driver()
        yield from self._missing_modules()
        yield from self._settings()
        yield from self._daemons()

    def _driver(self) -> Iterator[str]:
        found, _ = query_gpus()
        version = self.requested["version"]
        if found and all(runs(gpu, version) for gpu in found):
            return
        wanted = f"driver {version}" if version else "the image's driver"
        what = f"{wanted} instead of {found[0]['driver_version'] if found else 'none'}"
        if self._undisturbed(what):
            self._without_daemons(self._exchange)
        yield what

    def _exchange(self) -> None:
        out, why = kernel_modules.unload("nouveau")
        if why:
            kernel_modules.load_modules(out[::-1])
        why = why or self._held() or kernel_modules.reload_module("nvidia", self.requested["load"])
        if why:
            self.reboot.append(why)

    @staticmethod
    def _held() -> str:
        """Return which programs keep the driver's devices open, "" where none does.

        A health check that is reading the GPUs is waited for.
        """
        end = time.monotonic() + HELD_S
        while (found := kernel_modules.openers(DEVICES)) and time.monotonic() < end:
            time.sleep(1)
        return f"the driver is held by {', '.join(found)}" if found else ""

    def _missing_modules(self) -> Iterator[str]:
        load = [each for each in self.requested["load"] if not _is_loaded(each)]
        if load and not self.reboot:
            if self.act:
                kernel_modules.load_modules(load)
            yield f"not loaded: {', '.join(load)}"

    def _settings(self) -> Iterator[str]:
        """Set MIG and ECC: both hold only after a reset of the GPUs on most of them."""
        before, _ = query_gpus()
        due = list(unset(self.requested, before, "current"))
        if not due or not self._undisturbed(described(due)):
            yield from [described(due)] if due else []
            return
        for _, wanted, gpu, flag in unset(self.requested, before, "pending"):
            value = "1" if wanted == "enabled" else "0"
            code, text = run("nvidia-smi", "-i", gpu, flag, value)
            if code:
                raise Failed(f"nvidia-smi -i {gpu} {flag} {value}: {text}")
        if list(unset(self.requested, query_gpus()[0], "current")):
            self._without_daemons(lambda: run("nvidia-smi", "--gpu-reset"))
        # NVML API reference, "Known Issues": a reset may not change a pending ECC mode, and a
        # reboot may be required (2026-11).
        if left := list(unset(self.requested, query_gpus()[0], "current")):
            self.reboot.append(described(left))
        yield described(due)

    def _daemons(self) -> Iterator[str]:
        silent = [service for service in self.requested["services"] if not is_active(service)]
        if silent and not self.reboot:
            if self.act:
                kernel_modules.start_units(silent)
            yield f"not running: {', '.join(silent)}"

    def _without_daemons(self, change: Callable[[], object]) -> None:
        stopped = kernel_modules.stop_units(kernel_modules.DAEMONS)
        try:
            change()
        except Failed:
            self._start_again(stopped)
            raise
        if self.reboot:
            self._start_again(stopped)
        else:
            kernel_modules.start_units(stopped)

    @staticmethod
    def _start_again(units: list[str]) -> None:
        """Start what was stopped; a failure here adds nothing to the first reason."""
        for unit in units:
            run("systemctl", "start", unit)

    def _undisturbed(self, what: str) -> bool:
        """Return whether a change is made now. Raises Failed: the GPUs are in use."""
        if self.act and (user := users()):
            raise Failed(f"{user}: not changed: {what}")
        return self.act


def _is_loaded(module: str) -> bool:
    return kernel_modules.is_loaded(module.replace("-", "_"))


def differences(requested: dict[str, Any]) -> list[str]:
    """Return all differences on the running node."""
    found, error = query_gpus()
    wrong = [error] if error else []
    if not error and len(found) != requested["gpus"]:
        wrong.append(f"{len(found)} GPUs answer, not {requested['gpus']}")
    for gpu in found:
        who = f"GPU {gpu['index']}"
        if not runs(gpu, requested["version"]):
            wrong.append(f"{who} runs driver {gpu['driver_version']}, not {requested['version']}")
        if gpu["persistence_mode"] != "Enabled" and not requested["from_image"]:
            wrong.append(f"{who} has persistence mode {gpu['persistence_mode']}")
    if left := list(unset(requested, found, "current")):
        wrong.append(f"not {described(left)}")
    wrong += [
        f"{service} isn't running" for service in requested["services"] if not is_active(service)
    ]
    return (
        wrong
        + (
            []
            if requested["from_image"]
            else kind_differences(open_modules=requested["open_modules"])
        )
        + module_differences(requested["load"])
        + fabric_differences(requested["fabric_manager"], requested["fabric"])
    )


def kind_differences(*, open_modules: bool) -> list[str]:
    """Return what is wrong with the kind of the driver's modules."""
    license_ = run("modinfo", "--field", "license", "nvidia")[1]
    if (license_ == OPEN_LICENSE) == open_modules:
        return []
    kind = "open" if open_modules else "proprietary"
    return [f"the module nvidia isn't the {kind} one: {license_}"]


def module_differences(load: list[str]) -> list[str]:
    """Return what is wrong with the kernel's other modules."""
    wrong = [f"{module} isn't loaded" for module in load if not _is_loaded(module)]
    return wrong + (["nouveau is loaded"] if kernel_modules.is_loaded("nouveau") else [])


def fabric_differences(fabric_manager: str, fabric: str) -> list[str]:
    """Return what is wrong with the NVLink fabric of the node."""
    wrong = []
    if fabric_manager:
        _, text = run("nv-fabricmanager", "--version")
        version = text.split()[-1] if text else "none"
        if not is_of_branch(version, fabric_manager):
            wrong.append(f"the fabric manager is {version}, not {fabric_manager}")
    if fabric == "none":
        return wrong
    _, text = run("nvidia-smi", "--query-gpu=fabric.state,fabric.status", "--format=csv,noheader")
    states = set(text.splitlines()) - {"Completed, Success"}
    if fabric == "reported":
        states = {state for state in states if "N/A" not in state.split(", ")[0]}
    if states:
        wrong.append(f"the NVLink fabric is not ready: {'; '.join(sorted(states))}")
    return wrong


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    if requested["state"] == "verified":
        exit_with_differences(module, lambda: differences(requested))
    node = Node(requested, act=not module.check_mode)
    done: list[str] = []
    try:
        done.extend(node.changes())
    except Failed as failed:
        module.fail_json(msg=str(failed), changed=bool(done), changes=done)
    module.exit_json(changed=bool(done), changes=done, reboot="; ".join(node.reboot))


if __name__ == "__main__":
    main()
