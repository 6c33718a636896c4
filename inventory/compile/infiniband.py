"""The role infiniband: each rail up at its rate on its leaf, partitions, IPoIB, subnet manager."""

from __future__ import annotations

from .node import NodeFacts
from .ofed import drivers_of, rails, rdma_kind
from .roles import role_compiler
from .steps import Json, Stage, Step

_MTUS = {"datagram": 4092, "connected": 65520}
"""Most that IPoIB carries in a packet: the fabric's 4096 less 4 bytes (RFC 4391); RFC 4755."""


@role_compiler("infiniband", after=("ofed",))
def infiniband_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role infiniband: on machines whose fabric class is InfiniBand.

    A cloud's subnet manager and partitions are its own: only what the nodes see is asked there.
    """
    if rdma_kind(node) != "infiniband":
        return []
    said = node.pool.rdma
    own_network = not node.spec.sites[node.pool.site].is_cloud
    ipoib = said.ipoib
    asked: dict[str, Json] = {
        "infiniband_subnet_manager": said.subnet_manager and own_network,
        "infiniband_ipoib": {}
        if ipoib is None
        else {
            "network": ipoib.network,
            "mode": ipoib.mode,
            "mtu": ipoib.mtu or _MTUS[ipoib.mode],
        },
        "infiniband_partition_keys": said.partition_keys,
        "infiniband_devices": said.devices,
    }
    manager: dict[str, Json] = {"infiniband_drivers": drivers_of(node)}
    found = rails(node)
    expected: dict[str, Json] = {
        "infiniband_rails": found["count"],
        "infiniband_gbps": found["gbps"],
        "infiniband_leaves": said.leaves,
    }
    return [
        Step(
            stage=Stage.FABRIC,
            role="infiniband",
            phase="configure",
            variables=asked | manager,
        ),
        Step(
            stage=Stage.FABRIC,
            role="infiniband",
            phase="verify",
            variables=asked | manager | expected,
        ),
    ]
