"""The roles node_exporter, slurm_exporter, alertmanager and prometheus: monitoring of a cluster.

Every node serves its metrics only to the client certificate of the monitoring host. That host is
one of a pool; its Prometheus and Alertmanager listen on its loopback address, behind TLS and a
password. All certificates are issued by an authority of the cluster's own, whose key never leaves
the vault (`lifecycle/secrets/certificates.py`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator

from ....schemas.derived.control_planes import API_PORT, managed_by
from ....schemas.spec import Budget, KubernetesScheduler, SlurmScheduler
from ....schemas.spec.cluster import Monitoring
from ...alerts import (
    Condition,
    WasteLimits,
    alertmanager_config,
    owners_of_jobs,
    rule_file,
)
from ...hosts import AFTER_APPLY, Host, elastic_nodes
from ...waste import node_prices, waste_group
from ..network.rdma import rdma_kind
from ..node import NodeFacts
from ..roles import role_compiler
from ..slurm.accounting import accounting_hosts
from ..slurm.scheduling import has_rest_api
from ..steps import Json, Step
from ..storage.lustre import lustre_mounts, lustre_served
from .gpu_metrics import GPU_EXPORTER_PORT, has_amd_exporter, has_dcgm_exporter
from .packages import PROMETHEUS_RPM, prometheus_rpm
from .watched import monitoring_host, monitoring_of, monitoring_step

EXPORTER_PORT = 9100
"""node exporter's own default."""
EXPORTER_NAME = "node-exporter"
"""Name in the certificate of all exporters; Prometheus checks it, for any node's address."""
SERVER_NAME = "prometheus"
"""Name in the certificate of the monitoring host."""
AUTHORITY_SECRET = "monitoring-authority"  # noqa: S105  # the name of a public certificate
"""The authority's certificate; it reaches nodes as secrets do, over SSH."""
EXPORTER_SECRET = "monitoring-exporter"  # noqa: S105  # the secret's name
"""Certificate and key of the exporters: good for a server, refused as a client's."""
SERVER_SECRET = "monitoring-server"  # noqa: S105  # the secret's name
"""Certificate and key of the monitoring host: for its servers, and as the exporters' client."""
PASSWORD_SECRET = "monitoring-password"  # noqa: S105  # the secret's name
"""Password of the user gcluster of Prometheus and Alertmanager."""
ALERTS_PREFIX = "alerts-"
"""Secrets of who is sent alerts: "alerts-mail" is the mail server's password."""
REMOTE_SECRET = "monitoring-remote-write"  # noqa: S105  # the secret's name
"""Password or token of where all metrics are sent."""
_ALERTMANAGER = "/etc/gcluster/alertmanager"
"""Folder of role alertmanager."""
_DAY_S = 86_400
_KUBELET_PORT = 10250
"""The kubelet's own default."""
_REST_PORT = 6820
"""slurmrestd's (role slurm)."""
_SLURMCTLD_PORT = 6817
"""slurmctld's own default (slurm.conf(5), SlurmctldPort)."""


@role_compiler(
    "node_exporter",
    sources=PROMETHEUS_RPM,
    chosen=prometheus_rpm,
    removed=True,
    after=("hardening", "node_health"),
)
def node_exporter_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role node_exporter: on every node of a cluster that is watched."""
    if monitoring_of(node) is None:
        return []
    configure: dict[str, Json] = {"node_exporter_port": EXPORTER_PORT}
    if rdma_kind(node) == "infiniband":
        configure["node_exporter_infiniband"] = True
    if _mounts_lustre(node):
        configure["node_exporter_lustre"] = True
    secrets = {
        "node_exporter_authority_file": AUTHORITY_SECRET,
        "node_exporter_certificate_file": EXPORTER_SECRET,
    }
    return [
        monitoring_step("node_exporter", "install", {}),
        monitoring_step("node_exporter", "configure", configure, secrets),
        monitoring_step("node_exporter", "verify", {}),
    ]


def _mounts_lustre(node: NodeFacts) -> bool:
    return node.is_machine and not lustre_served(node) and bool(lustre_mounts(node))


@role_compiler("slurm_exporter", removed=True, after=("node_exporter",))
def slurm_exporter_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role slurm_exporter: on controllers, where Slurm's commands have its key.

    Each of them has it; the one whose slurmctld works writes the figures.
    """
    under_slurm = isinstance(node.spec.scheduler, SlurmScheduler)
    if not under_slurm or monitoring_of(node) is None or node.pool.role != "controller":
        return []
    configure: dict[str, Json] = {}
    if accounting_hosts(node.spec, node.cluster.hosts):
        configure["slurm_exporter_accounting"] = True
    return [
        monitoring_step("slurm_exporter", "install", {}),
        monitoring_step("slurm_exporter", "configure", configure),
        monitoring_step("slurm_exporter", "verify", {}),
    ]


