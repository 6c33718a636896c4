#!/usr/bin/python
"""Keep what containers can get of the GPUs (CDI) in step with the driver, or verify it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: container_toolkit
short_description: Configure GPUs in containers (CDI) or verify them
description:
  - Enables the units that list the GPUs for containers, and adds the vendor's runtime to Docker's settings.
  - Docker is not restarted while a job runs; its other settings stay as they are.
  - With O(state=verified) checks the toolkit, its units and Docker, not the files that they were given.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  vendor:
    description: Whose GPUs the machine has.
    type: str
    choices: [nvidia, amd]
    required: true
  docker:
    description: Whether Docker runs on the node.
    type: bool
    default: false
  units:
    description: Units that write the list of devices.
    type: list
    elements: str
    default: []
  version:
    description: Version of the toolkit, or its branch; needed to verify.
    type: str
  gpus:
    description: Number of GPUs that containers can get; needed to verify.
    type: int
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Keep the list of devices in step with the driver
  gcluster.cluster.container_toolkit:
    vendor: nvidia
    units: [nvidia-cdi-refresh.path, nvidia-cdi-refresh.service]
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

import json
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.files import write_text
from ..module_utils.node import (
    first_line,
    is_active,
    is_of_branch,
    job_runs,
    run,
    run_json,
    system_path,
)
from ..module_utils.state import STATE, Failed, exit_with_differences

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "vendor": {"type": "str", "choices": ["nvidia", "amd"], "required": True},
    "docker": {"type": "bool", "default": False},
    "units": {"type": "list", "elements": "str", "default": []},
    "version": {"type": "str"},
    "gpus": {"type": "int"},
}
UNITS = "/etc/systemd/system"
DAEMON = "/etc/docker/daemon.json"
AMD_UNIT = """\
# Written by gcluster. Changes made here are lost; change the spec.
[Unit]
Description=List AMD's GPUs for containers (CDI), whose device numbers may change at each boot
After=systemd-modules-load.service systemd-udev-settle.service
Wants=systemd-udev-settle.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=amd-ctk cdi generate --output=/etc/cdi/amd.json

[Install]
WantedBy=multi-user.target
"""
CTK = {"nvidia": "nvidia-ctk", "amd": "amd-ctk"}
VERSION = {"nvidia": "--version", "amd": "version"}
"""How each prints its version: AMD's has a verb, and no such flag (its main.go)."""
RUNTIMES: dict[str, dict[str, Any]] = {
    "nvidia": {"nvidia": {"path": "nvidia-container-runtime", "args": []}},
    "amd": {"amd": {"path": "amd-container-runtime", "args": []}},
}


def daemon_settings(vendor: str) -> str:
    """Return Docker's settings with ours among them; others stay as they are.

    With live-restore containers outlive a restart of the daemon.
    """
    path = system_path(DAEMON)
    text = first_line(path)
    try:
        settings: dict[str, Any] = json.loads(text) if text else {}
    except ValueError as error:
        raise Failed(f"{path} is no JSON ({error}): fix it or remove it") from error
    settings["runtimes"] = {**settings.get("runtimes", {}), **RUNTIMES[vendor]}
    settings["features"] = {**settings.get("features", {}), "cdi": True}
    settings["live-restore"] = True
    return json.dumps(settings, indent=2, sort_keys=True) + "\n"


def is_enabled(unit: str) -> bool:
    """Return whether a unit starts with the node."""
    return run("systemctl", "is-enabled", "--quiet", unit)[0] == 0


def set_up_docker(vendor: str, *, act: bool) -> dict[str, str] | None:
    """Write Docker's settings that differ and have it read them; return the diff."""
    diff = write_text(system_path(DAEMON), daemon_settings(vendor), act=act)
    if diff and act and is_active("docker"):
        restart_docker()
    return diff


