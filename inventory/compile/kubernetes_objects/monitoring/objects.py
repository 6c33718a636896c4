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
from ...system.monitoring import (
    conditions_of_budget,
    conditions_of_gpus,
    dashboards_of,
    waste_limits,
)
from ...system.node_power import measures_power
from ..devices.gpus import AMD_NAMESPACE, gke_brings_gpus, gpu_pools
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
_AMD_EXPORTER: Final = {"app.kubernetes.io/name": "metrics-exporter"}
"""Of the pods of AMD's exporter (ROCm/gpu-operator internal/metricsexporter, v1.5.0)."""
_AMD_PORT: Final = "exporter-port"
_AMD_SERVICES: Final = "app.kubernetes.io/service"
"""Label of its services, one for each DeviceConfig: NAME-metrics-exporter."""
_AMD_JOB: Final = "amd-gpu"
AMD_METRICS: Final = (
    "gpu_average_package_power",
    "gpu_ecc_correct_total",
    "gpu_ecc_uncorrect_total",
    "gpu_edge_temperature",
    "gpu_energy_consumed",
    "gpu_gfx_activity",
    "gpu_health",
    "gpu_junction_temperature",
    "gpu_package_power",
    "gpu_total_vram",
    "gpu_used_vram",
    "gpu_violation_hbm_thermal_residency_accumulated",
    "gpu_violation_socket_thermal_residency_accumulated",
    "gpu_violation_vr_thermal_residency_accumulated",
    "pcie_max_speed",
    "pcie_speed",
)
"""What rules read of AMD's exporter (docs/configuration/metricslist.md, 1.5.1)."""
_AMD_LABELS: Final = (
    "__name__",
    "container",
    "gpu",
    "gpu_partition_id",
    "instance",
    "job",
    "namespace",
    "pod",
    "pool",
)


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
    yield from ("kubernetes", "chart")
    if facts.scheduler.control_plane == "self":
        yield "etcd"
    if any(rdma_kind(node) == "infiniband" for node in facts.nodes.values()):
        yield "infiniband"
    if any(node.has_own_clock for node in facts.nodes.values()):
        yield "clock"
    if figures_reach(facts.spec) and any(map(measures_power, facts.nodes.values())):
        yield "bmc"
    yield from conditions_of_gpus(nvidia=measures_gpus(facts), amd=bool(gpu_pools(facts, "amd")))
    if facts.monitoring is not None and facts.monitoring.waste_alert is not None:
        yield "waste_alert"
    if figures_reach(facts.spec):
        yield "figures"
    yield from conditions_of_budget(facts.spec.budget)


def measures_gpus(facts: KubernetesFacts) -> bool:
    """Whether NVIDIA's operator brings an exporter of its GPUs; AMD's always does."""
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
    """Yield who is scraped beyond what the chart has: the exporters of GPUs.

    Labels namespace and pod are then those of who holds the GPU, as the exporter writes them.
    """
    if measures_gpus(facts):
        endpoint = _endpoint(_GPU_PORT, "gpu")
        yield _monitor("gpu", _GPU_OPERATOR, {"matchLabels": dict(_GPU_EXPORTER)}, endpoint)
    if pools := gpu_pools(facts, "amd"):
        services: Json = [f"{pool}-metrics-exporter" for pool in pools]
        selector: dict[str, Json] = {
            "matchExpressions": [{"key": _AMD_SERVICES, "operator": "In", "values": services}]
        }
        endpoint = _endpoint(_AMD_PORT, _AMD_JOB) | {"metricRelabelings": amd_metrics()}
        yield _monitor(_AMD_JOB, AMD_NAMESPACE, selector, endpoint)


def _endpoint(port: str, job: str) -> dict[str, Json]:
    return {
        "port": port,
        "interval": "15s",
        "honorLabels": True,
        "relabelings": relabelled(job),
    }


def _monitor(name: str, of: str, selector: dict[str, Json], endpoint: dict[str, Json]) -> Object:
    return new(
        API,
        "ServiceMonitor",
        name,
        namespace=NAMESPACE,
        labels=_SELECTED,
        spec={
            "namespaceSelector": {"matchNames": [of]},
            "selector": selector,
            "attachMetadata": {"node": True},
            "endpoints": [endpoint],
        },
    )


def amd_metrics() -> list[Json]:
    """Return what is kept of AMD's metrics, under the labels that rules have.

    It is what role amd_exporter hands on on other clusters. Dropped labels are of the card.
    """
    names = "|".join(sorted(AMD_METRICS))
    return [
        {"action": "keep", "sourceLabels": ["__name__"], "regex": names},
        {"action": "replace", "sourceLabels": ["gpu_id"], "targetLabel": "gpu"},
        {"action": "labelkeep", "regex": "|".join(_AMD_LABELS)},
    ]


def walls(facts: KubernetesFacts) -> Iterator[Object]:
    """Yield who may reach the servers, and what is scraped: this namespace alone.

    A person reaches them through the API server (kubectl port-forward), with rights there.
    """
    yield _reached("monitoring-only", NAMESPACE, {}, {"podSelector": {}})
    here: Json = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}
    if measures_gpus(facts):
        pods: dict[str, Json] = {"matchLabels": dict(_GPU_EXPORTER)}
        yield _reached("gpu-metrics", _GPU_OPERATOR, pods, here)
    if gpu_pools(facts, "amd"):
        pods = {"matchLabels": dict(_AMD_EXPORTER)}
        yield _reached("gpu-metrics", AMD_NAMESPACE, pods, here)


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