def _conditions(node: NodeFacts) -> Iterator[Condition]:
    """Yield what the cluster has of what alert rules may need."""
    yield from ("figures", "units")
    nodes = node.cluster.nodes.values()
    if any(rdma_kind(each) == "infiniband" for each in nodes):
        yield "infiniband"
    if any(each.has_own_clock for each in nodes):
        yield "clock"
    if any(_mounts_lustre(each) for each in nodes):
        yield "lustre"
    yield from _of_scheduler(node)
    nvidia, amd = (any(map(has, nodes)) for has in (has_dcgm_exporter, has_amd_exporter))
    yield from conditions_of_gpus(nvidia=nvidia, amd=amd)
    if node.spec.monitoring is not None and node.spec.monitoring.waste_alert is not None:
        yield "waste_alert"
    yield from conditions_of_budget(node.spec.budget)


def _of_scheduler(node: NodeFacts) -> Iterator[Condition]:
    if isinstance(node.spec.scheduler, KubernetesScheduler):
        yield "kubernetes"
        if managed_by(node.spec) is None:
            yield "etcd"
    elif node.cluster.controllers:
        yield "slurm"
    if accounting_hosts(node.spec, node.cluster.hosts):
        yield "slurmdbd"


def conditions_of_gpus(*, nvidia: bool, amd: bool) -> Iterator[Condition]:
    """Yield what alert rules may need of GPUs, by the makers whose GPUs are measured."""
    if nvidia or amd:
        yield "gpus"
    if nvidia:
        yield "nvidia"
    if amd:
        yield "amd"


def conditions_of_budget(budget: Budget | None) -> Iterator[Condition]:
    """Yield what a budget has that alert rules may need."""
    if budget is None:
        return
    if budget.max_usd_per_hour is not None:
        yield "hour_budget"
    if budget.max_usd_per_month is not None:
        yield "month_budget"
    if budget.expires is not None or budget.expires_on is not None:
        yield "expires"


def _verbatim(text: str) -> str:
    """Return a text whose braces are Prometheus', and not Ansible's."""
    return f"{{% raw %}}{text}{{% endraw %}}"


def _of_server(role: str) -> dict[str, str]:
    return {
        f"{role}_authority_file": AUTHORITY_SECRET,
        f"{role}_certificate_file": SERVER_SECRET,
        f"{role}_password_file": PASSWORD_SECRET,
    }


