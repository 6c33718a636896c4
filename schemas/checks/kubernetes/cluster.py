"""What a cluster under Kubernetes needs, and the networks of its pods and services."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from ...derived.control_planes import OLDEST, gpu_sharing, has, release_of
from ...diagnostics import PathTuple, Severity
from ...spec import KubernetesScheduler, Pool, PoolKubernetes
from ...spec.sites import SITE_TYPES
from ..context import CheckContext
from ..network.cidrs import Network, parsed
from ..registry import Finding, check
from ..scheduler.services import controller_pools

_CIDR = ("network", "cidr")
_PROVIDERS = {site.managed_kubernetes: name for name, site in SITE_TYPES.items()}


@check("GC532", summary="The control planes' address is not a free one of their network.")
def control_plane_address_in_use(context: CheckContext) -> Iterator[Finding]:
    """`virtual_address` is an address of the controllers' network that no host has.

    One host after the other answers to it, so it lies in the network they are on. The first and
    the last address of a network are no host's; where it isn't known, one that ends in 0 or 255 is
    taken for such a one.
    """
    kubernetes = context.kubernetes
    if kubernetes is None or kubernetes.virtual_address is None:
        return
    written = kubernetes.virtual_address.address
    path: PathTuple = ("scheduler", "virtual_address", "address")

    try:
        address = ip_address(written)
    except ValueError:
        yield Finding(
            summary=f'"{written[:60]}" is no address',
            path=path,
            hint="write a free address such as 10.20.0.10",
        )
        return
    networks = list(_controllers_networks(context))
    if of_no_host(address, [network for _, _, network in networks]):
        yield Finding(
            summary=f"{written} is no host's address: it means a network or all of its hosts",
            path=path,
            hint="choose a free address that ends in 1 to 254",
            relies_on=(path, *(("sites", name, "network", "cidr") for name, _, _ in networks)),
        )
        return
    for group in context.host_groups:
        if written in (group.addresses or ()):
            yield Finding(
                summary=f"{written} is the address of a host: pool {group.pool}, line "
                f"{context.line_of(group.path)}",
                path=path,
                hint="choose a free address",
                relies_on=(path, group.path),
            )
    for name, cidr, network in networks:
        if address not in network:
            yield Finding(
                summary=f'{written} is not in {cidr}, the network of site "{name}"',
                path=path,
                hint=f"choose a free address of {cidr}",
                relies_on=(path, ("sites", name, "network", "cidr"), ("pools", "*", "role")),
            )


def of_no_host(address: IPv4Address | IPv6Address, networks: Sequence[Network]) -> bool:
    """Say whether no host can have an address: a network's own, all hosts', of a group, or none."""
    if address.is_multicast or address.is_unspecified or address.is_loopback:
        return True
    within = [network for network in networks if address in network]
    if within:
        return any(address in {one.network_address, one.broadcast_address} for one in within)
    return not networks and address.version == 4 and int(address) & 0xFF in {0, 0xFF}  # noqa: PLR2004  # IPv4


def _controllers_networks(context: CheckContext) -> Iterator[tuple[str, str, Network]]:
    """Yield the sites of control planes with their networks, as far as these are known."""
    for name in dict.fromkeys(context.pools[pool].site for pool in controller_pools(context)):
        cidr = context.sites[name].networks.get(_CIDR) if context.exists(name) else None
        network = parsed(cidr) if cidr is not None else ""
        if cidr is not None and not isinstance(network, str):
            yield name, cidr, network


@check("GC533", summary="The cloud's control plane does not fit the sites or pools.")
def managed_control_plane_mismatch(context: CheckContext) -> Iterator[Finding]:
    """eks, gke and aks run the control plane of nodes in their own cloud.

    Then no pool is a controller. With `control_plane: self` controller pools run it, anywhere.
    """
    kubernetes = context.kubernetes
    if kubernetes is None or kubernetes.control_plane == "self":
        return
    provider = _PROVIDERS[kubernetes.control_plane]
    path: PathTuple = ("scheduler", "control_plane")
    for name, pool in context.pools.items():
        other = context.provider(pool)
        if pool.role != "controller" and other not in {None, provider}:
            yield Finding(
                summary=f"{kubernetes.control_plane} runs the nodes of {provider}, but pool "
                f'"{name}" is at a site of {other}',
                path=path,
                hint="write control_plane: self",
                relies_on=(path, ("pools", "*", "site"), ("pools", "*", "role")),
            )
            break
    for name in controller_pools(context):
        yield Finding(
            summary=f'pool "{name}" is a controller, but {kubernetes.control_plane} runs the '
            "control plane",
            path=("pools", name, "role"),
            hint="remove the pool, or write control_plane: self",
            relies_on=(path, ("pools", name, "role")),
        )


@check("GC534", summary="Pod networks are to be routed where the network does not.")
def pod_routes_unsupported(context: CheckContext) -> Iterator[Finding]:
    """`cni: routed` gives each node routes to the pods of the others, and no overlay.

    That works where all nodes are on one network that passes every address: on one local site,
    whose pod network it is by default. A second local site is another network, and no route leads
    through its nodes. Clouds drop packets of addresses they did not give; on bare metal
    the nodes have to be on one segment.
    """
    kubernetes = context.kubernetes
    if kubernetes is None:
        return
    path: PathTuple = ("scheduler", "cni")
    yield from _two_local_networks(context, kubernetes)
    if kubernetes.cni != "routed":
        return
    for name in context.pools_of_site:
        site = context.sites.get(name)
        if site is None or site.is_made_here:
            continue
        yield Finding(
            summary=f'site "{name}" ({site.provider}) does not route the pods\' addresses'
            if site.is_cloud
            else f'the pods\' addresses are routed at site "{name}" only if its nodes are on one '
            "segment",
            path=path,
            severity=Severity.ERROR if site.is_cloud else Severity.WARNING,
            hint="write cni: cilium or calico",
            relies_on=(path, ("sites", name, "provider"), ("pools", "*", "site")),
        )
        break


def _two_local_networks(
    context: CheckContext, kubernetes: KubernetesScheduler
) -> Iterator[Finding]:
    """Yield a pool whose nodes would never be ready: their routes lead out of their network."""
    here = [site for site in context.sites.values() if site.is_made_here]
    is_routed = kubernetes.cni == "routed" or (
        kubernetes.cni == "auto" and len(here) == len(context.sites)
    )
    if kubernetes.control_plane != "self" or not is_routed:
        return
    first: tuple[str, str] | None = None
    for name, pool in context.pools.items():
        site = context.sites.get(pool.site)
        if pool.role == "login" or site is None or not site.is_made_here:
            continue
        if first is None:
            first = name, pool.site
        elif pool.site != first[1]:
            yield Finding(
                summary=f'pool "{name}" is at site "{pool.site}" and pool "{first[0]}" at '
                f'"{first[1]}": local sites are networks of their own, and the pods\' addresses '
                "are routed inside one",
                path=("pools", name, "site"),
                hint=f"write site: {first[1]}",
                relies_on=(
                    ("pools", name, "site"),
                    ("pools", first[0], "site"),
                    ("scheduler", "type"),
                    ("scheduler", "cni"),
                ),
            )
            return


@check("GC535", summary="GPUs are to be sliced by MIG that can't be.")
def mig_unsupported(context: CheckContext) -> Iterator[Finding]:
    """MIG is NVIDIA's: AMD GPUs are partitioned in other ways, which gcluster does not set up."""
    kubernetes = context.kubernetes
    if kubernetes is None:
        return
    for name, pool in context.pools.items():
        machine, sharing = context.machine(pool), gpu_sharing(kubernetes, name, pool)
        if sharing.mig is None or machine is None or machine.gpu is None:
            continue
        if machine.gpu.vendor != "nvidia":
            yield Finding(
                summary=f'pool "{name}" has {machine.gpu.model}, which has no MIG',
                path=sharing.mig_path,
                hint="remove mig",
                relies_on=(sharing.mig_path, ("pools", name, "machine")),
            )
            break


