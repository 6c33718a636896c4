"""What `top`, `report` and `dashboard` query of a Kubernetes cluster's Prometheus.

On nodes made on this machine it is a control plane's, reached as under Slurm. The chart's has no
port outside of its pod's network, whose policy lets in its own namespace alone: queries are made
inside its pod, by one `kubectl exec`, with the rights that all verbs have.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from ....inventory.compile.kubernetes_objects.monitoring.secrets import NAMESPACE
from ....inventory.hosts import ClusterInventory
from ....schemas.derived.control_planes import watched_by_roles
from ....schemas.spec import ClusterSpec, KubernetesScheduler
from ...cluster.cluster import Cluster
from ...cluster.hosts import existing_hosts
from ...kubernetes.kubectl import ApiRefused, ApiSilent, Kubectl
from ...kubernetes.managed.login import kubectl_of
from ...nodes.ssh import SshSession
from .links import LINKS
from .prometheus import (
    Query,
    QueryPrometheus,
    monitoring_host,
    query_over_ssh,
    refuse_unwatched,
    silent,
)
from .queries import Queries

_SERVICE = "service/gcluster-prometheus"
_PORT = 9090
_LIMIT_S = 150
_SCRIPT = """\
unset http_proxy HTTP_PROXY
while read -r path body; do
  wget -q -O - --post-data "$body" "http://127.0.0.1:$0/api/v1/$path" || echo '{}'
  echo
done
"""
"""For the shell of Prometheus' image (busybox): each answer ends its line. An error of Prometheus'
comes with another status than 200, of which wget prints nothing."""


def is_of_pods(cluster: Cluster) -> bool:
    """Say whether pods are what holds a cluster's GPUs."""
    return isinstance(cluster.spec.scheduler, KubernetesScheduler)


def metrics_of(cluster: Cluster, session: SshSession) -> QueryPrometheus:
    """Return how to query a cluster's Prometheus, of whichever scheduler it has.

    Raises:
        LifecycleError: its spec has no monitoring (GC1197), or it has no such host (GC908).
    """
    refuse_unwatched(cluster.spec, str(cluster.spec_path))
    return metrics_on(cluster.spec, existing_hosts(cluster), session)


def metrics_on(spec: ClusterSpec, hosts: ClusterInventory, session: SshSession) -> QueryPrometheus:
    """Return how to query the Prometheus of a cluster that has one, on hosts that are known."""
    if watched_by_roles(spec):
        return query_over_ssh(session, monitoring_host(spec, hosts))
    return query_in_pod(kubectl_of(session, hosts))


def query_in_pod(kubectl: Kubectl, port: int = _PORT) -> QueryPrometheus:
    """Return how to query the Prometheus of a Kubernetes cluster."""
    command = ("--namespace", NAMESPACE, "exec", "--stdin", _SERVICE, "--container=prometheus")

    def query(queries: Sequence[Query]) -> list[Any]:
        asked = "".join(f"{path} {urlencode(parameters)}\n" for path, parameters in queries)
        try:
            text = kubectl.text(
                *command, "--", "sh", "-c", _SCRIPT, str(port), stdin=asked, timeout_s=_LIMIT_S
            )
        except (ApiRefused, ApiSilent) as error:
            raise silent(
                f"Prometheus of the cluster doesn't answer: {error}",
                f"kubectl --namespace {NAMESPACE} get pods",
            ) from error
        try:
            answers = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            answers = []
        if len(answers) != len(queries):
            raise silent("the answer of Prometheus was cut short")
        return answers

    return query


def _owned(metric: str) -> str:
    """Return a metric of pods with a job's labels: what made the pods is the job.

    An account is a namespace.
    """
    named = f'label_replace({metric}, "account", "$1", "namespace", "(.+)")'
    for label, source in (("job_name", "owner_name"), ("partition", "owner_kind")):
        named = f'label_replace({named}, "{label}", "$1", "{source}", "(.+)")'
    return f'label_join({named}, "hpc_job", "/", "namespace", "owner_name")'


