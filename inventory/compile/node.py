"""What is known of the nodes of a pool, for the roles to compile their variables from (pure)."""

from __future__ import annotations

import msgspec

from ...schemas.catalog import Catalog, Fabric
from ...schemas.catalog.model.machine import Gpu, Machine
from ...schemas.derived.rails import machine_in_pool
from ...schemas.derived.storage import Mounts, is_on_volume, mount_point
from ...schemas.spec import ClusterSpec, FileService, LustreStorage, Pool, PoolRole
from ...schemas.stack.bundle import BundleManifest, KubernetesBundle
from ...schemas.stack.pools import resolved_pools
from ...schemas.stack.resolved import Resolved
from ..hosts import AFTER_APPLY, ClusterInventory, Host

_ROLE_ORDER: tuple[PoolRole, ...] = ("controller", "login", "compute")
"""Controllers first: nodes fetch their configuration from them."""


def are_doubles(spec: ClusterSpec, catalog: Catalog) -> bool:
    """Whether nodes represent other machines: claimed CPUs and memory, simulated GPUs."""
    made_here = any(site.is_made_here for site in spec.sites.values())
    return made_here or only_simulated(spec, catalog)


def only_simulated(spec: ClusterSpec, catalog: Catalog) -> bool:
    """Whether machine types are named, and each of them is a simulated one."""
    named = [pool.machine for pool in spec.pools.values() if pool.machine is not None]
    return bool(named) and all(catalog.machines[name].simulated for name in named)


class Server(msgspec.Struct, frozen=True):
    """A host of the spec that serves storage: few, and every node that mounts it finds them."""

    name: str
    address: str
    """"" while the machine is only planned."""


class StorageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The storage of one pool's nodes, by the names that the spec gives it."""

    mounts: tuple[str, ...] = ()
    """What they mount, the outer of two nested mount points first."""
    serves: tuple[str, ...] = ()
    """What they serve."""
    servers: dict[str, tuple[Server, ...]] = {}
    """Storage -> the hosts of the spec that serve it, in the inventory's order."""
    devices: dict[str, str] = {}
    """Storage that a cloud manages -> what is mounted of it; `AFTER_APPLY` is the placeholder for
    what isn't known yet."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of storage whose address isn't known yet."""
        return tuple(name for name, device in self.devices.items() if AFTER_APPLY in device)


def storage_facts(spec: ClusterSpec, inventory: ClusterInventory | None) -> dict[str, StorageFacts]:
    """Return pool -> its storage; what a pool serves may be among what it mounts.

    Args:
        spec: a spec that passed its checks.
        inventory: hosts and what providers made; None: nothing is known of them.
    """
    known = Mounts(spec.storage, spec.pools)
    hosts = () if inventory is None else inventory.hosts
    serving = {
        pool: [Server(h.name, h.address) for h in hosts if h.pool == pool] for pool in known.servers
    }
    servers = {
        name: tuple(serving[pool])
        for name in spec.storage
        if (pool := known.server(name)) is not None
    }
    devices = _planned_devices(spec) | ({} if inventory is None else inventory.storage)

    def of(pool: str) -> StorageFacts:
        serves = tuple(sorted(known.servers.get(pool, ())))
        mounted = sorted(known.of(pool), key=lambda name: (mount_point(spec.storage[name]), name))
        named = {*mounted, *serves}
        return StorageFacts(
            mounts=tuple(mounted),
            serves=serves,
            servers={name: found for name, found in servers.items() if name in named},
            devices={name: found for name, found in devices.items() if name in named},
        )

    return {pool: of(pool) for pool in spec.pools}


