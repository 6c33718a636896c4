"""A command that no spec has, as a workload of its own: held against what holds for workloads."""

from __future__ import annotations

import json
import secrets
from typing import Any

import msgspec

from ....schemas.diagnostics import Diagnostic, PathTuple, listing
from ....schemas.load import load_text
from ....schemas.spec import CommandWorkload, KubernetesScheduler
from ....schemas.structure.compose import compose
from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, LifecycleError, failure


def command_name(cluster: Cluster, words: list[str]) -> str:
    """Return the name of the job of a command; under Kubernetes two at once need two names."""
    name = words[0].rpartition("/")[2] or "command"
    is_slurm = not isinstance(cluster.spec.scheduler, KubernetesScheduler)
    return name if is_slurm else f"{name[:40]}-{secrets.token_hex(3)}"


def check_command(cluster: Cluster, workload: CommandWorkload) -> None:
    """Hold a command against the checks of workloads.

    Raises:
        LifecycleError: it lacks what Kubernetes needs (GC1216), or a check finds an error (its
            code, exit code SPEC).
    """
    scheduler = cluster.spec.scheduler
    if isinstance(scheduler, KubernetesScheduler):
        _refuse_incomplete(scheduler, workload)
    composed = compose(cluster.spec_text, file=str(cluster.spec_path)).document
    assert composed is not None  # noqa: S101  # the cluster was opened from it
    document: dict[str, Any] = dict(composed.data)
    written = document.get("workloads") or {}
    key = "command"
    while key in written:
        key += "x"
    own = msgspec.to_builtins(workload, enc_hook=str)
    given = {name: value for name, value in own.items() if value not in (None, [], {})}
    document["workloads"] = {**written, key: given}
    loaded = load_text(
        json.dumps(document),  # JSON is YAML
        catalog=cluster.catalog,
        folder=cluster.spec_path.parent,
    )
    path: PathTuple = ("workloads", key)
    found = [d for d in loaded.diagnostics if d.is_error and d.path[:2] == path]
    if found:
        raise LifecycleError(*(_of_command(d, key) for d in found), exit_code=Exit.SPEC)


def _refuse_incomplete(scheduler: KubernetesScheduler, workload: CommandWorkload) -> None:
    problem = ""
    if workload.image is None:
        problem = "under Kubernetes a command runs in an image: --image registry.example.edu/app:1"
    elif workload.account is None and len(scheduler.accounts) > 1:
        problem = f"there are several accounts: --account {listing(scheduler.accounts)}"
    if problem:
        raise failure("GC1216", problem, exit_code=Exit.USAGE)


def _of_command(found: Diagnostic, key: str) -> Diagnostic:
    """Return a finding without its place, which is in no file."""
    summary = found.summary.replace(f'workload "{key}"', "the command")
    return msgspec.structs.replace(found, summary=summary, path=(), file="", span=None, patch=None)