_STARTED: Final = (
    "kube_pod_start_time * on (namespace, pod) group_left (owner_kind, owner_name) "
    "(gcluster:pod_owner and on (namespace, pod) gcluster:pod_gpus:held)"
)
_OF_NODE: Final = 'label_replace({}, "instance", "$1", "node", "(.+)")'
_READY: Final = 'kube_node_status_condition{condition="Ready",status="true"}'
NOW = Queries(
    missing="kube-state-metrics' figures are missing: it doesn't run, or isn't scraped yet",
    texts={
        "jobs": "sum by (hpc_job, account, job_name, partition) "
        f"({_owned('gcluster:pod_gpus:held')})",
        "start": f"min by (hpc_job) ({_owned(_STARTED)})",
        "held": f"sum by (hpc_job, pool) ({_owned('gcluster:pod_gpus:held')})",
        "active": f"sum by (hpc_job) ({_owned('gcluster:pod_gpus:active')})",
        "tensor": f"sum by (hpc_job) ({_owned('gcluster:pod_gpus:tensor')})",
        "idle": f"sum by (hpc_job) ({_owned('gcluster:pod_gpus:idle')})",
        "usd": f"sum by (hpc_job) ({_owned('gcluster:pod_usd_per_hour')})",
        "wasted": f"sum by (hpc_job) ({_owned('gcluster:pod_wasted_usd_per_hour')})",
        "nodes": 'group by (instance, pool) (up{job="node"})',
        "compute": "group by (instance) (last_over_time(gcluster:gpu_node_free:ratio[1h]))",
        "drained": f"max by (instance) ({_OF_NODE.format('kube_node_spec_unschedulable == 1')})",
        "down": f"max by (instance) ({_OF_NODE.format(f'{_READY} == 0')})",
        "node_usd": "gcluster:node_usd_per_hour",
        "unused": "gcluster:gpu_node_unused_usd_per_hour",
        "free": "gcluster:gpu_node_free:ratio",
        "gpus": "count by (instance) (count by (instance, gpu) (gcluster:gpu_active:ratio))",
        "node_active": "avg by (instance) (avg by (instance, gpu) (gcluster:gpu_active:ratio))",
        "scheduler": f"max({_READY} >= bool 0)",
        **LINKS,
    },
)
"""Of `top`. What no metric says is left out: the user and untouched GPUs."""
SLICES = {
    "usd": "gcluster:account_usd_per_hour",
    "wasted": "gcluster:account_wasted_usd_per_hour",
    "unused": "gcluster:gpu_node_unused_usd_per_hour",
}
"""Of a report's hours or days."""


def report_queries(span: int, hours: float) -> dict[str, str]:
    """Return the queries of a report over the last `span` s; a sample is `hours` of them."""

    def total(metric: str, by: str) -> str:
        return f"sum by ({by}) (sum_over_time({metric}[{span}s])) * {hours:.15g}"

    def of_account(expression: str) -> str:
        return f'label_replace({expression}, "account", "$1", "namespace", "(.+)")'

    idle = of_account(f"sum_over_time(gcluster:pod_gpus:idle[{span}s])")
    tensor = of_account(f"sum_over_time(gcluster:pod_gpus:tensor[{span}s])")
    jobs = of_account(f"max_over_time(gcluster:pod_gpus:held[{span}s])")
    owner = "account, pool"
    return {
        "held": total("gcluster:account_gpus:held", owner),
        "active": total("gcluster:account_gpus:active", owner),
        "tensor": f"sum by ({owner}) ({tensor}) * {hours:.15g}",
        "idle": f"sum by ({owner}) ({idle}) * {hours:.15g}",
        "usd": total("gcluster:account_usd_per_hour", owner),
        "wasted": total("gcluster:account_wasted_usd_per_hour", owner),
        "jobs": f"count by (account) (group by (account, owner_kind, owner_name) ({jobs}))",
        "pool_usd": total("gcluster:pool_usd_per_hour", "pool"),
        "pool_unused": total("gcluster:gpu_node_unused_usd_per_hour", "pool, state"),
        "all_pools": f'group by (pool) (max_over_time(up{{job="node"}}[{span}s]))',
        "measured": f"max(count_over_time(gcluster:node_usd_per_hour[{span}s])) "
        f"or max(count_over_time(gcluster:pool_usd_per_hour[{span}s]))",
    }
