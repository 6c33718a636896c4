"""The role ipmi_exporter: the power of whole nodes, as their BMCs measure it."""

from __future__ import annotations

from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Step
from .watched import POD_TEXTFILES, monitoring_of, monitoring_step


@role_compiler("ipmi_exporter", removed=True, after=("node_exporter",))
def ipmi_exporter_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role ipmi_exporter: on machines whose `firmware` names their BMCs.

    Each node queries its own BMC through the kernel's driver: that needs no password, and what it
    says reaches Prometheus by node exporter. Where Kubernetes' chart brings that, its pod reads a
    folder of the host.
    """
    monitoring = node.spec.monitoring
    if monitoring is None or not monitoring.prometheus or not measures_power(node):
        return []
    by_chart = monitoring_of(node) is None
    folder: dict[str, Json] = {"ipmi_exporter_folder": POD_TEXTFILES} if by_chart else {}
    return [
        monitoring_step("ipmi_exporter", "install", {}),
        monitoring_step("ipmi_exporter", "configure", folder),
        monitoring_step("ipmi_exporter", "verify", folder),
    ]


def measures_power(node: NodeFacts) -> bool:
    """Whether a pool's nodes have BMCs that the spec names."""
    return node.is_machine and node.pool.firmware is not None