@role_compiler(
    "alertmanager",
    sources=PROMETHEUS_RPM,
    chosen=prometheus_rpm,
    removed=True,
    after=("node_exporter",),
)
def alertmanager_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role alertmanager on the pool of the monitoring host.

    All hosts of the pool get them: the role acts on the one that is named.
    """
    host, monitoring = monitoring_host(node), monitoring_of(node)
    if host is None or monitoring is None:
        return []
    named: dict[str, Json] = {"alertmanager_host": host.name}
    alerts, owners = monitoring.alerts, owners_of_jobs(node.spec)
    config = alertmanager_config(
        alerts,
        _ALERTMANAGER,
        host.name,
        owners,
        "kubernetes" if isinstance(node.spec.scheduler, KubernetesScheduler) else "slurm",
    )
    configure = named | {"alertmanager_config": _verbatim(json.dumps(config, indent=1))}
    secrets = _of_server("alertmanager")
    if alerts is not None:
        if alerts.mail is not None and alerts.mail.ca is not None:
            configure["alertmanager_mail_ca"] = alerts.mail.ca
        secrets |= {
            f"alertmanager_{name}_secret_file": f"{ALERTS_PREFIX}{name}"
            for name in alerts.references
        }
    return [
        monitoring_step("alertmanager", "install", {}),
        monitoring_step("alertmanager", "configure", configure, secrets),
        monitoring_step("alertmanager", "verify", named),
    ]


@role_compiler(
    "prometheus",
    sources=PROMETHEUS_RPM,
    chosen=prometheus_rpm,
    removed=True,
    after=("alertmanager",),
)
def prometheus_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role prometheus on the pool of the monitoring host.

    What is scraped is the phase `join`, alone: a node more or less writes one file, which
    Prometheus watches, and restarts nothing.
    """
    host, monitoring = monitoring_host(node), monitoring_of(node)
    if host is None or monitoring is None:
        return []
    named: dict[str, Json] = {"prometheus_host": host.name}
    has = tuple(_conditions(node))
    recorded = waste_group(node_prices(node.spec, node.catalog), has, node.spec.budget)
    configure = named | {
        "prometheus_cluster": node.spec.name,
        "prometheus_rules": _verbatim(
            rule_file(
                has,
                recorded=recorded,
                limits=waste_limits(monitoring),
                dashboards=dashboards_of(node.spec.name, monitoring),
            )
        ),
    }
    if isinstance(node.spec.scheduler, KubernetesScheduler):
        configure["prometheus_kubernetes"] = True
    if (port := _metrics_of_slurmctld(node, host)) is not None:
        configure["prometheus_slurmctld_port"] = port
    if monitoring.retention is not None:
        configure["prometheus_retention"] = retention_of(monitoring.retention.value)
    secrets = _of_server("prometheus")
    if (remote := monitoring.remote_write) is not None:
        configure["prometheus_remote_write"] = {
            "url": remote.url,
            "user": remote.user or "",
            "ca": remote.ca or "",
            "login": remote.password is not None,
        }
        if remote.password is not None:
            secrets["prometheus_remote_secret_file"] = REMOTE_SECRET
    pools = node.cluster.by_pool
    gpus = [name for name, each in node.cluster.nodes.items() if has_dcgm_exporter(each)]
    targets: dict[str, Json] = {
        "prometheus_targets": _targets(pools.values(), EXPORTER_PORT),
        "prometheus_probe_targets": _probes(node, host),
        "prometheus_elastic": _elastic(node, frozenset(gpus)),
        "prometheus_gpu_targets": _targets([pools[name] for name in gpus], GPU_EXPORTER_PORT),
    }
    return [
        monitoring_step("prometheus", "install", {}),
        monitoring_step("prometheus", "configure", configure, secrets),
        monitoring_step("prometheus", "join", named | targets | _of_kubernetes(node)),
        monitoring_step("prometheus", "verify", named),
    ]


def _of_kubernetes(node: NodeFacts) -> dict[str, Json]:
    """Return the API servers and kubelets, which serve their own metrics."""
    if not isinstance(node.spec.scheduler, KubernetesScheduler):
        return {}
    nodes = [hosts for hosts in node.cluster.by_pool.values() if hosts and hosts[0].role != "login"]
    servers = [hosts for hosts in nodes if hosts[0].role == "controller"]
    return {
        "prometheus_kubernetes": True,
        "prometheus_apiserver_targets": _targets(servers, API_PORT),
        "prometheus_kubelet_targets": _targets(nodes, _KUBELET_PORT),
    }


