"""Kubernetes as the scheduler: nodes cordoned with a reason, pods evicted.

What holds a node are its pods, but for those of DaemonSets. Jobs end by themselves; what never ends
and comes again elsewhere (Deployments and their kind) is moved when its node is drained, as far as
its disruption budget allows.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from ..kubernetes.kubectl import ApiRefused, ApiSilent, Kubectl, rows
from ..kubernetes.observe import (
    DRAIN_REASON,
    DRAINED_AT,
    NodeSeen,
    PodSeen,
    holding,
    see_nodes,
    see_pods,
)
from .base import NodeUse, SchedulerSilent

RETRY_FIELDS = {
    "namespace": "{.metadata.namespace}",
    "name": "{.metadata.name}",
    "retries": "{.spec.backoffLimit}",
    "failed": "{.status.failed}",
    "ignores": '{.spec.podFailurePolicy.rules[?(@.action=="Ignore")].onPodConditions[*].type}',
}


class Kubernetes:
    """The API, through kubectl on a control plane."""

    def __init__(self, kubectl: Kubectl) -> None:
        """Set the API; nothing is queried yet."""
        self._kubectl = kubectl

    def nodes(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        """Return the use of each node; raises SchedulerSilent."""
        try:
            seen = see_nodes(self._kubectl)
            pods = holding(see_pods(self._kubectl))
        except (ApiSilent, ApiRefused) as error:
            raise SchedulerSilent(str(error)) from error
        return {
            name: NodeUse(
                out=seen[name].out,
                jobs=tuple(pod.id for pod in pods.get(name, ()) if _holds(pod, seen[name])),
                reason=seen[name].reason or seen[name].why,
            )
            for name in nodes
            if name in seen
        }

    def drain(self, nodes: Collection[str], reason: str) -> None:
        """Cordon the nodes, the reason first, and move what never ends; raises SchedulerSilent."""
        if not nodes:
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        notes = (f"{DRAIN_REASON}={' '.join(reason.split())}", f"{DRAINED_AT}={now}")
        self._change("annotate", "nodes", *nodes, "--overwrite", *notes)
        self._change("cordon", *nodes)
        pods = self._pods_on(nodes)
        self._evict(pod for pod in pods if pod.is_service)

    def resume(self, nodes: Collection[str]) -> None:
        """Let pods start on the nodes again; raises SchedulerSilent."""
        if nodes:
            self._change("uncordon", *nodes)
            self._change("annotate", "nodes", *nodes, f"{DRAIN_REASON}-", f"{DRAINED_AT}-")

    def requeue(self, jobs: Collection[str]) -> None:
        """Evict pods that will be recreated; one whose job has no retry left continues."""
        wanted = set(jobs)
        try:
            pods = [pod for pod in see_pods(self._kubectl) if pod.id in wanted]
            retried = set(
                _retried(rows(self._kubectl, "jobs", "--all-namespaces", fields=RETRY_FIELDS))
            )
        except (ApiSilent, ApiRefused) as error:
            raise SchedulerSilent(str(error)) from error
        self._evict(
            pod
            for pod in pods
            if pod.is_service or (pod.owner == "Job" and (pod.namespace, pod.owner_name) in retried)
        )

    def pinned(self, nodes: Collection[str]) -> Mapping[str, str]:  # noqa: ARG002  # the interface
        """Return none: a pod that waits for a node that is no more waits on."""
        return {}

    def _pods_on(self, nodes: Collection[str]) -> list[PodSeen]:
        try:
            pods = holding(see_pods(self._kubectl))
        except (ApiSilent, ApiRefused) as error:
            raise SchedulerSilent(str(error)) from error
        return [pod for node in nodes for pod in pods.get(node, ())]

    def _evict(self, pods: Iterable[PodSeen]) -> None:
        """Request each pod's eviction; a pod whose disruption budget forbids it blocks its node."""
        for pod in pods:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": pod.name, "namespace": pod.namespace},
            }
            words = ("create", f"--raw={path}", "--filename=-")
            try:
                self._kubectl.run(*words, stdin=msgspec.json.encode(body).decode())
            except ApiSilent as error:
                raise SchedulerSilent(str(error)) from error

    def _change(self, *arguments: str) -> None:
        try:
            self._kubectl.text(*arguments)
        except (ApiSilent, ApiRefused) as error:
            raise SchedulerSilent(str(error)) from error


def _holds(pod: PodSeen, node: NodeSeen) -> bool:
    """Return whether a pod occupies its node: not one being deleted on an unreachable node.

    Kubernetes deletes it five minutes after the node's last heartbeat, and only the node itself can
    end the pod.
    """
    return node.ready or not pod.leaving


def _retried(jobs: Iterable[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield namespace and name of jobs that make an evicted pod again instead of failing."""
    for job in jobs:
        spare = int(job["retries"] or 0) - int(job["failed"] or 0)
        if spare > 0 or "DisruptionTarget" in job["ignores"]:
            yield job["namespace"], job["name"]
