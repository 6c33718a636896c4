"""The role gdrcopy: small messages straight into GPU memory, for NCCL, UCX and NVSHMEM."""

from __future__ import annotations

from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

_PHASES: tuple[Phase, ...] = ("install", "join", "verify")


@role_compiler("gdrcopy", sources=("nvidia-cuda",), after=("cuda",))
def gdrcopy_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role gdrcopy; none without NVIDIA's GPUs or a known version."""
    version = node.version("gdrcopy")
    if not node.has_gpu_of("nvidia") or version is None:
        return []
    variables: dict[str, Json] = {"gdrcopy_version": version}
    return [
        Step(stage=Stage.DRIVERS, role="gdrcopy", phase=phase, variables=variables)
        for phase in _PHASES
    ]
