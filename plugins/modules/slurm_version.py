#!/usr/bin/python
"""Make Slurm's daemons run the installed version, which must be the wanted one."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_version
short_description: Restart Slurm's daemons of another version
description:
  - Fails where another version is installed.
  - Restarts units whose program was replaced after they started, and starts enabled ones that packages of other
    names have ended. Running jobs go on, because slurmstepd keeps them, and a slurmctld that starts reads its queue.
  - Where slurmctld is one of the units and runs, waits until it answers.
author: The gcluster authors
options:
  version:
    description: Version, or how the packages' begins.
    type: str
    required: true
  units:
    description: Daemons, in the order in which they are restarted.
    type: list
    elements: str
    required: true
  wait_seconds:
    description: Seconds to wait until slurmctld answers.
    type: int
    default: 60
attributes:
  check_mode:
    description: Says what would be restarted by what is installed now; another version is no failure then.
    support: full
"""

EXAMPLES = r"""
- name: Have the daemons here run Slurm 24.11.5
  gcluster.cluster.slurm_version: {version: 24.11.5, units: [slurmctld, slurmd]}
"""

RETURN = r"""
changes:
  description: What was done, one line each.
  returned: always
  type: list
  elements: str
  sample: [slurmd restarted]
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import commands
from ..module_utils.node import is_active, run
from ..module_utils.slurm import wait_for_controller
from ..module_utils.state import Failed, exit_with_progress

CONTROLLER = "slurmctld"
ARGUMENTS: dict[str, Any] = {
    "version": {"type": "str", "required": True},
    "units": {"type": "list", "elements": "str", "required": True},
    "wait_seconds": {"type": "int", "default": 60},
}


def installed() -> str:
    """Return the version of Slurm's packages here; "" where there are none."""
    form = "${db:Status-Status} ${Version}"
    for package in ("slurm-smd-client", "slurm-client"):
        code, text = run("dpkg-query", "--show", "--showformat", form, package)
        status, _, version = text.partition(" ")
        if code == 0 and status == "installed":
            return version
    code, text = run("rpm", "--query", "--queryformat", "%{VERSION}-%{RELEASE}", "slurm")
    return "" if code else text


def is_of(version: str, wanted: str) -> bool:
    """Return whether a version is the wanted one or begins with it, number by number."""
    return re.match(rf"{re.escape(wanted)}(?!\d)", version) is not None


def is_old(unit: str) -> bool:
    """Return whether a unit's program was installed after it started.

    /proc/PID/exe would show it too, but isn't readable everywhere, even by root.
    """
    _, started = run(
        *("systemctl", "show", "--timestamp=unix", "--property", "ExecMainStartTimestamp"),
        *("--value", unit),
    )
    _, command = run("systemctl", "show", "--property", "ExecStart", "--value", unit)
    program = re.search(r"path=([^ ;]*) ;", command)
    if not program or not started.startswith("@"):
        raise Failed(f"systemd doesn't say since when {unit} runs which program: {started}")
    return int(Path(program[1]).stat().st_ctime) > int(started[1:])


def units_to_start(units: list[str]) -> Iterator[tuple[str, str]]:
    """Yield which units are to be restarted or started.

    A unit without its configuration file doesn't start (its conditions), and isn't reported.
    """
    for unit in units:
        if is_active(unit):
            if is_old(unit):
                yield "restart", unit
        elif run("systemctl", "is-enabled", "--quiet", unit)[0] == 0:
            yield "start", unit


def switch_version(version: str, units: list[str], wait_s: int, *, act: bool) -> Iterator[str]:
    """Yield what is done."""
    has = installed()
    if act and not is_of(has, version):
        what = f"Slurm {has}" if has else "no Slurm"
        raise Failed(
            f"{what} is installed here, not {version}: is that in the package repositories?"
        )
    for verb, unit in units_to_start(units):
        if act:
            commands(("systemctl", verb, unit))()
        if not act or verb == "restart" or is_active(unit):
            yield f"{unit} {verb}ed"
    if act and CONTROLLER in units and is_active(CONTROLLER):
        wait_for_controller(wait_s)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    progress = switch_version(
        requested["version"],
        requested["units"],
        requested["wait_seconds"],
        act=not module.check_mode,
    )
    exit_with_progress(module, progress)


if __name__ == "__main__":
    main()
