"""The add-ons that a cluster needs, in the order in which they are applied, with their values.

The pod network is one of them by choice; the routed one is the nodes' own, a cloud's the cloud's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from ....schemas.catalog import Addon
from ....schemas.derived.eks_groups import eks_pools
from ..steps import Json
from .devices.fabric import EFA_RESOURCE, fabric_access
from .devices.fabric import (
    uses_network_operator as has_adapters,
)
from .devices.google import INJECTOR, INSTALLERS, TCPXO
from .devices.gpus import (
    amd_values,
    gke_brings_gpus,
    gpu_pools,
    nvidia_values,
)
from .devices.nvlink import ADDON as DRA_DRIVER
from .devices.nvlink import driver_values, needs_driver
from .facts import MONITORING, KubernetesFacts
from .jobs.autoscaler import autoscaler_values, tag_for
from .monitoring.stack import stack_images, stack_values
from .nodes import MACHINE, of_plugins
from .objects import Object, documents, new, owned, to_yaml
from .queues import kueue_values
from .volumes import LOCAL_PATH, csi_addons, local_folders

Cni: TypeAlias = Literal["cilium", "calico", "routed", "cloud"]
API_PORT = 6443
"""Port of the API server: kubeadm's default."""


class ChosenAddon(msgspec.Struct, frozen=True, kw_only=True):
    """An add-on that the cluster needs."""

    addon: Addon
    values: dict[str, Json] = {}
    """Helm values; {} for manifests, and where the chart's own are right."""


ORDER = (
    "cilium", "calico-crds", "tigera-operator", "amd-gpu-operator", "gpu-operator",
    DRA_DRIVER, "network-operator", "aws-efa-device-plugin", "gke-device-injector",
    "gke-tcpxo-installer", "gke-gib-installer",
    "aws-fsx-csi-driver", "azurelustre-csi-driver", "csi-driver-nfs",
    "aws-mountpoint-s3-csi-driver", "blob-csi-driver", "local-path-provisioner",
    MONITORING, "metrics-server", "node-problem-detector", "jobset", "mpi-operator",
    "kubeflow-trainer", "provisioning-requests", "cluster-autoscaler", "kueue",
)  # fmt: skip
"""The pod network first, what jobs need next, and last what admits jobs of kinds that are there."""
_NETWORKS = {"cilium": ("cilium",), "calico": ("calico-crds", "tigera-operator")}


def chosen_addons(facts: KubernetesFacts) -> list[ChosenAddon]:
    """Return the add-ons that the spec needs or names, with their values, in order."""
    needed = (_needed(facts) | facts.named_addons) - facts.without
    ranked = sorted(needed, key=lambda n: (ORDER.index(n) if n in ORDER else len(ORDER), n))
    values = _values()
    return [
        ChosenAddon(
            addon=_of_release(facts, facts.catalog.addons[name]),
            values=values[name](facts) if name in values else {},
        )
        for name in ranked
    ]


def _of_release(facts: KubernetesFacts, addon: Addon) -> Addon:
    """Return an add-on with the images that it starts on this cluster, and no others."""
    if addon.name == MONITORING:
        return msgspec.structs.replace(addon, images=stack_images(facts, addon.images))
    if not addon.tags:
        return addon
    tag = tag_for(facts.release, addon.tags)
    images = {name: digest for name, digest in addon.images.items() if name.endswith(f":{tag}")}
    return msgspec.structs.replace(addon, images=images)


def addon_namespaces(facts: KubernetesFacts) -> list[Object]:
    """Return the namespaces of the add-ons; the one of the system is there already."""
    found: dict[str, bool] = {}
    for chosen in chosen_addons(facts):
        name = chosen.addon.namespace
        found[name] = found.get(name, False) or chosen.addon.privileged
    return [
        new(
            "v1",
            "Namespace",
            name,
            labels={"pod-security.kubernetes.io/enforce": "privileged" if host else "baseline"},
        )
        for name, host in sorted(found.items())
        if name != "kube-system"
    ]


