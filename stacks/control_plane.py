"""How a control plane that a cloud runs is reached, as the stack that made it tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .provider import ControlPlaneAt

OUTPUT = "control-plane"
"""The output of a site's stack; of the same form in every cloud."""
TYPES = frozenset(
    {
        "aws:eks/cluster:Cluster",
        "gcp:container/cluster:Cluster",
        "azure-native:containerservice:ManagedCluster",
    }
)
"""What a control plane is in a stack, as the engine spells types."""
KINDS = frozenset(type_.rpartition(":")[2] for type_ in TYPES)
"""The same as plans name it."""


def read_output(outputs: Mapping[str, Any], region: str) -> ControlPlaneAt | None:
    """Read it out of a stack's outputs; None where it has none, or not all of it yet."""
    said = outputs.get(OUTPUT)
    if not isinstance(said, dict):
        return None
    name, endpoint, authority = (str(said.get(k) or "") for k in ("name", "endpoint", "authority"))
    if not (name and endpoint and authority):
        return None
    # Google tells an address where the others tell a URL.
    url = endpoint if endpoint.startswith("https://") else f"https://{endpoint}"
    return ControlPlaneAt(name=name, endpoint=url, authority=authority, region=region)
