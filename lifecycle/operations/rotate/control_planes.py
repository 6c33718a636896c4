"""Control planes of Kubernetes whose keys are the cluster's own, and what their programs answer."""

from __future__ import annotations

from ....inventory.hosts import ClusterInventory, Host
from ....schemas.derived.control_planes import managed_by
from ....schemas.spec import ClusterSpec, KubernetesScheduler
from ...cluster.outcome import failure
from ...nodes.ssh import Answer, Unreachable


def control_planes(spec: ClusterSpec, hosts: ClusterInventory) -> list[Host]:
    """Return the control planes.

    Raises:
        LifecycleError: there are none that are the cluster's own (GC908).
    """
    planes = [host for host in hosts.with_role("controller") if host.connection == "ssh"]
    if not isinstance(spec.scheduler, KubernetesScheduler) or managed_by(spec) or not planes:
        raise failure(
            "GC908",
            f"{spec.name} has no control planes of Kubernetes whose keys are its own",
            hint="a cloud's control plane exchanges its keys itself",
        )
    return planes


def answered(host: Host, answer: Answer, *, refused: str, detail: str, again: str) -> str:
    """Return what a program of a rotation printed.

    Args:
        host: where it ran.
        answer: how it ended.
        refused: what the host then doesn't do.
        detail: how things are meanwhile.
        again: the command that goes on.

    Raises:
        LifecycleError: it could not be run, or failed (GC999).
    """
    if not isinstance(answer, Unreachable) and answer.returncode == 0:
        return answer.stdout
    if isinstance(answer, Unreachable):
        why = answer.reason
    else:
        why = "; ".join(answer.stderr.strip().splitlines()[-2:]) or f"exit {answer.returncode}"
    raise failure(
        "GC999",
        f"{host.name} {refused}: {why}",
        detail=detail,
        hint=f"{again}, once more: it goes on where it ended",
    )
