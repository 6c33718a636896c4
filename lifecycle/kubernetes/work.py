"""What people lose when nodes go: their jobs, pods of no job, and services that hold GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ..status.kubernetes import JOB_FIELDS
from .kubectl import Kubectl
from .look import PodSeen, see_pods
from .table import rows


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has not ended, or a pod of none."""

    namespace: str
    name: str
    nodes: frozenset[str] = frozenset()
    """That its pods hold; empty: it waits."""

    @property
    def id(self) -> str:
        """Return namespace/name."""
        return f"{self.namespace}/{self.name}"


def see_work(kubectl: Kubectl) -> tuple[Work, ...]:
    """Ask for jobs and pods.

    Raises:
        ApiRefused, ApiSilent: see `Kubectl.text`.
    """
    jobs = rows(kubectl, "jobs", "--all-namespaces", fields=JOB_FIELDS)
    return work_of(jobs, see_pods(kubectl))


def work_of(jobs: Iterable[Mapping[str, str]], pods: Iterable[PodSeen]) -> tuple[Work, ...]:
    """Return the work that has not ended (pure).

    Deployments and their kind without GPUs are no work: they come again elsewhere.

    Args:
        jobs: rows of all jobs.
        pods: those that have not ended.
    """
    held: dict[tuple[str, str], set[str]] = {
        (job["namespace"], job["name"]): set() for job in jobs if "True" not in job["ended"]
    }
    for pod in pods:
        if pod.is_of_its_node or (pod.is_service and not pod.gpus):
            continue
        name = pod.owner_name if pod.owner == "Job" else pod.name
        held.setdefault((pod.namespace, name), set()).update({pod.node} - {""})
    return tuple(
        Work(namespace=namespace, name=name, nodes=frozenset(nodes))
        for (namespace, name), nodes in held.items()
    )
