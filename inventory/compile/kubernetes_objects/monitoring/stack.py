"""Values of the chart kube-prometheus-stack, from the spec's `monitoring`.

Names and defaults are those of its values.yaml and of its dependencies' (the catalog's
kube-prometheus-stack says which commit). Nothing it starts has a port outside the cluster: services
are ClusterIPs, reached from their namespace alone (`objects.walls`), and node exporter, which
listens on nodes, answers only who may read it, by kube-rbac-proxy.
"""

from __future__ import annotations

import math
from typing import Final

from ....alerts import USER_LABEL, alertmanager_config, owners_of_pods
from ...steps import Json
from ...system.monitoring import EXPORTER_NAME, retention_of
from ...system.watched import POD_TEXTFILES
from ..facts import MONITORING, KubernetesFacts, tolerations
from ..nodes import POOL
from .secrets import (
    AUTHORITY,
    EXPORTER,
    GRAFANA_PASSWORD,
    GRAFANA_USER,
    NAMESPACE,
    REMOTE_CA,
    REMOTE_PASSWORD,
    REMOTE_USER,
    STACK,
    figures_reach,
    stack_secrets,
)

FIGURES: Final = POD_TEXTFILES
"""Folder in which `up` and `smoke`, on control planes, and role ipmi_exporter, on nodes with BMCs,
leave their figures for node exporter."""
_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105  # a path
_RELOADER: Final = "quay.io/prometheus-operator/prometheus-config-reloader:"
_RETENTION: Final = "15d"
"""As Prometheus' own default, and a Slurm cluster's."""
_FULL: Final = 0.85
"""Share of its volume that metrics may fill: the write-ahead log and compaction need the rest."""
_VIRTUAL: Final = "^(lo|veth|lxc|cilium|cali|cni|docker|br-|virbr|tap|tun|wg|nodelocaldns|kube-).*$"
"""Interfaces that come and go with pods."""
_SHORT_LIVED: Final = (
    "^/(dev|proc|sys|run/(containerd|credentials)/.+|var/lib/(docker|kubelet)/.+)($|/)"
)
"""As the chart has it, and what systemd mounts for units."""
_COUNTED: Final = (
    "daemonsets", "deployments", "jobs", "namespaces", "nodes", "persistentvolumeclaims", "pods",
    "resourcequotas", "statefulsets",
)  # fmt: skip
"""Kinds that kube-state-metrics reads: by default Secrets and ConfigMaps are among them."""
_OF_NODE: Final = "__meta_kubernetes_pod_node_name"
_CONTROL_PLANE: Json = {
    "key": "node-role.kubernetes.io/control-plane",
    "operator": "Exists",
    "effect": "NoSchedule",
}


def stack_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the chart's values; {} where the spec has no monitoring."""
    monitoring = facts.monitoring
    if monitoring is None:
        return {}
    place = _place(facts)
    alertmanager: dict[str, Json] = {
        "config": alertmanager_config(
            monitoring.alerts,
            f"/etc/alertmanager/secrets/{STACK}",
            facts.spec.name,
            owners_of_pods(facts.spec, facts.accounts),
        ),
        "alertmanagerSpec": {"secrets": [STACK], **place},
    }
    return {
        "fullnameOverride": "gcluster",
        # gcluster's own rules and dashboards instead; kubeadm's components listen on loopback.
        "defaultRules": {"create": False},
        **{
            name: {"enabled": False}
            for name in (
                "coreDns",
                "kubeControllerManager",
                "kubeEtcd",
                "kubeProxy",
                "kubeScheduler",
            )
        },
        "prometheusOperator": _operator(facts, place),
        "prometheus": {"prometheusSpec": _prometheus(facts) | place},
        "alertmanager": alertmanager,
        "prometheus-node-exporter": _node_exporter(facts),
        "kube-state-metrics": {
            "fullnameOverride": "kube-state-metrics",
            "collectors": list(_COUNTED),
            "metricLabelsAllowlist": [f"pods=[{USER_LABEL}]"],
            **place,
        },
        "grafana": _grafana(facts, place) if monitoring.grafana else {"enabled": False},
    }


def _place(facts: KubernetesFacts) -> dict[str, Json]:
    """Return where the servers run: the pool that the spec says, else the control planes'."""
    assert facts.monitoring is not None  # noqa: S101  # the caller looked
    pool = facts.monitoring.pool
    if pool is None:
        controllers = facts.inventory.with_role("controller")
        pool = controllers[0].pool if controllers else None
    if pool is None:
        return {}
    tolerated = tolerations(facts, [pool])
    if facts.spec.pools[pool].role == "controller":
        tolerated.append(dict(_CONTROL_PLANE))
    return {"nodeSelector": {POOL: pool}} | ({"tolerations": tolerated} if tolerated else {})


def _operator(facts: KubernetesFacts, place: dict[str, Json]) -> dict[str, Json]:
    """Return the operator's values: it looks at its own namespace, and nothing calls it."""
    images = facts.catalog.addons[MONITORING].images
    known = next((d for name, d in images.items() if name.startswith(_RELOADER) and d), "")
    return {
        "admissionWebhooks": {"enabled": False},
        "tls": {"enabled": False},
        "namespaces": {"releaseNamespace": True, "additional": []},
        # An argument of the operator, which no digest of a pod's image reaches.
        **(
            {"prometheusConfigReloader": {"image": {"sha": known.removeprefix("sha256:")}}}
            if known
            else {}
        ),
        **place,
    }


