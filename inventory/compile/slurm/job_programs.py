"""What slurmd runs on a node before and after each job: gcluster's own programs, and the hooks'."""

from __future__ import annotations

from ....schemas.derived.storage import staged
from ....schemas.spec import ClusterSpec, EpilogHook, PrologHook
from ..steps import Json

PROGRAMS = "/usr/local/libexec/gcluster"
"""Folder on the nodes of what slurm.install and hooks.configure put there."""
JOB_PROGRAMS: dict[str, Json] = {
    "slurm_prolog": f"{PROGRAMS}/job-prolog.py",
    "slurm_epilog": f"{PROGRAMS}/job-epilog.py",
}
"""What slurmd runs around jobs on machines; slurm.install puts them there."""
HOOK_PROGRAMS: dict[str, Json] = {
    "slurm_prolog": f"{PROGRAMS}/run-prologs.sh",
    "slurm_epilog": f"{PROGRAMS}/run-epilogs.sh",
}
"""What it runs where the spec has prologs or epilogs of its own, gcluster's among them; role hooks
puts them there."""
PROLOG_S = 300
"""Seconds for a prolog that stages nothing, as in roles/slurm/defaults/main.yml."""
_LONGEST_S = 65_533
"""Most that Slurm counts to there: 16 bits, whose last two values mean something else."""


def has_job_hooks(spec: ClusterSpec) -> bool:
    """Whether the spec has prologs or epilogs of its own."""
    return any(isinstance(hook, PrologHook | EpilogHook) for hook in spec.hooks.values())


def runs_own_programs(spec: ClusterSpec, *, on_machines: bool) -> bool:
    """Whether gcluster's own programs run around jobs.

    Containers have nothing that they look at, but where metrics of simulated GPUs name their jobs.
    """
    return on_machines or (spec.monitoring is not None and spec.monitoring.prometheus)


def job_programs(spec: ClusterSpec, *, on_machines: bool) -> dict[str, Json]:
    """Return what slurmd runs around jobs, and how long it may take before them.

    A job may need all that its nodes can stage, one after the other. Containers have no cgroups, in
    which Slurm could contain a job.
    """
    own = JOB_PROGRAMS if runs_own_programs(spec, on_machines=on_machines) else {}
    hooks = HOOK_PROGRAMS if has_job_hooks(spec) else {}
    if not on_machines:
        return own | hooks | {"slurm_prolog_flags": ["Alloc"]} if own or hooks else {}
    limits = (sum(each.within for each in staged(spec, pool)) for pool in spec.pools)
    staging = int(max(limits, default=0))
    longer = {"slurm_prolog_limit": min(PROLOG_S + staging, _LONGEST_S)} if staging else {}
    return own | hooks | longer