def _metrics_of_slurmctld(node: NodeFacts, host: Host) -> int | None:
    """Return the port on which the host's own slurmctld has metrics, where the spec turns them on.

    They have neither TLS nor, before Slurm 26.05, a login: no other host is queried for them. Slurm
    refuses all without one where PrivateData is set, as it is for elastic nodes.
    """
    slurm = node.spec.scheduler
    if not isinstance(slurm, SlurmScheduler) or host not in node.cluster.controllers:
        return None
    settings = slurm.settings.slurm
    closed = "MetricsAuthUsers" in settings or bool(elastic_nodes(node.spec))
    if "MetricsType" not in settings or closed:
        return None
    first = str(settings.get("SlurmctldPort", "")).partition("-")[0]
    return int(first) if first.isdigit() else _SLURMCTLD_PORT


def dashboards_of(cluster: str, monitoring: Monitoring) -> str:
    """Return where a cluster's dashboards are, as `rule_groups` takes it."""
    url = monitoring.grafana_url
    return "" if url is None else f"{url.rstrip('/')}/d/{cluster}"


def waste_limits(monitoring: Monitoring) -> WasteLimits | None:
    """Return the limits of a spec's `waste_alert`."""
    alert = monitoring.waste_alert
    if alert is None:
        return None
    return WasteLimits(
        below=alert.below.value, window_s=round(alert.for_.value), least=alert.min_usd_per_hour
    )


def retention_of(seconds: float) -> str:
    """Return a time in whole units, as Prometheus reads it (model.ParseDuration)."""
    days, rest = divmod(round(seconds), _DAY_S)
    return f"{days}d" if days and not rest else f"{round(seconds)}s"


def _targets(pools: Iterable[tuple[Host, ...]], port: int) -> list[Json]:
    """Return the exporters as Prometheus' file_sd_configs has them.

    A host without a known address is left out, and so is one on which nothing runs.
    """
    return [
        {
            "targets": [f"{_bracketed(host.address)}:{port}"],
            "labels": {"instance": host.name, "pool": host.pool, "site": host.site},
        }
        for hosts in pools
        for host in hosts
        if host.is_real and host.address not in {"", AFTER_APPLY}
    ]


def _elastic(node: NodeFacts, with_gpus: Collection[str]) -> list[Json]:
    """Return the pools whose nodes come for jobs or pods, with the names that they may have."""
    scheduler = node.spec.scheduler
    if not isinstance(scheduler, SlurmScheduler | KubernetesScheduler):
        return []
    own = {"kubelet": _KUBELET_PORT} if isinstance(scheduler, KubernetesScheduler) else {}
    return [
        {
            "pool": pool,
            "site": node.spec.pools[pool].site,
            "nodes": list(names),
            "ports": {"node": EXPORTER_PORT}
            | ({"gpu": GPU_EXPORTER_PORT} if pool in with_gpus else {})
            | own,
        }
        for pool, names in elastic_nodes(node.spec).items()
    ]


def _probes(node: NodeFacts, host: Host) -> list[Json]:
    """Return what people use: SSH of login nodes, else of controllers, and Slurm's REST API.

    The API listens on the controllers' loopback addresses alone.
    """
    hosts = [each for pool in node.cluster.by_pool.values() for each in pool]
    doors = [each for each in hosts if each.role == "login"] or node.cluster.controllers
    found: list[Json] = [
        {
            "targets": [f"{_bracketed(each.address)}:{each.ssh.port}"],
            "labels": {"probe": "ssh", "instance": each.name, "pool": each.pool, "site": each.site},
        }
        for each in doors
        if each.is_real and each.address not in {"", AFTER_APPLY}
    ]
    if has_rest_api(node.spec) and host in node.cluster.controllers:
        labels: dict[str, Json] = {"instance": host.name, "pool": host.pool, "site": host.site}
        url = f"http://127.0.0.1:{_REST_PORT}/slurm/"
        found.append({"targets": [url], "labels": {"probe": "api", **labels}})
    return found


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
