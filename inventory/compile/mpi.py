"""The roles mpi and allreduce: MPI for the jobs, and the payload of the smoke test."""

from __future__ import annotations

from ...schemas.spec import KubernetesScheduler
from .node import NodeFacts
from .roles import role_compiler
from .steps import Stage, Step
from .system.packages import EPEL, epel


@role_compiler("mpi", sources=EPEL, chosen=epel, after=("slurm", "kubernetes"))
def mpi_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role mpi; under Kubernetes only nodes that run jobs need it."""
    if isinstance(node.spec.scheduler, KubernetesScheduler) and node.pool.role != "compute":
        return []
    return [
        Step(stage=Stage.SCHEDULER, role="mpi", phase="install", variables={}, spares_jobs=True),
        Step(stage=Stage.SCHEDULER, role="mpi", phase="verify", variables={}),
    ]


@role_compiler("allreduce", after=("mpi",))
def allreduce_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role allreduce; under Kubernetes only nodes that run jobs need it."""
    if isinstance(node.spec.scheduler, KubernetesScheduler) and node.pool.role != "compute":
        return []
    return [
        Step(
            stage=Stage.SCHEDULER, role="allreduce", phase="install", variables={}, spares_jobs=True
        ),
        Step(stage=Stage.SCHEDULER, role="allreduce", phase="verify", variables={}),
    ]
