"""The role nvidia_driver: one version of driver, fabric manager and IMEX on NVIDIA's GPUs."""

from __future__ import annotations

from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step


@role_compiler("nvidia_driver", sources=("nvidia-cuda",), components=("driver", "fabric_manager"))
def nvidia_driver_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role nvidia_driver; none without NVIDIA's GPUs or a known version.

    A version that the spec itself says may be older than what a node has: that is how one goes
    back. One that `auto` resolves to never takes a node back. Fabric manager and IMEX have the
    driver's version unless something says another.
    """
    version = node.version("driver")
    if not node.has_gpu_of("nvidia") or version is None or node.gpu is None:
        return []
    driver: dict[str, Json] = {
        "nvidia_driver_version": version,
        "nvidia_driver_rollback": node.was_asked("driver"),
    }
    fabric_manager = node.version("fabric_manager") or version
    imex = node.version("imex") or version
    daemons: dict[str, Json] = {
        "nvidia_driver_fabric_manager": fabric_manager if node.has_nvswitch else "",
        "nvidia_driver_imex": imex if node.spans_nvlink else "",
    }
    said = node.pool.gpus
    modules: dict[str, Json] = {"nvidia_driver_modules": said.modules}
    peer_memory: dict[str, Json] = {"nvidia_driver_peer_memory": said.peer_memory}
    state: dict[str, Json] = (
        daemons
        | peer_memory
        | {
            "nvidia_driver_version": version,
            "nvidia_driver_gpus": node.gpu.count,
            "nvidia_driver_mig": said.mig,
            "nvidia_driver_ecc": said.ecc,
        }
    )
    packages: dict[str, Json] = {"nvidia_driver_packages": list(node.software.packages)}
    return [
        _step("preflight", driver | modules),
        _step("install", driver | modules | daemons | packages),
        _step("configure", daemons | peer_memory),
        _step("join", state),
        _step("verify", state),
    ]


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(stage=Stage.DRIVERS, role="nvidia_driver", phase=phase, variables=variables)
