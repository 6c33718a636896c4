"""Nodes that a cloud manages, as hosts of the cluster: known through the API, without SSH.

Their clouds name them, so hosts have those names. Wanted nodes that have not joined have the spec's
names. A label set by the stack gives a node's pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ....inventory.compile.kubernetes_objects.nodes import POOL
from ....inventory.hosts import Host, Placement, SshTarget
from ....schemas.derived.control_planes import managed_by, managed_pools
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec
from ...cluster.open_site import OpenSite
from ..kubectl import ApiRefused, ApiSilent, Kubectl
from .login import FILE, local_kubectl, write_kubeconfig

_MACHINE = "node.kubernetes.io/instance-type"
_BLOCKS = (
    # (block, leaf) as clouds label them; the widest that a fabric is alike in comes first.
    ("cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock"),
    ("topology.k8s.aws/network-node-layer-2", "topology.k8s.aws/network-node-layer-3"),
)
"""GKE and EKS give a node's location in labels (cloud.google.com/kubernetes-engine/docs/how-to/
gke-topology-aware-scheduling; docs.aws.amazon.com/eks, "Topology", November 2026); AKS doesn't."""
NODE_VERSIONS = {
    "os": "osImage",
    "kernel": "kernelVersion",
    "kubernetes": "kubeletVersion",
    "containerd": "containerRuntimeVersion",
}


class ApiNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node as the API returns it."""

    name: str
    pool: str
    created: str = ""
    address: str = ""
    machine: str = ""
    placement: Placement = Placement()
    machine_id: str = ""
    """The cloud's id of its machine; "" where unknown."""
    boot_id: str = ""
    """Id of its kernel's boot; "" where its kubelet doesn't report it."""
    cordoned: bool = False
    ready: bool = False
    why: str = ""
    """What its kubelet or the control plane reports when it isn't ready."""
    versions: dict[str, str] = {}


def read_nodes(kubectl: Kubectl) -> tuple[ApiNode, ...]:
    """Query the nodes that have a pool.

    Raises:
        ApiSilent, ApiRefused: see `Kubectl.text`.
    """
    answer = kubectl.get("nodes", f"--selector={POOL}", timeout_s=60)
    return tuple(sorted((_node(one) for one in answer["items"]), key=lambda n: (n.created, n.name)))


def managed_site(spec: ClusterSpec) -> str | None:
    """Return the site whose cloud runs the control plane; None: none does."""
    pools = sorted(managed_pools(spec))
    return spec.pools[pools[0]].site if pools else None


def as_host(spec: ClusterSpec, node: ApiNode) -> Host:
    """Return a node as a host of its pool."""
    pool = spec.pools[node.pool]
    return Host(
        name=node.name,
        site=pool.site,
        pool=node.pool,
        role=pool.role,
        machine=pool.machine or node.machine or None,
        address=node.address,
        ssh=SshTarget(user=""),
        placement=node.placement,
        connection="api",
    )


def with_managed_nodes(
    spec: ClusterSpec,
    planned: Sequence[Host],
    nodes: Iterable[ApiNode],
    leaving: Collection[str] = (),
) -> tuple[tuple[Host, ...], tuple[Host, ...]]:
    """Return the wanted and the existing hosts, with nodes for their clouds' machines.

    Args:
        spec: the cluster.
        planned: the hosts of the spec, by its own names.
        nodes: those that joined, the oldest first; more of a pool than its count are left out.
        leaving: names of those whose machines will be removed: they are left out first.
    """
    run, joined = managed_pools(spec), [n for n in nodes if n.pool in spec.pools]
    wanted: list[Host] = [host for host in planned if host.pool not in run]
    existing: list[Host] = []
    requested = Counter(host.pool for host in planned if host.pool in run)
    for pool, count in requested.items():
        own = [node for node in joined if node.pool == pool]
        # Those that serve come first: what is gone is not ready any more, or was drained for it.
        own.sort(key=lambda node: (node.name in leaving, not node.ready, node.cordoned))
        hosts = [as_host(spec, node) for node in own[:count]]
        existing += hosts
        lacking = [h for h in planned if h.pool == pool][len(hosts) :]
        wanted += [*hosts, *(msgspec.structs.replace(h, connection="api") for h in lacking)]
    return tuple(wanted), tuple(existing)


def _node(answer: dict[str, Any]) -> ApiNode:
    labels = answer["metadata"].get("labels", {})
    conditions = {c["type"]: c for c in answer["status"].get("conditions", ())}
    ready = conditions.get("Ready", {})
    is_ready = ready.get("status") == "True"
    node_info = answer["status"].get("nodeInfo", {})
    addresses = answer["status"].get("addresses", ())
    return ApiNode(
        name=answer["metadata"]["name"],
        pool=labels[POOL],
        created=answer["metadata"].get("creationTimestamp") or "",
        address=next((a["address"] for a in addresses if a["type"] == "InternalIP"), ""),
        machine=labels.get(_MACHINE, ""),
        placement=_placement(labels),
        machine_id=answer.get("spec", {}).get("providerID", "").rpartition("/")[2],
        boot_id=node_info.get("bootID", ""),
        cordoned=bool(answer.get("spec", {}).get("unschedulable")),
        ready=is_ready,
        why="" if is_ready else ready.get("message", "") or "no report of its kubelet",
        versions={
            part: node_info[key] for part, key in NODE_VERSIONS.items() if node_info.get(key)
        },
    )


def _placement(labels: dict[str, str]) -> Placement:
    for block, leaf in _BLOCKS:
        if block in labels:
            return Placement(block=labels[block], leaf=labels.get(leaf))
    return Placement()


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The response of a cloud's control plane."""

    nodes: tuple[ApiNode, ...] = ()
    exists: bool = False
    """Whether the stack has made a control plane."""
    problem: str = ""
    """Why its API gave no answer; "" when it did, or there is none."""


def reach(spec: ClusterSpec, sites: Iterable[OpenSite], folder: Path) -> Kubectl | None:
    """Return the API, with a kubeconfig from the stack's current outputs; None: there is none.

    Raises:
        ProviderError: the stack can't be read.
    """
    managed, name = managed_by(spec), managed_site(spec)
    found = next((site for site in sites if site.name == name), None)
    plane = None
    if managed is not None and found is not None:
        plane = found.provider.control_plane(found.context)
    if managed is None or plane is None:
        (folder / FILE).unlink(missing_ok=True)
        return None
    write_kubeconfig(folder, managed, plane)
    return local_kubectl(folder)


def see(spec: ClusterSpec, sites: Iterable[OpenSite], folder: Path) -> Seen:
    """Query a cloud's control plane for its nodes; never raises for one that doesn't respond.

    Raises:
        ProviderError: the stack can't be read.
    """
    if managed_site(spec) is None:
        return Seen()
    kubectl = reach(spec, sites, folder)
    if kubectl is None:
        return Seen()
    try:
        return Seen(nodes=read_nodes(kubectl), exists=True)
    except (ApiSilent, ApiRefused) as error:
        return Seen(exists=True, problem=str(error))


def silence(spec: ClusterSpec, problem: str) -> Diagnostic:
    """Return the finding of a control plane that exists and can't be queried."""
    return Diagnostic(
        code="GC1043",
        severity=Severity.ERROR,
        summary=f"the control plane that {managed_by(spec)} runs gives no answer: {problem}",
        path=("scheduler", "control_plane"),
        hint="outside of the cloud's network only admin_cidrs reach it; the login is the cloud's. "
        "up goes on where it changes the control plane, as by other admin_cidrs, or makes it again",
    )
