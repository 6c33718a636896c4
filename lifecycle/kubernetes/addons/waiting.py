"""Waits for an add-on's workloads with a time limit, and explains with the API's messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ....inventory.compile.kubernetes_objects.objects import Object
from ....schemas.diagnostics import Diagnostic, Severity
from ...operations.rolling.roll import Clock
from ..kubectl import ApiRefused, Kubectl, rows
from .ownership import AddonStopped

_POD = {
    "name": "{.metadata.name}",
    "unplaced": '{.status.conditions[?(@.type=="PodScheduled")].message}',
    "waits": "{.status.containerStatuses[*].state.waiting.reason}",
    "words": "{.status.containerStatuses[*].state.waiting.message}",
    "inits": "{.status.initContainerStatuses[*].state.waiting.reason}",
}
_NODE = {
    "name": "{.metadata.name}",
    "ready": '{.status.conditions[?(@.type=="Ready")].status}',
    "words": '{.status.conditions[?(@.type=="Ready")].message}',
}
_EXTRA_S = 30
"""How much longer a call may take than what it waits for."""
_LINES = 8


def rolled_out(
    kubectl: Kubectl, workloads: Sequence[Object], addon: str, limit_s: float, clock: Clock
) -> tuple[Diagnostic, ...]:
    """Wait until an add-on's workloads run; return those of nodes that are late.

    Raises:
        AddonStopped: GC1065: one of which others depend isn't there in time.
        ApiSilent: no API server answers.
    """
    until, late = clock.now() + limit_s, []
    for made in workloads:
        left = max(1, round(until - clock.now()))
        kind, name = str(made["kind"]), made["metadata"]["name"]
        where = f"--namespace={made['metadata'].get('namespace', 'default')}"
        try:
            kubectl.text(
                *("rollout", "status", f"{kind.lower()}/{name}", where, f"--timeout={left}s"),
                timeout_s=left + _EXTRA_S,
            )
        except ApiRefused as refused:
            summary = (
                f"add-on {addon}: {kind} {made['metadata'].get('namespace', 'default')}/{name} "
                f"is not there within {limit_s:.0f} s: {refused}"
            )
            stopped = AddonStopped(
                "GC1065", summary, "\n".join([refused.words, *_pods(kubectl, made, where)])
            )
            if kind != "DaemonSet":
                raise stopped from refused
            late.append(_warning(stopped.diagnostic))
    return tuple(late)


def ended(kubectl: Kubectl, job: Object, addon: str, limit_s: float, clock: Clock) -> None:
    """Wait until a hook's job has ended well.

    Raises:
        AddonStopped: GC1068: it failed, or took too long.
        ApiSilent: no API server answers.
    """
    name, where = job["metadata"]["name"], f"--namespace={job['metadata'].get('namespace')}"
    until = clock.now() + limit_s
    while True:
        try:
            conditions = kubectl.get("job", name, where).get("status", {}).get("conditions", [])
        except ApiRefused as refused:
            raise AddonStopped("GC1068", f"add-on {addon}: hook Job {name}: {refused}") from refused
        held = {c["type"]: c for c in conditions if c.get("status") == "True"}
        if "Complete" in held:
            return
        failed = held.get("Failed")
        if failed is not None or clock.now() >= until:
            why = f"it did not end within {limit_s:.0f} s" if failed is None else _describe(failed)
            detail = "\n".join(_pods(kubectl, job, where))
            raise AddonStopped("GC1068", f"add-on {addon}: hook Job {name}: {why}", detail)
        clock.sleep(2)


def nodes_ready(
    kubectl: Kubectl,
    names: Collection[str],
    limit_s: float,
    clock: Clock,
    emit: Callable[[int, int], None] = lambda *_: None,
) -> tuple[Diagnostic, ...]:
    """Wait until the nodes that joined are ready; return those that aren't, with why.

    They join before the pod network is there, and none is ready without it.
    """
    until = clock.now() + limit_s
    while True:
        found = [row for row in rows(kubectl, "nodes", fields=_NODE) if row["name"] in names]
        late = [row for row in found if row["ready"] != "True"]
        if not late or clock.now() >= until:
            break
        emit(len(found) - len(late), len(found))
        clock.sleep(2)
    if not late:
        return ()
    none = len(late) == len(found)
    return (
        Diagnostic(
            code="GC1067",
            severity=Severity.ERROR if none else Severity.WARNING,
            summary=f"{len(late)} of {len(found)} nodes did not get ready with the pod network",
            detail="\n".join(f"{row['name']}: {row['words']}" for row in late[:_LINES]),
            hint="kubectl --namespace=kube-system get pods --output=wide, on a control plane",
        ),
    )


def _pods(kubectl: Kubectl, made: Object, where: str) -> Iterator[str]:
    """Yield what the API reports of the missing pods, a line each."""
    labels: dict[str, Any] = made["spec"].get("selector", {}).get("matchLabels", {})
    if made["kind"] == "Job":
        labels = {"batch.kubernetes.io/job-name": made["metadata"]["name"]}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    try:
        found = rows(kubectl, "pods", where, f"--selector={selector}", fields=_POD)
    except ApiRefused:
        return
    for row in found[:_LINES]:
        reasons = [row[key] for key in ("unplaced", "inits", "waits", "words") if row[key]]
        if reasons:
            yield f"pod {row['name']}: {'; '.join(reasons)}"


def _describe(condition: dict[str, Any]) -> str:
    return f"{condition.get('reason', 'it failed')}: {condition.get('message', '')}".strip(": ")


def _warning(diagnostic: Diagnostic) -> Diagnostic:

    return replace(diagnostic, severity=Severity.WARNING)
