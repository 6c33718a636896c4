"""Objects of Prometheus' operator: rules, who is scraped; and who may reach what is scraped.

Alerts and prices are the tables that Slurm's clusters have (`inventory.alerts`, `inventory.waste`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ....alerts import Condition, rule_groups
from ....dashboards import board_files
from ....waste import node_prices, waste_group
from ...network.rdma import rdma_kind
from ...steps import Json
from ...system.monitoring import conditions_of_budget, dashboards_of, waste_limits
from ..devices.gpus import gke_brings_gpus, gpu_pools
from ..facts import MONITORING, KubernetesFacts
from ..objects import Object, new
from .secrets import NAMESPACE, figures_reach
from .stack import relabelled

API: Final = "monitoring.coreos.com/v1"
_SELECTED: Final = {"release": MONITORING}
"""Label by which the chart's Prometheus finds its objects."""
_DRAWN: Final = {"grafana_dashboard": "1"}
"""Label by which the chart's Grafana finds dashboards."""
_GPU_OPERATOR: Final = "gpu-operator"
_GPU_EXPORTER: Final = {"app": "nvidia-dcgm-exporter"}
"""Of the exporter's service and pods (NVIDIA/gpu-operator assets/state-dcgm-exporter, v26.7.0)."""
_GPU_PORT: Final = "gpu-metrics"
"""Of that service."""


def monitoring_objects(facts: KubernetesFacts) -> dict[str, list[Object]]:
    """Return file -> objects; empty where the spec has no monitoring."""
    if facts.monitoring is None:
        return {}
    return {
        "rules": [prometheus_rule(facts)],
        "scraped": list(scraped(facts)),
        "walls": list(walls(facts)),
        "dashboards": list(dashboards(facts)),
    }


def conditions(facts: KubernetesFacts) -> tuple[Condition, ...]:
    """Return what the cluster has of what rules may need."""
    return tuple(_conditions(facts))


def _conditions(facts: KubernetesFacts) -> Iterator[Condition]:
    yield "kubernetes"
    if any(rdma_kind(node) == "infiniband" for node in facts.nodes.values()):
        yield "infiniband"
    if any(node.has_own_clock for node in facts.nodes.values()):
        yield "clock"
    if measures_gpus(facts):
        yield from ("gpus", "nvidia")
    if facts.monitoring is not None and facts.monitoring.waste_alert is not None:
        yield "waste_alert"
    if figures_reach(facts.spec):
        yield "figures"
    yield from conditions_of_budget(facts.spec.budget)


def measures_gpus(facts: KubernetesFacts) -> bool:
    """Whether NVIDIA's operator brings an exporter of GPUs."""
    return bool(gpu_pools(facts, "nvidia")) and not gke_brings_gpus(facts)


def prometheus_rule(facts: KubernetesFacts) -> Object:
    """Return all rules as one object."""
    monitoring = facts.monitoring
    assert monitoring is not None  # noqa: S101  # the caller looked
    has = conditions(facts)
    groups = rule_groups(
        has,
        recorded=waste_group(node_prices(facts.spec, facts.catalog), has, facts.spec.budget),
        limits=waste_limits(monitoring),
        dashboards=dashboards_of(facts.spec.name, monitoring),
    )
    return new(
        API,
        "PrometheusRule",
        "gcluster",
        namespace=NAMESPACE,
        labels=_SELECTED,
        spec={"groups": [dict(group) for group in groups]},
    )


def scraped(facts: KubernetesFacts) -> Iterator[Object]:
    """Yield who is scraped beyond what the chart has: the exporter of GPUs.

    Labels namespace and pod are then those of who holds the GPU, as the exporter writes them.
    """
    if not measures_gpus(facts):
        return
    endpoint: dict[str, Json] = {
        "port": _GPU_PORT,
        "interval": "15s",
        "honorLabels": True,
        "relabelings": relabelled("gpu"),
    }
    yield new(
        API,
        "ServiceMonitor",
        "gpu",
        namespace=NAMESPACE,
        labels=_SELECTED,
        spec={
            "namespaceSelector": {"matchNames": [_GPU_OPERATOR]},
            "selector": {"matchLabels": dict(_GPU_EXPORTER)},
            "attachMetadata": {"node": True},
            "endpoints": [endpoint],
        },
    )


def walls(facts: KubernetesFacts) -> Iterator[Object]:
    """Yield who may reach the servers, and what is scraped: this namespace alone.

    A person reaches them through the API server (kubectl port-forward), with rights there.
    """
    yield _reached("monitoring-only", NAMESPACE, {}, {"podSelector": {}})
    if measures_gpus(facts):
        here: Json = {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
        }
        pods = {"matchLabels": dict(_GPU_EXPORTER)}
        yield _reached("gpu-metrics", _GPU_OPERATOR, pods, here)


def _reached(name: str, namespace: str, pods: dict[str, Json], who: Json) -> Object:
    spec = {"podSelector": pods, "policyTypes": ["Ingress"], "ingress": [{"from": [who]}]}
    return new("networking.k8s.io/v1", "NetworkPolicy", name, namespace=namespace, spec=spec)


def dashboards(facts: KubernetesFacts) -> Iterator[Object]:
    """Yield the dashboards of a Grafana that the spec has, as its sidecar reads them."""
    if facts.monitoring is None or not facts.monitoring.grafana:
        return
    for name, text in board_files(facts.spec.name, conditions(facts)):
        yield new(
            "v1",
            "ConfigMap",
            f"dashboard-{name}",
            namespace=NAMESPACE,
            labels=_DRAWN,
            data={f"{facts.spec.name}-{name}.json": text.decode()},
        )
