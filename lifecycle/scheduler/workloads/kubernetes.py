"""Workloads as Jobs, or JobSets, of Kubernetes: created, listed, followed and deleted.

A job's id is NAMESPACE/NAME, and its namespace that of its account.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....inventory.compile.kubernetes_objects.objects import Object
from ....inventory.workloads.kubernetes import (
    CHECKPOINT_PROGRAM,
    CHECKPOINTS,
    SUBMITTER,
    WORKLOAD,
)
from ...cluster.outcome import LifecycleError, failure
from ...kubernetes.kubectl import ApiRefused, ApiSilent, Kubectl, rows
from ...nodes.converge.role_files import role_path
from .job_objects import (
    DECIDED,
    ENDS,
    condition,
    elapsed_of,
    is_old_command,
    job_of,
    key_of,
    state_of,
    state_word,
    whole_of,
)
from .jobs import Job, JobState

_ID = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_KIND = {
    "Job": "jobs.batch",
    "JobSet": "jobsets.jobset.x-k8s.io",
    "TrainJob": "trainjobs.trainer.kubeflow.org",
}
_POD_LABELS = {
    "Job": "batch.kubernetes.io/job-name",
    "JobSet": "jobset.sigs.k8s.io/jobset-name",
    "TrainJob": "jobset.sigs.k8s.io/jobset-name",
}
"""Labels of pods with the name of what made them (kubernetes.io, "Well-Known Labels, Annotations
and Taints"; kubernetes-sigs/jobset api/jobset/v1alpha2/jobset_types.go)."""
_POD_FIELDS = {
    "node": "{.spec.nodeName}",
    "job": "{.metadata.labels.batch\\.kubernetes\\.io/job-name}",
    "limits": "{.spec.containers[*].resources.limits}",
    "made": "{.metadata.creationTimestamp}",
    "began": "{.status.startTime}",
    "rank": "{.metadata.labels.batch\\.kubernetes\\.io/job-completion-index}",
}
_GPUS = re.compile(r'"(?:nvidia|amd)\.com/gpu":"(\d+)"')
_PREFIX = re.compile(r"\[pod/(?P<pod>\S+?)/\S+?\] (?P<at>\S+) ?(?P<text>.*)", re.DOTALL)
_TRIES = 10
_UNSEEN = "must be created before the TrainJob is created"
"""Words of the trainer's refusal (kubeflow/trainer v2.3.0 pkg/runtime/core/trainingruntime.go)."""
_MOST_PODS = 16
"""Pods whose logs are followed; of a larger job it is the first one's."""


def checkpoint_program() -> str:
    """Return the text of the program that completes and finds checkpoints."""
    path = role_path("slurm") / "files" / "libexec" / CHECKPOINT_PROGRAM
    return path.read_text(encoding="utf-8")


class KubernetesQueue:
    """The cluster's Jobs, through kubectl."""

    def __init__(
        self,
        kubectl: Kubectl,
        *,
        has_sets: bool,
        has_trainer: bool = False,
        has_domains: bool = False,
    ) -> None:
        """Set the way to the API; nothing is queried yet.

        Args:
            kubectl: with administrator rights.
            has_sets: whether workloads are JobSets there.
            has_trainer: whether they may be TrainJobs.
            has_domains: whether they may have ComputeDomains.
        """
        self._kubectl = kubectl
        named = {"JobSet": has_sets, "TrainJob": has_trainer}
        self._kinds = ["Job", *(kind for kind, is_there in named.items() if is_there)]
        runtimes = ["trainingruntimes.trainer.kubeflow.org"] if has_trainer else []
        domains = ["computedomains.resource.nvidia.com"] if has_domains else []
        self._companions = ["services", "configmaps", *domains, *runtimes]
        self._pods: tuple[tuple[str, ...], list[dict[str, str]]] | None = None

    def submit(self, objects: Sequence[Object], user: str | None) -> str:
        """Create a workload's objects, the job last, and return its id.

        One of the same name that has ended is removed first, and so are commands of no spec, of
        the same account, that ended a day ago: each has a name of its own.

        Args:
            objects: what it is compiled to.
            user: who it is created as; None: an administrator.

        Raises:
            LifecycleError: one that has not ended has this name or saves to the same folder, or the
                API refused it (GC1213); or it is silent (GC1215).
        """
        job = objects[-1]
        space, name = job["metadata"]["namespace"], job["metadata"]["name"]
        self._make_room(space, name, job["metadata"].get("annotations", {}).get(CHECKPOINTS))
        for made in objects:
            labels = made["metadata"].setdefault("labels", {})
            labels |= {SUBMITTER: user} if user else {}
        if job["kind"] == "TrainJob":
            self._create(objects[:-1], user)
            self._create_train_job(job, user)
        else:
            self._create(objects, user)
        return f"{space}/{name}"

    def _create(self, objects: Sequence[Object], user: str | None) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        # The administrator impersonates the user: the API holds them to the account's rights.
        group = "--as-group=system:authenticated"
        impersonated = (f"--as={user}", group) if user else ()
        text = msgspec.json.encode(listed).decode()
        self._text("create", "--filename=-", *impersonated, stdin=text, code="GC1213")

    def _create_train_job(self, job: Object, user: str | None) -> None:
        """Create it when the trainer's webhook has seen its runtime, in a cache of its own."""
        for left in reversed(range(_TRIES)):
            try:
                self._create([job], user)
            except LifecycleError as refused:
                if not left or _UNSEEN not in refused.diagnostics[0].summary:
                    raise
                time.sleep(1)
            else:
                return

    def _make_room(self, space: str, name: str, folder: str | None) -> None:
        for found in self._all(f"--namespace={space}"):
            meta = found["metadata"]
            has_ended = condition(found, ENDS) is not None
            uses = folder is not None and meta.get("annotations", {}).get(CHECKPOINTS) == folder
            if has_ended and (meta["name"] == name or is_old_command(found)):
                self._delete(space, meta["name"])
            elif not has_ended and (meta["name"] == name or uses):
                why = f"saves to {folder}" if uses else "has this name"
                is_left = condition(found, DECIDED) is not None
                left = "has pods that still end" if is_left else "has not ended"
                raise failure(
                    "GC1213",
                    f"the job was not created: {space}/{meta['name']} {why}, and {left}",
                    hint=f"gcluster cancel CLUSTER {space}/{meta['name']}",
                )

    def jobs(self) -> tuple[Job, ...]:
        """Return the jobs of all accounts, workloads or not; raises as `state`."""
        return tuple(job_of(found) for found in self._all("--all-namespaces"))

    def state(self, job: str) -> JobState:
        """Return the state of one job.

        Raises:
            LifecycleError: Kubernetes knows no such job (GC1214), or is silent (GC1215).
        """
        space, name = _split(job)
        for found in self._all(f"--namespace={space}"):
            if found["metadata"]["name"] == name:
                state = state_of(found, self._reason(space, name, found))
                return state if state.state == "PENDING" else self._with_nodes(state, found)
        raise failure(
            "GC1214",
            f"Kubernetes has no job {job}: it never was, or was removed",
            hint="`gcluster jobs` lists those that it knows",
        )

    def cancel(self, job: str) -> None:
        """Delete a job with its pods and what belongs to it; raises as `state`."""
        self.state(job)
        self._delete(*_split(job))

    def logs(self, job: str, nodes: int, since: str) -> list[tuple[str, str, str]]:
        """Return pod, time and text of the lines that a job's pods printed from a time on."""
        space, name = _split(job)
        first = () if nodes <= _MOST_PODS else ("batch.kubernetes.io/job-completion-index=0",)
        answer = self._kubectl.run(
            *("logs", f"--namespace={space}", "--all-containers", "--ignore-errors"),
            f"--selector={','.join((f'{WORKLOAD}={name}', *first))}",
            *("--prefix", "--timestamps", "--tail=-1", f"--max-log-requests={_MOST_PODS}"),
            *([f"--since-time={since}"] if since else []),
        )
        matches = (_PREFIX.fullmatch(line) for line in answer.stdout.splitlines())
        return [(m["pod"], m["at"], m["text"]) for m in matches if m is not None]

    def _with_nodes(self, state: JobState, found: dict[str, Any]) -> JobState:
        """Return a state with the nodes and GPUs that the job's pods have, or had at last."""
        try:
            pods = self._pods_of(found)
        except (ApiRefused, ApiSilent):
            return state  # its price and use aren't known this time
        # Of those of one number the last one counts: the others have ended before it.
        last = {
            (pod["job"], pod["rank"]): pod
            for pod in sorted(pods, key=lambda pod: pod["made"])
            if pod["node"]
        }
        gpus = [sum(map(int, _GPUS.findall(pod["limits"]))) for pod in last.values()]
        # A set has no time of its start: its creation counts the time in a queue too.
        began = min((pod["began"] for pod in last.values() if pod["began"]), default="")
        own = state.elapsed if found["kind"] == "Job" else elapsed_of(found, began)
        return msgspec.structs.replace(
            state,
            elapsed=own,
            on=tuple(pod["node"] for pod in last.values()),
            gpus=sum(gpus),
            pods_of=tuple(sorted({job for job, _ in last})),
        )

    def _pods_of(self, found: dict[str, Any]) -> list[dict[str, str]]:
        """Return a job's pods; a job that is followed is looked at every two seconds.

        Its status counts its pods by their states: they are as they were while it has the same
        resourceVersion.
        """
        meta = found["metadata"]
        space, version = meta["namespace"], meta.get("resourceVersion", "")
        of = (found["kind"], space, meta["name"], version)
        if version and self._pods is not None and self._pods[0] == of:
            return self._pods[1]
        selected = f"--selector={_POD_LABELS[found['kind']]}={meta['name']}"
        pods = rows(self._kubectl, "pods", f"--namespace={space}", selected, fields=_POD_FIELDS)
        self._pods = (of, pods) if all(pod["node"] for pod in pods) else None
        return pods

    def _reason(self, space: str, name: str, found: dict[str, Any]) -> str:
        """Return why it waits or failed, in Kubernetes' words."""
        word = state_word(found)
        if word == "FAILED":
            return str((condition(found, ("Failed", "FailureTarget")) or {}).get("message", ""))
        if word != "PENDING":
            return ""
        for pod in self._get("pods", f"--namespace={space}", f"--selector={WORKLOAD}={name}"):
            status = pod.get("status", {})
            waiting = [
                each["state"]["waiting"]
                for each in status.get("containerStatuses", ())
                if "waiting" in each.get("state", {})
            ]
            if waiting:
                return str(waiting[0].get("message") or waiting[0].get("reason", ""))
            for one in status.get("conditions", ()):
                if one["type"] == "PodScheduled" and one["status"] == "False":
                    return str(one.get("message", ""))
        return ""

    def _delete(self, space: str, name: str) -> None:
        kinds = ",".join((*(_KIND[kind] for kind in self._kinds), *self._companions))
        options = ("--ignore-not-found", "--cascade=background", "--wait", "--timeout=50s")
        selector = f"--selector={WORKLOAD}={name}"
        self._text("delete", kinds, f"--namespace={space}", selector, *options)

    def _all(self, where: str) -> list[dict[str, Any]]:
        """Return jobs of all kinds, without those that are parts of others."""
        found = self._get(",".join(_KIND[kind] for kind in self._kinds), where)
        parts = [each for each in found if whole_of(each)]
        wholes = {(each["kind"], key_of(each)): each for each in found if not whole_of(each)}
        for part in parts:
            kind, key = whole_of(part), key_of(part)
            if kind == "TrainJob" and (kind, key) in wholes:  # which doesn't count its restarts
                own = wholes[kind, key].setdefault("status", {})
                own["restarts"] = part.get("status", {}).get("restarts", 0)
        return list(wholes.values())

    def _get(self, *what: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = msgspec.json.decode(
            self._text("get", *what, "--output=json")
        )["items"]
        return items

    def _text(self, *words: str, stdin: str | None = None, code: str = "GC1215") -> str:
        try:
            return self._kubectl.text(*words, stdin=stdin)
        except ApiRefused as refused:
            what = "the job was not created" if code == "GC1213" else "Kubernetes refused it"
            raise failure(code, f"{what}: {refused}") from refused
        except ApiSilent as silent:
            raise failure("GC1215", f"Kubernetes gives no answer: {silent}") from silent


class KubernetesLog:
    """What a job's pods print, each line once."""

    def __init__(self, queue: KubernetesQueue) -> None:
        """Nothing is read yet."""
        self._queue = queue
        self._last: dict[str, str] = {}

    def more(self, state: JobState) -> str:
        """Return what came since the last call; pods that are gone take theirs with them."""
        # Lines of several pods come a little out of order: they are read again for a while.
        since = _earlier(max(self._last.values(), default=""))
        lines = self._queue.logs(state.id, state.nodes, since)
        new = [(at, pod, text) for pod, at, text in lines if at > self._last.get(pod, "")]
        for at, pod, _ in new:
            self._last[pod] = max(at, self._last.get(pod, ""))
        return "".join(f"{text}\n" for _, _, text in sorted(new))


_AGAIN_S = 30
"""How late a line may come after a newer one of another pod."""


def _earlier(time: str) -> str:
    """Return the time from which lines are read, where the newest is from `time`."""
    if not time:
        return ""
    seen = datetime.fromisoformat(f"{time[:19]}+00:00")
    return (seen - timedelta(seconds=_AGAIN_S)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _split(job: str) -> tuple[str, str]:
    """Return namespace and name; raises LifecycleError (GC1214) for other words."""
    if _ID.fullmatch(job) is None:
        raise _no_id(job)
    space, _, name = job.partition("/")
    return space, name


def _no_id(job: str) -> LifecycleError:
    return failure("GC1214", f'"{job}" is no id of a job', hint="as `gcluster jobs` shows it")
