#!/usr/bin/python3
"""Keep pods off nodes that are unfit, or whose health check says nothing; print what was done.

usage: kubernetes-guard.py

Nodes set the condition GclusterUnfit themselves (role node_health). One whose condition is True is
cordoned with its message; one whose condition is missing or too old is cordoned too, for nobody
knows what it is. A node whose kubelet is silent gets no pods anyway; when it comes back, its check
has as long as that of a new one. What never ends by itself and comes again elsewhere is moved away
from those; jobs go on to their end, as on a node that was drained by hand. A cordon of somebody
else's keeps its reason, and none is lifted here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timezone
from typing import Any

Resource = dict[str, Any]
KUBECTL = ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"]
CONDITION = "GclusterUnfit"
REASON, SINCE = "gcluster.local/drain-reason", "gcluster.local/drained-at"
PREFIX = "gcluster-health: "
POOL = "gcluster.local/pool"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
SILENT_S = 1200
"""The check runs every five minutes and may take 90 s; counted from when a node got ready."""
NEVER = "its health check has never reported"
MOST_REASON = 250
SERVICES = ("ReplicaSet", "StatefulSet", "ReplicationController")


def main() -> None:
    """Look at every node once."""
    unfit = {}
    for node in kubectl_json("get", "nodes")["items"]:
        labels = node["metadata"].get("labels", {})
        why = hindrance(node) if POOL in labels and CONTROL_PLANE not in labels else ""
        if why and not node["spec"].get("unschedulable"):
            unfit[node["metadata"]["name"]] = why
    for name, why in unfit.items():
        cordon(name, why)
        print(f"cordoned {name}: {why}")
    if unfit:
        for pod in kubectl_json("get", "pods", "--all-namespaces")["items"]:
            if pod["spec"].get("nodeName") in unfit and comes_again(pod):
                evict(pod["metadata"]["namespace"], pod["metadata"]["name"])


def hindrance(node: Resource) -> str:
    """Return why no pod may start on a node; "" when it reported lately that it is fit."""
    conditions = {c["type"]: c for c in node["status"].get("conditions", [])}
    found, ready = conditions.get(CONDITION), conditions.get("Ready", {})
    if found and found["status"] != "False":
        return found.get("message") or "its health check failed"
    if ready.get("status") != "True":
        return ""
    since = ready.get("lastTransitionTime") or node["metadata"]["creationTimestamp"]
    silent = age_of(
        max(since, found["lastHeartbeatTime"]) if found else since
    )  # all of them in UTC
    if silent <= SILENT_S:
        return ""
    return f"its health check has not reported for {silent // 60} min" if found else NEVER


def age_of(stamp: str) -> int:
    """Return the whole seconds since a time as the API writes it."""
    then = datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    return int((datetime.now(timezone.utc) - then).total_seconds())


def cordon(name: str, why: str) -> None:
    """Let no pod start on a node, and say why."""
    reason = (PREFIX + " ".join(why.split()))[:MOST_REASON]
    notes = {REASON: reason, SINCE: datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
    change = {"metadata": {"annotations": notes}, "spec": {"unschedulable": True}}
    run("patch", "node", name, "--type=merge", f"--patch={json.dumps(change)}")


def comes_again(pod: Resource) -> bool:
    """Say whether a pod never ends by itself and is recreated on another node."""
    owners = pod["metadata"].get("ownerReferences", [])
    return any(owner.get("controller") and owner["kind"] in SERVICES for owner in owners)


def evict(namespace: str, name: str) -> None:
    """Ask for a pod's eviction; its disruption budget may forbid it: then it stays."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    words = [*KUBECTL, "create", f"--raw={path}", "--filename=-"]
    subprocess.run(words, input=json.dumps(eviction), capture_output=True, text=True, check=False)


def kubectl_json(*arguments: str) -> Resource:
    """Return the API's answer."""
    found: Resource = json.loads(run(*arguments, "--output=json"))
    return found


def run(*arguments: str) -> str:
    """Run kubectl; its words are the reason where it fails."""
    done = subprocess.run([*KUBECTL, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"kubectl {' '.join(arguments[:2])} failed: {done.stderr.strip()[-400:]}")
    return done.stdout


main()