def _planned_devices(spec: ClusterSpec) -> dict[str, str]:
    """Return what will be mounted of the file systems that clouds manage, as far as is known."""
    return {
        name: f"{AFTER_APPLY}@tcp:/{storage.fsname or AFTER_APPLY}"
        for name, storage in spec.storage.items()
        if isinstance(storage, LustreStorage) and storage.is_managed
    } | {
        name: AFTER_APPLY
        for name, storage in spec.storage.items()
        if isinstance(storage, FileService) or is_on_volume(spec, name)
    }


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The whole cluster, for the few roles that need other hosts than the node's own.

    Compute nodes don't have each other's addresses: a node more must not change the others' steps.
    """

    hosts: tuple[Host, ...] = ()
    """In the inventory's order."""
    by_pool: dict[str, tuple[Host, ...]] = {}
    """Pool -> its hosts; pools by role, then by name."""
    nodes: dict[str, NodeFacts] = {}
    """Pool -> its nodes, without this."""
    controllers: tuple[Host, ...] = ()
    found_by_name: tuple[Host, ...] = ()
    """Controllers and logins: few, and every node finds them by name."""
    simulated: bool = False
    """Nodes represent machines that they are not: claimed CPUs and memory, simulated GPUs."""
    pulls: bool = False
    """Compute nodes converge themselves."""
    builds_slurm: bool = False
    """Some pool's Slurm is built here, and taken from the controllers."""
    run_containers: tuple[NodeFacts, ...] = ()
    """The nodes of pools whose jobs may request a container; by the pools' names."""


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One pool's nodes: they are alike, so what holds for one holds for all.

    Nothing here but `cluster` depends on how many nodes there are or what they are called.
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
    cluster: ClusterFacts = ClusterFacts()
    """The other hosts; for nodes that are compiled alone no others are known."""
    sources: tuple[str, ...] = ()
    """Artefact sources of all roles that its nodes run, for the role that reads them."""

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
    def fabric_class(self) -> str | None:
        """Fabric class that carries its GPUs' traffic; None: not known, or none."""
        return self.pool.fabric or (self.machine.fabric if self.machine is not None else None)

    @property
    def fabric(self) -> Fabric | None:
        """Its fabric class as the catalog describes it."""
        return self.catalog.fabrics.get(self.fabric_class) if self.fabric_class else None

    @property
    def fabric_interfaces(self) -> int:
        """Number of network interfaces that carry its GPUs' traffic; 0: not in the catalog."""
        nics = () if self.machine is None else self.machine.nics or ()
        return sum(nic.count for nic in nics if not nic.front_end)

    @property
    def uses_lustre(self) -> bool:
        """Whether it mounts or serves Lustre, whose modules are built for one kernel."""
        named = {*self.storage.mounts, *self.storage.serves}
        return any(isinstance(self.spec.storage[name], LustreStorage) for name in named)

    @property
    def runs_containers(self) -> bool:
        """Whether its jobs may request a container from Slurm."""
        return self.is_machine and self.software.containers == "pyxis"

    def version(self, component: str) -> str | None:
        """Return a component's version by its key in the software lock; None: not in it."""
        return self.software.version(component)

    def installs(self, component: str) -> str | None:
        """Return the version of a component that a role installs here; None: no role does.

        From the table of its software, which `gcluster software` prints and `validate` checks.
        """
        return self.software.installs(component)

    def comes_with(self, component: str) -> bool:
        """Whether the nodes already have a component: in their image, or by the spec."""
        return self.software.has(component) and self.installs(component) is None

    def given_version(self, component: str) -> str:
        """Return the version of a component that the spec sets; "" where it sets none."""
        given = (c.version for c in self.software.components if c.key == component)
        return next(given, "") if self.is_version_given(component) else ""

    def is_version_given(self, component: str) -> bool:
        """Whether the spec itself sets this component's version."""
        return any(c.key == component and c.origin == "requested" for c in self.software.components)


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
            machine=_machine(pool, catalog),
            software=_NONE,
            storage=storage[name],
        )
        for name, pool in spec.pools.items()
    }
    if not any(node.is_machine for node in found.values()) and not _requires_slurm(spec):
        return found

    resolved = resolved_pools(spec, catalog)
    return {
        name: msgspec.structs.replace(
            node, software=resolved[name] if node.is_machine else _only_slurm(resolved[name])
        )
        for name, node in found.items()
    }


def _machine(pool: Pool, catalog: Catalog) -> Machine | None:
    """Return a pool's machine type with the rails that its nodes have."""
    machine = None if pool.machine is None else catalog.machines[pool.machine]
    name = pool.fabric or (None if machine is None else machine.fabric)
    return machine_in_pool(machine, pool, catalog.fabrics.get(name or ""))


def _requires_slurm(spec: ClusterSpec) -> bool:
    """Whether a version of Slurm is written."""
    requested = (spec.software, *(pool.software for pool in spec.pools.values()))
    return any(one is not None and one.slurm not in {"auto", "distribution"} for one in requested)


def _only_slurm(resolved: Resolved) -> Resolved:
    """Return what containers and simulated nodes have of it: Slurm is real there."""
    slurm = tuple(c for c in resolved.components if c.key == "slurm")
    return msgspec.structs.replace(_NONE, distribution=resolved.distribution, components=slurm)


def with_cluster(
    spec: ClusterSpec,
    catalog: Catalog,
    inventory: ClusterInventory,
    nodes: dict[str, NodeFacts],
) -> dict[str, NodeFacts]:
    """Return pool -> its nodes, with what is known of the cluster's other hosts.

    The order of keys in the spec doesn't matter: pools are ordered by role, then by name.
    """
    pools = sorted(spec.pools, key=lambda name: (_ROLE_ORDER.index(spec.pools[name].role), name))
    by_pool = _by_pool(pools, inventory)

    def hosts_of(*roles: PoolRole) -> tuple[Host, ...]:
        return tuple(h for name in pools if spec.pools[name].role in roles for h in by_pool[name])

    cluster = ClusterFacts(
        hosts=inventory.hosts,
        by_pool=by_pool,
        nodes=nodes,
        controllers=hosts_of("controller"),
        found_by_name=hosts_of("controller", "login"),
        simulated=are_doubles(spec, catalog),
        pulls=pulls(spec, inventory),
        builds_slurm=any(
            component.key == "slurm" and component.install == "built"
            for node in nodes.values()
            for component in node.software.components
        ),
        run_containers=tuple(nodes[name] for name in sorted(nodes) if nodes[name].runs_containers),
    )
    return {name: msgspec.structs.replace(nodes[name], cluster=cluster) for name in pools}


def pulls(spec: ClusterSpec, inventory: ClusterInventory) -> bool:
    """Return whether the compute nodes converge themselves."""
    nodes = sum(h.role == "compute" and h.connection == "ssh" for h in inventory.hosts)
    return spec.converge == "pull" and nodes > 0 and bool(inventory.with_role("controller"))


def _by_pool(pools: list[str], inventory: ClusterInventory) -> dict[str, tuple[Host, ...]]:
    """Return pool -> hosts in one pass (filtering the inventory per pool is quadratic)."""
    lists: dict[str, list[Host]] = {name: [] for name in pools}
    for host in inventory.hosts:
        lists[host.pool].append(host)
    return {name: tuple(members) for name, members in lists.items()}
