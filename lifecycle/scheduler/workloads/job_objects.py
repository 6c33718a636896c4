"""Jobs, JobSets and TrainJobs as Kubernetes' API has them, read as states and lines of a queue."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from ....inventory.workloads.kubernetes import COMMAND, SUBMITTER
from .jobs import Job, JobState

ENDS = {"Complete": "COMPLETED", "Completed": "COMPLETED", "Failed": "FAILED"}
DECIDED = ENDS | {"SuccessCriteriaMet": "COMPLETED", "FailureTarget": "FAILED"}
"""How a Job ends is known before none of its pods is left (kubernetes.io, Jobs, "Terminal Job
conditions"): one on a lost node is left until that is back or removed."""
_COMMANDS_KEPT = timedelta(days=1)


def condition(found: dict[str, Any], types: Collection[str]) -> dict[str, Any] | None:
    """Return the first of a job's conditions that is true and of one of these types."""
    conditions: list[dict[str, Any]] = found.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] in types and c["status"] == "True"), None)


def key_of(found: dict[str, Any]) -> tuple[str, str]:
    """Return a job's namespace and name."""
    return found["metadata"]["namespace"], found["metadata"]["name"]


def whole_of(found: dict[str, Any]) -> str:
    """Return the kind of what a job is a part of; "": it is a whole one."""
    owners = found["metadata"].get("ownerReferences", ())
    return next((one["kind"] for one in owners if one["kind"] in {"JobSet", "TrainJob"}), "")


def is_old_command(found: dict[str, Any]) -> bool:
    """Whether it is a command of no spec that ended more than a day ago."""
    ended = (condition(found, ENDS) or {}).get("lastTransitionTime")
    if COMMAND not in found["metadata"].get("labels", {}) or ended is None:
        return False
    return datetime.now(UTC) - datetime.fromisoformat(ended) > _COMMANDS_KEPT


def state_word(found: dict[str, Any]) -> str:
    """Return its state in Slurm's words: PENDING, RUNNING, COMPLETED, FAILED."""
    status, decided = found.get("status", {}), condition(found, DECIDED)
    if decided is not None:
        return DECIDED[decided["type"]]
    if found["kind"] == "JobSet":
        ready = sum(
            each.get("ready", 0) + each.get("active", 0)
            for each in status.get("replicatedJobsStatus", ())
        )
    elif found["kind"] == "TrainJob":
        ready = sum(each["ready"] + each["active"] for each in status.get("jobsStatus", ()))
    else:
        ready = status.get("ready", 0)
    return "RUNNING" if ready else "PENDING"


def _workers(found: dict[str, Any]) -> int:
    spec = found["spec"]
    if found["kind"] == "JobSet":
        return sum(
            each["template"]["spec"].get("parallelism", 1) * each.get("replicas", 1)
            for each in spec["replicatedJobs"]
        )
    if found["kind"] == "TrainJob":
        return int(spec.get("trainer", {}).get("numNodes", 1))
    return int(spec.get("parallelism", 1))


def state_of(found: dict[str, Any], reason: str) -> JobState:
    """Return its state; `reason`: why it waits or failed."""
    word = state_word(found)
    status = found.get("status", {})
    again = status.get("failed" if found["kind"] == "Job" else "restarts", 0)
    return JobState(
        id=f"{found['metadata']['namespace']}/{found['metadata']['name']}",
        state=word,
        reason=reason,
        exit_code="0" if word == "COMPLETED" else reason or "unknown",
        restarts=int(again),
        elapsed=elapsed_of(found),
        nodes=_workers(found),
        batch_host="",
        log="",
    )


def job_of(found: dict[str, Any]) -> Job:
    """Return its line in the queue."""
    meta = found["metadata"]
    word = state_word(found)
    return Job(
        id=f"{meta['namespace']}/{meta['name']}",
        name=meta["name"],
        user=meta.get("labels", {}).get(SUBMITTER, ""),
        state=word,
        elapsed=elapsed_of(found),
        nodes=str(_workers(found)),
        reason="",
        partition=meta.get("labels", {}).get("kueue.x-k8s.io/queue-name", ""),
    )


def elapsed_of(found: dict[str, Any], began: str = "") -> str:
    """Return the time from a job's start, where it is known, to its end, or to now: H:MM:SS."""
    status = found.get("status", {})
    began = began or status.get("startTime") or found["metadata"].get("creationTimestamp")
    if not began:
        return ""
    ended = status.get("completionTime") or (condition(found, DECIDED) or {}).get(
        "lastTransitionTime"
    )
    last = datetime.now(UTC) if ended is None else datetime.fromisoformat(ended)
    seconds = max(0, int((last - datetime.fromisoformat(began)).total_seconds()))
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
