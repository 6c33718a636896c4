"""Control planes in clouds: an address in common, and what a cloud's own one takes of a spec."""

from __future__ import annotations

from collections.abc import Iterator

from ...derived.control_planes import BALANCED_PROVIDERS
from ...diagnostics import PathTuple, Severity
from ...spec import (
    AwsSite,
    AzureSite,
    CloudSite,
    Count,
    GpfsStorage,
    KubernetesScheduler,
    LocalSite,
    LustreStorage,
    ObjectStorage,
    ScratchStorage,
)
from ..context import CheckContext
from ..registry import Finding, check
from ..scheduler.services import controller_hosts, controller_pools

_PLANE: PathTuple = ("scheduler", "control_plane")
_HOSTS = tuple(("pools", "*", key) for key in ("role", "count", "hosts", "site"))
_NODES: tuple[PathTuple, ...] = (_PLANE, ("pools", "*", "site"), ("pools", "*", "role"))
_DRIVERS = {"eks": ("host",), "aks": ("container",), "gke": ("host", "container")}
"""Who may bring the driver of NVIDIA's GPUs. EKS' image is Amazon Linux, which NVIDIA has no driver
container for; AKS' own driver and NVIDIA's operator can't be together (learn.microsoft.com,
"NVIDIA GPU Operator on AKS", November 2026)."""
_POD_CIDR = KubernetesScheduler().pod_cidr
_GOOGLES = frozenset({"gpudirect-tcpx", "gpudirect-tcpxo", "gib", "gib-metal"})


def _managed(context: CheckContext) -> KubernetesScheduler | None:
    kubernetes = context.kubernetes
    return None if kubernetes is None or kubernetes.control_plane == "self" else kubernetes


def _node_sites(context: CheckContext) -> list[str]:
    """Return the sites of the nodes, each once."""
    nodes = (pool.site for pool in context.pools.values() if pool.role == "compute")
    return list(dict.fromkeys(nodes))


@check("GC598", summary="Control planes in a cloud have no address in common.")
def cloud_control_plane_address_missing(context: CheckContext) -> Iterator[Finding]:
    """An internal load balancer is in front of several control planes, under a name of their zone.

    AWS, Google Cloud and Azure have one here; it is in one site, and its name needs a domain.
    """
    kubernetes, hosts = context.kubernetes, controller_hosts(context)
    if kubernetes is None or kubernetes.control_plane != "self" or (hosts or 0) <= 1:
        return
    names = list(dict.fromkeys(context.pools[pool].site for pool in controller_pools(context)))
    sites = {name: context.sites[name] for name in names if name in context.sites}
    clouds = {name: site for name, site in sites.items() if isinstance(site, CloudSite)}
    if not clouds:
        return
    needs = (*_HOSTS, _PLANE, *(("sites", name) for name in sites))
    if len(sites) > 1:
        yield Finding(
            summary=f"control planes are at {len(sites)} sites, and a cloud's load balancer "
            "is in one",
            path=("scheduler",),
            at_key=True,
            hint="put all control planes into one site",
            relies_on=needs,
        )
        return
    [(name, site)] = clouds.items()
    if site.provider not in BALANCED_PROVIDERS:
        yield Finding(
            summary=f'site "{name}" ({site.provider}) gets no load balancer before '
            f"{hosts or 0:,} control planes",
            path=("scheduler",),
            at_key=True,
            hint="have one control plane there, or put them into another site",
            relies_on=needs,
        )
    elif site.dns is not None and site.dns.domain is None and not isinstance(site, AzureSite):
        yield Finding(
            summary="the load balancer before the control planes needs a name, and the zone's "
            "domain is not specified",
            path=("sites", name, "dns"),
            hint="add domain: gpu.example.edu to dns",
            relies_on=needs,
        )


