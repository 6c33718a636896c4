"""Claims that StatefulSets make for their pods: data as any other, though no chart lists them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

import msgspec

from ..kubectl import Kubectl
from ..objects import ObjectKey
from ..table import rows

_WITHIN_S = 30
"""The controller lets go of claims as soon as it looks at their StatefulSet."""
_RETAIN = '{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain"}}}'
_SETS = {
    "name": "{.metadata.name}",
    "makes": "{.spec.volumeClaimTemplates[*].metadata.name}",
    "policy": "{.spec.persistentVolumeClaimRetentionPolicy.whenDeleted}",
}
_CLAIMS = {
    "name": "{.metadata.name}",
    "owners": '{.metadata.ownerReferences[?(@.kind=="StatefulSet")].name}',
}


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    found: tuple[ObjectKey, ...] = ()
    """Claims that the StatefulSets made, and that stay when these go."""
    bound: tuple[ObjectKey, ...] = ()
    """StatefulSets that still own theirs: with them the claims would go."""


def keep_claims(
    kubectl: Kubectl,
    sets: Collection[ObjectKey],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Claims:
    """Have StatefulSets that are about to go let go of their claims first; return these.

    One that says `whenDeleted: Delete` owns its claims, and they would go with it (kubernetes.io/
    docs/concepts/workloads/controllers/statefulset, "PersistentVolumeClaim retention", 2026-11).

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: it says no.
    """
    found: list[ObjectKey] = []
    bound: list[ObjectKey] = []
    for space in dict.fromkeys(key.namespace for key in sets):
        where, names = f"--namespace={space}", {key.name for key in sets if key.namespace == space}
        told = rows(kubectl, "statefulsets.apps", where, fields=_SETS)
        makers = [row for row in told if row["name"] in names and row["makes"]]
        for row in makers:
            if row["policy"] == "Delete":
                patch = ("--type=merge", f"--patch={_RETAIN}")
                kubectl.text("patch", "statefulsets.apps", row["name"], where, *patch)
        until = clock() + _WITHIN_S
        while makers:
            claims = rows(kubectl, "persistentvolumeclaims", where, fields=_CLAIMS)
            own = [c for c in claims if any(_is_of(c["name"], row) for row in makers)]
            owners = {name for claim in own for name in claim["owners"].split()} & names
            if not owners or clock() >= until:
                found += [ObjectKey("", "PersistentVolumeClaim", space, c["name"]) for c in own]
                bound += [key for key in sets if key.namespace == space and key.name in owners]
                break
            sleep(1)
    return Claims(found=tuple(found), bound=tuple(bound))


def _is_of(claim: str, made: dict[str, str]) -> bool:
    """Whether a claim's name is TEMPLATE-SET-NUMBER of a StatefulSet."""
    front, _, number = claim.rpartition("-")
    return number.isdigit() and front in {f"{t}-{made['name']}" for t in made["makes"].split()}
