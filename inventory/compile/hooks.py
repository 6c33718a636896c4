"""Hooks of the spec: the user's own roles and scripts as steps, and the role hooks."""

from __future__ import annotations

import base64
import re
from typing import Literal

import msgspec

from ...schemas.spec import (
    ClusterHook,
    ClusterSpec,
    EpilogHook,
    HealthCheckHook,
    PrologHook,
    RoleHook,
    ScriptHook,
    SlurmScheduler,
    StageHook,
)
from .node import NodeFacts
from .roles import role_compiler
from .slurm.job_programs import JOB_PROGRAMS, PROGRAMS, has_job_hooks, runs_own_programs
from .steps import Json, Phase, Stage, Step

HOOKS = f"{PROGRAMS}/hooks"
"""Folder on the nodes of hooks' own programs."""
_TEMPLATE = re.compile(r"\{[{%#]")
_ORDER: dict[type[ClusterHook], str] = {PrologHook: "prolog.d", EpilogHook: "epilog.d"}


class UserRole(msgspec.Struct, frozen=True, kw_only=True):
    """A role of the user's."""

    name: str = ""
    """Of a role of a collection; "": the files are the role."""
    files: dict[str, str] = {}
    tasks: str = "main"
    collections: dict[str, str] = {}
    """Name -> version."""


class HookStep(Step, frozen=True, kw_only=True):
    """A step of a hook of the spec; its role has the hook's name."""

    hook: str
    place: Literal[-1, 1]
    """Before or after all other steps of its stage."""
    user_role: UserRole | None = None
    """None: role hooks of gcluster's own, which runs a script."""

    @property
    def order(self) -> int:
        """Where it is in its stage: before or after all others."""
        return self.place

    def digest(self, role_digest: str, secret_versions: dict[str, str]) -> str:
        """Return the stamp of this step; other files of the role give another one."""
        of_user = "" if self.user_role is None else msgspec.json.encode(self.user_role).decode()
        return super().digest(role_digest + of_user, secret_versions)


def step_role(hook: str) -> str:
    """Return what stamps call the role of a hook."""
    return f"hook_{hook.replace('-', '_')}"


def hook_secrets(spec: ClusterSpec) -> dict[str, str]:
    """Return secret -> its reference in the spec's hooks."""
    return {
        secret: hook.secrets[variable]
        for name, hook in spec.hooks.items()
        if isinstance(hook, StageHook)
        for variable, secret in _secret_names(name, hook).items()
    }


def _secret_names(name: str, hook: StageHook) -> dict[str, str]:
    """Return variable -> name in the vault, which allows lower case only."""
    return {
        variable: f"hook.{name}.{number}.{variable.lower()}"
        for number, variable in enumerate(sorted(hook.secrets))
    }


def is_for(hook: ClusterHook, node: NodeFacts) -> bool:
    """Whether a hook is for a pool's nodes; jobs run on compute nodes alone."""
    if isinstance(hook, PrologHook | EpilogHook) and not node.pool.is_compute:
        return False
    return not hook.pools or node.name in hook.pools


