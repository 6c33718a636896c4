"""What exists of a local site now, and how that differs from its graph."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec

from ...inventory.hosts import Host, SshTarget, pool_host_names
from ...schemas.spec import ClusterSpec, KubernetesScheduler, LocalSite, PoolRole
from ...schemas.structure.decoding import convert
from ..io.ssh import silence
from ..provider import (
    ProviderError,
    Resource,
    ResourceChange,
    ResourceGraph,
    SiteContext,
    provider_error,
)
from . import labels, network, records, ssh, volumes
from .engine import Container, Engine, Network, Volume, find_engine


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's lists, sorted into ours and others'."""

    engine: Engine
    nodes: dict[str, Container]
    """Node name -> container, of this cluster and site."""
    network: Network | None
    namesakes: tuple[Container, ...]
    """Containers of another cluster that has this cluster's name."""
    volumes: dict[str, Volume] = {}
    """Name -> volume of a storage, of this cluster and site."""
    networks: tuple[Network, ...]
    """All networks of the machine."""


def described(spec: ClusterSpec, site: str) -> LocalSite:
    """Return the spec's settings of a local site."""
    found = spec.sites[site]
    if not isinstance(found, LocalSite):
        raise TypeError(f"site {site!r} is not local")
    return found


def runs_kubernetes(spec: ClusterSpec) -> bool:
    """Whether nodes are nodes of Kubernetes, whose containers are started otherwise."""
    return isinstance(spec.scheduler, KubernetesScheduler)


def network_name(spec: ClusterSpec, site: str) -> str:
    """Return the name of the nodes' network."""
    return f"gcluster-{spec.name}-{site}"


def container_name(spec: ClusterSpec, node: str) -> str:
    """Return the name of a node's container."""
    return f"gcluster-{spec.name}-{node}"


def node_resource(spec: ClusterSpec, site: str, pool: str, node: str) -> Resource:
    """Return the resource of one node."""
    properties: dict[str, str | int | bool | None] = {
        "machine": spec.pools[pool].machine,
        "role": spec.pools[pool].role,
    }
    if runs_kubernetes(spec):
        properties["scheduler"] = "kubernetes"
    if mounts := volumes.mounts_text(spec, pool):
        properties["mounts"] = mounts
    return Resource(
        kind="node",
        name=node,
        pool=pool,
        properties=properties,
        parent=network_name(spec, site),
    )


def graph(spec: ClusterSpec, site: str) -> ResourceGraph:
    """Return the network, the storage that nodes share, and the nodes, in spec order."""
    wanted = described(spec, site).network
    net = Resource(
        kind="network",
        name=network_name(spec, site),
        properties={"cidr": wanted.cidr} | ({"internal": True} if wanted.internal else {}),
    )
    nodes = (
        node_resource(spec, site, name, node)
        for name, pool in spec.pools.items()
        if pool.site == site
        for node in pool_host_names(name, pool)
    )
    shared = volumes.resources(spec, site)
    return ResourceGraph(site=site, provider="local", resources=(net, *shared, *nodes))


def planned_hosts(spec: ClusterSpec, site: str) -> tuple[Host, ...]:
    """Return the nodes without addresses: those are chosen when the network is made."""
    return tuple(
        Host(
            name=node.name,
            site=site,
            pool=node.pool,
            role=spec.pools[node.pool].role,
            compute=spec.pools[node.pool].compute,
            machine=spec.pools[node.pool].machine,
            ssh=SshTarget(user="root"),
        )
        for node in graph(spec, site).resources
        if node.kind == "node" and node.pool is not None
    )


def survey(context: SiteContext) -> Survey:
    """Query the engine for what exists: three concurrent calls.

    Raises:
        ProviderError: there is no engine, or it doesn't work.
    """
    engine = find_engine(described(context.spec, context.site).runtime)
    owner = labels.owner(context)
    with ThreadPoolExecutor(max_workers=2) as executor:
        listed = executor.submit(engine.networks)
        kept = executor.submit(engine.volumes, owner)
        named = engine.containers({labels.CLUSTER: context.spec.name})
        networks = listed.result()
        found_volumes = kept.result()
    ours = [c for c in named if owner.items() <= c.labels.items()]
    mine = network_name(context.spec, context.site)
    return Survey(
        engine=engine,
        nodes={c.labels[labels.NODE]: c for c in ours if c.labels.get(labels.KIND) == "node"},
        network=next(
            (n for n in networks if n.name == mine and owner.items() <= n.labels.items()), None
        ),
        namesakes=tuple(c for c in named if c.labels.get(labels.ID) != context.cluster_id),
        networks=networks,
        volumes={each.name: each for each in found_volumes if labels.STORAGE in each.labels},
    )


def ids_in_use(context: SiteContext) -> frozenset[str]:
    """Return the ids of all clusters with this name that have something on the site."""
    engine = find_engine(described(context.spec, context.site).runtime)
    mine = {labels.CLUSTER: context.spec.name, labels.SITE: context.site}
    label_sets = [c.labels for c in engine.containers(mine)] + [n.labels for n in engine.networks()]
    label_sets += [volume.labels for volume in engine.volumes(mine)]
    ours = (each for each in label_sets if mine.items() <= each.items())
    return frozenset(each[labels.ID] for each in ours if labels.ID in each)


