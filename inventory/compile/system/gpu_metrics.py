"""The roles dcgm_exporter and amd_exporter: metrics of GPUs, and a double's on simulated ones."""

from __future__ import annotations

from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Step
from .watched import monitoring_of, monitoring_step

GPU_EXPORTER_PORT = 9400
"""dcgm-exporter's own default."""
AMD_EXPORTER_PORT = 9402
"""Of the loopback address; AMD's own default, 5000, is what container registries take."""
_POWER_W = 700
"""Default for a simulated GPU without a limit in the catalog: an H100's."""
EXPORTER_VERSIONS = {
    "4.2.3": "4.1.3",
    "4.5.1": "4.8.0",
    "4.5.2": "4.8.1",
    "4.5.3": "4.8.2",
    "4.6.0": "4.8.3",
}
"""DCGM -> the exporter of the same release: tags of github.com/NVIDIA/dcgm-exporter; of 4.6.0 what
Microsoft's dcgm-exporter 4.8.3 is built against (packages.microsoft.com, 2026-11)."""
_NVIDIA = ("nvidia-cuda",)
_AMD = ("amd-metrics-exporter",)
_ANY_VERSION = "4."
"""The newest exporter of the packages' major version, for a DCGM that came later."""


def gpu_exporter(node: NodeFacts) -> str | None:
    """Return the version of a pool's exporter of GPUs; "": a double; None: there is none.

    DCGM 3 came without a package of it.
    """
    gpu = node.machine.gpu if node.machine is not None else None
    if monitoring_of(node) is None or gpu is None or gpu.vendor != "nvidia":
        return None
    if not node.is_machine:
        return ""
    dcgm = node.installs("dcgm")
    if dcgm is None or dcgm.startswith("3."):
        return None
    return EXPORTER_VERSIONS.get(dcgm, _ANY_VERSION)


def has_dcgm_exporter(node: NodeFacts) -> bool:
    """Say whether a pool gets DCGM exporter, or its double."""
    return gpu_exporter(node) is not None


def _sources(node: NodeFacts) -> tuple[str, ...]:
    """Return where the package comes from; a double comes with gcluster."""
    return _NVIDIA if gpu_exporter(node) else ()


@role_compiler(
    "dcgm_exporter", removed=True, sources=_NVIDIA, chosen=_sources, after=("node_exporter",)
)
def dcgm_exporter_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role dcgm_exporter: where NVIDIA's GPUs are, real or simulated."""
    version = gpu_exporter(node)
    if version is None or node.machine is None or node.machine.gpu is None:
        return []
    gpu = node.machine.gpu
    double: dict[str, Json] = {} if version else {"dcgm_exporter_double": True}
    configure = {**double, "dcgm_exporter_port": GPU_EXPORTER_PORT}
    if not version:
        configure |= {
            "dcgm_exporter_gpus": gpu.count,
            "dcgm_exporter_model": gpu.model,
            "dcgm_exporter_power": round(gpu.power_w or _POWER_W),
        }
    install = double if not version else {"dcgm_exporter_version": version}
    return [
        monitoring_step("dcgm_exporter", "install", install),
        monitoring_step("dcgm_exporter", "configure", configure),
        monitoring_step("dcgm_exporter", "verify", double),
    ]


def has_amd_exporter(node: NodeFacts) -> bool:
    """Say whether a pool gets AMD's exporter: machines with AMD's GPUs of a cluster without K8s."""
    return monitoring_of(node) is not None and node.is_machine and node.has_gpu_of("amd")


@role_compiler("amd_exporter", removed=True, sources=_AMD, after=("node_exporter",))
def amd_exporter_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role amd_exporter: where AMD's GPUs are.

    Its figures reach Prometheus by node exporter; nothing of it listens beyond the loopback.
    """
    if not has_amd_exporter(node):
        return []
    port: dict[str, Json] = {"amd_exporter_port": AMD_EXPORTER_PORT}
    return [
        monitoring_step("amd_exporter", "install", {}),
        monitoring_step("amd_exporter", "configure", port),
        monitoring_step("amd_exporter", "verify", port),
    ]
