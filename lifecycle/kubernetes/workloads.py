"""What keeps a namespace that would go: all in it would be deleted with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from ..status.kubernetes import JOB_FIELDS
from .addons.ownership import ApiResources, read_api_resources
from .kubectl import Kubectl, rows
from .observe import PodSeen, see_pods

POLICY = r"{.metadata.annotations.helm\.sh/resource-policy}"
"""A chart's policy for an object's removal (helm.sh/docs/howto/charts_tips_and_tricks, 2026-11)."""
TO_KEEP = " (its chart keeps it)"
"""How the names of such objects end."""
_WORK = ("pods", "persistentvolumeclaims", "jobs.batch")
_NEVER = frozenset({*_WORK, "events", "events.events.k8s.io"})
"""Kinds that hold a namespace anyway, and those that come by the thousand and are no chart's."""


def is_protected(policy: str) -> bool:
    """Return whether an object is to be kept, by its annotation."""
    return policy.strip().lower() == "keep"


def occupied(
    kubectl: Kubectl, namespaces: Collection[str], resources: ApiResources | None = None
) -> dict[str, list[str]]:
    """Return the namespaces with workloads, data or objects to keep, and what those are.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: the API refused.
    """
    if not namespaces:
        return {}
    kinds = resources or read_api_resources(kubectl)
    of = ",".join(
        sorted(
            name
            for name, has_namespace in kinds.kinds.values()
            if has_namespace and name not in _NEVER
        )
    )
    held = {
        space: [
            *kubectl.text("get", ",".join(_WORK), f"--namespace={space}", "--output=name").split(),
            *(_protected(kubectl, space, of) if of else ()),
        ]
        for space in namespaces
    }
    return {name: names for name, names in held.items() if names}


def counted(held: Collection[str]) -> str:
    """Return the number of each kind: "2 pod, 1 ConfigMap (its chart keeps it)"."""
    count: dict[tuple[str, str], int] = {}
    for name in held:
        suffix = TO_KEEP if name.endswith(TO_KEEP) else ""
        at = (name.partition("/")[0], suffix)
        count[at] = count.get(at, 0) + 1
    return ", ".join(f"{number} {kind}{suffix}" for (kind, suffix), number in count.items())


def _protected(kubectl: Kubectl, namespace: str, kinds: str) -> Iterator[str]:
    fields: Mapping[str, str] = {"kind": "{.kind}", "name": "{.metadata.name}", "policy": POLICY}
    for row in rows(kubectl, kinds, f"--namespace={namespace}", fields=fields):
        if is_protected(row["policy"]):
            yield f"{row['kind']}/{row['name']}{TO_KEEP}"


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
    """Query jobs and pods.

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
