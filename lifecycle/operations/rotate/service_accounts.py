"""`gcluster rotate service-accounts`: another key that signs the tokens of Kubernetes' pods.

Control planes have the key, no vault. In two turns over all of them, one after the other: each
verifies tokens by the new key too, then each signs by it. So no API server ever meets a token that
it can't verify. The key before stays as one to verify by until the next rotation, for pods hold its
tokens for an hour, and longer what they read once at their start.

So a rotation within the hour after one is refused: pods that run would lose the API.

A rotation that was killed is taken up by the next, which finds the new key on a control plane.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from ....inventory.hosts import ClusterInventory, Host
from ....schemas.structure.decoding import decode_json
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Reporter, StageProgress
from ...nodes.ssh import Answer, SshSession
from ...nodes.ssh.arguments import AS_ROOT
from ...up.run import Run
from .control_planes import answered, control_planes
from .kept import Rotated

TOOL = f"{AS_ROOT} /usr/local/libexec/gcluster/kubernetes-service-accounts.py"
_LIMIT_S = 600
"""The API server restarts, and the kubelet takes its time for that."""
_TOKENS_S = 3607 + 120
"""For so long a pod may hold a token of the key before. Pods' tokens are for 3607 s; the kubelet
exchanges them after 80 % of that, and client-go reads them again each minute (Kubernetes 1.35:
WarnOnlyBoundTokenExpirationSeconds of pkg/serviceaccount/claims.go, requiresRefresh of
pkg/kubelet/token/token_manager.go, and client-go's transport/token_source.go)."""


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of one control plane, by their fingerprints."""

    signs: str
    verify: tuple[str, ...]
    next: str
    """That is to sign; "" where no rotation is under way."""
    age_s: float
    """For so long tokens are signed by `signs`, by the control plane's clock."""


def rotate_service_accounts(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> Rotated:
    """Sign the tokens of service accounts by another key.

    Raises:
        LifecycleError: the cluster has no control planes of its own (GC908); pods may still hold
            tokens of the key that would be dropped (GC1033); a control plane can't be reached, or
            doesn't take the key (GC999): run it again, which goes on.
    """
    planes = control_planes(run.cluster.spec, hosts)
    keys = {
        plane.name: decode_json(_answered(plane, answer).encode(), Keys)
        for plane in planes
        for answer in (session.run(plane, TOOL),)
    }
    _refuse_within_the_hour(keys)
    key = _next_key(planes, keys, session)
    for option, what in (("--add", "verifies by the new key"), ("--use", "signs by the new key")):
        for done, plane in enumerate(planes):
            given = key if option == "--add" else None
            _answered(
                plane, session.run(plane, f"{TOOL} {option}", stdin=given, timeout_s=_LIMIT_S)
            )
            detail = f"{plane.name} {what}"
            report(StageProgress(name="rotate", done=done + 1, total=len(planes), detail=detail))
    names = tuple(plane.name for plane in planes)
    return Rotated(cluster=run.cluster.name, changed=names, exit_code=Exit.OK)


def _refuse_within_the_hour(keys: Mapping[str, Keys]) -> None:
    """Refuse to drop a key while pods may hold its tokens; a rotation under way goes on."""
    if any(plane.next for plane in keys.values()):
        return
    youngest_s = min((one.age_s for one in keys.values() if len(one.verify) > 1), default=_TOKENS_S)
    if youngest_s < _TOKENS_S:
        wait_min = math.ceil((_TOKENS_S - youngest_s) / 60)
        raise failure(
            "GC1033",
            "pods may still hold tokens of the key that would be dropped",
            detail="pods whose token is refused lose the API: no name of a new Service is found",
            hint=f"the same command in {wait_min} min: by then all pods have tokens of the key now",
        )


def _next_key(planes: list[Host], keys: Mapping[str, Keys], session: SshSession) -> str:
    """Return the new key: that of a rotation that was killed, else one that is made now."""
    under_way = [plane for plane in planes if keys[plane.name].next]
    source = under_way[0] if under_way else planes[0]
    return _answered(source, session.run(source, f"{TOOL} --make"))


def _answered(plane: Host, answer: Answer) -> str:
    return answered(
        plane,
        answer,
        refused="doesn't take another key",
        detail="tokens of the key before are taken by every control plane",
        again="gcluster rotate service-accounts",
    )
