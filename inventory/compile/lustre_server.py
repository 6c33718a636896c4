"""The role lustre_server: the targets of a file system that hosts of the spec serve."""

from __future__ import annotations

from typing import cast

from ...schemas.spec import LustreStorage
from .lustre_client import lustre_fsname, lustre_served
from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step


@role_compiler("lustre_server", after=("lustre_client",))
def lustre_server_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role lustre_server; a pool serves at most one file system.

    Every server knows all of them in their order, by which targets are numbered: hosts are added at
    the end. Formatting needs the spec's word, `format: true` under `servers`.
    """
    served = lustre_served(node)
    if not node.is_machine or not served:
        return []
    name = served[0]
    storage = cast("LustreStorage", node.spec.storage[name])
    servers = storage.servers
    if servers is None:
        return []
    variables: dict[str, Json] = {
        "lustre_server_fsname": lustre_fsname(name, storage),
        "lustre_server_hosts": [
            {"name": host.name, "address": host.address}
            for host in node.storage.servers.get(name, ())
        ],
        "lustre_server_network": servers.network,
        "lustre_server_backend": servers.backend,
        "lustre_server_failover": servers.failover,
        "lustre_server_format": servers.format,
        "lustre_server_metadata_devices": list(servers.metadata_devices),
        "lustre_server_object_devices": list(servers.object_devices),
    }
    phases: tuple[Phase, ...] = ("preflight", "join", "verify")
    return [
        Step(stage=Stage.STORAGE, role="lustre_server", phase=phase, variables=variables)
        for phase in phases
    ]