def unfilled(facts: KubernetesFacts) -> dict[str, list[str]]:
    """Return add-on -> what of it has no digest: "" is the chart or manifest itself."""
    found = {one.addon.name: one.addon.unfilled for one in chosen_addons(facts)}
    return {name: missing for name, missing in found.items() if missing}


def _needed(facts: KubernetesFacts) -> set[str]:
    needed = set(_NETWORKS.get(cni(facts), ()))
    if gpu_pools(facts, "nvidia") and not gke_brings_gpus(facts):
        needed.add("gpu-operator")
    if gpu_pools(facts, "amd"):
        needed.add("amd-gpu-operator")
    if needs_driver(facts):
        needed.add(DRA_DRIVER)
    if has_adapters(facts):
        needed.add("network-operator")
    if _efa_machines(facts):
        needed.add("aws-efa-device-plugin")
    if facts.scheduler.kueue:
        needed.add("kueue")
    if facts.monitoring is not None:
        needed.add(MONITORING)
    if eks_pools(facts.spec):
        needed |= {"cluster-autoscaler"}
        needed |= {"provisioning-requests"} if facts.scheduler.kueue else set()
    if facts.scheduler.control_plane == "gke":
        classes = {facts.nodes[pool].fabric_class for pool in facts.compute}
        needed |= {addon for name, addon in INSTALLERS.items() if name in classes}
        needed |= {INJECTOR} if TCPXO in classes else set()
    return needed | csi_addons(facts)


def _efa_machines(facts: KubernetesFacts) -> list[str]:
    return sorted(
        {
            facts.machine(pool).name
            for pool in facts.compute
            if EFA_RESOURCE in fabric_access(facts, pool).resources
        }
    )


def _efa_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return which nodes the plugin runs on: the label is ours, for nodes that no cloud labels."""
    return {
        "supportedInstanceLabels": {"keys": [MACHINE], "values": _efa_machines(facts)},
        "tolerations": of_plugins(facts),
    }


def _local_path_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the nodes' folder of volumes; its class is written with the others."""
    return {
        "storageClass": {"create": False, "provisionerName": "rancher.io/local-path"},
        "nodePathMap": [
            {"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [LOCAL_PATH]},
            *({"node": n, "paths": [path]} for n, path in local_folders(facts).items()),
        ],
    }


def detector_values() -> dict[str, Json]:
    """Return what the node problem detector reads of a node with containerd, and where it runs.

    Its configurations as the image has them (kubernetes/node-problem-detector v1.35.1, config/);
    the one that restarts kubelets is not among them: that is the guard's and `repair`'s.
    """
    return {
        "settings": {
            "log_monitors": ["/config/kernel-monitor.json", "/config/readonly-monitor.json"],
            "custom_plugin_monitors": [
                "/config/kernel-monitor-counter.json",
                "/config/systemd-monitor-counter.json",
            ],
            "prometheus_address": "127.0.0.1",
        },
        "tolerations": [{"operator": "Exists"}],
    }


def _values() -> dict[str, Callable[[KubernetesFacts], dict[str, Json]]]:
    return {
        "cilium": cilium_values,
        "tigera-operator": calico_values,
        "gpu-operator": nvidia_values,
        "amd-gpu-operator": amd_values,
        "network-operator": lambda _: {
            "nfd": {"enabled": False},
            "sriovNetworkOperator": {"enabled": False},
        },
        DRA_DRIVER: driver_values,
        "aws-efa-device-plugin": _efa_values,
        "local-path-provisioner": _local_path_values,
        "cluster-autoscaler": autoscaler_values,
        "node-problem-detector": lambda _: detector_values(),
        "kueue": kueue_values,
        MONITORING: stack_values,
        "kubeflow-trainer": lambda _: {"jobset": {"install": False}},
    }


_FLUX = "flux-system"
_ARGO = "argocd"
_CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
"""Layer of an OCI artefact that is the chart: others hold its provenance (helm-controller v1.4.0,
docs/spec/v2/helmreleases, OCIRepository reference)."""


def addon_files(facts: KubernetesFacts, folders: list[str]) -> dict[str, bytes]:
    """Return the add-ons' files.

    Args:
        facts: the cluster.
        folders: folders of objects, in the order in which they are applied.
    """
    chosen = chosen_addons(facts)
    files = {"addons/addons.yaml": to_yaml([describe(one) for one in chosen]).encode()}
    for one in chosen:
        if one.values:
            files[f"addons/{one.addon.name}.values.yaml"] = to_yaml(one.values).encode()
    charts = [one for one in chosen if one.addon.kind == "helm"]
    cluster = facts.spec.name
    flux = [made for one in charts for made in flux_objects(one, charts)]
    argo = [argo_application(one, wave) for wave, one in enumerate(charts)]
    if charts:
        files["flux/addons.yaml"] = documents(owned(one, cluster) for one in flux)
        files["argocd/addons.yaml"] = documents(owned(one, cluster) for one in argo)
    if manifests := [one.addon.repository for one in chosen if one.addon.kind == "manifests"]:
        files["addons/manifests/kustomization.yaml"] = _kustomization(manifests)
    files["order.yaml"] = to_yaml(_order(folders)).encode()
    return files


def _kustomization(urls: list[str]) -> bytes:
    """Return the add-ons that are no charts for Flux and Argo CD, which both fetch a file's URL."""
    made = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": urls,
    }
    return to_yaml(made).encode()