def set_up_units(requested: dict[str, Any], *, act: bool) -> list[str]:
    """Enable and start the units that aren't; return them."""
    # NVIDIA's service ends when it has written the list; only its path stays active.
    lasting = [u for u in requested["units"] if requested["vendor"] == "amd" or u.endswith(".path")]
    due = {unit for unit in requested["units"] if not is_enabled(unit)}
    due |= {unit for unit in lasting if not is_active(unit)}
    if requested["docker"] and not (is_active("docker") and is_enabled("docker.service")):
        due.add("docker.service")
    for unit in sorted(due) if act else ():
        code, text = run("systemctl", "enable", "--now", unit)
        if code:
            raise Failed(f"{unit}: {text}")
    return sorted(due)


def apply(requested: dict[str, Any], *, act: bool) -> tuple[list[str], list[dict[str, str]]]:
    """Make the changes that are due (only with `act`); return them, and the diffs of files."""
    vendor, done, diffs = requested["vendor"], [], []
    if vendor == "amd":
        diff = write_text(system_path(f"{UNITS}/gcluster-amd-cdi.service"), AMD_UNIT, act=act)
        if diff:
            diffs.append(diff)
            done.append("gcluster-amd-cdi.service")
            if act:
                run("systemctl", "daemon-reload")
    if requested["docker"] and (diff := set_up_docker(vendor, act=act)):
        diffs.append(diff)
        done.append(f"runtime {vendor} in {DAEMON}")
    done += [f"{unit} enabled and started" for unit in set_up_units(requested, act=act)]
    return done, diffs


def restart_docker() -> None:
    """Have Docker read its settings, never under a job."""
    if job_runs():
        raise Failed(
            "a job runs here: Docker was not restarted; it reads its settings at the next up"
        )
    code, text = run("systemctl", "restart", "docker")
    if code:
        raise Failed(f"Docker refuses its settings in {DAEMON}: {text}")


def listed_gpus(vendor: str) -> tuple[set[str], str]:
    """Return the numbers of the GPUs that containers can get, and a message when nothing answers."""
    code, text = run(CTK[vendor], "cdi", "list")
    if code:
        return set(), f"{CTK[vendor]} cdi list doesn't answer: {text}"
    return set(re.findall(rf"{vendor}\.com/gpu=(\d+)(?=\s|:|$)", text)), ""


def differences(requested: dict[str, Any]) -> list[str]:
    """Return everything that keeps containers from the GPUs."""
    vendor = requested["vendor"]
    wrong = [
        f"{unit} is not enabled: after a change of the driver containers would miss the GPUs"
        for unit in requested["units"]
        if not is_enabled(unit)
    ]
    wrong += [
        f"{unit} failed: journalctl --unit {unit} says why"
        for unit in requested["units"]
        if run("systemctl", "is-failed", "--quiet", unit)[0] == 0
    ]
    code, text = run(CTK[vendor], VERSION[vendor])
    version = re.search(r"\d+\.\d+\.\d+", text)
    if code or version is None:
        wrong.append(f"{CTK[vendor]} doesn't answer: {text}")
    elif not is_of_branch(version[0], requested["version"]):
        wrong.append(f"the toolkit is {version[0]}, not {requested['version']}")
    found, error = listed_gpus(vendor)
    if error:
        wrong.append(error)
    elif len(found) != requested["gpus"]:
        wrong.append(f"containers can get {len(found)} GPUs, not {requested['gpus']}")
    if vendor == "nvidia":
        code, text = run("nvidia-container-cli", "info")
        if code:
            wrong.append(f"nvidia-container-cli, which enroot's hook calls, doesn't answer: {text}")
    return wrong + (docker_differences(vendor) if requested["docker"] else [])


def docker_differences(vendor: str) -> list[str]:
    """Return what is wrong with Docker as it runs."""
    runtimes, error = run_json("docker", "info", "--format", "{{json .Runtimes}}")
    if error:
        return [error]
    return [] if vendor in (runtimes or {}) else [f"Docker runs without the runtime {vendor}"]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        required_if=[("state", "verified", ("version", "gpus"))],
        supports_check_mode=True,
    )
    requested = module.params
    if requested["state"] == "verified":
        exit_with_differences(module, lambda: differences(requested))
    try:
        done, diffs = apply(requested, act=not module.check_mode)
    except Failed as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(done), changes=done, diff=diffs)


if __name__ == "__main__":
    main()
