"""Hooks: where a kind of them can't apply, what they name, and what must not be in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...diagnostics import PathTuple, listing
from ...spec import ClusterHook, EpilogHook, PrologHook, RoleHook, ScriptHook, StageHook
from ..context import CheckContext
from ..registry import Finding, check

_SECRET_WORD = re.compile(
    r"(^|_)(password|passwd|passphrase|token|secret|api_?key|private_key|access_key)$",
    re.IGNORECASE,
)
_TAKEN = re.compile(r"^(ansible|gcluster|hooks)_", re.IGNORECASE)
_ANSIBLES = frozenset({"environment", "hostvars", "groups", "group_names", "omit", "playbook_dir"})
"""Names that Ansible has for itself, of those that roles are given by mistake."""
_CLOUDS = {"eks": "EKS", "gke": "GKE", "aks": "AKS"}


@check("GC572", summary="A hook can't apply where it is requested.")
def hook_not_applicable(context: CheckContext) -> Iterator[Finding]:
    """Prologs and epilogs are Slurm's, on compute nodes; others need nodes that gcluster sets up.

    Nodes of a control plane that a cloud runs (EKS, GKE, AKS) are set up by the cloud, and nodes
    that set themselves up (`converge: pull`) take gcluster's own roles alone.
    """
    for name, hook in context.hooks.items():
        kind = str(hook.__struct_config__.tag)
        for path, why, hint in _refusals(context, name, hook):
            yield Finding(
                summary=f"hooks.{name}: no {kind} {why}",
                path=path,
                hint=hint,
                at_key=path == ("hooks", name),
                relies_on=(path, ("scheduler",), ("pools", "*", "role"), ("converge",)),
            )


def _refusals(
    context: CheckContext, name: str, hook: ClusterHook
) -> Iterator[tuple[PathTuple, str, str]]:
    """Yield where, why, and what to do instead."""
    whole: PathTuple = ("hooks", name)
    around_jobs = isinstance(hook, PrologHook | EpilogHook)
    if around_jobs and context.kubernetes is not None:
        yield whole, "runs under Kubernetes, which has none", "use init containers of the jobs"
        return
    managed = getattr(context.kubernetes, "control_plane", "self")
    pulls = context.converge == "pull" and isinstance(hook, StageHook)
    listed: list[tuple[int | None, str]] = [*enumerate(hook.pools)]
    listed = listed or [(None, pool) for pool in context.pools]
    for index, pool_name in listed:
        pool = context.pools.get(pool_name)
        if pool is None:
            continue
        path = whole if index is None else (*whole, "pools", index)
        is_compute = pool.is_compute
        if around_jobs and not is_compute and index is not None:
            yield path, f"runs on pool {pool_name}, where no jobs are", "name compute pools"
        elif managed != "self" and is_compute:
            cloud = _CLOUDS[managed]
            why = f"runs on pool {pool_name}, whose nodes {cloud} sets up"
            yield path, why, "name pools that are not compute, or use a DaemonSet"
            return
        elif pulls and is_compute:
            why = f"runs on pool {pool_name}, whose nodes set themselves up"
            yield path, why, "write converge: push, or name pools that are not compute"
            return


@check("GC573", summary="A hook doesn't say one point, or one source of its role.")
def hook_ambiguous(context: CheckContext) -> Iterator[Finding]:
    """A hook runs before a stage or after one. A role of a collection needs that collection.

    `collections` of all hooks name each collection in one version, for one run of Ansible has one.
    """
    versions: dict[str, tuple[str, str]] = {}
    for name, hook in context.hooks.items():
        at: PathTuple = ("hooks", name)
        if isinstance(hook, StageHook) and hook.before is not None and hook.after is not None:
            yield Finding(
                summary=f"hooks.{name}: before {hook.before} and after {hook.after}: keep one",
                path=(*at, "after"),
                at_key=True,
            )
        if not isinstance(hook, RoleHook):
            continue
        collection = (hook.name or "").rpartition(".")[0]
        if collection and collection not in hook.collections:
            yield Finding(
                summary=f"hooks.{name}: nothing says the version of {collection}",
                path=(*at, "name"),
                hint=f"write collections: {{{collection}: 1.2.3}}, with its version",
                relies_on=(at,),
            )
        for each, version in hook.collections.items():
            other, before = versions.setdefault(each, (name, version))
            if before != version:
                yield Finding(
                    summary=f"hooks.{name}: {each} {version}, and {before} in hooks.{other}",
                    path=(*at, "collections", each),
                    hint="write one version in both",
                    relies_on=((*at, "collections", each), ("hooks", other)),
                )


@check("GC574", summary="A hook's variable has a name that is taken, or holds a secret.")
def hook_variable_refused(context: CheckContext) -> Iterator[Finding]:
    """Names that begin with ansible_, gcluster_ or hooks_ are taken; secrets are referred to.

    A password in `variables` or `environment` would be in the state, in plans and in logs. Under
    `secrets` it is read when `up` runs, kept encrypted, and not shown.
    """
    for name, hook in context.hooks.items():
        if not isinstance(hook, StageHook):
            continue
        key, given = _variables(hook)
        for variable, path in [
            *((each, ("hooks", name, key, each)) for each in given),
            *((each, ("hooks", name, "secrets", each)) for each in hook.secrets),
        ]:
            if _TAKEN.match(variable) or (key == "variables" and variable in _ANSIBLES):
                owner = "Ansible's" if variable.lower().startswith("ansible") else "gcluster's"
                owner = "Ansible's" if variable in _ANSIBLES else owner
                yield Finding(
                    summary=f"hooks.{name}: the name {variable} is {owner}",
                    path=path,
                    at_key=True,
                    hint="choose another name",
                )
        for variable, value in given.items():
            path = ("hooks", name, key, variable)
            if variable in hook.secrets:
                yield Finding(
                    summary=f"hooks.{name}: {variable} is under {listing([key, 'secrets'])}",
                    path=path,
                    at_key=True,
                    hint="keep it under secrets",
                    is_secret=True,
                )
            elif isinstance(value, str) and value and _is_literal_secret(variable, value):
                yield Finding(
                    summary=f"hooks.{name}: {variable} looks like a secret in plain text",
                    path=path,
                    at_key=True,
                    hint=f"write secrets: {{{variable}: env:{variable.upper()}}}",
                    is_secret=True,
                )


def _variables(hook: StageHook) -> tuple[str, dict[str, Any]]:
    if isinstance(hook, RoleHook):
        return "variables", dict(hook.variables)
    return "environment", dict(hook.environment) if isinstance(hook, ScriptHook) else {}


def _is_literal_secret(variable: str, value: str) -> bool:
    """Whether a value is a secret itself; a template, or a path to one, is none."""
    return bool(_SECRET_WORD.search(variable)) and not value.startswith(("{{", "/"))