def describe(one: ChosenAddon) -> dict[str, Json]:
    """Return what an add-on is; a digest that isn't known is null, and `up` refuses it."""
    addon = one.addon
    made: dict[str, Json] = {
        "name": addon.name,
        "kind": addon.kind,
        "repository": addon.repository,
        "version": addon.version,
        "digest": addon.digest,
        "namespace": addon.namespace,
    }
    if addon.chart is not None:
        made["chart"] = addon.chart
    if addon.images:
        made["images"] = dict(addon.images)
    if one.values:
        made["values"] = f"{addon.name}.values.yaml"
    return made


def flux_objects(one: ChosenAddon, others: list[ChosenAddon]) -> list[Object]:
    """Return where Flux finds a chart, and its release (source v1, helm v2; read 2026-11)."""
    addon = one.addon
    chart = str(addon.chart)
    here = {other.addon.name for other in others}
    spec: dict[str, Json] = {
        "interval": "1h",
        "releaseName": addon.name,
        "targetNamespace": addon.namespace,
        "storageNamespace": addon.namespace,
        "install": {"crds": "CreateReplace"},
        "upgrade": {"crds": "CreateReplace"},
    }
    if addon.repository.startswith("oci://"):
        source = new(
            "source.toolkit.fluxcd.io/v1",
            "OCIRepository",
            addon.name,
            namespace=_FLUX,
            spec={
                "interval": "1h",
                "url": f"{addon.repository}/{chart}",
                "layerSelector": {"mediaType": _CHART_LAYER, "operation": "copy"},
                "ref": {
                    "tag": addon.version
                },  # a digest would be the artefact's, not the archive's
            },
        )
        spec["chartRef"] = {"kind": "OCIRepository", "name": addon.name, "namespace": _FLUX}
    else:
        source = new(
            "source.toolkit.fluxcd.io/v1",
            "HelmRepository",
            addon.name,
            namespace=_FLUX,
            spec={"interval": "1h", "url": addon.repository},
        )
        reference = {"kind": "HelmRepository", "name": addon.name, "namespace": _FLUX}
        wanted = {"chart": chart, "version": addon.version, "sourceRef": reference}
        spec["chart"] = {"spec": wanted}
    if after := [{"name": name, "namespace": _FLUX} for name in addon.after if name in here]:
        spec["dependsOn"] = after
    if one.values:
        spec["values"] = one.values
    release = new(
        "helm.toolkit.fluxcd.io/v2", "HelmRelease", addon.name, namespace=_FLUX, spec=spec
    )
    return [source, release]


