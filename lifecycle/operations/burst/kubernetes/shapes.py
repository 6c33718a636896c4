"""What elastic nodes are like when they are there: from the compiler, as the fixed ones'."""

from __future__ import annotations

import msgspec

from .....inventory.compile.kubernetes_objects.facts import capacity
from .....inventory.compile.slurm.elastic import placeholders
from .....inventory.hosts import ClusterInventory, Placement, elastic_nodes
from .....schemas.catalog import Catalog
from .....schemas.spec import ClusterSpec
from ....kubernetes.objects import desired_objects
from .controller import Shape

_OF_THE_MACHINE = frozenset({"cpu", "memory"})
"""What kubelets report of this machine, and not of the simulated one."""


def elastic_shapes(
    spec: ClusterSpec, existing: ClusterInventory, catalog: Catalog
) -> dict[str, Shape]:
    """Return node that may come -> its shape, in spec order.

    Args:
        spec: whose scheduler is Kubernetes, with a control plane of its own.
        existing: the hosts that are there.
        catalog: machines.
    """
    coming = {name: pool for pool, names in elastic_nodes(spec).items() for name in names}
    # Blocks and leaves are of a cloud's placements; local nodes have none.
    hosts = [msgspec.structs.replace(h, placement=Placement()) for h in placeholders(spec)]
    others = [host for host in existing.hosts if host.name not in coming]
    inventory = ClusterInventory(cluster=spec.name, hosts=(*others, *hosts))
    found = desired_objects(spec, inventory, catalog)
    return {
        name: Shape(
            marks=found.nodes[name],
            devices={
                resource: number // found.facts.most(pool)
                for resource, number in capacity(found.facts, pool).items()
                if resource not in _OF_THE_MACHINE
            },
        )
        for name, pool in coming.items()
    }
