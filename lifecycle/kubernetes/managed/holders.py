"""What holds claims that are going: pods that mount them, and what would make such pods anew.

Controllers that mount none and make none stay: among them are those by whose hand the cloud lets
go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..kubectl import Kubectl

_RESOURCES = {
    "CronJob": "cronjobs.batch",
    "Job": "jobs.batch",
    "Deployment": "deployments.apps",
    "StatefulSet": "statefulsets.apps",
    "DaemonSet": "daemonsets.apps",
    "ReplicaSet": "replicasets.apps",
    "Pod": "pods",
}
_CLOUD = "kube-system"
"""Of its controllers none is deleted for what it mounts, but one that would make claims anew is."""
_CALL_S = 120
_AT_ONCE = 100


def free(kubectl: Kubectl, claims: Collection[str]) -> None:
    """Delete what holds these claims (namespace/name), all of them deleted already.

    A claim that is going takes no new pod, so that a pod made anew waits without it.

    Raises:
        ApiRefused: the API said no.
        ApiSilent: no API server answers.
    """
    for namespace in dict.fromkeys(claim.partition("/")[0] for claim in claims):
        here = f"--namespace={namespace}"
        own = {claim.partition("/")[2] for claim in claims if claim.startswith(f"{namespace}/")}
        found = kubectl.get(",".join(_RESOURCES.values()), here, timeout_s=_CALL_S)["items"]
        going = [
            f"{_RESOURCES[one['kind']]}/{one['metadata']['name']}"
            for one in found
            if one["kind"] in _RESOURCES
            and "deletionTimestamp" not in one["metadata"]
            and (_makes(one) or _mounts(one, own, namespace))
        ]
        for at in range(0, len(going), _AT_ONCE):
            some = going[at : at + _AT_ONCE]
            options = (here, "--ignore-not-found", "--wait=false")
            kubectl.text("delete", *some, *options, timeout_s=_CALL_S)


def _makes(one: dict[str, Any]) -> bool:
    """Say whether it makes claims of its own: those that go would come again."""
    has_templates = bool(one["spec"].get("volumeClaimTemplates"))
    return has_templates or any("ephemeral" in volume for volume in _volumes(one))


def _mounts(one: dict[str, Any], claims: Collection[str], namespace: str) -> bool:
    """Say whether it goes for mounting one of the claims."""
    if namespace == _CLOUD and one["kind"] != "Pod":
        return False
    named = (volume.get("persistentVolumeClaim", {}).get("claimName") for volume in _volumes(one))
    return any(name in claims for name in named)


def _volumes(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    spec = one["spec"]
    if one["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    if one["kind"] != "Pod":
        spec = spec["template"]["spec"]
    yield from spec.get("volumes") or ()
