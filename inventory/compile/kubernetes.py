"""The role kubernetes: control planes and nodes by kubeadm, from packages or from a bundle.

No node has other nodes' addresses: only the control planes' names and addresses, and the one
address by which all of them are reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ...schemas.catalog import Machine
from ...schemas.derived.control_planes import API_PORT, api_name, balanced_site
from ...schemas.spec import ClusterSpec, KubernetesScheduler, Oidc, PoolKubernetes
from ...schemas.spec.scheduler import VirtualAddress
from ...schemas.spec.scheduler.kubernetes import OIDC_PREFIX
from ...schemas.spec.software import SourceRedirect
from ...schemas.stack.bundle import BUNDLED, IMAGES, MORE_IMAGES, KubernetesBundle
from ..hosts import Host
from .kubernetes_objects.registration import registration
from .node import NodeFacts
from .roles import role_compiler
from .slurm.nodes import machine_of
from .steps import Json, Phase, Stage, Step

ENCRYPTION_SECRET = "kubernetes-encryption"  # noqa: S105  # the secret's name
"""Name of the secret by which Kubernetes' own secrets are encrypted where they are stored."""
BALANCED_PORT = 8443
"""Where haproxy listens on control planes that share an address: the API servers have theirs."""
KUBE_VIP_SOURCE = "kube-vip"
POOL_LABEL = "gcluster.local/pool"
"""Label of a node with the name of its pool."""
_PACKAGES = ("kubeadm", "kubelet", "kubectl")


