"""The pod network by choice: values for Cilium or Calico; the routed one is the nodes' own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from ..steps import Json

if TYPE_CHECKING:
    from .facts import KubernetesFacts

Cni: TypeAlias = Literal["cilium", "calico", "routed", "cloud"]
API_PORT = 6443
"""Port of the API server: kubeadm's default."""


def cni(facts: KubernetesFacts) -> Cni:
    """Return the pod network; auto: routed where all nodes are made on this machine.

    A cloud's own control plane brings its cloud's.
    """
    if facts.scheduler.control_plane != "self":
        return "cloud"
    said = facts.scheduler.cni
    if said != "auto":
        return said
    here = all(site.is_made_here for site in facts.spec.sites.values())
    return "routed" if here else "cilium"


def spans_sites(facts: KubernetesFacts) -> bool:
    """Whether nodes are at several sites, or in a cloud: pods' addresses aren't routed there."""
    sites = {pool.site for pool in facts.spec.pools.values()}
    return len(sites) > 1 or any(facts.spec.sites[name].is_cloud for name in sites)


def api_endpoint(facts: KubernetesFacts) -> str:
    """Return what agents on nodes reach the API server by; "" while it isn't known."""
    if facts.scheduler.virtual_address is not None:
        return facts.scheduler.virtual_address.address
    controllers = facts.inventory.with_role("controller")
    return (controllers[0].address or controllers[0].name) if controllers else ""


def cilium_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return Cilium's values: addresses from the nodes' pod networks, services by kube-proxy.

    `cni.exclusive: false` leaves Multus' configuration in place. kube-proxy stays: role kubernetes
    sets it up, and Cilium beside it needs no address of the API server to start.
    """
    values: dict[str, Json] = {
        "ipam": {"mode": "kubernetes"},
        "k8s": {"requireIPv4PodCIDR": True},
        "kubeProxyReplacement": False,
        "cni": {"exclusive": False},
        "operator": {"replicas": 1 if len(facts.inventory.with_role("controller")) < 2 else 2},  # noqa: PLR2004  # of two one may fail
        "hubble": {"enabled": facts.spec.monitoring is not None},
    }
    if spans_sites(facts):
        return values | {"routingMode": "tunnel", "tunnelProtocol": "vxlan"}
    return values | {
        "routingMode": "native",
        "autoDirectNodeRoutes": True,
        "ipv4NativeRoutingCIDR": facts.scheduler.pod_cidr,
    }


def calico_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the values of Tigera's operator, which sets Calico up."""
    encapsulation = "VXLAN" if spans_sites(facts) else "VXLANCrossSubnet"
    return {
        "installation": {
            "enabled": True,
            "cni": {"type": "Calico"},
            "calicoNetwork": {
                "bgp": "Disabled",
                "ipPools": [
                    {
                        "cidr": facts.scheduler.pod_cidr,
                        "encapsulation": encapsulation,
                        "natOutgoing": "Enabled",
                        "nodeSelector": "all()",
                    }
                ],
            },
        }
    }
