"""The role mpi: MPI for the jobs: Open MPI with PMIx, and its Python binding."""

from __future__ import annotations

from ...schemas.spec import KubernetesScheduler
from .node import NodeFacts
from .roles import role_compiler
from .steps import Stage, Step


@role_compiler("mpi", after=("slurm", "kubernetes"))
def mpi_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role mpi; under Kubernetes only nodes that run jobs need it."""
    if isinstance(node.spec.scheduler, KubernetesScheduler) and node.pool.role != "compute":
        return []
    return [
        Step(stage=Stage.SCHEDULER, role="mpi", phase="install", variables={}, spares_jobs=True),
        Step(stage=Stage.SCHEDULER, role="mpi", phase="verify", variables={}),
    ]
