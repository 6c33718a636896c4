"""The role amd_gpu: AMD's driver, ROCm and RCCL of one release."""

from __future__ import annotations

from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step


@role_compiler(
    "amd_gpu", sources=("amdgpu", "rocm"), components=("rocm", "rccl"), after=("nvidia_driver",)
)
def amd_gpu_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role amd_gpu; none without AMD's GPUs or a known version of ROCm.

    The driver is the one that AMD publishes with that release.
    """
    rocm = node.version("rocm")
    if not node.has_gpu_of("amd") or node.gpu is None or rocm is None:
        return []
    release: dict[str, Json] = {"amd_gpu_rocm": rocm}
    packages: dict[str, Json] = release | {
        "amd_gpu_driver": node.catalog.sources["amdgpu"].own_version(rocm),
        "amd_gpu_rccl": node.version("rccl") or "",
    }
    state: dict[str, Json] = release | {"amd_gpu_gpus": node.gpu.count}
    return [
        _step("install", packages),
        _step("configure", {"amd_gpu_users": [user.name for user in node.spec.local_users]}),
        _step("join", state),
        _step("verify", state),
    ]


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(stage=Stage.DRIVERS, role="amd_gpu", phase=phase, variables=variables)
