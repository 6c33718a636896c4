"""An inventory of kubespray: control planes and nodes of a Kubernetes on one's own hosts.

Groups and variables are those of its sample (github.com/kubernetes-sigs/kubespray, commit 46dbdd3,
inventory/sample) and, until 2.25, kube-master and kube-node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...structure.decoding import decode_yaml
from ..draft import Adopted, Draft, NothingToAdopt
from .inventory import SITE, Inventory, host_entry, leave_variables, read_inventory, way_in

_PLANES = ("kube_control_plane", "kube-master", "kube_master")
_NODES = ("kube_node", "kube-node", "kube-worker")
_CNIS = {"calico": "calico", "cilium": "cilium"}
_DOMAIN = "cluster.local"
_TAINT = re.compile(r"([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)")
"""KEY=VALUE:EFFECT, as kubectl writes it."""
_REPLACED = "gcluster's roles set Kubernetes up"
_READ: dict[str, tuple[str, str]] = {
    "kube_network_node_prefix": ("each node gets a network of the pods' itself", "replaced"),
    "container_manager": ("containerd runs containers", "replaced"),
    "etcd_member_name": ("members of etcd are called as their hosts", "replaced"),
    "etcd_deployment_type": ("etcd runs on the control planes", "replaced"),
    "ip": ("the address that nodes reach each other by is the host's address", "lost"),
    "access_ip": ("the address that nodes reach each other by is the host's address", "lost"),
    "kube_proxy_mode": ("Services go through nftables or Cilium", "replaced"),
    "cluster_name": ("the cluster's domain is cluster.local", "lost"),
    "dns_mode": ("CoreDNS answers", "replaced"),
    "kube_encrypt_secret_data": ("secrets are encrypted", "replaced"),
    "auto_renew_certificates": ("gcluster renews certificates", "replaced"),
    "ingress_nginx_enabled": ("the spec has no ingress", "lost"),
    "metallb_enabled": ("the spec has no load balancer of services on bare metal", "lost"),
    "helm_enabled": (_REPLACED, "replaced"),
    "nvidia_accelerator_enabled": ("GPUs are set up where machines have them", "replaced"),
    "kubernetes_audit": ("the API server writes an audit log", "replaced"),
    "nvidia_gpu_nodes": ("GPUs are set up where machines have them", "replaced"),
}
_REPORTED = frozenset(
    {
        "kube_network_plugin", "kube_pods_subnet", "kube_service_addresses", "kube_version",
        "loadbalancer_apiserver", "kube_vip_address", "kube_vip_enabled", "metrics_server_enabled",
        "node_labels", "node_taints",
    }
)  # fmt: skip


def is_kubernetes(inventory: Inventory) -> bool:
    """Say whether an inventory is kubespray's, or of the same shape."""
    return any(inventory.hosts_below(group) for group in _PLANES)


def adopt_kubespray(inventory: Mapping[str, Any], *, name: str, origin: str, date: str) -> Adopted:
    """Draft a spec of the hosts of an inventory of kubespray.

    Args:
        inventory: as `ansible-inventory --list` prints it.
        name: of the cluster.
        origin: where it comes from, in words.
        date: when it was read.

    Raises:
        NothingToAdopt: it has no control plane, or no node.
    """
    read = read_inventory(inventory)
    if not is_kubernetes(read):
        raise NothingToAdopt("no host is in kube_control_plane: is it an inventory of kubespray?")
    return adopt_kubernetes(read, Draft(name, origin=origin, date=date))


def adopt_kubernetes(read: Inventory, draft: Draft) -> Adopted:
    """Draft a spec of an inventory that was read."""
    ssh = way_in(read, draft)
    draft.sites[SITE] = {"provider": "bare-metal", "ssh": ssh}
    draft.scheduler = {"type": "kubernetes"}
    planes = [host for group in _PLANES for host in read.hosts_below(group)]
    nodes = [host for group in _NODES for host in read.hosts_below(group)]
    both = [host for host in nodes if host in planes]
    nodes = [host for host in dict.fromkeys(nodes) if host not in planes]
    planes = list(dict.fromkeys(planes))
    draft.pools["control"] = {
        "site": SITE, "role": "controller",
        "hosts": [host_entry(host, read, ssh) for host in planes],
    }  # fmt: skip
    if not nodes:
        raise NothingToAdopt("no host is a node alone (kube_node)")
    for pool, hosts in _pools(nodes, read).items():
        name = draft.fit(pool, "pool", draft.pools)
        entry: dict[str, Any] = {
            "site": SITE, "machine": draft.machine(f"{draft.name}-{name}", ["bare-metal"]),
            "hosts": [host_entry(host, read, ssh) for host in hosts],
        }  # fmt: skip
        words = _node_words(read.variables.get(hosts[0], {}))
        if words:
            entry["kubernetes"] = words
        taints = read.variables.get(hosts[0], {}).get("node_taints")
        if taints and "taints" not in words:
            draft.leave(f"node_taints of {hosts[0]}: {taints}", "not KEY=VALUE:EFFECT: taints")
        draft.pools[name] = entry
    if both:
        why = f"{', '.join(both)}: control planes run no jobs under gcluster"
        draft.leave("nodes that are control planes too", why)
    _leave_hosts(read, {*planes, *nodes}, draft)
    draft.carry(len(planes) + len(nodes))
    _settings(read, len(planes), draft)
    domains = {each.get("cluster_name", _DOMAIN) for each in read.variables.values()}
    carried = _REPORTED | ({"cluster_name"} if domains == {_DOMAIN} else set())
    usual = _usual(read) - carried
    leave_variables(read, draft, _READ | dict.fromkeys(carried, ("", "")), apart=usual)
    if usual:
        why = "as kubespray's sample has them, or switched off: gcluster has its own"
        draft.leave(f"{len(usual)} variables", why, "replaced", settings=len(usual))
    draft.leave("storage", "classes of storage are the spec's: write storage before `up`")
    return draft.finished()