@check("GC599", summary="An address is to move between machines of a cloud.")
def control_plane_vip_in_cloud(context: CheckContext) -> Iterator[Finding]:
    """Clouds route an address to the machine it is assigned to, even if another announces it.

    So `virtual_address` is for bare metal; in a cloud an internal load balancer takes its place.
    """
    kubernetes = context.kubernetes
    if kubernetes is None or kubernetes.virtual_address is None:
        return
    for pool in controller_pools(context):
        site = context.sites.get(context.pools[pool].site)
        if site is not None and site.is_cloud:
            yield Finding(
                summary=f"an address of {site.provider} does not move between machines by "
                f"{kubernetes.virtual_address.by}",
                path=("scheduler", "virtual_address"),
                hint="remove virtual_address: a load balancer is made",
                relies_on=(*_HOSTS, ("scheduler", "virtual_address")),
            )
            break


@check("GC730", summary="A cloud's control plane has nodes at several sites.")
def managed_nodes_at_several_sites(context: CheckContext) -> Iterator[Finding]:
    """eks, gke and aks run the nodes of one network, so all compute pools are at one site."""
    kubernetes, sites = _managed(context), _node_sites(context)
    if kubernetes is not None and len(sites) > 1:
        yield Finding(
            summary=f"{kubernetes.control_plane} runs the nodes of one site, and pools are at "
            f"{', '.join(sites)}",
            path=_PLANE,
            hint="put all compute pools into one site, or write control_plane: self",
            relies_on=_NODES,
        )


@check("GC731", summary="A cloud's control plane manages itself what the spec sets.")
def managed_by_cloud(context: CheckContext) -> Iterator[Finding]:
    """eks, gke and aks bring the pod network and the API server's address: `cni` is auto.

    Pods' network is then VPC CNI (EKS), Dataplane V2 (GKE) or Azure CNI by Cilium (AKS).
    """
    kubernetes = _managed(context)
    if kubernetes is None:
        return
    cloud = kubernetes.control_plane
    if kubernetes.cni != "auto":
        yield Finding(
            summary=f"{cloud} brings its own pod network, not {kubernetes.cni}",
            path=("scheduler", "cni"),
            hint="remove cni",
            relies_on=(_PLANE, ("scheduler", "cni")),
        )
    if cloud == "eks" and kubernetes.pod_cidr != _POD_CIDR:
        yield Finding(
            summary="eks gives pods addresses of the nodes' subnets",
            path=("scheduler", "pod_cidr"),
            hint="remove pod_cidr",
            relies_on=(_PLANE, ("scheduler", "pod_cidr")),
        )
    if kubernetes.virtual_address is not None:
        yield Finding(
            summary=f"{cloud} has an address of its own",
            path=("scheduler", "virtual_address"),
            hint="remove virtual_address",
            relies_on=(_PLANE, ("scheduler", "virtual_address")),
        )


@check("GC732", summary="EKS has no two subnets for its control plane.")
def eks_without_subnets(context: CheckContext) -> Iterator[Finding]:
    """EKS puts interfaces into subnets of two zones, also where all nodes are in one.

    In a network that is made two small ones are made; in a VPC that exists they are named:
    `subnets: {compute: ..., control_plane: [subnet-a, subnet-b]}`.
    """
    kubernetes = _managed(context)
    if kubernetes is None or kubernetes.control_plane != "eks":
        return
    for name in _node_sites(context):
        site = context.sites.get(name)
        if not isinstance(site, AwsSite):
            continue
        network, path = site.network, ("sites", name, "network")
        named = [] if network.subnets is None else network.subnets.control_plane
        if network.vpc is not None and len(named) < 2:  # noqa: PLR2004  # as the text says
            yield Finding(
                summary=f'site "{name}" names {len(named)} subnets for EKS, which needs two',
                path=path,
                hint="add control_plane: [SUBNET, SUBNET] to subnets, in two zones",
                relies_on=(*_NODES, path),
            )


