#!/usr/bin/python
"""Load AMD's installed GPU driver, or verify driver, ROCm, links and firmware."""

from __future__ import annotations

DOCUMENTATION = r"""
module: amd_gpu
short_description: Load AMD's GPU driver or verify the GPUs
description:
  - Loads the installed amdgpu driver where another one, or none, runs; never under a job.
  - With O(state=verified) checks amd-smi how many GPUs there are, which driver they run, whether every pair
    of them is joined over Infinity Fabric (XGMI), and whether their firmware is the same.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  rocm:
    description: Version of ROCm.
    type: str
    required: true
  gpus:
    description: Number of GPUs of the machine.
    type: int
    required: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Load the installed driver
  gcluster.cluster.amd_gpu: {rocm: 6.4.4, gpus: 8}

- name: Verify the GPUs
  gcluster.cluster.amd_gpu: {rocm: 6.4.4, gpus: 8, state: verified}
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

from collections.abc import Callable
from functools import partial
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import kernel_modules
from ..module_utils.changes import Change, applied, reload_kernel_module
from ..module_utils.node import is_of_branch, run, run_json
from ..module_utils.state import STATE, exit_with_state

DAEMONS = ("amd-metrics-exporter", "gpuagent")
"""Units that keep AMD's devices open: a driver is exchanged without them
(ROCm/device-metrics-exporter, docs/installation/deb-package.rst)."""
ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "rocm": {"type": "str", "required": True},
    "gpus": {"type": "int", "required": True},
}


def per_gpu(answer: Any) -> list[dict[str, Any]]:
    """Return what amd-smi prints of each GPU: a list, since ROCm 7 inside "gpu_data"."""
    return list(answer.get("gpu_data", []) if isinstance(answer, dict) else answer)


def running_drivers() -> tuple[list[str], str]:
    """Return the driver version of each GPU, and a message where none answers."""
    answer, error = run_json("amd-smi", "static", "--driver", "--json")
    return ([], error) if error else ([gpu["driver"]["version"] for gpu in per_gpu(answer)], "")


def installed_driver() -> str:
    """Return the version of the module that the next load would bring."""
    return run("modinfo", "--field", "version", "amdgpu")[1]


def changes() -> list[Change]:
    """Return the change that loads the installed driver, where it doesn't run."""
    due = reload_kernel_module(
        "amdgpu",
        ", ".join(sorted(set(running_drivers()[0]))),
        installed_driver(),
        unload=("modprobe", "--remove", "amdgpu"),
        hint="; a reboot of the drained node brings the new driver",
        refusal="a job runs here: the driver was not changed",
    )
    return [Change(one.description, partial(_without_daemons, one.apply)) for one in due]


def _without_daemons(load: Callable[[], object]) -> None:
    """Exchange the driver while what keeps it open is stopped."""
    stopped = kernel_modules.stop_units(DAEMONS)
    try:
        load()
    finally:
        kernel_modules.start_units(stopped)


def driver_differences(gpus: int) -> list[str]:
    """Return what is wrong with the driver and the number of GPUs."""
    found, error = running_drivers()
    if error:
        return [f"amd-smi doesn't answer: {error}"]
    installed = installed_driver()
    wrong = [] if len(found) == gpus else [f"{len(found)} GPUs answer, not {gpus}"]
    return wrong + [
        f"driver {version} runs, not the installed {installed}"
        for version in sorted(set(found) - {installed})
    ]


def rocm_differences(rocm: str) -> list[str]:
    """Return what is wrong with ROCm."""
    answer, error = run_json("amd-smi", "version", "--json")
    if error:
        return [error]
    version = answer[0].get("rocm_version", "none")
    same = not rocm or is_of_branch(version, rocm)
    return [] if same else [f"ROCm is {version}, not {rocm}"]


def link_differences() -> list[str]:
    """Return the pairs of GPUs that Infinity Fabric doesn't join."""
    answer, error = run_json("amd-smi", "topology", "--json")
    if error:
        return [error]
    pairs = [
        (gpu["gpu"], link["gpu"], link["link_type"], link["link_status"])
        for gpu in per_gpu(answer)
        for link in gpu["links"]
        if link["gpu"] > gpu["gpu"]
    ]
    return [
        f"GPUs {one} and {other} are joined by {kind} {status}, not by XGMI"
        for one, other, kind, status in pairs
        if (kind, status) != ("XGMI", "ENABLED")
    ]


def firmware_differences() -> list[str]:
    """Return each firmware that isn't the same on all GPUs."""
    answer, error = run_json("amd-smi", "firmware", "--json")
    if error:
        return [error]
    found: dict[str, dict[str, list[int]]] = {}
    for gpu in per_gpu(answer):
        for item in gpu["fw_list"]:
            found.setdefault(item["fw_id"], {}).setdefault(item["fw_version"], []).append(
                gpu["gpu"]
            )
    return [
        f"firmware {name} differs: "
        + ", ".join(f"{one} on {gpus}" for one, gpus in versions.items())
        for name, versions in found.items()
        if len(versions) > 1
    ]


def differences(rocm: str, gpus: int) -> list[str]:
    """Return all differences on the running node."""
    return [
        *driver_differences(gpus),
        *(link_differences() if gpus > 1 else []),
        *rocm_differences(rocm),
        *firmware_differences(),
    ]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    exit_with_state(
        module, applied(changes), lambda: differences(requested["rocm"], requested["gpus"])
    )


if __name__ == "__main__":
    main()
