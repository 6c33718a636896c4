"""The role ipmi_exporter: the power of whole nodes, as their BMCs measure it."""

from __future__ import annotations

from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Step
from .watched import monitoring_of, monitoring_step


@role_compiler("ipmi_exporter", removed=True, after=("node_exporter",))
def ipmi_exporter_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role ipmi_exporter: on machines whose `firmware` names their BMCs.

    Each node queries its own BMC through the kernel's driver: that needs no password, and what it
    says reaches Prometheus by node exporter.
    """
    if monitoring_of(node) is None or not node.is_machine or node.pool.firmware is None:
        return []
    return [
        monitoring_step("ipmi_exporter", "install", {}),
        monitoring_step("ipmi_exporter", "configure", {}),
        monitoring_step("ipmi_exporter", "verify", {}),
    ]
