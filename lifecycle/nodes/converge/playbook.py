"""The playbook of one convergence: exactly the pending steps, on exactly the hosts that need them.

A play is a step (or several in a row) over one set of hosts. Each step imports one phase of one
role, lets the handlers run, and leaves its seal and stamp with a raw command, which costs no module
run. Large pools are split into waves.

Where it runs, a step that depends on no other host is one play for all pools, though each has
variables of its own: those are the hosts' then (`host_variables`), and not the play's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import yaml

from ....inventory.compile import Step
from ....inventory.compile.hooks import HookStep
from ....inventory.hosts import ClusterInventory
from .pending import Pending, PendingStep
from .seals import seal_command
from .stamps import done_command

STAMP_PREFIX = "stamp "
"""A task of this name marks its step as done on a host: "stamp slurm.configure"."""

HOOK = "gcluster_hook"
"""Variable of a play that holds the name of the hook that the play is of."""

PACKAGE_LOCK_S = 900
"""Longest wait for the package manager, in seconds: the distribution's own updates of the first
hours take minutes, and Ansible gives up after one."""

Play: TypeAlias = dict[str, Any]


class _Part(msgspec.Struct):
    """A step as some pools have it."""

    step: Step
    digest: str
    hosts: list[str]


class _Work(msgspec.Struct):
    """One step over the hosts of all pools that run it at the same time."""

    parts: list[_Part]
    """More than one where pools have different variables."""
    environment: dict[str, str]

    @property
    def step(self) -> Step:
        return self.parts[0].step

    @property
    def digest(self) -> str:
        return self.parts[0].digest

    @property
    def hosts(self) -> list[str]:
        return [host for part in self.parts for host in part.hosts]


def plays(
    pending: Pending,
    secret_files: Mapping[str, Path],
    user_roles: Path = Path("roles"),
    *,
    joined: bool = False,
) -> list[Play]:
    """Return the plays in order.

    Args:
        pending: the steps to run.
        secret_files: secret -> file that holds it while the playbook runs; a secret without a
            file is shown as a placeholder (for reading, not for running).
        user_roles: folder of the roles of hooks, each under the name of its step's role.
        joined: have one play for all pools of a step that depends on no other host. It needs the
            hosts to have their `host_variables`; without that the playbook is whole by itself.
    """
    result: list[Play] = []
    whole = True
    """Whether the last play's variables are all that its steps have."""
    for work in _merged(pending.steps, joined=joined):
        if isinstance(work.step, HookStep):
            result.append(_hook_play(work, work.step, secret_files, user_roles))
            whole = False
            continue
        split = len(work.parts) > 1
        given = [_variables(part.step, secret_files) for part in work.parts]
        variables = {} if split else given[0]
        command = f"{{{{ {_stamp_variable(work.step)} }}}}" if split else _stamp_command(work)
        tasks = _tasks(work.step, command)
        hosts = ",".join(work.hosts)
        last = result[-1] if result and HOOK not in result[-1]["vars"] else None
        if (
            last is not None
            and (split or whole)
            and last["hosts"] == hosts
            and all(_agree(last["vars"], each) for each in given)
        ):
            last["name"] += f", {work.step.key}"
            last["vars"] |= variables
            last["tasks"] += tasks
            whole = whole and not split
        else:
            whole = not split
            result.append(
                {
                    "name": work.step.key,
                    "hosts": hosts,
                    "gather_facts": False,
                    "module_defaults": _module_defaults(),
                    "become": True,
                    **({"environment": work.environment} if work.environment else {}),
                    "vars": variables,
                    "tasks": tasks,
                }
            )
    return result


