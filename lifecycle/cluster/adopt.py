"""Reads what runs, or what describes it, and writes a spec of it: Slurm, Ansible, toolkits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import yaml

from ...schemas.adopt.draft import (
    Adopted,
    NotCarried,
    NothingToAdopt,
    Settings,
    machines_text,
    spec_text,
)
from ...schemas.diagnostics import Diagnostic
from ...schemas.load import load
from ...schemas.structure.decoding import decode_json
from ..state.store import utc_now
from .outcome import Exit, failure

_LIMIT_S = 60
_SHOW = ("config", "nodes", "partitions")
_MOST_BYTES = 64 * 2**20
_MOST_SCRIPT_BYTES = 2**18


class AdoptedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What was written, and what is left to a person."""

    spec: str
    machines: str
    """Path of the catalog file; "" where every machine type is known."""
    not_carried: tuple[NotCarried, ...]
    settings: Settings
    """What became of the settings of the source."""
    findings: tuple[Diagnostic, ...]
    """The findings of `validate` for the spec."""


def today() -> str:
    """Return the day as catalog entries write it."""
    return f"{utc_now():%Y-%m-%d}"


def drafted(make: Callable[[], Adopted]) -> Adopted:
    """Make a draft. Raises LifecycleError (GC1142): there is nothing to adopt."""
    try:
        return make()
    except NothingToAdopt as error:
        raise _nothing(str(error)) from error


def write_adopted(adopted: Adopted, path: Path, origin: str) -> AdoptedFiles:
    """Write the spec, and machines.yaml next to it where one is needed; never overwrite a file.

    Raises:
        LifecycleError: GC945, a file is there already; then nothing is written.
    """
    files = {path: spec_text(adopted, origin)}
    if adopted.machines:
        files[path.parent / "machines.yaml"] = machines_text(adopted, origin)
    for each in files:
        if each.exists():
            raise failure(
                "GC945",
                f"{each} exists already and was left as it is",
                hint="give another path: --output PATH",
            )
    for each, text in files.items():
        with each.open("x", encoding="utf-8") as file:
            file.write(text)
    return AdoptedFiles(
        spec=str(path),
        machines=str(path.parent / "machines.yaml") if adopted.machines else "",
        not_carried=adopted.not_carried,
        settings=adopted.settings,
        findings=load(path).diagnostics,
    )


_K8S_CLUSTER = ("kube_control_plane", "kube_node", "calico_rr", "kube-master", "kube-node")
"""Groups whose hosts kubespray puts into k8s_cluster when it runs."""


def slurm_texts(files: Sequence[Path], host: str) -> list[str]:
    """Return scontrol's output: from files, from running it here, or on a host over SSH.

    Raises:
        LifecycleError: GC1142, a file can't be read or scontrol can't be run.
    """
    if files:
        return [read(path) for path in files]
    ssh = ["ssh", "-o", "BatchMode=yes", "--", host] if host else []
    return [
        _run([*ssh, "scontrol", *(["--oneliner"] if what != "config" else []), "show", what])
        for what in _SHOW
    ]


def ansible_inventory(path: Path) -> dict[str, Any]:
    """Return an inventory as Ansible itself reads it; no script and no plugin of it is run.

    Where the inventory leaves the group k8s_cluster to kubespray, it is added, so that the
    variables in group_vars/k8s_cluster count (roles/dynamic_groups/tasks/main.yml, 088964a).

    Raises:
        LifecycleError: GC1142, it can't be read.
    """
    read = _listed(path, "")
    members = [group for group in _K8S_CLUSTER if group in read]
    if not members or "k8s_cluster" in read:
        return read
    return _listed(path, "\n".join(["[k8s_cluster:children]", *members, ""]))


def _listed(path: Path, groups: str) -> dict[str, Any]:
    """Return what ansible-inventory prints of an inventory, and of more groups as an INI file."""
    if not path.exists():
        raise _nothing(f"{path}: no such file or directory")
    program = Path(sys.executable).with_name("ansible-inventory")
    argv = [str(program) if program.exists() else "ansible-inventory"]
    with TemporaryDirectory(prefix="gcluster-") as empty:
        config = Path(empty) / "ansible.cfg"
        config.write_text("[defaults]\n")
        added = Path(empty) / "groups.ini"
        added.write_text(groups)
        more = ["-i", str(added)] if groups else []
        text = _run(
            [*argv, "-i", str(path.resolve()), *more, "--list"],
            {
                "ANSIBLE_CONFIG": str(config),  # and not one next to the inventory, with plugins
                "ANSIBLE_INVENTORY_ENABLED": "yaml,ini",
                "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
                "ANSIBLE_VARS_ENABLED": "host_group_vars",
            },
            folder=Path(empty),
        )
    try:
        return decode_json(text.encode(), dict[str, Any])
    except msgspec.DecodeError as error:
        raise _nothing(f"{path} is no inventory: {error}") from error


def folder_texts(folder: Path) -> dict[str, str]:
    """Return the texts of a folder of scripts by their paths in it; other files are left out."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size <= _MOST_SCRIPT_BYTES:
            try:
                found[str(path.relative_to(folder))] = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
    return found


def read_yaml(path: Path) -> Any:
    """Return a YAML file's data. Raises LifecycleError (GC1142): it can't be read."""
    try:
        data = yaml.safe_load(read(path))
        json.dumps(data, default=str, skipkeys=True)  # ValueError: a value is within itself
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        message = " ".join(str(error).split())
        raise _nothing(f"{path} is no YAML: {message}") from error
    return data


def read(path: Path) -> str:
    """Return a file's text. Raises LifecycleError (GC1142): it can't be read, or is too large."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _nothing(f"{path} is larger than {_MOST_BYTES // 2**20} MiB")
        return path.read_bytes().decode(errors="replace")
    except OSError as error:
        raise _nothing(f"{path}: {error.strerror}") from error


def _run(argv: list[str], env: dict[str, str] | None = None, *, folder: Path | None = None) -> str:
    name = argv[0] if shutil.which(argv[0]) else ""
    if not name:
        raise _nothing(f"{Path(argv[0]).name} is not installed here: give files, or --host")
    try:
        done = subprocess.run(
            argv,
            env={**os.environ, **(env or {})},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _nothing(f"{Path(argv[0]).name} gave no answer within {_LIMIT_S} s") from error
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise _nothing(f"{Path(argv[0]).name}: {lines[-1] if lines else done.returncode}")
    return done.stdout.decode(errors="replace")


def _nothing(summary: str) -> Exception:
    return failure("GC1142", summary, hint="gcluster adopt --help", exit_code=Exit.USAGE)
