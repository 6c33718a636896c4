"""The role cuda: the CUDA toolkit at one version, beside the driver and never with one."""

from __future__ import annotations

from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step


@role_compiler("cuda", sources=("nvidia-cuda",), components=("cuda",), after=("amd_gpu",))
def cuda_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role cuda; none without NVIDIA's GPUs or a known version."""
    version = node.version("cuda")
    if not node.has_gpu_of("nvidia") or version is None:
        return []
    toolkit: dict[str, Json] = {"cuda_version": version}
    return [
        _step("install", toolkit | {"cuda_rollback": node.was_asked("cuda")}),
        _step("configure", toolkit),
        _step("verify", toolkit),
    ]


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(stage=Stage.DRIVERS, role="cuda", phase=phase, variables=variables)
