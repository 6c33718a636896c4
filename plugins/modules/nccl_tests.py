#!/usr/bin/python
"""Build nccl-tests or rccl-tests for the GPUs of a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_tests
short_description: Build nccl-tests or rccl-tests
description:
  - Builds the tests out of their tarball, again when anything changed that they are built from.
  - The old programs stay until the new ones are complete.
options:
  name:
    description: What is built.
    type: str
    choices: [nccl-tests, rccl-tests]
    required: true
  tarball:
    description: Sources on the node, gzipped.
    type: path
    required: true
  into:
    description: Folder of the programs; C(bin) is made there.
    type: path
    required: true
  library:
    description: What they are linked with; another text builds them again.
    type: str
    required: true
  headers:
    description: Folder of MPI's headers, where its compiler needs it.
    type: str
    default: ""
  make:
    description: Variables of their Makefile; C(MPI_HOME) is one of them.
    type: dict
    required: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Says whether they would be built.}
"""

EXAMPLES = r"""
- name: Build nccl-tests for these GPUs
  gcluster.cluster.nccl_tests:
    name: nccl-tests
    tarball: /usr/local/src/gcluster/nccl-tests-2.17.6.tar.gz
    into: /opt/nccl-tests
    library: nvidia 2.30.4-1 13.0
    make: {MPI: "1", MPI_HOME: /usr/lib/x86_64-linux-gnu/openmpi}
"""

RETURN = r"""
changes:
  description: What was built, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, exit_with_changes
from ..module_utils.files import write_text
from ..module_utils.node import run
from ..module_utils.state import Failed

ARGUMENTS: dict[str, Any] = {
    "name": {"type": "str", "choices": ["nccl-tests", "rccl-tests"], "required": True},
    "tarball": {"type": "path", "required": True},
    "into": {"type": "path", "required": True},
    "library": {"type": "str", "required": True},
    "headers": {"type": "str", "default": ""},
    "make": {"type": "dict", "required": True},
}
BUILD_TIMEOUT_S = 3600
PROGRAM = "all_reduce_perf"


def fingerprint(requested: dict[str, Any]) -> str:
    """Return a hash of everything the programs are built from."""
    return hashlib.sha256(json.dumps(requested, sort_keys=True).encode()).hexdigest() + "\n"


def unpack(tarball: str, folder: str) -> Path:
    """Unpack the tarball; return the one folder that is in it."""
    options = ("--extract", "--gzip", "--no-same-owner")
    code, text = run("tar", *options, f"--file={tarball}", f"--directory={folder}")
    inside = sorted(Path(folder).iterdir())
    if code or len(inside) != 1:
        raise Failed(f"{tarball} is no tarball of sources: {text}")
    return inside[0]


def compile_programs(requested: dict[str, Any], folder: str) -> Path:
    """Build; return the folder with the programs."""
    sources = unpack(requested["tarball"], folder)
    mpi = requested["make"]["MPI_HOME"]
    variables = [f"{name}={value}" for name, value in sorted(requested["make"].items())]
    environment = {"NVCC_APPEND_FLAGS": f"-Xlinker -rpath={mpi}/lib"}
    if requested["headers"]:
        environment["CPATH"] = requested["headers"]
    argv = ("make", "-C", str(sources), f"-j{os.cpu_count() or 1}", *variables)
    code, text = run(*argv, timeout_s=BUILD_TIMEOUT_S, environment=environment)
    if code or not (sources / "build" / PROGRAM).exists():
        last = "\n".join(text.splitlines()[-20:])
        raise Failed(f"{requested['name']} can't be built with {' '.join(variables)}:\n{last}")
    return sources / "build"


def exchange(programs: Path, into: Path) -> None:
    """Put the new programs in the place of the old ones."""
    fresh, old = into.with_name(f".{into.name}.new"), into.with_name(f".{into.name}.old")
    for folder in (fresh, old):
        shutil.rmtree(folder, ignore_errors=True)
    (fresh / "bin").mkdir(parents=True)
    for program in programs.glob("*_perf"):
        shutil.copy2(program, fresh / "bin" / program.name)
    for folder in (fresh, fresh / "bin"):
        folder.chmod(0o755)
    if into.exists():
        into.rename(old)
    fresh.rename(into)
    shutil.rmtree(old, ignore_errors=True)


def build(requested: dict[str, Any]) -> None:
    """Build the programs and record their inputs."""
    into = Path(requested["into"])
    with tempfile.TemporaryDirectory(prefix="collective-tests.") as folder:
        exchange(compile_programs(requested, folder), into)
    write_text(into / "built-from", fingerprint(requested), act=True)


def changes(requested: dict[str, Any]) -> list[Change]:
    """Return the build, where something changed."""
    into = Path(requested["into"])
    mark = into / "built-from"
    is_built = mark.exists() and mark.read_text(encoding="utf-8") == fingerprint(requested)
    if is_built and (into / "bin" / PROGRAM).exists():
        return []
    what = f"{requested['name']} with {requested['library'].strip()} in {into}"
    return [Change(what, lambda: build(requested))]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_changes(module, lambda: changes(module.params))


if __name__ == "__main__":
    main()