@check("GC620", summary="Kubernetes is too old to be set up.")
def kubernetes_release_too_old(context: CheckContext) -> Iterator[Finding]:
    """Control planes of one's own are set up by kubeadm's configuration v1beta4, of 1.31 and newer.

    A cloud's own control plane says itself which releases it takes.
    """
    kubernetes = context.kubernetes
    if kubernetes is None or kubernetes.control_plane != "self":
        return

    path: PathTuple = ("software", "kubernetes")
    release = release_of(context.software.kubernetes)
    if release is not None and not has(release, OLDEST):
        yield Finding(
            summary=f"Kubernetes {release} can't be set up: kubeadm reads this configuration from "
            f"{OLDEST} on",
            path=path,
            hint=f'write kubernetes: "{OLDEST}" or newer, or auto',
            relies_on=(path, ("scheduler", "control_plane")),
        )


_PODS: PathTuple = ("scheduler", "pod_cidr")
_SERVICES: PathTuple = ("scheduler", "service_cidr")
_PLANE: PathTuple = ("scheduler", "control_plane")
_NODE_PREFIX = 24
"""Each node gets a network of this size for its pods: kube-controller-manager's default
(node-cidr-mask-size-ipv4, kubernetes.io), GKE's for 110 pods a node (flexible-pod-cidr), and
AKS' overlay's (azure-cni-overlay, "IP address planning"; all read 2026-11)."""
_LARGEST_SERVICES, _SMALLEST_SERVICES = 12, 28
"""Prefixes: the API server takes 20 bits at most, and the tenth address is the DNS server's
(kubeadm, MaximumBitsForServiceSubnet and MinimumAddressesInServiceSubnet; read 2026-11)."""


