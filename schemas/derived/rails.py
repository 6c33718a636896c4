"""The machine type of a pool with the adapters that its fabric class runs on there.

A board's adapters are its server's, so the catalog doesn't know them: the pool says how many rails
there are and how fast. And one adapter has InfiniBand or Ethernet as link type, as its ports are
set.
"""

from __future__ import annotations

import msgspec

from ..catalog import Fabric, Machine, Nic
from ..catalog.model.machine import NicKind
from ..spec import Pool

EITHER: frozenset[NicKind] = frozenset({"infiniband", "roce"})
"""Link types of the same adapters (ConnectX with VPI)."""


def machine_in_pool(machine: Machine | None, pool: Pool, fabric: Fabric | None) -> Machine | None:
    """Return a machine type with the rails of a pool's nodes.

    Args:
        machine: of the catalog; None: not known.
        pool: says of its rails what the catalog doesn't.
        fabric: the pool's class; None: not known.
    """
    kind = None if fabric is None else fabric.nic_kind
    if machine is None or fabric is None or kind is None or kind not in EITHER:
        return machine
    nics = machine.nics or []
    known = [nic for nic in nics if nic.kind in EITHER and not nic.front_end]
    theirs = rails = [nic for nic in known if nic.kind == kind] or known
    said = pool.rdma.rails or (0 if rails else len(pool.rdma.devices))
    if said:
        devices = [device for nic in rails for device in nic.devices]
        if len(devices) != said:  # which of them have a cable only the node can see
            devices = []
        speed = max((nic.gbps or 0 for nic in rails), default=0) or fabric.nic_gbps
        rails = [Nic(kind=kind, count=said, gbps=speed, devices=devices)]
    if pool.rdma.gbps is not None:
        rails = [msgspec.structs.replace(nic, gbps=pool.rdma.gbps) for nic in rails]
    rails = [msgspec.structs.replace(nic, kind=kind) for nic in rails]
    if not rails:
        return machine
    return msgspec.structs.replace(machine, nics=[*rails, *(n for n in nics if n not in theirs)])
