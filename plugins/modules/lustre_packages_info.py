#!/usr/bin/python
"""Find the packages of Lustre for this node's kernel, or report the kernels that have some."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lustre_packages_info
short_description: Find the packages of Lustre that fit this node's kernel
description:
  - What is installed and fits stays; else the newest is taken.
author: The gcluster authors
options:
  source:
    description: Name of the artefact source.
    type: str
    required: true
  kind:
    description: What the packages are for.
    type: str
    choices: [client, ldiskfs, zfs]
    default: client
  version:
    description: The wanted version or its beginning; empty for any.
    type: str
    default: ""
  kernel:
    description: A kernel that is installed, or its beginning; empty for the one that runs.
    type: str
    default: ""
attributes:
  check_mode:
    description: Only looks.
    support: full
"""

EXAMPLES = r"""
- name: Find the client's packages
  gcluster.cluster.lustre_packages_info:
    source: fsx-lustre
    version: "2.15"
  register: lustre
"""

RETURN = r"""
packages:
  description: NAME=VERSION of each package to install.
  returned: success
  type: list
  elements: str
  sample: [lustre-client-utils=2.15.6-1fsx10]
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.state import Failed

EL = {
    "client": ["kmod-lustre-client", "lustre-client"],
    "ldiskfs": ["kmod-lustre", "kmod-lustre-osd-ldiskfs", "lustre-osd-ldiskfs-mount", "lustre"],
    "zfs": ["kmod-lustre", "kmod-lustre-osd-zfs", "lustre-osd-zfs-mount", "lustre"],
}
MODULES = Path("/lib/modules")


def lines(*argv: str) -> list[str]:
    """Return what a program prints, line by line; nothing where it fails."""
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines() if done.returncode == 0 else []


def fits(version: str, wanted: str) -> bool:
    """Return whether a version is the wanted one, which may be its prefix."""
    return not wanted or re.match(rf"{re.escape(wanted)}([^0-9]|$)", version) is not None


def kernel_of(wanted: str) -> str:
    """Return the release of the kernel that modules are for."""
    running = lines("uname", "-r")[0]
    if fits(running, wanted):
        return running
    installed = sorted(path.name for path in MODULES.glob("*") if fits(path.name, wanted))
    if not installed:
        raise Failed(f"no kernel {wanted} is installed here")
    return installed[-1]


def apt_versions(name: str) -> list[str]:
    """Return a package's versions, the newest first."""
    rows = (line.split("|") for line in lines("apt-cache", "madison", name))
    return list(dict.fromkeys(row[1].strip() for row in rows))


def apt_installed(name: str) -> str:
    """Return a package's installed version, or nothing."""
    shown = lines("dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}\n", name)
    return shown[0].split()[1] if shown and shown[0].startswith("installed ") else ""


def apt_names(start: str) -> list[str]:
    """Return the names of packages that begin so."""
    return lines("apt-cache", "pkgnames", start)


def chosen(versions: list[str], installed: str, wanted: str) -> str:
    """Return the installed version where it fits, else the newest that does; or nothing."""
    fitting = [version for version in versions if fits(version, wanted)]
    return installed if installed and fits(installed, wanted) else (fitting or [""])[0]


def per_kernel(side: str, wanted: str, kernel: str) -> list[str]:
    """Return modules made for one kernel, and the programs in the same version."""
    modules, programs = f"lustre-{side}-modules-{kernel}", f"lustre-{side}-utils"
    version = chosen(apt_versions(modules), apt_installed(modules), wanted)
    if not version:
        start = f"lustre-{side}-modules-"
        others = [n for n in apt_names(start) if any(fits(v, wanted) for v in apt_versions(n))]
        refuse(wanted, kernel, [name.removeprefix(start) for name in others])
    if version not in [*apt_versions(programs), apt_installed(programs)]:
        raise Failed(f"{modules} is there in {version}, {programs} isn't: the source is incomplete")
    return [f"{modules}={version}", f"{programs}={version}"]


def azure(wanted: str, kernel: str) -> list[str]:
    """Return Microsoft's package: Lustre's version is in its name, the kernel its version."""
    start = "amlfs-lustre-client-"
    names = [name for name in apt_names(start) if fits(name.removeprefix(start), wanted)]
    names.sort(key=lambda name: numbers(name.split("-g")[0]))
    for name in sorted(names, key=lambda name: bool(apt_installed(name)), reverse=True):
        if apt_installed(name) == kernel:
            return [f"{name}={kernel}"]
    for name in reversed(names):
        if kernel in apt_versions(name):
            return [f"{name}={kernel}"]
    return refuse(wanted, kernel, [version for name in names for version in apt_versions(name)])


def dnf(source: str, kind: str, wanted: str, kernel: str) -> list[str]:
    """Return EL's packages; modules there fit every kernel of a minor release."""
    if source == "amlfs":
        mangled = re.sub("[-_]", ".", kernel.rsplit(".", 1)[0])
        named = f"amlfs-lustre-client-{wanted.replace('-', '_')}*-{mangled}*"
        form = "%{name}=%{version}-%{release}\n"
        found = lines("dnf", "--quiet", "repoquery", "--queryformat", form, named)
        return found[-1:] or refuse(wanted, kernel, [])
    query = ("dnf", "--quiet", "repoquery", "--showduplicates", "--queryformat")
    first = EL[kind][0]
    installed = (lines("rpm", "-q", "--queryformat", "%{VERSION}-%{RELEASE}\n", first) or [""])[0]
    version = chosen(lines(*query, "%{version}-%{release}\n", first)[::-1], installed, wanted)
    return [f"{name}={version}" for name in EL[kind]] if version else refuse(wanted, kernel, [])


def refuse(wanted: str, kernel: str, others: list[str]) -> NoReturn:
    """Return the message that no package matches, and what would."""
    there = sorted(set(others), key=numbers)
    known = f"the sources have it for {', '.join(there[-5:]) or 'none'}"
    raise Failed(
        f"no package of Lustre{' ' + wanted if wanted else ''} for kernel {kernel}: {known}."
        " Hold one of these kernels (software: kernel), or another version (software: lustre)"
    )


def numbers(release: str) -> list[int]:
    """Return what orders releases of kernels and versions."""
    return [int(part) for part in re.findall(r"\d+", release)]


def found(source: str, kind: str, wanted: str, kernel: str) -> list[str]:
    """Return NAME=VERSION of each package. Raises Failed."""
    release = kernel_of(kernel)
    if not shutil.which("apt-cache"):
        return dnf(source, kind, wanted, release)
    if source == "amlfs" and kind == "client":
        return azure(wanted, release)
    return per_kernel("client" if kind == "client" else "server", wanted, release)


ARGUMENTS: dict[str, Any] = {
    "source": {"type": "str", "required": True},
    "kind": {"type": "str", "choices": ["client", "ldiskfs", "zfs"], "default": "client"},
    "version": {"type": "str", "default": ""},
    "kernel": {"type": "str", "default": ""},
}


def main() -> None:
    """Return the packages."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    wanted = module.params
    try:
        packages = found(wanted["source"], wanted["kind"], wanted["version"], wanted["kernel"])
    except Failed as failed:
        module.fail_json(msg=str(failed))
    module.exit_json(changed=False, packages=packages)


if __name__ == "__main__":
    main()
