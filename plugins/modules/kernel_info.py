#!/usr/bin/python
"""Return the kernel that a version means on this node, and why a reboot is due."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_info
short_description: Return the kernel that a version means, and whether a reboot is due
description:
  - Returns the release that a version means here, packages that would bring another kernel, and how the kernel
    that runs differs from what is requested.
author: The gcluster authors
options:
  version:
    description: Version or its beginning; empty for the kernel that runs, because modules are built for it.
    type: str
    default: ""
  parameters:
    description: Parameters that the kernel must have been started with.
    type: list
    elements: str
    default: []
  find:
    description: Whether to look for the release in the package repositories.
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Find the kernel
  gcluster.cluster.kernel_info: {version: "6.8.0-90", find: true}
  register: kernel
"""

RETURN = r"""
release:
  description: Release as C(uname -r) prints it.
  returned: when O(find)
  type: str
  sample: 6.8.0-90-generic
metapackages:
  description: Installed packages that would bring another kernel.
  returned: when O(find)
  type: list
  elements: str
  sample: [linux-image-generic]
reboot:
  description: Why only a reboot brings what is requested; empty where none is due.
  returned: success
  type: str
  sample: "a reboot is due: 6.8.0-87-generic runs, not 6.8.0-90"
"""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import run
from ..module_utils.state import Failed

PROC = Path(os.environ.get("GCLUSTER_PROC", "/proc"))
"""GCLUSTER_PROC replaces /proc where a test sets the kernel's command line."""
APT_RELEASE = re.compile(r"linux-image-(\d.*)")
FLAVOUR = re.compile(r"-([a-z][a-z0-9_-]*)$")
NOT_RELEASES = ("-unsigned", "-dbg", "-dbgsym")
METAPACKAGE = re.compile(
    r"linux-(image|headers|generic|virtual|aws|azure|gcp|nvidia)[a-z-]*(-(hwe-)?[0-9]{2}\.04[a-z-]*)?"
    r"(-(amd64|arm64|cloud-amd64|cloud-arm64|rt-amd64))?"
)
ARGUMENTS: dict[str, Any] = {
    "version": {"type": "str", "default": ""},
    "parameters": {"type": "list", "elements": "str", "default": []},
    "find": {"type": "bool", "default": False},
}


def is_of(release: str, version: str, ends: str = ".+-") -> bool:
    """Return whether a release is of a version, which may be its beginning."""
    return release == version or (release.startswith(version) and release[len(version)] in ends)


def packaged_releases() -> list[str]:
    """Return the releases that the package repositories have."""
    if shutil.which("apt-cache"):
        names = run("apt-cache", "pkgnames", "linux-image-")[1].splitlines()
        found = [match[1] for name in names if (match := APT_RELEASE.fullmatch(name))]
        return [release for release in found if not release.endswith(NOT_RELEASES)]
    form = "%{version}-%{release}.%{arch}\n"
    _, text = run(
        *("dnf", "--quiet", "--showduplicates", "repoquery", "--queryformat", form, "kernel-core"),
        timeout_s=3600,
    )
    return [line for line in text.splitlines() if line[:1].isdigit()]


def release_of(version: str) -> str:
    """Return the release that a version means: the running one, else the newest of its flavour.

    Raises:
        Failed: no package has it.
    """
    running = run("uname", "-r")[1]
    if not version or is_of(running, version):
        return running
    fitting = sorted(filter(lambda each: is_of(each, version), packaged_releases()), key=in_order)
    if not fitting:
        raise Failed(f"no package of a kernel {version} here")
    same = [release for release in fitting if flavour_of(release) == flavour_of(running)]
    return (same or fitting)[-1]


def flavour_of(release: str) -> str:
    """Return a release's flavour, e.g. "generic" or "cloud-amd64"; "" where it has none."""
    found = FLAVOUR.search(release)
    return found[1] if found else ""


def in_order(release: str) -> list[tuple[int, int, str]]:
    """Return what orders releases as `sort -V` does: numbers by value."""
    parts = re.findall(r"\d+|[^\d]+", release)
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def metapackages() -> list[str]:
    """Return installed packages that would bring another kernel; apt alone has such."""
    form = "${db:Status-Status} ${Package}\n"
    code, text = run("dpkg-query", "--show", "--showformat", form, "linux-*")
    rows = [line.split() for line in text.splitlines()] if code == 0 else []
    return [row[1] for row in rows if row[:1] == ["installed"] and METAPACKAGE.fullmatch(row[-1])]


def reasons(version: str, parameters: list[str]) -> Iterator[str]:
    """Yield differences of the running kernel from the wanted one."""
    running = run("uname", "-r")[1]
    if version and not is_of(running, version):
        yield f"{running} runs, not {version}"
    started = (PROC / "cmdline").read_text().split()
    for parameter in parameters:
        if parameter not in started:
            yield f"the kernel was started without {parameter}"


def main() -> None:
    """Return what was found."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    found: dict[str, Any] = {}
    try:
        if requested["find"]:
            found = {"release": release_of(requested["version"]), "metapackages": metapackages()}
    except Failed as failed:
        module.fail_json(msg=str(failed))
    due = "; ".join(reasons(requested["version"], requested["parameters"]))
    module.exit_json(changed=False, reboot=due and f"a reboot is due: {due}", **found)


if __name__ == "__main__":
    main()
