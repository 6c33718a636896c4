"""Pods that trust the authorities that there were at their start, and no others.

The controller manager writes whom to trust into the ConfigMap kube-root-ca.crt of each namespace,
which pods that have a token have too (kubernetes.io, "Manage Service Accounts"; read 2026-11).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ....schemas.spec import ClusterSpec, KubernetesScheduler
from ...cluster.outcome import failure
from ...cluster.progress import Reporter, StageProgress
from ...kubernetes.kubectl import ApiRefused, ApiSilent, Kubectl

_ROOTS = "--field-selector=metadata.name=kube-root-ca.crt"
_EVERYWHERE = "--all-namespaces"
_PUBLISHED_WITHIN_S, _REPLACED_WITHIN_S, _AGAIN_S = 300, 300, 2
_AFTER_S = 2
"""Until kubelets give new pods what was just written."""
_ENDED = {"Succeeded", "Failed"}


def pods_of_before(
    kubectl: Kubectl,
    certificate: str,
    spec: ClusterSpec,
    report: Reporter,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, str]:
    """Make the cluster's own pods again that don't trust a new authority; return who doesn't then.

    Args:
        kubectl: the API.
        certificate: of the new authority, in PEM.
        spec: whose accounts' pods are left alone.
        report: gets what is made again.
        sleep: waits for seconds.
        clock: counts seconds.

    Returns:
        NAMESPACE/POD -> why it is waited for.

    Raises:
        LifecycleError: the API doesn't say the new authority in time, or not at all (GC999).
    """
    until = clock() + _PUBLISHED_WITHIN_S
    while (since := _published(kubectl, certificate)) is None:
        if clock() > until:
            raise failure(
                "GC999",
                f"not all namespaces have the new authority after {_PUBLISHED_WITHIN_S} s",
                hint="gcluster ssh CLUSTER HEAD kubectl logs -n kube-system "
                "-l component=kube-controller-manager",
            )
        sleep(_AGAIN_S)
    accounts: Sequence[str] = ()
    if isinstance(spec.scheduler, KubernetesScheduler):
        accounts = tuple(spec.scheduler.accounts)
    stale = _stale(kubectl, since)
    owners = {owner for pod in stale for owner in _owner(pod, accounts)}
    if owners:
        sleep(_AFTER_S)
    for namespace, owner in sorted(owners):
        detail = f"{owner} of {namespace} is made again, to trust the new authorities"
        report(StageProgress(name="rotate", done=0, total=0, detail=detail))
        _text(kubectl, "rollout", "restart", owner, f"--namespace={namespace}")
    until = clock() + _REPLACED_WITHIN_S
    while owners and clock() < until:
        stale = _stale(kubectl, since)
        if not any(owner in owners for pod in stale for owner in _owner(pod, accounts)):
            break
        sleep(_AGAIN_S)
    return {_name(pod): _why(pod) for pod in stale}


def _published(kubectl: Kubectl, certificate: str) -> dict[str, str] | None:
    """Return namespace -> when its pods got the authority; None: not all have yet."""
    found = _get(kubectl, "configmaps", _EVERYWHERE, _ROOTS, "--show-managed-fields")
    maps = {one["metadata"]["namespace"]: one for one in found}
    spaces = [
        one["metadata"]["name"]
        for one in _get(kubectl, "namespaces")
        if one["status"]["phase"] == "Active"
    ]
    if any(
        space not in maps or certificate not in maps[space]["data"]["ca.crt"] for space in spaces
    ):
        return None
    return {space: _written(one) for space, one in maps.items()}


def _written(one: Mapping[str, Any]) -> str:
    """Return when an object was last written (RFC 3339, UTC)."""
    times = (entry.get("time", "") for entry in one["metadata"].get("managedFields", ()))
    return max(times, default="") or str(one["metadata"]["creationTimestamp"])


def _stale(kubectl: Kubectl, since: Mapping[str, str]) -> list[Any]:
    """Return the pods with a token that started before their namespace had the authority."""
    return [
        pod
        for pod in _get(kubectl, "pods", _EVERYWHERE)
        if pod["status"].get("phase") not in _ENDED
        and any("serviceAccountToken" in source for source in _sources(pod))
        and pod["status"].get("startTime", "9") <= since.get(pod["metadata"]["namespace"], "")
    ]


def _sources(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for volume in pod["spec"].get("volumes", ()):
        yield from volume.get("projected", {}).get("sources", ())


def _owner(pod: Mapping[str, Any], accounts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield namespace and owner of a pod that can be made again, and is no account's."""
    meta = pod["metadata"]
    if meta["namespace"] in accounts:
        return
    for owner in meta.get("ownerReferences", ()):
        kind, name = owner["kind"], owner["name"]
        if kind in {"DaemonSet", "StatefulSet"}:
            yield meta["namespace"], f"{kind.lower()}/{name}"
        elif kind == "ReplicaSet" and (label := meta.get("labels", {}).get("pod-template-hash")):
            yield meta["namespace"], f"deployment/{name.removesuffix(f'-{label}')}"


def _name(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _why(pod: Mapping[str, Any]) -> str:
    return f"it started at {pod['status']['startTime']}, and trusts the authority of then alone"


def _get(kubectl: Kubectl, *what: str) -> list[Any]:
    try:
        found: list[Any] = kubectl.get(*what, timeout_s=120)["items"]
    except (ApiSilent, ApiRefused) as error:
        raise failure("GC999", f"the API says nothing of {what[0]}: {error}") from error
    return found


def _text(kubectl: Kubectl, *words: str) -> str:
    try:
        return kubectl.text(*words, timeout_s=120)
    except (ApiSilent, ApiRefused) as error:
        raise failure("GC999", f"{' '.join(words[:3])}: {error}") from error
