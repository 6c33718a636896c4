#!/usr/bin/python
"""Choose which CUDA toolkit /usr/local/cuda is, or verify the one that answers."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cuda_toolkit
short_description: Choose the CUDA toolkit or verify it
description:
  - Makes the alternative C(cuda), and by it C(/usr/local/cuda), lead to one of the installed toolkits.
  - With O(state=verified) checks the compiler behind C(/usr/local/cuda), the toolkit's own list of what it is
    made of, and the driver, which must be new enough to run what the compiler makes.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  version:
    description: Version of the toolkit, or its release.
    type: str
    required: true
  home:
    description: Folder of the toolkit.
    type: path
    required: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Point /usr/local/cuda to the toolkit
  gcluster.cluster.cuda_toolkit: {version: 13.0.2, home: /usr/local/cuda-13.0}

- name: Verify toolkit and driver
  gcluster.cluster.cuda_toolkit: {version: 13.0.2, home: /usr/local/cuda-13.0, state: verified}
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
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, applied
from ..module_utils.node import is_of_branch, run
from ..module_utils.state import STATE, Failed, exit_with_state

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "version": {"type": "str", "required": True},
    "home": {"type": "path", "required": True},
}
LINK = Path("/usr/local/cuda")
ALTERNATIVES = ("update-alternatives", "alternatives")
NOT_FOUND = 127


def choose(home: str) -> None:
    """Let the alternative "cuda" be this toolkit."""
    code, text = NOT_FOUND, ""
    for tool in ALTERNATIVES:
        if code == NOT_FOUND:
            code, text = run(tool, "--set", "cuda", home)
    if code:
        raise Failed(f"the toolkit {home} can't be chosen: {text}")


def changes(home: str) -> list[Change]:
    """Return the change that chooses the toolkit, where it isn't the one that is used."""
    if LINK.resolve() == Path(home):
        return []
    return [Change(f"{LINK} is {home}", lambda: choose(home))]


def toolkit_version() -> tuple[str, str]:
    """Return the chosen toolkit's own version, and a message without one."""
    try:
        parts = json.loads((LINK / "version.json").read_text(encoding="utf-8"))
        return parts["cuda"]["version"], ""
    except (OSError, ValueError, KeyError) as error:
        return "", f"{LINK} is no toolkit: {error}"


def differences(version: str, home: str) -> list[str]:
    """Return all differences."""
    wrong = []
    if LINK.resolve() != Path(home):
        wrong.append(f"{LINK} is {LINK.resolve()}, not {home}")
    found, error = toolkit_version()
    if error or not is_of_branch(found, version):
        wrong.append(error or f"the toolkit is {found}, not {version}")
    code, text = run(str(LINK / "bin/nvcc"), "--version")
    release = re.search(r"release (\d+)\.(\d+)", text)
    if code or not release:
        return [*wrong, f"nvcc doesn't answer: {text}"]
    if not is_of_branch(version, ".".join(release.groups())):
        wrong.append(f"nvcc is of release {'.'.join(release.groups())}, not {version}")
    return wrong + driver_differences(release.group(1))


def driver_differences(major: str) -> list[str]:
    """Return what is wrong with the driver: within a major release any of its drivers will do."""
    code, text = run("nvidia-smi", "--version")
    # From 610 on: "CUDA UMD version".
    most = re.search(r"(?m)^CUDA (?:UMD )?[Vv]ersion\s*: (\d+)\.(\d+)", text)
    if code or not most:
        return [f"the driver doesn't say which CUDA it runs: {text}"]
    if int(most.group(1)) < int(major):
        return [
            f"the driver runs CUDA up to {'.'.join(most.groups())}, so no program of CUDA {major}"
        ]
    return []


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    version, home = module.params["version"], module.params["home"]
    exit_with_state(module, applied(lambda: changes(home)), lambda: differences(version, home))


if __name__ == "__main__":
    main()
