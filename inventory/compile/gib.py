"""The role gib: Google's NCCL plugin for RDMA over Ethernet, on A3 Ultra, A4 and A4X."""

from __future__ import annotations

from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step


@role_compiler(
    "gib", sources=("google-gib",), components=("gib",), plugins=("gib",), after=("gpudirect_tcpx",)
)
def gib_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role gib; none on other fabrics or without a known version."""
    version = node.version("gib")
    if node.fabric_class != "gib" or node.gpu is None or version is None:
        return []
    install: dict[str, Json] = {"gib_version": version}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("install", install),
        ("configure", {}),
        ("verify", install | {"gib_interfaces": node.fabric_interfaces}),
    )
    return [
        Step(stage=Stage.FABRIC, role="gib", phase=phase, variables=variables)
        for phase, variables in phases
    ]
