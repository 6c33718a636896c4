"""The role munge: one key on every node, by which Slurm's daemons know each other."""

from __future__ import annotations

from .steps import Stage, Step

MUNGE_SECRET = "munge"  # noqa: S105  # the secret's name
"""Name of the secret that holds the cluster's MUNGE key."""


def munge_steps() -> list[Step]:
    """Return the steps of role munge."""
    return [
        Step(stage=Stage.SCHEDULER, role="munge", phase="install", variables={}, spares_jobs=True),
        Step(
            stage=Stage.SCHEDULER,
            role="munge",
            phase="configure",
            variables={},
            secrets={"munge_key_file": MUNGE_SECRET},
            spares_jobs=True,
        ),
        Step(stage=Stage.SCHEDULER, role="munge", phase="verify", variables={}),
    ]