@check("GC733", summary="Nothing grows a pool under Kubernetes.")
def elastic_pool_under_kubernetes(context: CheckContext) -> Iterator[Finding]:
    """EKS, GKE and AKS grow pools between `min` and `max`, and `burst agent` those of local sites.

    Elsewhere a pool has one number: pods that wait would wait for ever for nodes beyond `min`.
    Write the number that you want; `gcluster up` with another number adds nodes or takes them away.
    """
    kubernetes = context.kubernetes
    if kubernetes is None or kubernetes.control_plane != "self":
        return
    for name, pool in context.pools.items():
        if pool.role != "compute" or not isinstance(pool.count, Count) or not pool.is_elastic:
            continue
        path, site = ("pools", name, "count"), context.sites.get(pool.site)
        if site is not None and not isinstance(site, LocalSite):
            yield Finding(
                summary=f'pool "{name}" is to grow with the queue, and nothing grows it under '
                f"control_plane: {kubernetes.control_plane} at {site.provider}",
                path=path,
                hint=f"write count: {pool.count.max}, or as many as you want at all times",
                relies_on=(
                    *(_PLANE, ("scheduler", "type"), path),
                    *(("pools", name, key) for key in ("role", "site")),
                ),
            )


@check("GC734", summary="GPUs' driver can't come that way under the cloud's control plane.")
def managed_gpu_driver(context: CheckContext) -> Iterator[Finding]:
    """On EKS the image has the driver (`host`), on AKS the GPU operator brings it (`container`).

    GKE does both: with `host` it brings driver and device plugin itself, and no operator runs.
    """
    kubernetes = _managed(context)
    if kubernetes is None or kubernetes.gpu.driver in _DRIVERS[kubernetes.control_plane]:
        return
    path: PathTuple = ("scheduler", "gpu", "driver")
    for pool in context.pools.values():
        machine = context.machine(pool)
        gpu = None if machine is None else machine.gpu
        if pool.role == "compute" and gpu is not None and gpu.vendor == "nvidia":
            [other] = _DRIVERS[kubernetes.control_plane]
            yield Finding(
                summary=f"under {kubernetes.control_plane} the driver does not come by "
                f"{kubernetes.gpu.driver}",
                path=path,
                hint=f"write gpu: {{driver: {other}}}",
                relies_on=(_PLANE, path, ("pools", "*", "machine"), ("pools", "*", "role")),
            )
            break


@check("GC740", summary="Nodes of a cloud's control plane would come without their GPUs.")
def managed_gpus_unknown(context: CheckContext) -> Iterator[Finding]:
    """What a cloud's control plane makes of a machine with GPUs depends on what it knows of them.

    GKE takes GPUs by a name of its own, as the catalog's `gpu.gke_accelerator`: without it
    nodes have none (docs.cloud.google.com/kubernetes-engine/docs/concepts/gpus). `gcloud compute
    accelerator-types list` has the names.

    EKS' images bring drivers for NVIDIA's GPUs and none for AMD's, and so does AKS on its nodes
    (docs.aws.amazon.com/eks/latest/userguide/ml-eks-optimized-ami.html,
    learn.microsoft.com/azure/aks/aks-managed-gpu-nodes; November 2026). On EKS an `image` that has
    one can be given.
    """
    kubernetes = _managed(context)
    for name, pool in context.pools.items() if kubernetes is not None else ():
        machine = context.machine(pool)
        gpu = None if machine is None else machine.gpu
        if kubernetes is None or machine is None or gpu is None or pool.role != "compute":
            continue
        cloud, path = kubernetes.control_plane, ("pools", name, "machine")
        if gpu.vendor == "amd":
            site = context.sites.get(pool.site)
            own = pool.image or (site.image if isinstance(site, CloudSite) else None)
            if cloud == "eks" and own is not None:
                continue
            image = "name an image that has one, or write" if cloud == "eks" else "write"
            yield Finding(
                summary=f'pool "{name}": nodes of {cloud} have no driver for {gpu.model}',
                path=path,
                hint=f"{image} control_plane: self",
                relies_on=(*_NODES, ("pools", name)),
            )
        elif cloud == "gke" and gpu.gke_accelerator is None and "gcp" in machine.sites:
            yield Finding(
                summary=f"it is unknown what GKE calls the GPUs of {machine.name}",
                path=path,
                hint=f"write gpu: {{gke_accelerator: nvidia-...}} at {machine.name} in the file "
                "under catalog; gcloud compute accelerator-types list has the names",
                relies_on=(*_NODES, ("pools", name), ("catalog",)),
            )


