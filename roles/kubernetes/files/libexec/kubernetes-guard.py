#!/usr/bin/python3
"""Keep pods off nodes that are unhealthy or without a health report; print what was done.

usage: kubernetes-guard.py

Nodes set the condition GclusterUnfit themselves (role node_health), and only this program cordons
for it. One whose condition is True is cordoned with its message; one whose condition is missing or
too old is cordoned too, since its health is unknown. A node whose kubelet doesn't respond gets no
pods anyway; when it comes back, its check has as long as that of a new one. Pods that never end by
themselves and are recreated elsewhere are evicted from those; jobs run to their end, as on a node
that was drained by hand. A cordon by others keeps its reason, and none is lifted here.

A health check that is wrong must not take the fleet: of a pool a quarter at most is out by this
program, and a tenth comes to it within an hour, but one node always may. What is beyond is left in
service and reported, and the program ends with 1, so that its unit has failed: `gcluster status`
shows the same. A ConfigMap guard-stopped in gcluster-system stops it, whatever it holds.
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
HOUR_S = 3600
NO_TIME = "1970-01-01T00:00:00Z"
NEVER = "its health check has never reported"
MOST_REASON = 250
SERVICES = ("ReplicaSet", "StatefulSet", "ReplicationController")
MOST_SHARE, HOURLY_SHARE = 0.25, 0.1
"""Of a pool's nodes: out by this program at once, and within an hour."""
STOP = ("get", "configmap", "guard-stopped", "--namespace=gcluster-system", "--ignore-not-found")


def main() -> None:
    """Check every node once."""
    if run(*STOP, "--output=name").strip():
        print("stopped by the ConfigMap guard-stopped in gcluster-system: nothing was looked at")
        return
    unfit, left = chosen(kubectl_json("get", "nodes")["items"])
    for name, why in unfit.items():
        cordon(name, why)
        print(f"cordoned {name}: {why}")
    if unfit:
        for pod in kubectl_json("get", "pods", "--all-namespaces")["items"]:
            if pod["spec"].get("nodeName") in unfit and comes_again(pod):
                evict(pod["metadata"]["namespace"], pod["metadata"]["name"])
    if left:
        sys.exit(
            f"unfit and left in service: {', '.join(left)}. So many at once may be a mistake of "
            "the health check: look at one of them, and cordon the others where they are unfit"
        )


def chosen(everyone: list[Resource]) -> tuple[dict[str, str], list[str]]:
    """Return node -> why it is to be cordoned, and texts on those that stay in service."""
    pools: dict[str, list[Resource]] = {}
    for node in everyone:
        labels = node["metadata"].get("labels", {})
        if POOL in labels and CONTROL_PLANE not in labels:
            pools.setdefault(labels[POOL], []).append(node)
    unfit: dict[str, str] = {}
    left: list[str] = []
    for pool, nodes in sorted(pools.items()):
        serving = [node for node in nodes if not node["spec"].get("unschedulable")]
        found = {node["metadata"]["name"]: why for node in serving if (why := hindrance(node))}
        # In one order, so that several control planes at once choose the same ones.
        names = sorted(found)[: allowed(nodes)]
        unfit |= {name: found[name] for name in names}
        if len(names) < len(found):
            left.append(f"{len(found) - len(names)} of {len(nodes)} nodes of pool {pool}")
    return unfit, left


def allowed(nodes: list[Resource]) -> int:
    """Return how many more nodes of a pool may be cordoned now."""
    out = [node for node in nodes if node["spec"].get("unschedulable") and is_ours(node)]
    lately = [node for node in out if age_of(notes_of(node).get(SINCE, NO_TIME)) < HOUR_S]
    at_once = max(1, int(MOST_SHARE * len(nodes))) - len(out)
    hourly = max(1, int(HOURLY_SHARE * len(nodes))) - len(lately)
    return max(0, min(at_once, hourly))


def is_ours(node: Resource) -> bool:
    """Return whether the cordon of a node is this program's, or one of an older health check."""
    return str(notes_of(node).get(REASON, "")).startswith(PREFIX)


def notes_of(node: Resource) -> Resource:
    """Return a node's annotations."""
    found: Resource = node["metadata"].get("annotations", {})
    return found


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
    """Cordon a node with the reason."""
    reason = (PREFIX + " ".join(why.split()))[:MOST_REASON]
    notes = {REASON: reason, SINCE: datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
    change = {"metadata": {"annotations": notes}, "spec": {"unschedulable": True}}
    run("patch", "node", name, "--type=merge", f"--patch={json.dumps(change)}")


def comes_again(pod: Resource) -> bool:
    """Return whether a pod never ends by itself and is recreated on another node."""
    owners = pod["metadata"].get("ownerReferences", [])
    return any(owner.get("controller") and owner["kind"] in SERVICES for owner in owners)


def evict(namespace: str, name: str) -> None:
    """Request a pod's eviction; its disruption budget may forbid it: then it stays."""
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
    """Run kubectl; its message is the reason where it fails."""
    done = subprocess.run([*KUBECTL, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"kubectl {' '.join(arguments[:2])} failed: {done.stderr.strip()[-400:]}")
    return done.stdout


main()