def argo_application(one: ChosenAddon, wave: int) -> Object:
    """Return the Argo CD application of a chart; waves keep the order (argoproj.io/v1alpha1)."""
    addon = one.addon
    helm: dict[str, Json] = {"releaseName": addon.name}
    if one.values:
        helm["valuesObject"] = one.values
    spec = {
        "project": "default",
        "source": {
            "repoURL": addon.repository.removeprefix("oci://"),
            "chart": addon.chart,
            "targetRevision": addon.version,
            "helm": helm,
        },
        "destination": {"server": "https://kubernetes.default.svc", "namespace": addon.namespace},
        "syncPolicy": {
            "automated": {"prune": True, "selfHeal": True},
            "syncOptions": ["ServerSideApply=true"],
        },
    }
    return new(
        "argoproj.io/v1alpha1",
        "Application",
        addon.name,
        namespace=_ARGO,
        annotations={"argocd.argoproj.io/sync-wave": str(wave)},
        spec=spec,
    )


def _order(folders: list[str]) -> list[str]:
    """Return what is applied after what: the add-ons bring the kinds that later folders use."""
    before = [name for name in folders if name in {"namespaces", "accounts"}]
    return [*before, "addons", *(name for name in folders if name not in before)]


def cni(facts: KubernetesFacts) -> Cni:
    """Return the pod network; auto: routed where all nodes are made on this machine.

    A cloud's own control plane brings its cloud's.
    """
    if facts.scheduler.control_plane != "self":
        return "cloud"
    wanted = facts.scheduler.cni
    if wanted != "auto":
        return wanted
    here = all(site.is_made_here for site in facts.spec.sites.values())
    return "routed" if here else "cilium"


def spans_sites(facts: KubernetesFacts) -> bool:
    """Whether nodes are at several sites, or in a cloud: pods' addresses aren't routed there."""
    sites = {pool.site for pool in facts.spec.pools.values()}
    return len(sites) > 1 or any(facts.spec.sites[name].is_cloud for name in sites)


def on_one_segment(facts: KubernetesFacts) -> bool:
    """Whether all nodes reach each other without a router: known of those made on this machine.

    Elsewhere racks may be routed, and a route straight to a node of another rack leads nowhere.
    """
    return all(facts.spec.sites[pool.site].is_made_here for pool in facts.spec.pools.values())


def api_endpoint(facts: KubernetesFacts) -> str:
    """Return what agents on nodes reach the API server by; "" while it isn't known."""
    if facts.scheduler.virtual_address is not None:
        return facts.scheduler.virtual_address.address
    controllers = facts.inventory.with_role("controller")
    return (controllers[0].address or controllers[0].name) if controllers else ""


def cilium_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return Cilium's values: addresses from the nodes' pod networks, services by kube-proxy.

    `cni.exclusive: false` leaves Multus' configuration in place. kube-proxy stays: role kubernetes
    sets it up, and with it Cilium needs no address of the API server to start.
    """
    values: dict[str, Json] = {
        "ipam": {"mode": "kubernetes"},
        "k8s": {"requireIPv4PodCIDR": True},
        "kubeProxyReplacement": False,
        "cni": {"exclusive": False},
        "operator": {"replicas": 1 if len(facts.inventory.with_role("controller")) < 2 else 2},  # noqa: PLR2004  # of two one may fail
        "hubble": {"enabled": False},
    }
    if not on_one_segment(facts):
        return values | {"routingMode": "tunnel", "tunnelProtocol": "vxlan"}
    return values | {
        "routingMode": "native",
        "autoDirectNodeRoutes": True,
        "ipv4NativeRoutingCIDR": facts.scheduler.pod_cidr,
    }


def calico_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the values of Tigera's operator, which sets Calico up.

    Its rules are of the kind that kube-proxy's are: role kubernetes has nftables there on every
    kernel from 5.13 on (docs.tigera.io, getting-started/kubernetes/nftables, 3.32; read 2026-11).
    """
    encapsulation = "VXLAN" if spans_sites(facts) else "VXLANCrossSubnet"
    return {
        "installation": {
            "enabled": True,
            "cni": {"type": "Calico"},
            "calicoNetwork": {
                "bgp": "Disabled",
                "linuxDataplane": "Nftables",
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