def _usual(read: Inventory) -> set[str]:
    """Return variables that nothing is lost with: with the sample's values, or switched off."""
    said: dict[str, list[Any]] = {}
    for each in read.variables.values():
        for key, value in each.items():
            said.setdefault(key, []).append(value)
    listed = {key for key, (_, kind) in _READ.items() if kind == "replaced"}
    return {
        key
        for key, values in said.items()
        if key not in listed and all(_is_usual(key, value) for value in values)
    }


def _is_usual(key: str, value: Any) -> bool:
    """Say whether a value is the sample's; variables of an ini file are all text."""
    if key.endswith("_enabled") and str(value).lower() in {"false", "no"}:
        return True
    sample = _sample()
    return key in sample and str(value).lower() == str(sample[key]).lower()


@cache
def _sample() -> dict[str, Any]:
    return decode_yaml(Path(__file__).with_suffix(".yaml").read_bytes(), dict[str, Any])


def _pools(nodes: list[str], read: Inventory) -> dict[str, list[str]]:
    """Put nodes with the same labels and taints together."""
    pools: dict[str, list[str]] = {}
    of_labels: dict[str, str] = {}
    for host in nodes:
        words = _node_words(read.variables.get(host, {}))
        key = str(words) if words else ""
        name = of_labels.setdefault(
            key, "nodes" if not of_labels else f"nodes-{len(of_labels) + 1}"
        )
        pools.setdefault(name, []).append(host)
    return pools


def _node_words(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return labels and taints of a host as a pool has them; {} where there are none."""
    found: dict[str, Any] = {}
    labels, taints = variables.get("node_labels"), variables.get("node_taints")
    if isinstance(labels, dict) and labels:
        found["labels"] = {str(key): str(value) for key, value in sorted(labels.items())}
    read = [_TAINT.fullmatch(str(each)) for each in taints or ()]
    if read and all(read):
        found["taints"] = [
            {"key": each[1], **({"value": each[2]} if each[2] else {}), "effect": each[3]}
            for each in read
            if each is not None
        ]
    return found


def _leave_hosts(read: Inventory, placed: set[str], draft: Draft) -> None:
    """List hosts that are neither: members of etcd apart, NFS servers, bastions."""
    grouped = {host for hosts in read.groups.values() for host in hosts}
    loose = {"all": [host for host in read.hosts if host not in grouped]}
    for group, hosts in {**read.groups, **loose}.items():
        left = [host for host in hosts if host not in placed]
        if left:
            shown = ", ".join(left[:4])
            why = f"{shown}: neither control planes nor nodes, so they are left out"
            draft.leave(f"group {group}", why, settings=len(left))


def _of_the_cluster(read: Inventory, draft: Draft) -> dict[str, Any]:
    """Return variables that hold for the whole cluster; hosts that differ are listed."""
    said: dict[str, Any] = {}
    for key in sorted(_REPORTED - {"node_labels", "node_taints"}):
        values = [each[key] for each in read.variables.values() if key in each]
        if values:
            said[key] = max(values, key=values.count)
        if any(value != said[key] for value in values):
            draft.leave(f"variable {key} of some hosts", "it is the cluster's: one for all")
    return said


def _settings(read: Inventory, planes: int, draft: Draft) -> None:
    """Write what variables say of the cluster as a whole."""
    said = _of_the_cluster(read, draft)
    cni = said.get("kube_network_plugin")
    if cni in _CNIS:
        draft.scheduler["cni"] = _CNIS[cni]
    elif cni:
        draft.leave(f"kube_network_plugin: {cni}", "gcluster has Cilium and Calico: cni")
    for key, field in (
        ("kube_pods_subnet", "pod_cidr"),
        ("kube_service_addresses", "service_cidr"),
    ):
        if said.get(key) and "{{" not in str(said[key]):
            draft.scheduler[field] = str(said[key])
    if str(said.get("metrics_server_enabled")).lower() in {"true", "yes"}:
        draft.scheduler["addons"] = ["metrics-server"]
    version = str(said.get("kube_version") or "").removeprefix("v")
    if version and "{{" not in version:
        draft.more["software"] = {"kubernetes": version}
    _address(said, planes, draft)


def _address(said: Mapping[str, Any], planes: int, draft: Draft) -> None:
    """Write the one address of several control planes."""
    balancer = said.get("loadbalancer_apiserver")
    address = said.get("kube_vip_address") or (
        balancer.get("address") if isinstance(balancer, dict) else ""
    )
    if address and said.get("kube_vip_address"):
        draft.scheduler["virtual_address"] = {"address": str(address)}
    elif address:
        draft.scheduler["virtual_address"] = {"address": str(address)}
        why = f"{address} is written as virtual_address: control planes move it themselves"
        draft.leave("loadbalancer_apiserver", why, "replaced")
    elif planes > 1:
        why = "virtual_address: {address: a free one of their network} for several control planes"
        draft.leave("the control planes' one address", why, "unfinished")
