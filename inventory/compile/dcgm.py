"""The role dcgm: NVIDIA's DCGM and its host engine."""

from __future__ import annotations

from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

FIRST_OF_CUDA_13 = 580
"""Driver branch from which on CUDA is 13 (CUDA release notes, table of drivers; read 2026-11)."""


@role_compiler("dcgm", sources=("nvidia-cuda",), after=("nccl",))
def dcgm_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role dcgm; none without NVIDIA's GPUs or a known version.

    DCGM's parts are those for the CUDA that the driver runs, whatever the toolkit's is.
    """
    version, driver = node.version("dcgm"), node.version("driver")
    if not node.has_gpu_of("nvidia") or node.gpu is None or version is None or driver is None:
        return []
    branch = int(driver.split(".")[0])
    dcgm: dict[str, Json] = {"dcgm_version": version}
    return [
        _step("install", dcgm | {"dcgm_cuda_major": 13 if branch >= FIRST_OF_CUDA_13 else 12}),
        _step("configure", {}),
        _step("verify", dcgm | {"dcgm_gpus": node.gpu.count}),
    ]


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    """Return a step; jobs may be profiled through the host engine, so none is spared."""
    return Step(stage=Stage.DRIVERS, role="dcgm", phase=phase, variables=variables)
