#!/usr/bin/python
"""Install enroot and pyxis from files with known checksums."""

from __future__ import annotations

DOCUMENTATION = r"""
module: enroot_pyxis
short_description: Install enroot and build pyxis for the installed Slurm
description:
  - Installs and holds enroot from packages with known checksums.
  - Builds pyxis for the headers of Slurm on the node, again when either changes, and next to it the plugin that runs Slurm's
    task prolog before a task enters its container.
options:
  enroot:
    description: Version of enroot.
    type: str
    required: true
  enroot_files:
    description: Enroot's packages; empty where the node runs no containers.
    type: list
    elements: dict
    default: []
    suboptions: &file
      url:
        description: Where the file is.
        type: str
        required: true
      checksum:
        description: Its digest as sha256:HEX.
        type: str
        required: true
  pyxis:
    description: Version of pyxis.
    type: str
    required: true
  pyxis_file:
    description: Its sources.
    type: dict
    required: true
    suboptions: *file
  build:
    description: Packages that it is built with.
    type: list
    elements: str
    default: []
  task_prolog:
    description: Source on the node of the plugin that runs the task prolog before containers; built as pyxis is.
    type: path
    required: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Says what would be installed.}
"""

EXAMPLES = r"""
- name: Install enroot, build pyxis for the Slurm that is here
  gcluster.cluster.enroot_pyxis:
    enroot: 3.5.0
    pyxis: 0.20.0
    pyxis_file:
      url: https://github.com/NVIDIA/pyxis/archive/refs/tags/v0.20.0.tar.gz
      checksum: sha256:0123...
    build: [gcc, make, libslurm-dev]
    task_prolog: /usr/local/src/gcluster/spank_task_prolog.c
"""

RETURN = r"""
changes:
  description: What was installed and held, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.download import fetch, unpack
from ..module_utils.files import write_text
from ..module_utils.node import first_line, is_of_branch, run, system_path
from ..module_utils.packages import PackageManager, package_manager
from ..module_utils.state import Failed

FILE: dict[str, Any] = {
    "url": {"type": "str", "required": True},
    "checksum": {"type": "str", "required": True},
}
ARGUMENTS: dict[str, Any] = {
    "enroot": {"type": "str", "required": True},
    "enroot_files": {"type": "list", "elements": "dict", "default": [], "options": FILE},
    "pyxis": {"type": "str", "required": True},
    "pyxis_file": {"type": "dict", "required": True, "options": FILE},
    "build": {"type": "list", "elements": "str", "default": []},
    "task_prolog": {"type": "path", "required": True},
}
PLUGIN = "/usr/local/lib/slurm/spank_pyxis.so"
TASK_PROLOG = "/usr/local/lib/slurm/spank_task_prolog.so"
BUILT = "/usr/local/share/pyxis/gcluster-built"
BUILD_TIMEOUT_S = 600
HEADERS = ("libslurm-dev", "slurm-devel")
ADVICE = "; a mirror goes into software.sources"
HELD = ["enroot", "enroot+caps"]


def download(file: dict[str, str], folder: Path) -> Path:
    """Download a file and check it; return where it is."""
    path = folder / file["url"].rpartition("/")[2]
    digest = fetch(file["url"], path, ADVICE)
    if digest != file["checksum"]:
        raise Failed(f"{file['url']} is {digest}, not {file['checksum']}: it was not installed")
    path.chmod(0o644)
    return path


def install_packages(manager: PackageManager, *names: str) -> None:
    """Install packages, from files or the distribution; nothing is started."""
    code, text = manager.install({}, list(names), {"allow_downgrade": True, "never": []})
    if code:
        errors = [line for line in text.splitlines() if line.startswith(("E:", "Error"))]
        raise Failed("; ".join(errors or text.splitlines()[-3:]))


def slurm_headers(manager: PackageManager) -> str:
    """Return the version of Slurm's headers here."""
    return next((version for name in HEADERS if (version := manager.installed(name))), "")


def state_of(manager: PackageManager, requested: dict[str, Any]) -> str:
    """Return what the plugins are built from: sources, and headers of Slurm."""
    source = system_path(requested["task_prolog"])
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16] if source.exists() else "none"
    return f"{requested['pyxis']} {slurm_headers(manager)} {digest}"


def build_plugins(manager: PackageManager, requested: dict[str, Any], folder: Path) -> None:
    """Build pyxis and the prolog's plugin against the headers here, and put them in place at once."""
    unpack(download(requested["pyxis_file"], folder), folder)
    source = next(folder.glob("pyxis-*/Makefile")).parent
    into = ("install", "prefix=/usr/local", f"DESTDIR={folder}/tree")
    make("pyxis", "make", "--directory", str(source), *into)
    own = folder / "spank_task_prolog.so"
    flags = ("-shared", "-fPIC", "-O2", "-Wall", "-o", str(own))
    make("the task prolog's plugin", "gcc", *flags, str(system_path(requested["task_prolog"])))
    for built, path in (
        (folder / "tree/usr/local/lib/slurm/spank_pyxis.so", PLUGIN),
        (own, TASK_PROLOG),
    ):
        plugin = system_path(path)
        plugin.parent.mkdir(parents=True, exist_ok=True)
        fresh = plugin.with_name(f".{plugin.name}.new")
        shutil.copy(built, fresh)
        fresh.chmod(0o644)
        fresh.replace(plugin)
    write_text(system_path(BUILT), f"{state_of(manager, requested)}\n", act=True)


def make(what: str, *command: str) -> None:
    """Run a compiler; its last lines are the error."""
    code, text = run(*command, timeout_s=BUILD_TIMEOUT_S)
    if code:
        raise Failed(f"{what} can't be built:\n" + "\n".join(text.splitlines()[-15:]))


def apply(requested: dict[str, Any], *, act: bool) -> list[str]:
    """Install what is missing (only with `act`); return it."""
    manager, done = package_manager(), []
    has_enroot = is_of_branch(manager.installed("enroot"), requested["enroot"])
    missing = [name for name in requested["build"] if not manager.installed(name)]
    plugins = [system_path(path) for path in (PLUGIN, TASK_PROLOG)]
    built = first_line(system_path(BUILT)) if all(path.exists() for path in plugins) else ""
    with tempfile.TemporaryDirectory(prefix="enroot-pyxis.", dir="/var/tmp") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        if requested["enroot_files"] and not has_enroot:
            done.append(f"enroot {requested['enroot']}")
            if act:
                files = [str(download(file, folder)) for file in requested["enroot_files"]]
                install_packages(manager, *files)
        if missing or built != state_of(manager, requested):
            done.append(f"pyxis {requested['pyxis']}")
            if act:
                install_packages(manager, *requested["build"])
                build_plugins(manager, requested, folder)
    if requested["enroot_files"] and (act or has_enroot):
        try:
            held = manager.hold(HELD, installed_only=False, act=act)
        except OSError as error:
            raise Failed(str(error)) from error
        done += [f"{name} held" for name in held]
    return done


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        done = apply(module.params, act=not module.check_mode)
    except Failed as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(done), changes=done)


if __name__ == "__main__":
    main()
