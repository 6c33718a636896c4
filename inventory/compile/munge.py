"""The role munge: one key on every node, by which Slurm's daemons know each other."""

from __future__ import annotations

from ...schemas.spec import KubernetesScheduler
from .node import NodeFacts
from .roles import role_compiler
from .steps import Stage, Step

MUNGE_SECRET = "munge"  # noqa: S105  # the secret's name
"""Name of the secret that holds the cluster's MUNGE key."""


@role_compiler("munge", after=("node_health",))
def munge_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role munge; none under Kubernetes."""
    if isinstance(node.spec.scheduler, KubernetesScheduler):
        return []
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