@check("GC735", summary="Storage needs something of nodes that only their cloud sets up.")
def managed_storage_unsupported(context: CheckContext) -> Iterator[Finding]:
    """No role runs on nodes of eks, gke and aks: they mount by CSI drivers, not by our clients.

    So Lustre of one's own and GPFS are for control planes of one's own. Local disks are striped by
    EKS' and GKE's nodes and by Azure Container Storage: for pods, whose data they then are, in one
    storage a pool, of machines of which the catalog knows how large the disks are.
    """
    kubernetes = _managed(context)
    for name, storage in context.storage.items() if kubernetes is not None else ():
        own = isinstance(storage, LustreStorage) and bool(storage.mgs or storage.servers)
        own |= isinstance(storage, ObjectStorage) and _is_gkes_bucket(storage, kubernetes)
        if kubernetes is not None and (own or isinstance(storage, GpfsStorage)):
            yield Finding(
                summary=f'storage "{name}" is mounted by the nodes themselves, which '
                f"{kubernetes.control_plane} sets up",
                path=("storage", name),
                hint="use a managed file system, NFS or a bucket, or control_plane: self",
                relies_on=(_PLANE, ("storage", name)),
            )
    if kubernetes is not None and context.mounts.are_certain:
        yield from _local_disks(context, kubernetes)


def _local_disks(context: CheckContext, kubernetes: KubernetesScheduler) -> Iterator[Finding]:
    """Yield pools whose disks are two storages, or whose machines have unknown disks."""
    first: dict[str, str] = {}
    for name, storage in context.storage.items():
        requested = context.mounts.mounted_by(name) if isinstance(storage, ScratchStorage) else ()
        for pool in [one for one in requested if context.pools[one].role == "compute"]:
            path: PathTuple = ("storage", name)
            machine = context.machine(context.pools[pool])
            if first.setdefault(pool, name) != name:
                yield Finding(
                    summary=f'the disks of pool "{pool}" are storage "{first[pool]}" already: '
                    f"nodes of {kubernetes.control_plane} have one array",
                    path=path,
                    at_key=True,
                    hint=f"remove {name}, or name pools of its own: pools: [...]",
                    relies_on=(_PLANE, path, ("storage", first[pool])),
                )
            elif machine is not None and machine.nvme_gb is None:
                yield Finding(
                    summary=f'storage "{name}": it is unknown which local disks {machine.name} '
                    f"(pool {pool}) has",
                    path=path,
                    at_key=True,
                    hint=f"write nvme_gb: {machine.name}'s in the file under catalog, or name "
                    "pools of other machines: pools: [...]",
                    relies_on=(_PLANE, path, ("pools", pool, "machine"), ("catalog",)),
                )


def _is_gkes_bucket(storage: ObjectStorage, kubernetes: KubernetesScheduler | None) -> bool:
    """Say whether the driver of a bucket is a part of GKE, and the nodes are another cloud's."""
    elsewhere = kubernetes is not None and kubernetes.control_plane != "gke"
    return elsewhere and storage.bucket.startswith("gs://")


