#!/usr/bin/python
"""Verify NCCL or RCCL as programs load it, and what jobs are given for it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_check
short_description: Verify NCCL or RCCL
description:
  - Checks the loader which library programs get, and the node's job environment for the settings that jobs get.
  - Where no job runs here and the tests are built, they reduce over all GPUs of the node. Every number must be
    right, and the library says its version while it runs.
options:
  vendor:
    description: Whose library it is.
    type: str
    choices: [nvidia, amd]
    required: true
  version:
    description: Version of the library, with or without its package's revision.
    type: str
    required: true
  gpus:
    description: Number of GPUs of the machine.
    type: int
    required: true
  tests:
    description: Folder of nccl-tests or rccl-tests; empty where they aren't built.
    type: str
    default: ""
  environment:
    description: Settings that a job gets which says nothing of them; of NAME+ the value goes before what NAME has.
    type: dict
    default: {}
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Verify the library and reduce over the GPUs
  gcluster.cluster.nccl_check:
    vendor: nvidia
    version: 2.30.4-1
    gpus: 8
    tests: /opt/nccl-tests
    environment: {NCCL_IB_GID_INDEX: "3"}
"""

RETURN = r"""
differences:
  description: Everything that isn't as requested.
  returned: failure
  type: list
  elements: str
"""

import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import is_of_branch, job_runs, run
from ..module_utils.state import exit_with_differences

ARGUMENTS: dict[str, Any] = {
    "vendor": {"type": "str", "choices": ["nvidia", "amd"], "required": True},
    "version": {"type": "str", "required": True},
    "gpus": {"type": "int", "required": True},
    "tests": {"type": "str", "default": ""},
    "environment": {"type": "dict", "default": {}},
}
LIBRARY = {"nvidia": "libnccl.so.2", "amd": "librccl.so.1"}
PRINTED = {
    "nvidia": r"NCCL version (\d+\.\d+\.\d+)",
    "amd": r"RCCL version\s*:?\s*(\d+\.\d+\.\d+)",
}
JOB_ENVIRONMENT = "/usr/local/libexec/gcluster/job-environment.sh"
TEST_TIMEOUT_S = 300
SIZES = tuple(2**power for power in range(23, 27))
"""Bytes: 8 to 64 MiB."""
ROW = re.compile(
    r"(?m)^\s*(\d+)\s+\d+\s+float\s+sum\s+-1(?:\s+[\d.]+){3}\s+(\S+)(?:\s+[\d.]+){3}\s+(\S+)\s*$"
)
"""A size, and how many values are wrong out of place and in place."""


def library_version(requested: dict[str, Any]) -> str:
    """Return the library's version without its package's revision."""
    return str(requested["version"]).split("-", maxsplit=1)[0]


def library_differences(requested: dict[str, Any]) -> list[str]:
    """Return what is wrong with the library that the loader gives to programs."""
    name = LIBRARY[requested["vendor"]]
    _, text = run("ldconfig", "--print-cache")
    paths = re.findall(rf"(?m)^\s*{re.escape(name)} .*=> (\S+)$", text)
    if not paths:
        return [f"no program finds {name}"]
    real = Path(paths[0]).resolve().name
    version = real.rpartition(".so.")[2]
    ours = requested["vendor"] == "nvidia" and requested["version"]
    if ours and not is_of_branch(library_version(requested), version):
        return [f"programs load {real}, not {requested['version']}"]
    return []


def setting_differences(environment: dict[str, Any]) -> list[str]:
    """Return the settings that a job without any of its own is not given."""
    _, text = run("env", "-i", "/bin/sh", JOB_ENVIRONMENT)
    lines = [line[len("export ") :] for line in text.splitlines()]
    given = dict(line.partition("=")[::2] for line in lines)
    wanted = {name.rstrip("+"): str(value) for name, value in environment.items()}
    return [
        f"jobs get {name}={given.get(name, '')}, not {value}"
        for name, value in wanted.items()
        if not _is_given(given.get(name, ""), value)
    ]


def _is_given(given: str, wanted: str) -> bool:
    """Return whether a job gets a setting; of `@rails ELSE` it gets what the node has, or ELSE."""
    return (
        given == wanted.partition(" ")[2] or given[:1] == "="
        if wanted[:1] == "@"
        else given == wanted
    )


def test_differences(requested: dict[str, Any]) -> list[str]:
    """Return what is wrong with an AllReduce inside the node."""
    program = f"{requested['tests']}/bin/all_reduce_perf"
    if not Path(program).exists():
        return [f"there is no {program}"]
    if job_runs():
        return []
    sizes = ("-b", str(SIZES[0]), "-e", str(SIZES[-1]), "-f", "2")
    argv = (program, *sizes, "-g", str(requested["gpus"]), "-c", "1", "-n", "5")
    code, text = run(*argv, timeout_s=TEST_TIMEOUT_S, environment={"NCCL_DEBUG": "VERSION"})
    if code:
        return [f"an AllReduce in the node fails: {' '.join(text.splitlines()[-3:])}"]
    rows = {int(size): {out, inside} for size, out, inside in ROW.findall(text)}
    missing = [size for size in SIZES if size not in rows]
    wrong = []
    if missing:
        listed = ", ".join(map(str, missing))
        wrong.append(f"an AllReduce in the node has no numbers for {listed} B")
    right = all(counts == {"0"} for counts in rows.values())
    if not right or not re.search(r"(?m)^# Out of bounds values : 0 OK", text):
        wrong.append("an AllReduce in the node gives wrong numbers, or didn't check them")
    printed = re.search(PRINTED[requested["vendor"]], text)
    if requested["version"] and (not printed or printed.group(1) != library_version(requested)):
        version = printed.group(1) if printed else "an unknown version"
        wrong.append(f"the tests run with {version}, not {requested['version']}")
    return wrong


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    exit_with_differences(
        module,
        lambda: [
            *library_differences(requested),
            *setting_differences(requested["environment"]),
            *(test_differences(requested) if requested["tests"] else []),
        ],
    )


if __name__ == "__main__":
    main()