def host_variables(pending: Pending, secret_files: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Return host -> variables of the steps that `plays` joins over pools that differ in them.

    Args:
        pending: the steps to run.
        secret_files: as for `plays`.

    Raises:
        ValueError: two such steps give a host's variable different values.
    """
    found: dict[str, dict[str, Any]] = {}
    for work in _merged(pending.steps, joined=True):
        for part in work.parts if len(work.parts) > 1 else ():
            variables = _variables(part.step, secret_files)
            variables[_stamp_variable(part.step)] = _stamp_command(part)
            for host in part.hosts:
                mine = found.setdefault(host, {})
                if not _agree(mine, variables):
                    raise ValueError(f"{part.step.key} has other values than a step before it")
                mine |= variables
    return found


def _variables(step: Step, secret_files: Mapping[str, Path]) -> dict[str, Any]:
    """Return the variables of a step, with the paths of its secrets' files."""
    paths = {
        variable: str(secret_files.get(secret, f"<secret {secret}>"))
        for variable, secret in step.secrets.items()
    }
    return step.variables | paths


def _stamp_variable(step: Step) -> str:
    return f"gcluster_stamp_{step.role}_{step.phase}"


def _stamp_command(of: _Part | _Work) -> str:
    return seal_command(of.step, of.digest) + done_command(of.step, of.digest)


def _hook_play(
    work: _Work, step: HookStep, secret_files: Mapping[str, Path], user_roles: Path
) -> Play:
    """Return the play of a hook, with variables of its own.

    A role of the user's may expect facts. Where it has secrets, nothing of what it does is shown.
    """
    variables: dict[str, Any] = {HOOK: step.hook, **step.variables}
    for variable, secret in step.secrets.items():
        path = str(secret_files.get(secret, f"<secret {secret}>"))
        variables[variable] = f"{{{{ lookup('ansible.builtin.file', {path!r}) }}}}"
    role = step.user_role
    if role is None:
        imported = {"name": "gcluster.cluster.hooks", "tasks_from": f"{step.phase}.yml"}
    else:
        imported = {"name": role.name or str(user_roles / step.role), "tasks_from": role.tasks}
    return {
        "name": step.key,
        "hosts": ",".join(work.hosts),
        "gather_facts": role is not None,
        "module_defaults": _module_defaults(),
        "become": True,
        **({"no_log": True} if step.secrets else {}),
        **({"environment": work.environment} if work.environment else {}),
        "vars": variables,
        "tasks": [
            {"name": step.key, "ansible.builtin.import_role": imported},
            *_tasks(step, _stamp_command(work))[1:],
        ],
    }


def playbook_yaml(pending: Pending, secret_files: Mapping[str, Path]) -> str:
    """Return the playbook as YAML; the same steps give the same bytes."""
    return yaml.safe_dump(
        plays(pending, secret_files), sort_keys=False, width=100, explicit_start=True
    )


def _module_defaults() -> dict[str, dict[str, int]]:
    return {f"ansible.builtin.{name}": {"lock_timeout": PACKAGE_LOCK_S} for name in ("apt", "dnf")}


def _merged(steps: tuple[PendingStep, ...], *, joined: bool) -> list[_Work]:
    """Join the same step of several pools behind one proxy: equal stamps mean equal work.

    With `joined`, those that depend on no other host are joined whatever their stamps.
    """
    works: dict[tuple[str, str, str], _Work] = {}
    for pending in steps:
        step, environment = pending.step, pending.environment
        same = "" if joined and step.independent else pending.digest
        work = works.setdefault(
            (step.key, same, str(sorted(environment.items()))),
            _Work(parts=[], environment=environment),
        )
        part = next((part for part in work.parts if part.digest == pending.digest), None)
        if part is None:
            work.parts.append(_Part(step=step, digest=pending.digest, hosts=[*pending.hosts]))
        else:
            part.hosts += pending.hosts
    return list(works.values())


def _agree(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return all(left.get(name, value) == value for name, value in right.items())


def _tasks(step: Step, stamp_command: str) -> list[dict[str, Any]]:
    return [
        {
            "name": step.key,
            "ansible.builtin.import_role": {
                "name": f"gcluster.cluster.{step.role}",
                "tasks_from": f"{step.phase}.yml",
            },
        },
        {"name": f"handlers of {step.key}", "ansible.builtin.meta": "flush_handlers"},
        {
            "name": f"{STAMP_PREFIX}{step.key}",
            "ansible.builtin.raw": stamp_command,
            "changed_when": False,
        },
    ]


WAVE = 50
"""Most nodes of one pool that are worked on at once; a fork of Ansible holds about 60 MB."""


def waves(
    inventory: ClusterInventory, busy: frozenset[str], size: int = WAVE
) -> list[frozenset[str]]:
    """Return the hosts to work on together, wave by wave.

    Controllers and logins go first, with as many nodes of each pool as fit; then the next nodes of
    each pool. A slow node holds up its own wave only, and a change that breaks every node of a
    wave stops there.

    Args:
        inventory: all hosts.
        busy: those with something to do; the others are in no wave.
        size: most nodes of one pool in a wave.
    """
    found: list[set[str]] = []
    counted: dict[str, int] = {}
    for host in inventory.hosts:
        if host.name not in busy:
            continue
        number = 0
        if host.role == "compute":
            place = counted.get(host.pool, 0)
            counted[host.pool] = place + 1
            number = place // size
        while len(found) <= number:
            found.append(set())
        found[number].add(host.name)
    return [frozenset(wave) for wave in found if wave]
