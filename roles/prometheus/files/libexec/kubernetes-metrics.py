#!/usr/bin/python3
"""Write what Kubernetes says of its nodes and pods to node exporter's folder.

A timer runs it on the host of Prometheus, which is a control plane: two queries of the API server
each time. Names and labels are those of kube-state-metrics (docs/metrics/cluster/node-metrics.md,
docs/metrics/workload/pod-metrics.md, 2.20), of which it writes what alerts, prices and pages query;
the labels uid and owner_is_controller, and of kube_node_info all but the address, are left out.
kube-state-metrics itself comes as an image, and nodes made on this machine have no registry.

Where the API server doesn't answer, the file stays as it is: its age is an alert.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("GCLUSTER_TEXTFILES", "/var/lib/prometheus/node-exporter"))
FILE = "gcluster-kubernetes.prom"
KUBECTL = [
    "kubectl",
    "--kubeconfig=/etc/kubernetes/admin.conf",
    "--server=https://localhost:6443",
    "--request-timeout=20s",
]
LIMIT_S = 30
USER_LABEL = "gcluster.local/user"
METRICS = {
    "kube_node_info": ("gauge", "Information about a cluster node."),
    "kube_node_status_condition": ("gauge", "The condition of a cluster node."),
    "kube_node_spec_unschedulable": ("gauge", "Whether a node can schedule new pods."),
    "kube_pod_owner": ("gauge", "Information about the pod's owner."),
    "kube_pod_labels": ("gauge", "Kubernetes labels converted to Prometheus labels."),
    "kube_pod_start_time": ("gauge", "Start time in unix timestamp for a pod."),
    "kube_pod_container_status_restarts_total": (
        "counter",
        "The number of container restarts per container.",
    ),
}

Resource = dict[str, Any]
Sample = tuple[str, dict[str, str], float]


def main() -> int:
    """Write the file as a whole, and say why where that isn't possible."""
    try:
        samples = [*of_nodes(listed("nodes")), *of_pods(listed("pods"))]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        detail = getattr(error, "stderr", "") or error
        print(f"the API server gives no nodes and pods: {detail}", file=sys.stderr)
        return 1
    new = FOLDER / f".{FILE}.new"
    new.write_text(page(samples), encoding="utf-8")
    new.chmod(0o644)
    new.replace(FOLDER / FILE)
    return 0


def listed(kind: str) -> list[Resource]:
    """Return all objects of a kind.

    Raises:
        OSError, subprocess.SubprocessError, ValueError, KeyError: there is no answer.
    """
    done = subprocess.run(
        [*KUBECTL, "get", "--raw", f"/api/v1/{kind}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    )
    found: list[Resource] = json.loads(done.stdout)["items"]
    return found


def of_nodes(nodes: Iterable[Resource]) -> Iterator[Sample]:
    """Yield the addresses and conditions of nodes, and which of them take no pods."""
    for node in nodes:
        name = {"node": str(node["metadata"]["name"])}
        addresses = node.get("status", {}).get("addresses", [])
        internal = (str(a["address"]) for a in addresses if a["type"] == "InternalIP")
        yield "kube_node_info", name | {"internal_ip": next(internal, "")}, 1
        yield "kube_node_spec_unschedulable", name, int(bool(node["spec"].get("unschedulable")))
        for condition in node.get("status", {}).get("conditions", []):
            for status in ("true", "false", "unknown"):
                labels = name | {"condition": str(condition["type"]), "status": status}
                holds = str(condition["status"]).lower() == status
                yield "kube_node_status_condition", labels, int(holds)


def of_pods(pods: Iterable[Resource]) -> Iterator[Sample]:
    """Yield who made pods, whose they are, since when they run and how often they ended."""
    for pod in pods:
        about, status = pod["metadata"], pod.get("status", {})
        name = {"namespace": str(about["namespace"]), "pod": str(about["name"])}
        for owner in about.get("ownerReferences") or [{"kind": "", "name": ""}]:
            made = {"owner_kind": str(owner["kind"]), "owner_name": str(owner["name"])}
            yield "kube_pod_owner", name | made, 1
        if user := (about.get("labels") or {}).get(USER_LABEL):
            yield "kube_pod_labels", name | {label_name(USER_LABEL): str(user)}, 1
        if started := status.get("startTime"):
            began = datetime.fromisoformat(str(started).replace("Z", "+00:00"))
            yield "kube_pod_start_time", name, began.timestamp()
        for container in status.get("containerStatuses") or []:
            labels = name | {"container": str(container["name"])}
            restarts = container.get("restartCount", 0)
            yield "kube_pod_container_status_restarts_total", labels, restarts


def label_name(label: str) -> str:
    """Return what kube-state-metrics calls a label of an object."""
    return "label_" + re.sub(r"[^a-zA-Z0-9_]", "_", label)


def page(samples: Iterable[Sample]) -> str:
    """Return Prometheus' text format: the samples of a metric are together."""
    lines: dict[str, list[str]] = {name: [] for name in METRICS}
    for name, labels, value in samples:
        shown = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
        lines[name].append(f"{name}{{{shown}}} {value:.15g}")
    return "".join(
        f"# HELP {name} {METRICS[name][1]}\n# TYPE {name} {METRICS[name][0]}\n"
        + "".join(f"{line}\n" for line in rows)
        for name, rows in lines.items()
        if rows
    )


def escaped(word: str) -> str:
    """Return a label's value as the text format has it."""
    return word.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


if __name__ == "__main__":
    sys.exit(main())
