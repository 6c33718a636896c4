"""Removes cloud resources of Kubernetes' objects before the control plane is removed.

Load balancers of Services and disks of claims are created by controllers in the cluster and are in
no stack: without a control plane nothing removes them, and they continue to cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec

from ....stacks.provider import Leftover
from ...cluster.outcome import Exit, LifecycleError, failure
from ...cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ..kubectl import ApiRefused, ApiSilent, Kubectl

STAGE = "give back"
SKIP = "--skip-kubernetes"
"""The option of `down` that leaves all of this out."""
_WITHIN_S = 600
"""Load balancers go within about five minutes; disks when their pods have ended."""
_ASK_AGAIN_S = 3
_CALL_S = 120
_KINDS = "services,ingresses.networking.k8s.io,persistentvolumeclaims,persistentvolumes"
_GATEWAYS = "gateways.gateway.networking.k8s.io"
_NOT_SERVED = "the server doesn't have a resource type"
"""Messages of kubectl where no add-on defines the kind."""
_BY_A_CONTROLLER = "pv.kubernetes.io/provisioned-by"
"""Annotation of volumes that a driver made: the others were there before."""
_NAMED = 5


class CloudObjects(msgspec.Struct, frozen=True, kw_only=True):
    """Objects for which the cloud has a resource outside the stack."""

    services: tuple[str, ...] = ()
    """namespace/name of Services of type LoadBalancer."""
    ingresses: tuple[str, ...] = ()
    gateways: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    """namespace/name."""
    volumes: tuple[str, ...] = ()
    """Made for claims, and removed with them."""
    retained: tuple[str, ...] = ()
    """Volumes of claims whose storage class retains them: kept with their disks."""

    @property
    def is_empty(self) -> bool:
        """Whether the cloud has let go of everything that goes."""
        balanced = self.services or self.ingresses or self.gateways
        return not (balanced or self.claims or self.volumes)

    @property
    def words(self) -> str:
        """Name what is there, the first of each kind."""
        kinds = {
            "Service": self.services,
            "Ingress": self.ingresses,
            "Gateway": self.gateways,
            "PersistentVolumeClaim": self.claims,
            "PersistentVolume": self.volumes,
        }
        return "; ".join(f"{kind} {_few(names)}" for kind, names in kinds.items() if names)

    def leftovers(self) -> tuple[Leftover, ...]:
        """Return the text that `down` shows before it prompts."""
        balanced = (*self.services, *self.ingresses, *self.gateways)
        return (
            *(_leftover("load-balancer", name) for name in balanced),
            *(_leftover("volume-claim", name) for name in self.claims),
            *(_leftover("volume", name, kept=True) for name in self.retained),
        )


def cloud_objects(kubectl: Kubectl) -> CloudObjects:
    """Return what the cloud holds for objects of the cluster.

    Raises:
        LifecycleError: GC1044, the API gives no answer: what is there isn't known.
    """
    try:
        return _cloud_objects(kubectl)
    except (ApiSilent, ApiRefused) as error:
        raise _unknown(error) from error


def give_back(
    kubectl: Kubectl,
    report: Reporter,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Delete Services with load balancers, Ingresses, Gateways, claims; wait until they are gone.

    Their finalizers go when the cloud let go, and so do they. Safe to repeat, and to kill.

    Raises:
        LifecycleError: GC1045, some are still there; GC1044, the API gives no answer. No
            machine and nothing of the stack was removed.
    """
    began = clock()
    try:
        held = _cloud_objects(kubectl)
        if held.is_empty:
            return
        report(StageStarted(name=STAGE))
        _delete(kubectl, held)
        while not (held := _cloud_objects(kubectl)).is_empty:
            report(StageProgress(name=STAGE, done=0, total=0, detail=f"waiting for {held.words}"))
            if clock() - began >= _WITHIN_S:
                raise _retained(kubectl, held)
            sleep(_ASK_AGAIN_S)
            free(kubectl, held.claims)
    except (ApiSilent, ApiRefused) as error:
        raise _unknown(error) from error
    summary = "the cloud let go of load balancers and disks"
    report(StageFinished(name=STAGE, ok=True, summary=summary, seconds=clock() - began))