@check("GC320", summary="Pods or services do not fit into their network.")
def pod_cidr_too_small(context: CheckContext) -> Iterator[Finding]:
    """Each node takes a /24 of `pod_cidr` for its pods, so a /16 is for 256 nodes.

    Networks of pods and services are IPv4, as the nodes' addresses are; that of the services is a
    /12 to a /28. GKE and AKS give each node a /24 too; under EKS pods have addresses of the VPC.
    """
    kubernetes = context.kubernetes
    if kubernetes is None:
        return
    for who, text, path in (
        ("pods", kubernetes.pod_cidr, _PODS),
        ("services", kubernetes.service_cidr, _SERVICES),
    ):
        network = parsed(text)
        if isinstance(network, str):
            continue
        if network.version != 4:  # noqa: PLR2004  # IPv4
            yield Finding(
                summary=f"the {who}' network is IPv6, and nodes have IPv4 addresses",
                path=path,
                hint="write an IPv4 network such as "
                + ("10.244.0.0/16" if who == "pods" else "10.96.0.0/12"),
            )
        elif kubernetes.control_plane != "eks" and who == "pods":
            yield from _pods(context, network.prefixlen)
        elif kubernetes.control_plane == "self":
            yield from _services(network.prefixlen)


def _pods(context: CheckContext, prefix: int) -> Iterator[Finding]:
    """Yield that some nodes would get no network for their pods."""
    nodes = max(1, sum(context.size(name) or 0 for name in context.pools))
    have = 2 ** (_NODE_PREFIX - prefix) if prefix <= _NODE_PREFIX else 0
    if nodes > have:
        needed = _NODE_PREFIX - (nodes - 1).bit_length()
        yield Finding(
            summary=f"a /{prefix} has networks for the pods of {have:,} nodes, and there are "
            f"{nodes:,}",
            path=_PODS,
            hint=f"a /{needed} is large enough",
            relies_on=(_PODS, _PLANE, ("pools", "*", "count"), ("pools", "*", "hosts")),
        )


def _services(prefix: int) -> Iterator[Finding]:
    if not _LARGEST_SERVICES <= prefix <= _SMALLEST_SERVICES:
        size = "large" if prefix < _LARGEST_SERVICES else "small"
        yield Finding(
            summary=f"a /{prefix} is too {size} for the services",
            path=_SERVICES,
            hint=f"take one from /{_LARGEST_SERVICES} to /{_SMALLEST_SERVICES}, such as "
            "10.96.0.0/12",
            relies_on=(_SERVICES, _PLANE),
        )


@check("GC737", summary="Nodes of Kubernetes are to converge themselves.")
def pull_under_kubernetes(context: CheckContext) -> Iterator[Finding]:
    """`converge: pull` checks with Slurm before a node changes; Kubernetes has no such query.

    There `gcluster up` sets nodes up over SSH: leave `converge` out, or write `push`.
    """
    if context.kubernetes is not None and context.converge == "pull":
        yield Finding(
            summary="nodes converge themselves under Slurm only, and the scheduler is Kubernetes",
            path=("converge",),
            hint="write converge: push, or leave it out",
            suggestion="push",
            relies_on=(("converge",), ("scheduler", "type")),
        )


_RESERVED = ("gcluster.local/", "kubernetes.io/", "k8s.io/")
"""Prefixes of labels that are gcluster's and Kubernetes' own, and how theirs end."""
_OF_NODES = frozenset({"labels", "taints", "system"})
_OF_GPUS = ("mig", "time_slices")
_OWN_RUNTIMES = {"runc": "containerd's", "nvidia": "NVIDIA's operator's"}
"""Names of runtime classes that are there, or come with an add-on, and whose they are."""
_RUNTIMES = {
    "eks": " sets the runtimes of its nodes up itself, by its image",
    "gke": " has gVisor (GKE Sandbox) on node pools that gcluster doesn't make",
    "aks": " has Kata (pod sandboxing) on node pools that gcluster doesn't make",
}
"""Control plane -> which other runtimes its nodes have, and who would set them up."""
_HERE = ("alignment", "pin_memory", "reserved_cpus", "reserved_memory", "pids_per_pod")
"""Settings of a kubelet that are about a machine's own processors, memory and processes."""


