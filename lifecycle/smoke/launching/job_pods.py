"""An Indexed Job and its pods in the API: started, ended, and what blocks them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ....inventory.compile.kubernetes_objects.jobs.allreduce import RUN
from ....inventory.compile.kubernetes_objects.objects import SYSTEM_NAMESPACE, Object, new
from ....inventory.compile.steps import Json
from ....stacks.io.ssh import ensure_client_key, public_text
from ...kubernetes.kubectl import Kubectl, rows

_NEVER = frozenset(
    {"ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName", "ImageInspectError"}
)
"""Why containers wait that no waiting helps."""
_ENDED = frozenset({"Complete", "Failed", "FailureTarget"})
_SHOWN = 5
_WARNINGS = 20


class JobPod(msgspec.Struct, frozen=True, kw_only=True):
    """One pod of the job."""

    name: str
    index: int
    node: str
    phase: str
    exit_status: int | None
    """Of its ranks; None while they run or never did."""
    reason: str
    """Why it waits or ended, as Kubernetes reports it."""


class JobPods(msgspec.Struct, frozen=True, kw_only=True):
    """The job at one moment."""

    job: str
    wanted: int
    """Pods that it is to have."""
    pods: tuple[JobPod, ...]
    result: str = ""
    """"Complete" or "Failed"; "" while it runs."""
    why: str = ""
    """Its own message of a failure, or why it creates no pods."""

    @property
    def has_started(self) -> bool:
        """Whether the first pod's ranks run or ran, and every pod has a node or had one."""
        placed = len({pod.index for pod in self.pods if pod.node}) == self.wanted
        return (placed or bool(self.result)) and any(
            pod.index == 0 and pod.phase in {"Running", "Succeeded", "Failed"} for pod in self.pods
        )

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes of it."""
        return bool(self.result) or any(pod.reason in _NEVER for pod in self.pods)

    @property
    def first(self) -> str:
        """Name of the pod that runs mpirun."""
        return next(pod.name for pod in self.pods if pod.index == 0)

    @property
    def status(self) -> int:
        """Exit status: the first pod's own where it has one."""
        if self.result == "Complete":
            return 0
        own = [pod.exit_status for pod in self.pods if pod.index == 0 and pod.exit_status]
        return own[0] if own else 1

    @property
    def hindrance(self) -> str:
        """Return why it has not started."""
        waiting = [f"{pod.name}: {pod.reason or pod.phase}" for pod in self.pods if not _runs(pod)]
        more = [f"and {len(waiting) - _SHOWN} more"] if len(waiting) > _SHOWN else []
        lacking = self.wanted - len(self.pods)
        reasons = [self.why] if self.why else []
        reasons += [f"{lacking} of {self.wanted} pods do not exist"] if lacking > 0 else []
        return "; ".join([*reasons, *waiting[:_SHOWN], *more]) or "its first pod does not run"

    @property
    def messages(self) -> tuple[str, ...]:
        """Return a line for the job and each pod."""
        head = f"job {self.job}: {self.result or 'not ended'} {self.why}".rstrip()
        return (head, *(_line(pod) for pod in self.pods))

    def hosts(self) -> dict[str, str]:
        """Return the host name of each pod -> its node."""
        return {f"{self.job}-{pod.index}": pod.node for pod in self.pods if pod.node}

    def failure_of_another(self, before: JobPods) -> str:
        """Return why the job failed, unless its first pod did, whose log has the reason.

        Args:
            before: the job when it had started; later failures are only in the job.
        """
        if self.result != "Failed":
            return ""
        known = {pod.name: pod for pod in (*before.pods, *self.pods)}
        named = next((pod for name, pod in known.items() if name in self.why), None)
        if named is None:
            return self.why or "its job failed"
        return f"the pod on {named.node} failed: {self.why}" if named.index else ""