def _cloud_objects(kubectl: Kubectl) -> CloudObjects:
    found = kubectl.get(_KINDS, "--all-namespaces", timeout_s=_CALL_S)["items"]
    volumes = [one for one in found if one["kind"] == "PersistentVolume" and _is_made(one)]
    retained = [v for v in volumes if v["spec"].get("persistentVolumeReclaimPolicy") == "Retain"]
    return CloudObjects(
        services=tuple(
            _id(one)
            for one in found
            if one["kind"] == "Service" and one["spec"].get("type") == "LoadBalancer"
        ),
        ingresses=tuple(_id(one) for one in found if one["kind"] == "Ingress"),
        gateways=_gateways(kubectl),
        claims=tuple(_id(one) for one in found if one["kind"] == "PersistentVolumeClaim"),
        volumes=tuple(_id(one) for one in volumes if one not in retained),
        retained=tuple(_id(one) for one in retained),
    )


def _gateways(kubectl: Kubectl) -> tuple[str, ...]:
    """Return the Gateways; most clusters don't have the kind."""
    try:
        found = kubectl.get(_GATEWAYS, "--all-namespaces", timeout_s=_CALL_S)["items"]
    except ApiRefused as error:
        if _NOT_SERVED in error.words:
            return ()
        raise
    return tuple(_id(one) for one in found if one["kind"] == "Gateway")


def _delete(kubectl: Kubectl, held: CloudObjects) -> None:
    """Delete them, then what holds the claims: one that is going takes no new pod."""
    kinds = {
        # Their controllers make Services.
        _GATEWAYS: held.gateways,
        "ingresses.networking.k8s.io": held.ingresses,
        "services": held.services,
        "persistentvolumeclaims": held.claims,
    }
    for kind, names in kinds.items():
        for name in names:
            _delete_one(kubectl, kind, name)
    free(kubectl, held.claims)


def _delete_one(kubectl: Kubectl, kind: str, name: str) -> None:
    namespace, _, own = name.partition("/")
    here = (f"--namespace={namespace}", "--ignore-not-found", "--wait=false")
    kubectl.text("delete", kind, own, *here, timeout_s=_CALL_S)


def _is_made(volume: dict[str, Any]) -> bool:
    return _BY_A_CONTROLLER in volume["metadata"].get("annotations", {})


def _retained(kubectl: Kubectl, held: CloudObjects) -> LifecycleError:
    return failure(
        "GC1045",
        f"the cloud has not let go after {_WITHIN_S // 60} minutes: {held.words}",
        detail=_warnings(kubectl),
        hint="no machine was removed; fix what the events say and run gcluster down again. "
        f"{SKIP} goes on without: what is named then stays in the cloud, and costs",
        exit_code=Exit.REFUSED,
    )


def _warnings(kubectl: Kubectl) -> str:
    """Return what the controllers last warned of such objects."""
    about = {"Service", "Ingress", "Gateway", "PersistentVolumeClaim", "PersistentVolume"}
    try:
        events = kubectl.get("events", "--all-namespaces", "--field-selector=type=Warning")["items"]
    except (ApiSilent, ApiRefused):
        return ""
    warnings = [
        f"{one['involvedObject'].get('name', '')}: {one.get('reason', '')}: "
        f"{' '.join(one.get('message', '').split())}"
        for one in events
        if one["involvedObject"].get("kind") in about
    ]
    return "\n".join(warnings[-_NAMED:])


def _unknown(error: ApiSilent | ApiRefused) -> LifecycleError:
    return failure(
        "GC1044",
        f"it is unknown whether load balancers and disks would stay behind: {error}",
        hint="no machine was removed. Reach the API (only admin_cidrs do from outside), or go on "
        f"without it by {SKIP} and look for load balancers and disks in the cloud yourself",
        exit_code=Exit.REFUSED,
    )


def _leftover(kind: str, name: str, *, kept: bool = False) -> Leftover:
    return Leftover(kind=kind, name=name, provider_id=f"kubernetes/{kind}/{name}", kept_data=kept)


def _id(one: dict[str, Any]) -> str:
    namespace = one["metadata"].get("namespace", "")
    name = str(one["metadata"]["name"])
    return f"{namespace}/{name}" if namespace else name


def _few(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


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
"""Namespace whose controllers are deleted only where they would make claims again."""
_AT_ONCE = 100


def free(kubectl: Kubectl, claims: Collection[str]) -> None:
    """Delete what uses these claims (namespace/name), all of them already being deleted.

    A claim that is being deleted accepts no new pod, so a recreated pod stays pending.

    Raises:
        ApiRefused: the API refused.
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
    """Return whether it creates claims itself: deleted ones would be recreated."""
    has_templates = bool(one["spec"].get("volumeClaimTemplates"))
    return has_templates or any("ephemeral" in volume for volume in _volumes(one))


def _mounts(one: dict[str, Any], claims: Collection[str], namespace: str) -> bool:
    """Return whether it must be deleted because it mounts one of the claims."""
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
