"""What is known of the nodes of a pool, for the roles to compile their variables from (pure)."""

from __future__ import annotations

import msgspec

from ...schemas.bundle import BundleManifest, KubernetesBundle
from ...schemas.catalog import Catalog, Fabric
from ...schemas.catalog.machine import Gpu, Machine
from ...schemas.spec import ClusterSpec, Pool
from ...schemas.stack.pools import resolved_pools
from ...schemas.stack.resolve import Resolved
from ..hosts import ClusterInventory
from .storage import StorageFacts, storage_facts


def only_simulated(spec: ClusterSpec, catalog: Catalog) -> bool:
    """Whether machine types are named, and each of them is a simulated one."""
    named = [pool.machine for pool in spec.pools.values() if pool.machine is not None]
    return bool(named) and all(catalog.machines[name].simulated for name in named)


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One pool's nodes: they are alike, so what holds for one holds for all.

    Nothing here depends on how many nodes there are or what they are called.
    """

    name: str
    """Of the pool."""
    pool: Pool
    spec: ClusterSpec
    """The whole cluster: storage, sites, users."""
    catalog: Catalog
    machine: Machine | None = None
    """None: nothing is known of it (controllers and logins on hosts that exist)."""
    software: Resolved
    """Versions, distribution and packages; empty for nodes that aren't machines of their own."""
    storage: StorageFacts = StorageFacts()
    """What its nodes mount and serve, and who serves it."""
    bundle: BundleManifest | None = None
    """What its nodes take all packages and files from; None: from the sources themselves."""
    bundle_root: str = ""
    """URL of the bundle as its nodes see it."""
    kubernetes: KubernetesBundle | None = None
    """Programs and images of Kubernetes that its nodes take; None: packages and a registry."""
    kubernetes_root: str = ""
    """URL of that bundle as its nodes see it."""

    @property
    def provider(self) -> str:
        """Provider of the pool's site: aws, bare-metal, local."""
        return str(self.spec.sites[self.pool.site].provider)

    @property
    def is_machine(self) -> bool:
        """Whether it has a kernel and devices of its own: no container, no simulated machine.

        What nothing is known of, a controller on a host that exists, is what its compute nodes are.
        """
        if self.spec.sites[self.pool.site].is_made_here:
            return False
        if self.machine is None:
            return not only_simulated(self.spec, self.catalog)
        return not self.machine.simulated

    @property
    def has_own_clock(self) -> bool:
        """Whether its clock can be set: a container's is its host's.

        Where a site makes containers, hosts that exist are taken for containers too.
        """
        return self.is_machine and not any(s.is_made_here for s in self.spec.sites.values())

    @property
    def gpu(self) -> Gpu | None:
        """Its real GPUs; None: it has none, or they are simulated."""
        return self.machine.gpu if self.machine is not None and self.is_machine else None

    def has_gpu_of(self, vendor: str) -> bool:
        """Whether it has real GPUs of this maker: "nvidia", "amd"."""
        return self.gpu is not None and self.gpu.vendor == vendor

    @property
    def has_nvswitch(self) -> bool:
        """Whether its GPUs hang on NVLink switches that a fabric manager on the node runs."""
        nvlink = None if self.machine is None else self.machine.nvlink
        many = self.gpu is not None and self.gpu.vendor == "nvidia" and self.gpu.count > 1
        return many and nvlink is not None and not self.spans_nvlink

    @property
    def spans_nvlink(self) -> bool:
        """Whether its GPUs share an NVLink domain with other nodes, which needs IMEX."""
        nvlink = None if self.machine is None else self.machine.nvlink
        return self.gpu is not None and nvlink is not None and nvlink.domain_gpus > self.gpu.count

    @property
    def fabric_class(self) -> str | None:
        """Fabric class that carries its GPUs' traffic; None: not known, or none."""
        return self.pool.fabric or (self.machine.fabric if self.machine is not None else None)

    @property
    def fabric(self) -> Fabric | None:
        """Its fabric class as the catalog describes it."""
        return self.catalog.fabrics.get(self.fabric_class) if self.fabric_class else None

    @property
    def fabric_interfaces(self) -> int:
        """How many network interfaces carry its GPUs' traffic; 0: the catalog doesn't say."""
        nics = () if self.machine is None else self.machine.nics or ()
        return sum(nic.count for nic in nics if not nic.front_end)

    def version(self, component: str) -> str | None:
        """Return a component's version by its key in the software lock; None: nothing says it."""
        return self.software.version(component)

    def was_asked(self, component: str) -> bool:
        """Whether the spec itself says this component's version."""
        return any(c.key == component and c.origin == "asked" for c in self.software.components)


_NONE = Resolved(set=None, tested=True, reason="containers and simulated nodes have no drivers")


def node_facts(
    spec: ClusterSpec, catalog: Catalog, inventory: ClusterInventory | None = None
) -> dict[str, NodeFacts]:
    """Return pool -> what is known of its nodes.

    The software lock is read only where a pool has machines of its own. Of the inventory only the
    hosts that serve storage are taken, which all others must find.
    """
    storage = storage_facts(spec, inventory)
    found = {
        name: NodeFacts(
            name=name,
            pool=pool,
            spec=spec,
            catalog=catalog,
            machine=None if pool.machine is None else catalog.machines[pool.machine],
            software=_NONE,
            storage=storage[name],
        )
        for name, pool in spec.pools.items()
    }
    if not any(node.is_machine for node in found.values()):
        return found

    resolved = resolved_pools(spec, catalog)
    return {
        name: msgspec.structs.replace(node, software=resolved[name]) if node.is_machine else node
        for name, node in found.items()
    }
