"""What is about Slurm alone is refused where Kubernetes schedules, before anything is changed."""

from __future__ import annotations

from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ..outcome import Exit, failure


def refuse_kubernetes(spec: ClusterSpec, why: str, *, hint: str) -> None:
    """Refuse a cluster of Kubernetes.

    Args:
        spec: as it was applied.
        why: what of Slurm's it has not, after its name: "has no queue of Slurm: ...".
        hint: what to do instead.

    Raises:
        LifecycleError: GC1031, exit code REFUSED.
    """
    if isinstance(spec.scheduler, KubernetesScheduler):
        raise failure("GC1031", f"{spec.name} {why}", hint=hint, exit_code=Exit.REFUSED)
