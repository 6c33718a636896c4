"""Queries of `status` to a Kubernetes API: nodes, running and waiting jobs, use of quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from ...inventory.compile.kubernetes_objects.admission.rules import QUEUE_LABEL
from ...inventory.compile.kubernetes_objects.objects import CLUSTER_LABEL
from ...schemas.structure.decoding import decode_json
from ..kubernetes.kubectl import ApiRefused, ApiSilent, Kubectl, rows
from ..kubernetes.observe import NodeSeen, PodSeen, see_nodes, see_pods
from .conditions import PartitionQueue, QueueStatus, QuotaUse, WaitingFor
from .slurm import SchedulerReport, SchedulerView

LEFT = "unfit and left in service"
"""Within minutes it is cordoned; it stays so where too many of its pool are."""
_GPUS_OF = "requests."
QUOTA_FIELDS = {
    "account": "{.metadata.namespace}",
    "name": "{.metadata.name}",
    "hard": "{.status.hard}",
    "used": "{.status.used}",
}
JOB_FIELDS = {
    "namespace": "{.metadata.namespace}",
    "name": "{.metadata.name}",
    "queue": "{.metadata.labels." + QUEUE_LABEL.replace(".", "\\.") + "}",
    "created": "{.metadata.creationTimestamp}",
    "suspended": "{.spec.suspend}",
    "wanted": "{.spec.parallelism}",
    "completions": "{.spec.completions}",
    "succeeded": "{.status.succeeded}",
    "ended": '{.status.conditions[?(@.type=="Complete")].status}'
    '{.status.conditions[?(@.type=="Failed")].status}',
}
WORKLOAD_FIELDS = {
    "namespace": "{.metadata.namespace}",
    "job": "{.metadata.ownerReferences[0].name}",
    "why": '{.status.conditions[?(@.type=="QuotaReserved")].message}',
}
EVENT_FIELDS = {
    "namespace": "{.involvedObject.namespace}",
    "job": "{.involvedObject.name}",
    "message": "{.message}",
}


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A job, or a pod of none, that has not ended."""

    partition: str
    runs: bool
    created: str
    why: str = ""
    """Why none of its pods runs, or not all of them."""


def kubernetes_report(kubectl: Kubectl) -> SchedulerReport:
    """Query the API for everything; never raises for one that doesn't respond."""
    try:
        nodes = see_nodes(kubectl)
        pods = see_pods(kubectl)
        jobs = rows(kubectl, "jobs", "--all-namespaces", fields=JOB_FIELDS)
        owned = ("--all-namespaces", f"--selector={CLUSTER_LABEL}")
        quotas = rows(kubectl, "resourcequotas", *owned, fields=QUOTA_FIELDS)
        work = jobs_of(jobs, pods, _pending_reasons(kubectl, jobs, pods))
    except (ApiSilent, ApiRefused) as error:
        return SchedulerReport(view=SchedulerView(problem=f"the API does not answer: {error}"))
    view = SchedulerView(
        states={name: _state(node) for name, node in nodes.items()},
        reasons={
            name: node.why or _why_not_yet(node)
            for name, node in nodes.items()
            if node.out or node.unfit or node.awaits
        },
        queue=queue_of(work, now=datetime.now(UTC)),
    )
    since = {name: node.not_ready_since or node.since for name, node in nodes.items() if node.out}
    return SchedulerReport(
        view=view,
        since={name: when for name, when in since.items() if when},
        quotas=tuple(quotas_of(quotas)),
    )


def jobs_of(
    jobs: Iterable[Mapping[str, str]],
    pods: Iterable[PodSeen],
    held: Mapping[tuple[str, str], str],
) -> list[Waiting]:
    """Return what runs and waits: jobs, and pods without a controller.

    Args:
        jobs: rows of all jobs.
        pods: those that have not ended.
        held: namespace and name of a job without pods -> why.
    """
    of_jobs: dict[tuple[str, str], list[PodSeen]] = {}
    found = []
    for pod in pods:
        if pod.owner == "Job":
            of_jobs.setdefault((pod.namespace, pod.owner_name), []).append(pod)
        elif not (pod.is_of_its_node or pod.is_service):
            runs = pod.phase == "Running"
            found.append(
                Waiting(partition="", runs=runs, created=pod.created, why=in_short(pod.pending))
            )
    for job in jobs:
        if "True" in job["ended"]:
            continue
        key = job["namespace"], job["name"]
        own = of_jobs.get(key, [])
        waits = next((pod.pending for pod in own if pod.pending), "")
        why = in_short(waits or held.get(key, ""))
        running = sum(pod.phase == "Running" for pod in own)
        wanted = _wanted(job)
        if running and why and running < wanted:
            why = f"only {running} of {wanted} pods run: {why}"
        found.append(
            Waiting(
                partition=job["queue"],
                runs=bool(running),
                created=job["created"],
                why=why if running < wanted else "",
            )
        )
    return found


