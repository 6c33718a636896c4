"""The role mpi: MPI for the jobs: Open MPI with PMIx, and its Python binding."""

from __future__ import annotations

from .steps import Stage, Step


def mpi_steps() -> list[Step]:
    """Return the steps of role mpi."""
    return [
        Step(stage=Stage.SCHEDULER, role="mpi", phase="install", variables={}, spares_jobs=True),
        Step(stage=Stage.SCHEDULER, role="mpi", phase="verify", variables={}),
    ]