def _prometheus(facts: KubernetesFacts) -> dict[str, Json]:
    """Return Prometheus' values: its label, what it keeps and where it sends it."""
    monitoring = facts.monitoring
    assert monitoring is not None  # noqa: S101  # the caller looked
    kept = monitoring.retention
    values: dict[str, Json] = {
        "externalLabels": {"cluster": facts.spec.name},
        "scrapeInterval": "15s",
        "evaluationInterval": "15s",
        "retention": _RETENTION if kept is None else retention_of(kept.value),
    }
    if (volume := monitoring.volume) is not None:
        gib = volume.size.value / 2**30
        claim: dict[str, Json] = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{math.ceil(gib)}Gi"}},
        }
        if volume.storage_class is not None:
            claim["storageClassName"] = volume.storage_class
        values["storageSpec"] = {"volumeClaimTemplate": {"spec": claim}}
        values["retentionSize"] = f"{max(1, math.floor(gib * _FULL))}GiB"
    if monitoring.remote_write is not None:
        values["remoteWrite"] = [_remote(facts)]
    return values


def _remote(facts: KubernetesFacts) -> dict[str, Json]:
    """Return where all metrics are sent as well; its login is in STACK."""
    assert facts.monitoring is not None  # noqa: S101  # the caller looked
    remote = facts.monitoring.remote_write
    assert remote is not None  # noqa: S101  # likewise
    made: dict[str, Json] = {"url": remote.url}
    if remote.password is not None and remote.user is not None:
        made["basicAuth"] = {"username": _key(REMOTE_USER), "password": _key(REMOTE_PASSWORD)}
    elif remote.password is not None:
        made["authorization"] = {"credentials": _key(REMOTE_PASSWORD)}
    if remote.ca is not None:
        made["tlsConfig"] = {"ca": {"secret": _key(REMOTE_CA)}}
    return made


def _key(key: str) -> Json:
    return {"name": STACK, "key": key}


def relabelled(job: str) -> list[Json]:
    """Return how targets on nodes get the labels that rules have: job, instance, pool.

    What names the exporter's own pod goes: of GPUs these labels are who holds them.
    """
    pool = "__meta_kubernetes_node_label_" + POOL.replace(".", "_").replace("/", "_")
    return [
        {"action": "replace", "sourceLabels": [_OF_NODE], "targetLabel": "instance"},
        {"action": "replace", "sourceLabels": [pool], "targetLabel": "pool"},
        {"action": "replace", "targetLabel": "job", "replacement": job},
        {"action": "labeldrop", "regex": "namespace|pod|container|service|endpoint"},
    ]


def _node_exporter(facts: KubernetesFacts) -> dict[str, Json]:
    """Return node exporter's values: on every node, behind TLS and a login."""
    arguments = [
        f"--collector.filesystem.mount-points-exclude={_SHORT_LIVED}",
        f"--collector.netclass.ignored-devices={_VIRTUAL}",
        f"--collector.netdev.device-exclude={_VIRTUAL}",
        "--collector.infiniband",
    ]
    values: dict[str, Json] = {
        "fullnameOverride": "node-exporter",
        "kubeRBACProxy": {"enabled": True, "tls": {"enabled": True}},
        "tlsSecret": {"enabled": True, "secretName": EXPORTER},
        "tolerations": [{"operator": "Exists"}],
        "prometheus": {
            "monitor": {
                "scheme": "https",
                "bearerTokenFile": _TOKEN,
                "tlsConfig": {"ca": {"secret": _key(AUTHORITY)}, "serverName": EXPORTER_NAME},
                "attachMetadata": {"node": True},
                "relabelings": relabelled("node"),
            }
        },
    }
    if figures_reach(facts.spec):
        arguments.append(f"--collector.textfile.directory={FIGURES}")
        mounted = {
            "name": "figures",
            "hostPath": FIGURES,
            "mountPath": FIGURES,
            "type": "DirectoryOrCreate",
            "readOnly": True,
        }
        values["extraHostVolumeMounts"] = [mounted]
    return values | {"extraArgs": arguments}


def _grafana(facts: KubernetesFacts, place: dict[str, Json]) -> dict[str, Json]:
    """Return Grafana's values: no user but one, no sign-up, and the dashboards of gcluster's."""
    assert GRAFANA_PASSWORD in stack_secrets(facts.spec)[STACK].vault  # noqa: S101  # its login
    return {
        "fullnameOverride": "grafana",
        "defaultDashboardsEnabled": False,
        "admin": {
            "existingSecret": STACK,
            "userKey": GRAFANA_USER,
            "passwordKey": GRAFANA_PASSWORD,
        },
        "grafana.ini": {
            "analytics": {"check_for_updates": False, "reporting_enabled": False},
        },
        "rbac": {"namespaced": True},
        "sidecar": {
            "dashboards": {"searchNamespace": NAMESPACE},
            "datasources": {"searchNamespace": NAMESPACE, **source(facts)},
        },
        "testFramework": {"enabled": False},
        **place,
    }


def source(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the data source that the dashboards name."""
    mine = f"gcluster-{facts.spec.name}"
    return {"name": mine, "uid": mine}


def stack_images(facts: KubernetesFacts, images: dict[str, str | None]) -> dict[str, str | None]:
    """Return the chart's images without those of a Grafana that the spec doesn't have."""
    if facts.monitoring is not None and facts.monitoring.grafana:
        return images
    drawn = ("docker.io/grafana/", "quay.io/kiwigrid/")
    return {name: digest for name, digest in images.items() if not name.startswith(drawn)}