class KubernetesAt(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle of Kubernetes, and where the nodes find it."""

    manifest: KubernetesBundle
    """Of one that isn't built yet it has no checksums: nothing is installed before it is."""
    root: str
    """URL as the nodes see it; "": in the bundle of all that they live on."""


def taking(kubernetes: KubernetesAt | None, facts: dict[str, NodeFacts]) -> dict[str, NodeFacts]:
    """Return pools whose nodes take Kubernetes from a bundle; without one, as they are."""
    if kubernetes is None:
        return facts
    return {
        name: msgspec.structs.replace(
            node,
            kubernetes=kubernetes.manifest,
            kubernetes_root=kubernetes.root or f"{node.bundle_root}/{BUNDLED}",
        )
        for name, node in facts.items()
    }


def endpoint(spec: ClusterSpec, control_planes: Sequence[Host]) -> str:
    """Return HOST:PORT of the control plane: an address in common, else the first one's name.

    In common is the virtual address, and in a cloud the name of its internal load balancer.
    """
    virtual = _virtual_address(spec)
    if virtual is None:
        balanced = balanced_site(spec)
        shared = None if balanced is None else api_name(spec, balanced)
        return f"{shared or control_planes[0].name}:{API_PORT}"
    return f"{virtual.address}:{BALANCED_PORT if virtual.by == 'keepalived' else API_PORT}"


def _virtual_address(spec: ClusterSpec) -> VirtualAddress | None:
    kubernetes = spec.scheduler
    return kubernetes.virtual_address if isinstance(kubernetes, KubernetesScheduler) else None


def _moved_by(node: NodeFacts) -> dict[str, Json]:
    """Return who moves the control planes' address; kube-vip's image only by a known digest."""
    virtual = _virtual_address(node.spec)
    if virtual is None or node.pool.role != "controller":
        return {}
    moved: dict[str, Json] = {"address": virtual.address, "by": virtual.by}
    if virtual.by == "kube-vip":
        moved["image"] = pinned_image(node, KUBE_VIP_SOURCE)
    return {"kubernetes_vip": moved}


def pinned_image(node: NodeFacts, name: str) -> str:
    """Return the one image of a source by its digest; "" while the digest is unknown."""
    source = node.catalog.sources[name]
    image = source.images[0]
    redirect = node.spec.software.sources.get(name, SourceRedirect())
    digest = redirect.checksums.get(image) or source.image_digests.get(image, "")
    root = (redirect.url or source.url).split("://")[-1].rstrip("/")
    return f"{root}/{image}@{digest}" if digest else ""


@role_compiler("kubelet", after=("containerd",))
def kubelet_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role kubelet: what differs between pools; none without Kubernetes.

    Running pods feel another manager of CPUs, so a node is drained for it. The first kubelet of a
    host finds the settings there.
    """
    if not runs_kubernetes(node) or not node.cluster.controllers:
        return []
    variables: dict[str, Json] = {"kubelet_settings": kubelet_settings(node)}
    return [
        Step(stage=Stage.SCHEDULER, role="kubelet", phase=phase, variables=variables)
        for phase in _KUBELET_PHASES
    ]


_KUBELET_PHASES: tuple[Phase, ...] = ("configure", "verify")
_EVICTED_BELOW_MIB = 100
"""Free memory below which a kubelet evicts pods: its default of `evictionHard`."""


def kubelet_settings(node: NodeFacts) -> dict[str, Json]:
    """Return a pool's fields of the kubelet's configuration, v1beta1.

    Local nodes share this machine with each other: nothing of it is reserved, pinned or limited.
    """
    requested = node.pool.kubernetes or PoolKubernetes()
    pulls = requested.parallel_pulls
    made: dict[str, Json] = {
        "maxPods": requested.max_pods,
        "serializeImagePulls": pulls == 1,
    }
    if pulls > 1:
        made["maxParallelImagePulls"] = pulls
    if not node.is_machine:
        return made
    made |= {"podPidsLimit": requested.pids_per_pod, "seccompDefault": True}
    known = node.pool.machine is not None
    machine = machine_of(node.spec, node.name, node.catalog) if known else None
    reserved_mib = _reserved_mib(machine, requested)
    cpus = _reserved_cpus(machine, requested)
    made["kubeReserved"] = {"cpu": str(cpus), "memory": f"{reserved_mib}Mi"}
    aligned = requested.alignment or ("none" if node.gpu is None else "best-effort")
    if aligned != "none":
        made |= {"cpuManagerPolicy": "static", "topologyManagerPolicy": aligned}
    if requested.pin_memory:
        # All that is kept from pods, to the last byte: a kubelet refuses another sum.
        kept = f"{reserved_mib + _EVICTED_BELOW_MIB}Mi"
        made["memoryManagerPolicy"] = "Static"
        made["reservedMemory"] = [{"numaNode": 0, "limits": {"memory": kept}}]
    return made


def _reserved_cpus(machine: Machine | None, requested: PoolKubernetes) -> int:
    if requested.reserved_cpus is not None:
        return requested.reserved_cpus
    return 1 + (0 if machine is None else machine.cpu.threads) // 64


def _reserved_mib(machine: Machine | None, requested: PoolKubernetes) -> int:
    if requested.reserved_memory is not None:
        return math.ceil(requested.reserved_memory.value / 2**20)
    memory_gib = 0 if machine is None else machine.memory_gib or 0
    return 1024 + math.ceil(memory_gib * 1024 / 100)


@role_compiler("kubernetes", after=("containerd", "node_health", "kubelet"))
def kubernetes_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role kubernetes for a pool; none where the spec doesn't use it."""
    control_planes = node.cluster.controllers
    if not runs_kubernetes(node) or not control_planes:
        return []
    is_control_plane = node.pool.role == "controller"
    role: dict[str, Json] = {"kubernetes_role": "controller" if is_control_plane else "node"}
    version: dict[str, Json] = {"kubernetes_version": version_of(node)}
    named: list[Json] = [{"name": host.name, "address": host.address} for host in control_planes]
    planes: dict[str, Json] = {"kubernetes_control_planes": named}
    cni: dict[str, Json] = {"kubernetes_cni": "routed" if is_routed(node.spec) else "none"}
    network = dict(cni)
    if node.kubernetes is not None:
        network["kubernetes_image_repository"] = node.kubernetes.repository
    configured = role | network | version | planes | _cluster(node, control_planes) | _origin(node)
    secrets = {"kubernetes_encryption_key_file": ENCRYPTION_SECRET} if is_control_plane else {}
    return [
        _kubernetes_step("preflight", role | version | network | _moved_by(node)),
        _kubernetes_step(
            "install", version | _installed(node) | _balancer(node), spares_jobs=False
        ),
        _kubernetes_step("configure", configured, secrets),
        _kubernetes_step("join", role | cni | planes | version | _programs(node) | _login(node)),
        _kubernetes_step("verify", role | cni),
    ]


def _balancer(node: NodeFacts) -> dict[str, Json]:
    virtual = _virtual_address(node.spec)
    balanced = virtual is not None and virtual.by == "keepalived"
    return {"kubernetes_balancer": True} if balanced and node.pool.role == "controller" else {}


def version_of(node: NodeFacts) -> str:
    """Return the version that nodes run: the bundle's, the spec's, else the tested set's."""
    if node.kubernetes is not None:
        return node.kubernetes.kubernetes
    requested = node.spec.software.kubernetes
    return (node.version("kubernetes") or "") if requested == "auto" else requested


def _cluster(node: NodeFacts, control_planes: Sequence[Host]) -> dict[str, Json]:
    """Return the cluster's variables of all hosts; control planes pass on the networks."""
    kubernetes = node.spec.scheduler
    assert isinstance(kubernetes, KubernetesScheduler)  # noqa: S101  # runs_kubernetes checked it
    variables: dict[str, Json] = {
        "kubernetes_cluster": node.spec.name,
        "kubernetes_endpoint": endpoint(node.spec, control_planes),
        "kubernetes_labels": {POOL_LABEL: node.name},
    }
    labels, taints = registration(node)
    if taints:
        variables["kubernetes_labels"] = {POOL_LABEL: node.name, **labels}
        variables["kubernetes_taints"] = taints
    variables |= _moved_by(node)
    if balanced_site(node.spec) is not None and node.pool.role == "controller":
        variables["kubernetes_load_balanced"] = True
    if node.pool.role == "controller":
        variables["kubernetes_pod_cidr"] = kubernetes.pod_cidr
        variables["kubernetes_service_cidr"] = kubernetes.service_cidr
        variables |= _login(node)
        variables["kubernetes_unsafe_etcd"] = node.spec.sites[node.pool.site].is_made_here
    return variables


def _login(node: NodeFacts) -> dict[str, Json]:
    """Return how people's tokens are taken on a control plane; joining brings it to API servers."""
    kubernetes = node.spec.scheduler
    assert isinstance(kubernetes, KubernetesScheduler)  # noqa: S101  # runs_kubernetes checked it
    if node.pool.role != "controller" or kubernetes.oidc is None:
        return {}
    return {"kubernetes_authentication": jwt_authenticator(kubernetes.oidc)}


def jwt_authenticator(oidc: Oidc) -> dict[str, Json]:
    """Return how the API server takes the identity provider's tokens.

    Fields as AuthenticationConfiguration v1 and v1beta1 have them (k8s.io/apiserver 0.35.4).
    """
    issuer: dict[str, Json] = {"url": oidc.issuer, "audiences": [oidc.client_id]}
    if oidc.ca is not None:
        issuer["certificateAuthority"] = oidc.ca
    authenticator: dict[str, Json] = {
        "issuer": issuer,
        "claimMappings": {
            "username": {"claim": oidc.username_claim, "prefix": OIDC_PREFIX},
            "groups": {"claim": oidc.groups_claim, "prefix": OIDC_PREFIX},
        },
    }
    if oidc.required_claims:
        authenticator["claimValidationRules"] = [
            {"claim": claim, "requiredValue": value}
            for claim, value in sorted(oidc.required_claims.items())
        ]
    return authenticator


def is_routed(spec: ClusterSpec) -> bool:
    """Whether the built-in pod network is used: set in the spec, or by default on local sites."""
    kubernetes = spec.scheduler
    if not isinstance(kubernetes, KubernetesScheduler):
        return False
    if kubernetes.cni == "auto":
        return all(site.is_made_here for site in spec.sites.values())
    return kubernetes.cni == "routed"


def _origin(node: NodeFacts) -> dict[str, Json]:
    """Return where images come from, and the tags that are not kubeadm's own."""
    bundle = node.kubernetes
    if bundle is None:
        return {}
    return {
        **_installed(node),
        "kubernetes_etcd_tag": bundle.etcd,
        "kubernetes_dns_tag": f"v{bundle.coredns}",
    }


def _installed(node: NodeFacts) -> dict[str, Json]:
    """Return what nodes install: files of a bundle, or packages."""
    bundle = node.kubernetes
    if bundle is None:
        return {"kubernetes_packages": list(_PACKAGES)}
    sums = {file.path: f"sha256:{file.sha256}" if file.sha256 else "" for file in bundle.files}
    programs: list[Json] = [
        {
            "name": file.path.rpartition("/")[2],
            "url": f"{node.kubernetes_root}/{file.path}",
            "checksum": sums[file.path],
            "programs": list(file.programs),
        }
        for file in bundle.files
        if file.programs
    ]
    archive: Json = {"url": f"{node.kubernetes_root}/{IMAGES}", "checksum": sums[IMAGES]}
    return {"kubernetes_files": programs, "kubernetes_archive": archive, **_more_images(node)}


def _more_images(node: NodeFacts) -> dict[str, Json]:
    """Return the archive with the images of add-ons, where a bundle has one."""
    held = () if node.bundle is None else node.bundle.files
    file = next((file for file in held if file.path == f"{BUNDLED}/{MORE_IMAGES}"), None)
    if file is None:
        return {}
    archive: Json = {
        "url": f"{node.bundle_root}/{file.path}",
        "checksum": f"sha256:{file.sha256}",
    }
    return {"kubernetes_more_images": archive}


def _programs(node: NodeFacts) -> dict[str, Json]:
    """Return the programs alone: what a member exchanges when another version comes."""
    of_images = {"kubernetes_archive", "kubernetes_more_images"}
    return {k: v for k, v in _installed(node).items() if k not in of_images}


def _kubernetes_step(
    phase: Phase,
    variables: dict[str, Json],
    secrets: dict[str, str] | None = None,
    *,
    spares_jobs: bool = True,
) -> Step:
    """Return a step; pods go on while their node's kubelet is restarted.

    What is installed is a version: another one comes to nodes that were drained, in waves. Nodes
    join once a control plane serves, and not before.
    """
    return Step(
        stage=Stage.SCHEDULER,
        role="kubernetes",
        phase=phase,
        variables=variables,
        secrets=secrets or {},
        spares_jobs=spares_jobs,
        independent=phase in {"preflight", "configure"},
    )


IMAGES_SOURCE = "kubernetes-images"
"""Artefact source of Kubernetes' own images."""
IMAGES_PORT = 8481
"""Where a node that takes images from an archive serves them to its own containerd."""
_EVERY_REGISTRY = "_default"
"""What containerd calls the hosts of registries that have none of their own (its docs/hosts.md)."""


def runs_kubernetes(node: NodeFacts) -> bool:
    """Whether a pool's hosts are control planes or nodes that we set up."""
    kubernetes = node.spec.scheduler
    if not isinstance(kubernetes, KubernetesScheduler) or kubernetes.control_plane != "self":
        return False
    return node.pool.role != "login"


def kubernetes_sources(node: NodeFacts) -> tuple[str, ...]:
    """Return the artefact sources whose packages these nodes take."""
    return () if node.kubernetes is not None else ("kubernetes", "docker-ce")


@role_compiler(
    "containerd",
    sources=("kubernetes", "docker-ce"),
    chosen=kubernetes_sources,
    components=("kubernetes",),
)
def containerd_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role containerd; none where Kubernetes isn't the scheduler."""
    if not runs_kubernetes(node):
        return []
    configured: dict[str, Json] = {}
    mirrors: dict[str, Json] = {}
    if node.kubernetes is not None:
        configured["containerd_sandbox_image"] = node.kubernetes.image("pause")
        mirrors[_EVERY_REGISTRY] = f"http://127.0.0.1:{IMAGES_PORT}"
    source = node.catalog.sources.get(IMAGES_SOURCE)
    redirect = node.spec.software.sources.get(IMAGES_SOURCE, SourceRedirect())
    if source is not None and redirect.url and node.bundle is None:
        registry = source.url.split("://")[-1]
        mirrors[registry] = redirect.url.rstrip("/")
    if mirrors:
        configured["containerd_mirrors"] = mirrors
    requested = None if node.pool.kubernetes is None else node.pool.kubernetes.runtime_class
    runtimes: dict[str, Json] = {}
    if requested is not None:
        runtimes["containerd_runtimes"] = {requested.name: requested.type}
    return [
        _containerd_step("preflight", {}),
        _containerd_step("install", {}),
        _containerd_step("configure", configured | runtimes),
        _containerd_step("verify", runtimes),
    ]


def _containerd_step(phase: Phase, variables: dict[str, Json]) -> Step:
    """Return a step; pods go on while containerd is restarted."""
    return Step(
        stage=Stage.SCHEDULER,
        role="containerd",
        phase=phase,
        variables=variables,
        spares_jobs=phase != "install",
    )