@check("GC739", summary="A pool's settings for Kubernetes have no effect.")
def pool_kubernetes_unused(context: CheckContext) -> Iterator[Finding]:
    """`pools.NAME.kubernetes` is about nodes whose kubelet gcluster sets up.

    Those are the pools of a cluster under Kubernetes, but login nodes. Under a cloud's control
    plane the cloud sets kubelets up, and gcluster labels no control planes. Local nodes share this
    machine's processors and memory: nothing of them is reserved, pinned or limited. Labels of
    gcluster and of Kubernetes are their own.
    """
    for name, pool in context.pools.items():
        requested = pool.kubernetes
        if requested is None:
            continue
        path: PathTuple = ("pools", name, "kubernetes")
        default = PoolKubernetes()
        changed = [
            f
            for f in PoolKubernetes.__struct_fields__
            if getattr(requested, f) != getattr(default, f)
        ]
        for field, why in _without_effect(context, name, requested, changed):
            yield Finding(
                summary=f'pool "{name}": {why}',
                path=(*path, *field),
                at_key=True,
                hint="remove it",
                relies_on=(path, ("pools", name, "role"), ("pools", name, "site"), _PLANE),
            )


def _without_effect(
    context: CheckContext, pool_name: str, requested: PoolKubernetes, changed: list[str]
) -> Iterator[tuple[PathTuple, str]]:
    """Yield the settings of a pool that have no effect, and why."""
    kubernetes, pool = context.kubernetes, context.pools[pool_name]
    if kubernetes is None:
        runs = "Slurm is the scheduler" if context.slurm is not None else "it isn't the scheduler"
        yield (), f"settings for Kubernetes, and {runs}"
        return
    if pool.role == "login":
        yield (), "login nodes are no nodes of Kubernetes"
        return
    yield from _marks(kubernetes, pool_name, pool, requested)
    for field in changed:
        if field not in _OF_NODES and (why := _idle(context, kubernetes, pool, field)):
            yield (field,), why


def _marks(
    kubernetes: KubernetesScheduler, pool_name: str, pool: Pool, requested: PoolKubernetes
) -> Iterator[tuple[PathTuple, str]]:
    """Yield the labels and taints of a pool's nodes that have no effect."""
    for what in ("labels", "taints") if pool.role == "controller" else ():
        if getattr(requested, what):
            yield (what,), f"control planes get no {what}"
    if requested.runtime_class is not None and requested.runtime_class.name in _OWN_RUNTIMES:
        name = requested.runtime_class.name
        yield ("runtime_class", "name"), f"{name} is {_OWN_RUNTIMES[name]} own"
    elif requested.runtime_class is not None and pool.role == "controller":
        yield ("runtime_class",), "control planes run no jobs"
    if requested.system and pool.role == "controller":
        yield ("system",), "control planes run the cluster's own pods and no jobs anyway"
    elif requested.system:
        among = [n for n, one in kubernetes.partitions.items() if pool_name in one.pools]
        for name in among[:1]:
            yield ("system",), f"partition {name} sends jobs there"
    for what, label in [
        *(("labels", one) for one in requested.labels),
        *(("taints", one.key) for one in requested.taints),
    ]:
        domain = label.rpartition("/")[0]
        if any(f"{domain}/" == own or f"{domain}/".endswith(f".{own}") for own in _RESERVED):
            path = (what, label) if what == "labels" else (what,)
            yield path, f"{label} is gcluster's or Kubernetes' own"


def _idle(context: CheckContext, kubernetes: KubernetesScheduler, pool: Pool, field: str) -> str:
    """Return why a setting of a pool's kubelet or GPUs has no effect; "" where it has."""
    machine, site = context.machine(pool), context.sites.get(pool.site)
    if field in _OF_GPUS:
        without = pool.role == "controller" or (machine is not None and machine.gpu is None)
        return f"its machines have no GPUs, so {field} has no effect" if without else ""
    if kubernetes.control_plane != "self" and field == "runtime_class":
        return f"{kubernetes.control_plane}{_RUNTIMES[kubernetes.control_plane]}"
    if kubernetes.control_plane != "self":
        return f"{kubernetes.control_plane} sets the kubelets of its nodes up itself"
    if site is not None and site.is_made_here and field in _HERE:
        return f"local nodes share this machine, so {field} has no effect"
    return ""
