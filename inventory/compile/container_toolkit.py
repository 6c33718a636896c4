"""The role container_toolkit: GPUs for containers, of jobs and of the fabrics' own daemons."""

from __future__ import annotations

from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

COMPONENTS = {"nvidia": "container_toolkit", "amd": "amd_container_toolkit"}
"""GPU vendor -> its toolkit in the software lock."""

DAEMON_FABRICS = ("gpudirect-tcpx", "gpudirect-tcpxo")
"""Fabric classes whose daemon comes as a container, so that Docker must be there."""


def container_toolkit_sources(node: NodeFacts) -> tuple[str, ...]:
    """Return the artefact source of the vendor's toolkit."""
    return ("amd-container-toolkit",) if node.has_gpu_of("amd") else ("nvidia-container-toolkit",)


@role_compiler(
    "container_toolkit",
    sources=("nvidia-container-toolkit", "amd-container-toolkit"),
    chosen=container_toolkit_sources,
    after=("ofed",),
)
def container_toolkit_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role container_toolkit; none without GPUs or where nothing needs it.

    The software lock says a version where containers run: with pyxis, and beside TCPX and TCPXO.
    """
    if node.gpu is None:
        return []
    version = node.version(COMPONENTS[node.gpu.vendor])
    if version is None:
        return []
    vendor: dict[str, Json] = {"container_toolkit_vendor": node.gpu.vendor}
    docker: dict[str, Json] = {"container_toolkit_docker": node.fabric_class in DAEMON_FABRICS}
    install = vendor | docker | {"container_toolkit_version": version}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("preflight", docker),
        ("install", install),
        ("configure", vendor | docker),
        ("verify", install | {"container_toolkit_gpus": node.gpu.count}),
    )
    return [
        Step(stage=Stage.DRIVERS, role="container_toolkit", phase=phase, variables=variables)
        for phase, variables in phases
    ]