@check("GC736", summary="GKE's nodes do not get a pool's fabric.")
def gke_fabric_unsupported(context: CheckContext) -> Iterator[Finding]:
    """Under GKE a fabric's libraries come by Google's installers, on Container-Optimized OS.

    There is one for GPUDirect-TCPXO and one for gIB, and none here for TCPX; bare metal (gib-metal)
    gets its interfaces by DRANET there, which is not set up. With `driver: container` nodes have
    Ubuntu instead, for NVIDIA's operator.
    """
    kubernetes = context.kubernetes
    if kubernetes is None or kubernetes.control_plane != "gke":
        return
    driver = ("scheduler", "gpu", "driver")
    for name, pool in context.pools.items():
        fabric = context.fabric(pool)
        path = ("pools", name)
        if pool.role != "compute" or fabric is None or fabric.name not in _GOOGLES:
            continue
        if fabric.name in {"gpudirect-tcpx", "gib-metal"}:
            yield Finding(
                summary=f'pool "{name}": nothing brings {fabric.name} to GKE\'s nodes',
                path=path,
                at_key=True,
                hint="write fabric: ethernet, or take machines with gpudirect-tcpxo or gib",
                relies_on=(_PLANE, path),
            )
        elif kubernetes.gpu.driver == "container":
            yield Finding(
                summary=f'pool "{name}": {fabric.name} comes to Container-Optimized OS, and '
                "driver: container gives nodes Ubuntu",
                path=driver,
                severity=Severity.WARNING,
                hint="write driver: host",
                relies_on=(_PLANE, driver, path),
            )


@check("GC741", summary="Pods get a fabric only by being root on their node.")
def fabric_needs_host(context: CheckContext) -> Iterator[Finding]:
    """Pods of accounts have nothing of their node: no network, no path, no device by its name.

    RoCE reaches them by an interface a rail, which `rdma.pods` names, and not by the node's own
    network. TCPX, TCPXO and gIB come to pods under GKE alone, which gives them the interfaces;
    elsewhere their libraries want the node's network, and TCPX does everywhere.
    """
    kubernetes = context.kubernetes
    for name, pool in context.pools.items() if kubernetes is not None else ():
        fabric, machine = context.fabric(pool), context.machine(pool)
        if pool.role != "compute" or fabric is None or machine is None or machine.gpu is None:
            continue
        path, hint = ("pools", name), ""
        if fabric.name == "roce" and pool.rdma.pods is None:
            hint = (
                "name an interface a rail, rdma: {pods: {network: 10.56.0.0/16, interfaces: "
                "[rail0, rail1]}}, or write fabric: ethernet"
            )
        elif fabric.name in _GOOGLES and getattr(kubernetes, "control_plane", "") != "gke":
            hint = "write control_plane: gke, or fabric: ethernet"
        if hint:
            yield Finding(
                summary=f'pool "{name}": pods reach {fabric.name} over their node\'s network only, '
                "and pods with that network are root there",
                path=path,
                at_key=True,
                hint=hint,
                relies_on=(("scheduler", "type"), _PLANE, path),
            )


@check("GC738", summary="The AllReduce under a cloud's control plane needs an image.")
def managed_allreduce_image(context: CheckContext) -> Iterator[Finding]:
    """On machines of ours the AllReduce's pods run the nodes' own programs.

    Nodes of EKS, GKE and AKS have none of them, so `smoke: {allreduce: {image: ...}}` names an
    image with sshd, Open MPI's mpirun and nccl-tests (`all_reduce_perf` in the PATH, or below
    /opt/nccl-tests); for nodes without GPUs with our payload at /usr/libexec/gcluster/allreduce.
    Nodes must be able to pull it.
    """
    kubernetes = _managed(context)
    if kubernetes is not None and context.smoke.allreduce.image is None:
        yield Finding(
            summary=f"nodes of {kubernetes.control_plane} have no MPI of ours: the AllReduce needs "
            "an image",
            path=_PLANE,
            hint="name one with sshd, mpirun and nccl-tests: smoke: {allreduce: {image: "
            "registry.example.edu/allreduce:1.4}}",
            relies_on=(_PLANE, ("smoke",)),
        )