def _wanted(job: Mapping[str, str]) -> int:
    """Return how many pods of a job run at once when it runs as a whole."""
    most = int(job.get("wanted") or "1")
    if job.get("completions"):
        return min(most, int(job["completions"]) - int(job.get("succeeded") or "0"))
    return most


def queue_of(work: Iterable[Waiting], *, now: datetime) -> QueueStatus:
    """Count what runs and waits, by partition too, and the reasons of what waits."""
    counts: Counter[tuple[str, bool]] = Counter()
    reasons: Counter[str] = Counter()
    oldest: dict[str, float] = {}
    for one in work:
        for name in {"", one.partition}:
            counts[name, one.runs] += 1
            if not one.runs:
                age = (now - datetime.fromisoformat(one.created)).total_seconds()
                oldest[name] = max(oldest.get(name, 0.0), age)
        if one.why or not one.runs:
            reasons[one.why or "its pods are being made"] += 1
    return QueueStatus(
        running=counts["", True],
        pending=counts["", False],
        oldest_wait_s=oldest.get(""),
        partitions=tuple(
            PartitionQueue(
                name=name,
                running=counts[name, True],
                pending=counts[name, False],
                oldest_wait_s=oldest.get(name),
            )
            for name in sorted({name for name, _ in counts} - {""})
        ),
        reasons=tuple(WaitingFor(reason=why, jobs=jobs) for why, jobs in reasons.most_common()),
    )


def quotas_of(quotas: Iterable[Mapping[str, str]]) -> Iterable[QuotaUse]:
    """Yield the use of GPUs by account; that of one QOS is marked so."""
    for quota in quotas:
        hard, used = (decode_json(quota[part] or "{}", dict[str, str]) for part in ("hard", "used"))
        qos = quota["name"].removeprefix("qos-") if quota["name"].startswith("qos-") else ""
        for name, limit in sorted(hard.items()):
            if name.startswith(_GPUS_OF) and limit.isdecimal():
                yield QuotaUse(
                    account=f"{quota['account']} (QOS {qos})" if qos else quota["account"],
                    resource=name.removeprefix(_GPUS_OF),
                    used=int(used.get(name, "0")) if used.get(name, "0").isdecimal() else 0,
                    limit=int(limit),
                )


def in_short(why: str) -> str:
    """Return the scheduler's or the quota's message without the text around the reason."""
    text = " ".join(why.split()).split(" preemption:", 1)[0]
    for before in (" nodes are available: ", " is forbidden: "):
        text = text.split(before, 1)[-1]
    return text.strip().rstrip(".")


def _state(node: NodeSeen) -> str:
    if not node.ready:
        return "not ready, cordoned" if node.cordoned else "not ready"
    if node.cordoned:
        return "cordoned"
    if node.awaits:
        return "starting"
    return "ready, unfit" if node.unfit else "ready"


def _why_not_yet(node: NodeSeen) -> str:
    """Return the note on a node that is in service, and healthy or kept there."""
    if node.awaits:
        return f"no device plugin has registered {', '.join(node.awaits)} yet"
    return f"{LEFT}: {node.unfit}"


def _pending_reasons(
    kubectl: Kubectl, jobs: Iterable[Mapping[str, str]], pods: Iterable[PodSeen]
) -> dict[tuple[str, str], str]:
    """Return why jobs lack pods: their queue, or what refused the pods."""
    made = Counter((pod.namespace, pod.owner_name) for pod in pods if pod.owner == "Job")
    without = {
        (job["namespace"], job["name"]): job["suspended"] == "true"
        for job in jobs
        if "True" not in job["ended"] and made[job["namespace"], job["name"]] < _wanted(job)
    }
    if not without:
        return {}
    held = {job: "suspended" for job, is_suspended in without.items() if is_suspended}
    refused = ("--all-namespaces", "--field-selector=reason=FailedCreate")
    for row in rows(kubectl, "events", *refused, "--sort-by=.lastTimestamp", fields=EVENT_FIELDS):
        if (row["namespace"], row["job"]) in without:
            held[row["namespace"], row["job"]] = row["message"]
    if "suspended" in held.values():
        held |= _kueue_reasons(kubectl)
    return held


def _kueue_reasons(kubectl: Kubectl) -> dict[tuple[str, str], str]:
    """Return why queued jobs wait; nothing where Kueue isn't installed."""
    try:
        found = rows(
            kubectl, "workloads.kueue.x-k8s.io", "--all-namespaces", fields=WORKLOAD_FIELDS
        )
    except ApiRefused:
        return {}
    return {(row["namespace"], row["job"]): row["why"] for row in found if row["why"]}