def see_job(kubectl: Kubectl, name: str, wanted: int) -> JobPods:
    """Read a job and its pods.

    Raises:
        ApiRefused, ApiSilent: see `Kubectl.text`.
    """
    here = f"--namespace={SYSTEM_NAMESPACE}"
    found = rows(kubectl, "jobs,pods", here, f"--selector={RUN}={name}", fields=FIELDS)
    pods = [row for row in found if row["kind"] == "Pod"]
    jobs = [row for row in found if row["kind"] == "Job"]
    conditions = (
        dict(part.split("=", 1) for part in jobs[0]["conditions"].split() if "=" in part)
        if jobs
        else {}
    )
    result = next((kind for kind in ("Complete", "Failed") if conditions.get(kind) == "True"), "")
    return JobPods(
        job=name,
        wanted=wanted,
        pods=tuple(sorted((_pod(row) for row in pods), key=lambda pod: pod.index)),
        result=result if jobs else "Failed",
        why=jobs[0]["why"] if jobs else "the job is gone",
    )


def see_warnings(kubectl: Kubectl, name: str) -> tuple[str, ...]:
    """Return what the cluster warned of about a job and its pods, the oldest first.

    Raises:
        ApiRefused, ApiSilent: see `Kubectl.text`.
    """
    here = (f"--namespace={SYSTEM_NAMESPACE}", "--field-selector=type=Warning")
    seen = rows(kubectl, "events", *here, "--sort-by=.lastTimestamp", fields=EVENT_FIELDS)
    of_it = [row for row in seen if row["about"] == name or row["about"].startswith(f"{name}-")]
    warnings = [
        f"{row['about']}: {row['reason']}: {' '.join(row['message'].split())}" for row in of_it
    ]
    return tuple(warnings)[-_WARNINGS:]


EVENT_FIELDS = {
    "about": "{.involvedObject.name}",
    "reason": "{.reason}",
    "message": "{.message}",
}
_STATE = ".status.containerStatuses[0].state"
FIELDS = {
    "kind": "{.kind}",
    "conditions": "{range .status.conditions[*]}{.type}={.status} {end}",
    "why": '{.status.conditions[?(@.type=="Failed")].message}',
    "name": "{.metadata.name}",
    "index": "{.metadata.annotations.batch\\.kubernetes\\.io/job-completion-index}",
    "node": "{.spec.nodeName}",
    "phase": "{.status.phase}",
    "unscheduled": '{.status.conditions[?(@.type=="PodScheduled")].message}',
    "waiting": f"{{{_STATE}.waiting.reason}}",
    "waits_for": f"{{{_STATE}.waiting.message}}",
    "exit": f"{{{_STATE}.terminated.exitCode}}",
    "ended": f"{{{_STATE}.terminated.reason}}",
    "message": "{.status.message}",
}
"""Most lines: of the job the first, of its pods the second; all are queried at once."""


def _pod(row: Mapping[str, str]) -> JobPod:
    reason = row["unscheduled"] or row["message"] or row["waiting"] or row["ended"]
    return JobPod(
        name=row["name"],
        index=int(row["index"] or 0),
        node=row["node"],
        phase=row["phase"],
        exit_status=int(row["exit"]) if row["exit"].isdecimal() else None,
        reason=reason,
    )


def _runs(pod: JobPod) -> bool:
    return bool(pod.node) and pod.phase in {"Running", "Succeeded"}


def _line(pod: JobPod) -> str:
    ended = f" exit {pod.exit_status}" if pod.exit_status is not None else ""
    return f"pod {pod.name} on {pod.node or 'no node'}: {pod.phase}{ended} {pod.reason}".rstrip()


HOST_ALIAS = "allreduce"
"""Name that allreduce.sh expects in known_hosts, for every pod."""


def keys_of_a_run(name: str) -> Object:
    """Return the secret that the pods of a run wait for.

    Raises:
        ProviderError: ssh-keygen isn't installed or failed.
    """
    with TemporaryDirectory() as folder:
        client, server = (_make_folder(Path(folder) / part) for part in ("client", "server"))
        held: dict[str, Json] = {
            "key": client.read_text(encoding="utf-8"),
            "authorized_keys": public_text(client) + "\n",
            "host_key": server.read_text(encoding="utf-8"),
            "known_hosts": f"{HOST_ALIAS} {public_text(server)}\n",
        }
    return new(
        "v1",
        "Secret",
        name,
        namespace=SYSTEM_NAMESPACE,
        labels={RUN: name},
        type="Opaque",
        stringData=held,
    )


def _make_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return ensure_client_key(folder)
