"""Kubernetes' view of this node: a condition with its problem.

It uses the kubelet's own credentials, by which a node may change itself and read no other. So it
cordons no nodes: the control planes do, which see how many are out (kubernetes-guard.py).
"""

from __future__ import annotations

import json
import time
from typing import Any

from ..finding import CheckIncomplete
from ..probe import Probe
from .slurm import PREFIX

KUBECONFIG = "/etc/kubernetes/kubelet.conf"
"""It is there once the node has joined."""
CONDITION = "GclusterUnfit"
DRAIN_REASON, DRAINED_AT = "gcluster.local/drain-reason", "gcluster.local/drained-at"
TIMEOUT_S = 15.0
"""kubectl needs some seconds of its own on a node whose cores are all at work."""
_MOST_MESSAGE = 1000
_TRIES = 5
"""The kubelet also writes the same status: on a conflict it is read again."""


def is_member(probe: Probe) -> bool:
    """Return whether this host is a node of Kubernetes."""
    return probe.path(KUBECONFIG).exists()


def emit(node: str, reason: str, probe: Probe, *, resume: bool) -> str:
    """Renew the condition, and lift a cordon of ours from a fit node; return what was done.

    Args:
        node: this one.
        reason: all that is to cordon it; "" when it is fit.
        probe: runs kubectl.
        resume: whether cordons of ours are lifted when it is healthy again.

    Raises:
        CheckIncomplete: the API server could not be updated.
    """
    now = _renewed(node, reason, probe)
    out = bool(now["spec"].get("unschedulable"))
    written = now["metadata"].get("annotations", {}).get(DRAIN_REASON, "")
    if not reason:
        return _lift(node, written, probe) if out and resume and written.startswith(PREFIX) else ""
    if not out:
        return "reported to the control planes"
    if written.startswith(PREFIX):
        return "is cordoned"
    return f"was cordoned already: {written or 'no reason given'}"


def _node_object(node: str, probe: Probe) -> dict[str, Any]:
    text = _kubectl(probe, "get", "node", node, "--output=json")
    try:
        found: dict[str, Any] = json.loads(text)
        found["spec"], found["metadata"], found["status"]
    except (ValueError, KeyError) as error:
        raise CheckIncomplete(f"kubectl says of {node}: {text.strip()[:200]}") from error
    return found


def _renewed(node: str, reason: str, probe: Probe) -> dict[str, Any]:
    """Write the condition with the time of now, and return the node as it was read.

    The kubelet's credentials may update a status and not read one, as `kubectl patch` would.
    """
    for left in reversed(range(_TRIES)):
        now = _node_object(node, probe)
        conditions: list[dict[str, Any]] = now["status"].get("conditions", [])
        before = next((one for one in conditions if one.get("type") == CONDITION), {})
        others = [one for one in conditions if one is not before]
        now["status"]["conditions"] = [*others, _condition(reason, before)]
        words = ("replace", f"--raw=/api/v1/nodes/{node}/status", "--filename=-")
        try:
            _kubectl(probe, *words, given=json.dumps(now))
        except CheckIncomplete as error:
            if not left or "the object has been modified" not in str(error):
                raise
        else:
            return now
    raise AssertionError  # the last try returns or raises


def _condition(reason: str, before: dict[str, Any]) -> dict[str, str]:
    """Return the condition; since when it is so stays while it is."""
    status, stamp = "True" if reason else "False", _stamp()
    same = before.get("status") == status
    return {
        "type": CONDITION,
        "status": status,
        "reason": "HealthCheckFailed" if reason else "HealthCheckPassed",
        "message": reason[:_MOST_MESSAGE],
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": before.get("lastTransitionTime", stamp) if same else stamp,
    }


def _lift(node: str, message: str, probe: Probe) -> str:
    notes = {DRAIN_REASON: None, DRAINED_AT: None}
    _patch(node, probe, {"metadata": {"annotations": notes}, "spec": {"unschedulable": None}})
    return f"cordon lifted: {message.replace(PREFIX, '', 1)}"


def _patch(node: str, probe: Probe, change: dict[str, Any]) -> None:
    _kubectl(probe, "patch", "node", node, "--type=merge", f"--patch={json.dumps(change)}")


def _kubectl(probe: Probe, *words: str, given: str = "") -> str:
    command = ("kubectl", f"--kubeconfig={KUBECONFIG}", *words)
    return probe.run(*command, timeout_s=TIMEOUT_S, given=given)


def _stamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
