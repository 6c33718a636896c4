#!/usr/bin/python
"""Make enroot's folders and hooks, or verify that jobs can run in containers."""

from __future__ import annotations

DOCUMENTATION = r"""
module: enroot
short_description: Configure enroot or verify containers of jobs
description:
  - Makes enroot's folders (C(/etc/tmpfiles.d/gcluster-enroot.conf)), switches on its hooks for Slurm and loads its
    kernel settings. Makes the image in which C(gcluster smoke) runs the nodes' own programs, an empty one.
  - With O(state=verified) checks Slurm for pyxis' options, the kernel for a namespace as a plain user, and enroot
    for its version.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  data:
    description: Folder of layers and containers.
    type: path
    required: true
  version:
    description: Version of enroot; needed to verify.
    type: str
  paths:
    description: Paths of the node that containers are given; each must be there.
    type: list
    elements: path
    default: []
  runs_containers:
    description: Whether jobs run in containers on this node; elsewhere only pyxis' options are checked.
    type: bool
    default: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Create the directories and enable the PMI and PyTorch hooks
  gcluster.cluster.enroot: {data: /var/lib/enroot}
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

import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, applied, commands
from ..module_utils.files import write_text
from ..module_utils.node import is_of_branch, run, system_path
from ..module_utils.state import STATE, Failed, exit_with_state

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "data": {"type": "path", "required": True},
    "version": {"type": "str"},
    "paths": {"type": "list", "elements": "path", "default": []},
    "runs_containers": {"type": "bool", "default": True},
}
SHIPPED_HOOKS = Path("/usr/share/enroot/hooks.d")
HOOKS = "/etc/enroot/hooks.d"
WANTED_HOOKS = ("50-slurm-pmi.sh", "50-slurm-pytorch.sh")
FOLDERS = ("cache", "data", "tmp")
IMAGE = "/usr/local/share/gcluster/gate.sqsh"
IN_IMAGE = ("dev", "etc", "home", "opt", "proc", "root", "run", "sys", "tmp", "usr", "var")
"""Folders of the image; /usr and others are the node's own, mounted by the caller."""
FROM_USR = ("bin", "lib", "lib64", "sbin")
FOR_ALL = 0o1777
AS_PLAIN_USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
TMPFILES = ("systemd-tmpfiles", "--create", "/etc/tmpfiles.d/gcluster-enroot.conf")


def is_for_all(folder: Path) -> bool:
    """Return whether every user can write in a folder."""
    return folder.is_dir() and folder.stat().st_mode & FOR_ALL == FOR_ALL


def changes(data: str) -> list[Change]:
    """Return the folders and hooks that are missing."""
    due = []
    folders = [Path("/run/enroot"), *(Path(data, name) for name in FOLDERS)]
    if not all(is_for_all(folder) for folder in folders):
        due.append(Change(f"folders in {data}", commands(TMPFILES)))
    for name in WANTED_HOOKS:
        shipped, hook = SHIPPED_HOOKS / name, system_path(HOOKS) / name
        if not shipped.exists():
            continue
        text = shipped.read_text(encoding="utf-8")
        if write_text(hook, text, act=False, mode=0o755):
            due.append(Change(f"hook {name}", _writing(hook, text)))
    if not system_path(IMAGE).exists():
        due.append(Change(f"image {IMAGE}", make_image))
    return due


def make_image() -> None:
    """Create the image without programs; its rc starts its arguments, like enroot's own."""
    image = system_path(IMAGE)
    image.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gate.") as scratch:
        tree, fresh = Path(scratch, "tree"), image.with_name(f".{image.name}.new")
        for name in IN_IMAGE:
            Path(tree, name).mkdir(parents=True)
        for name in FROM_USR:
            Path(tree, name).symlink_to(f"usr/{name}")
        for name, text in (("rc", 'exec "$@"\n'), ("fstab", ""), ("environment", "")):
            Path(tree, "etc", name).write_text(text, encoding="utf-8")
        tree.chmod(0o755)
        flags = ("-all-root", "-noappend", "-quiet", "-no-progress")
        code, text = run("mksquashfs", str(tree), str(fresh), *flags)
        if code:
            raise Failed(f"mksquashfs can't make {IMAGE}: {text}")
        fresh.chmod(0o644)
        fresh.replace(image)


def _writing(hook: Path, text: str) -> Any:
    return lambda: write_text(hook, text, act=True, mode=0o755)


def differences(requested: dict[str, Any]) -> list[str]:
    """Return everything that keeps jobs from running in containers."""
    _, text = run("srun", "--help")
    wrong = []
    if "--container-image" not in text:
        errors = [line for line in text.splitlines() if "error" in line]
        wrong.append(f"srun has no --container-image: {'; '.join(errors) or 'pyxis is not loaded'}")
    if not requested["runs_containers"]:
        return wrong
    code, text = run("enroot", "version")
    if code or not is_of_branch(text, requested["version"]):
        wrong.append(f"enroot is {text}, not {requested['version']}")
    code, text = run(*AS_PLAIN_USER, "unshare", "--user", "--mount", "--map-root-user", "true")
    if code:
        wrong.append(f"a plain user can't make a namespace, so no container starts: {text}")
    wrong += [
        f"{path} isn't there, and containers need it"
        for path in (*requested["paths"], IMAGE)
        if not system_path(path).exists()
    ]
    folders = [Path(requested["data"], name) for name in FOLDERS]
    return wrong + [
        f"users can't write in {folder}" for folder in folders if not is_for_all(folder)
    ]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        required_if=[("state", "verified", ("version",))],
        supports_check_mode=True,
    )
    requested = module.params
    if requested["state"] == "present" and not module.check_mode:
        run("sysctl", "--quiet", "--load=/etc/sysctl.d/90-gcluster-enroot.conf")
    exit_with_state(
        module, applied(lambda: changes(requested["data"])), lambda: differences(requested)
    )


if __name__ == "__main__":
    main()
