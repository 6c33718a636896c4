"""The role allreduce: the payload that the smoke test sends through srun."""

from __future__ import annotations

from .steps import Stage, Step


def allreduce_steps() -> list[Step]:
    """Return the steps of role allreduce."""
    return [
        Step(
            stage=Stage.SCHEDULER, role="allreduce", phase="install", variables={}, spares_jobs=True
        ),
        Step(stage=Stage.SCHEDULER, role="allreduce", phase="verify", variables={}),
    ]