@role_compiler("steps of hooks")
def hook_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of the hooks that run at a stage, in the order of the spec."""
    return [
        _hook_step(name, hook, node)
        for name, hook in node.spec.hooks.items()
        if isinstance(hook, RoleHook | ScriptHook) and is_for(hook, node)
    ]


def _hook_step(name: str, hook: RoleHook | ScriptHook, node: NodeFacts) -> HookStep:
    after = hook.after if hook.before is None else None
    secrets = _secret_names(name, hook)
    if isinstance(hook, RoleHook):
        variables, user_role = _of_role(hook, node), _user_role(hook)
    else:
        variables, user_role = _of_script(name, hook, node), None
        secrets = {f"hooks_secret_{variable}": secret for variable, secret in secrets.items()}
    return HookStep(
        stage=Stage(after or hook.before or "scheduler"),
        place=1 if after else -1,
        role=step_role(name),
        phase="configure",
        variables=variables,
        secrets=secrets,
        spares_jobs=hook.spares_jobs,
        hook=name,
        user_role=user_role,
    )


def _user_role(hook: RoleHook) -> UserRole:
    return UserRole(
        name=hook.name or "",
        files=dict(sorted(hook.files.items())),
        tasks=hook.tasks,
        collections=dict(sorted(hook.collections.items())),
    )


def _of_role(hook: RoleHook, node: NodeFacts) -> dict[str, Json]:
    ours = {
        "gcluster_cluster": node.spec.name,
        "gcluster_pool": node.name,
        "gcluster_role": node.pool.role,
    }
    return {**hook.variables, **ours}


def _of_script(name: str, hook: ScriptHook, node: NodeFacts) -> dict[str, Json]:
    environment = {
        "GCLUSTER_CLUSTER": node.spec.name,
        "GCLUSTER_POOL": node.name,
        "GCLUSTER_ROLE": node.pool.role,
        **{variable: literal(value) for variable, value in hook.environment.items()},
    }
    script: dict[str, Json] = {
        "path": f"{HOOKS}/scripts/{name}",
        "text": literal(hook.text or ""),
        "arguments": [literal(argument) for argument in hook.arguments],
        "environment": environment,
        "secrets": sorted(hook.secrets),
        "timeout_s": hook.timeout_s,
    }
    return {"hooks_script": script}


def literal(text: str) -> str:
    """Return a text that Ansible takes as it is, for a play's variables are templates."""
    if _TEMPLATE.search(text) is None:
        return text
    coded = base64.b64encode(text.encode()).decode()
    return "{{ '" + coded + "' | ansible.builtin.b64decode }}"


@role_compiler("hooks", removed=True)
def hooks_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role hooks; none where no job or health check runs a hook's program.

    Where the spec has prologs or epilogs slurmd of every node runs them through one program, which
    finds at least gcluster's own.
    """
    programs = {path: literal(hook.text or "") for path, hook in _programs(node)}
    on_machines = not node.cluster.simulated
    if _runs_job_hooks(node) and runs_own_programs(node.spec, on_machines=on_machines):
        programs |= {
            f"{HOOKS}/{folder}": f"#!/bin/sh\nexec {JOB_PROGRAMS[key]}\n"
            for folder, key in (
                ("prolog.d/000-gcluster", "slurm_prolog"),
                ("epilog.d/999-gcluster", "slurm_epilog"),
            )
        }
    if not programs and not _runs_job_hooks(node):
        return []
    phases: tuple[Phase, ...] = ("configure", "verify")
    return [
        Step(
            stage=Stage.SCHEDULER,
            role="hooks",
            phase=phase,
            variables={"hooks_programs": programs},
            spares_jobs=True,
        )
        for phase in phases
    ]


def _runs_job_hooks(node: NodeFacts) -> bool:
    is_slurm = isinstance(node.spec.scheduler, SlurmScheduler)
    return is_slurm and node.pool.is_compute and has_job_hooks(node.spec)


def _programs(node: NodeFacts) -> list[tuple[str, PrologHook | EpilogHook | HealthCheckHook]]:
    """Return path and hook of each program; prologs and epilogs run in the order of their names."""
    found: list[tuple[str, PrologHook | EpilogHook | HealthCheckHook]] = []
    for number, (name, hook) in enumerate(node.spec.hooks.items(), start=1):
        if isinstance(hook, HealthCheckHook) and is_for(hook, node):
            found.append((health_program(name), hook))
        elif isinstance(hook, PrologHook | EpilogHook) and is_for(hook, node):
            found.append((f"{HOOKS}/{_ORDER[type(hook)]}/{number:03d}-{name}", hook))
    return found


def health_program(name: str) -> str:
    """Return where the nodes have a hook's health check."""
    return f"{HOOKS}/health.d/{name}"


def health_checks(node: NodeFacts) -> list[Json]:
    """Return the programs of hooks that the node health check runs."""
    return [
        {"name": name, "path": health_program(name)}
        for name, hook in node.spec.hooks.items()
        if isinstance(hook, HealthCheckHook) and is_for(hook, node)
    ]