def obstacle(context: SiteContext, found: Survey) -> ProviderError | None:
    """Return why apply must not touch anything; None when it may."""
    if found.namesakes:
        other = found.namesakes[0].labels.get(labels.ID, "")
        return provider_error(
            "GC916",
            f'another cluster is called "{context.spec.name}" on this machine: '
            f"{len(found.namesakes)} nodes, such as {found.namesakes[0].name}",
            detail=f"its id is {other}, this one's is {context.cluster_id}",
            hint="choose another name, or take that cluster down from where its state is",
        )
    requested = network.requested_subnet(described(context.spec, context.site).network.cidr)
    if (
        found.network is not None
        and requested is not None
        and _moves(found.network, str(requested))
    ):
        return provider_error(
            "GC915",
            f"the nodes' network is {found.network.subnets[0]} and can't become {requested} "
            "in place",
            hint="put the old network.cidr back, or gcluster down first",
        )
    return None


def _moves(existing: Network, requested: str) -> bool:
    return requested not in existing.subnets


def changes(context: SiteContext, found: Survey) -> tuple[ResourceChange, ...]:
    """Return what apply would do, resource by resource; what is no longer wanted comes last."""
    remembered = records.load(context)
    every = graph(context.spec, context.site).resources
    wanted = [resource for resource in every if context.purchased.get(resource.name) != ""]
    compared = []
    for resource in wanted:
        if resource.kind == "network":
            compared.append(_network_change(context, found, resource))
        elif resource.kind == "volume":
            compared.append(volumes.change(found.volumes, resource))
        else:
            compared.append(_node_change(found.nodes.get(resource.name), remembered, resource))
    names = {r.name for r in wanted if r.kind == "node"}
    for name, container in sorted(found.nodes.items()):
        if name not in names:
            compared.append(_unplanned(name, container, given_up=name in context.purchased))
    compared += volumes.unplanned(found.volumes, (r.name for r in wanted if r.kind == "volume"))
    return tuple(compared)


def _network_change(context: SiteContext, found: Survey, resource: Resource) -> ResourceChange:
    if found.network is None:
        return ResourceChange(effect="create", resource=resource, reason="it does not exist")
    requested = network.requested_subnet(described(context.spec, context.site).network.cidr)
    if requested is not None and _moves(found.network, str(requested)):
        return ResourceChange(effect="replace", resource=resource, reason="its cidr changed")
    return ResourceChange(effect="keep", resource=resource)


_MADE_WITH = (
    (labels.ROLE, "role", "role changed"),
    (labels.SCHEDULER, "scheduler", "scheduler changed"),
    (labels.MOUNTS, "mounts", "storage changed: containers mount it when they are made"),
)
"""Label of a container, the property that it has to be, and what is said where it isn't."""


def _node_change(
    container: Container | None, remembered: records.Records, resource: Resource
) -> ResourceChange:
    if container is None:
        return ResourceChange(effect="create", resource=resource, reason="it does not exist")
    for label, name, what in _MADE_WITH:
        if container.labels.get(label, "") != resource.properties.get(name, ""):
            return ResourceChange(effect="replace", resource=resource, reason=f"its {what}")
    if not container.running:
        reason = f"its container is {container.state}: start it"
        return ResourceChange(effect="update", resource=resource, reason=reason)
    ready = remembered.ready.get(resource.name)
    if ready is None or ready.container != container.id:
        reason = "it never finished starting"
        return ResourceChange(effect="update", resource=resource, reason=reason)
    return ResourceChange(effect="keep", resource=resource)


def _unplanned(name: str, container: Container, *, given_up: bool) -> ResourceChange:
    resource = Resource(kind="node", name=name, pool=container.labels.get(labels.POOL))
    if container.labels.get(labels.ELASTIC):
        return ResourceChange(effect="keep", resource=resource, reason="elastic")
    reason = "it was given up" if given_up else "it is no longer in the spec"
    return ResourceChange(effect="delete", resource=resource, reason=reason)


def hosts(context: SiteContext, found: Survey) -> tuple[Host, ...]:
    """Return the nodes that exist and have answered once, running or not, in spec order."""
    remembered = records.load(context)
    order = [r.name for r in graph(context.spec, context.site).resources if r.kind == "node"]
    order += sorted(found.nodes.keys() - set(order))
    existing = [(name, found.nodes[name]) for name in order if name in found.nodes]
    made = tuple(
        _host(context, name, container, ready.host_keys)
        for name, container in existing
        if (ready := remembered.ready.get(name)) is not None and ready.container == container.id
    )
    return behind_way_in(made) if described(context.spec, context.site).boots_stock_image else made


def behind_way_in(hosts: tuple[Host, ...]) -> tuple[Host, ...]:
    """Return nodes in a cloud's form: a user, one bastion, and unreachable ones named."""
    entry_hosts = [h for role in ("login", "controller") for h in hosts if h.role == role]
    entry = next(iter(entry_hosts), None)
    found = []
    for host in hosts:
        target = msgspec.structs.replace(host.ssh, user=ssh.CLOUD_USER)
        if entry is not None and entry.name != host.name:
            target = msgspec.structs.replace(
                target,
                bastion=f"{ssh.CLOUD_USER}@{entry.address}",
                bastion_host_keys=entry.ssh.host_keys,
            )
        why = "" if host.ssh.host_keys else silence(ssh.BOOT_LIMIT_S, "the container engine")
        found.append(msgspec.structs.replace(host, ssh=target, silent=why))
    return tuple(found)


def _host(
    context: SiteContext, name: str, container: Container, host_keys: tuple[str, ...]
) -> Host:
    found = container.labels
    pool = context.spec.pools.get(found[labels.POOL])
    role: PoolRole = convert(found[labels.ROLE], PoolRole)
    return Host(
        name=name,
        site=context.site,
        pool=found[labels.POOL],
        role=role,
        compute=pool is not None and pool.compute and role == "controller",
        machine=pool.machine if pool is not None else found[labels.MACHINE] or None,
        address=found[labels.ADDRESS],
        ssh=ssh.target(records.directory(context) / "id_ed25519", host_keys),
        image=found[labels.IMAGE] or None,
    )
