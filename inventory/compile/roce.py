"""The role roce: lossless priority, congestion notification and MTU of RoCE's interfaces."""

from __future__ import annotations

from .node import NodeFacts
from .ofed import rails, rdma_kind
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step


@role_compiler("roce", after=("infiniband",))
def roce_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role roce: on machines whose fabric class is RoCE.

    A cloud sets its adapters itself (OCI: its cluster network plugin), so that there only links and
    GIDs are looked at.
    """
    if rdma_kind(node) != "roce":
        return []
    said = node.pool.rdma
    found = rails(node)
    own_network = not node.spec.sites[node.pool.site].is_cloud
    settings: dict[str, Json] = {
        "roce_managed": own_network,
        "roce_devices": said.devices,
        "roce_mtu": said.mtu,
        "roce_priority": said.priority,
        "roce_dscp": said.dscp,
        "roce_congestion_dscp": said.congestion_dscp,
        "roce_ring": said.ring,
        "roce_gbps": found["gbps"],
    }
    expected: dict[str, Json] = {"roce_rails": found["count"]}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("configure", settings),
        ("join", settings),
        ("verify", settings | expected),
    )
    return [
        Step(stage=Stage.FABRIC, role="roce", phase=phase, variables=variables)
        for phase, variables in phases
        if own_network or phase != "join"
    ]
