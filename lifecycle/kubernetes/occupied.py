"""What keeps a namespace that would go: all in it would be deleted with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from .addons.served import Served, read_served
from .kubectl import Kubectl
from .table import rows

POLICY = r"{.metadata.annotations.helm\.sh/resource-policy}"
"""What a chart says of an object's removal (helm.sh/docs/howto/charts_tips_and_tricks, 2026-11)."""
TO_KEEP = " (its chart keeps it)"
"""How the names of such objects end."""
_WORK = ("pods", "persistentvolumeclaims", "jobs.batch")
_NEVER = frozenset({*_WORK, "events", "events.events.k8s.io"})
"""Kinds that hold a namespace anyway, and those that come by the thousand and are no chart's."""


def is_to_keep(policy: str) -> bool:
    """Say whether an object is to stay, by its annotation."""
    return policy.strip().lower() == "keep"


def occupied(
    kubectl: Kubectl, namespaces: Collection[str], served: Served | None = None
) -> dict[str, list[str]]:
    """Return the namespaces that have work, data, or objects to keep in them, with their names.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: it says no.
    """
    if not namespaces:
        return {}
    kinds = served or read_served(kubectl)
    of = ",".join(
        sorted(
            name
            for name, has_namespace in kinds.kinds.values()
            if has_namespace and name not in _NEVER
        )
    )
    held = {
        space: [
            *kubectl.text("get", ",".join(_WORK), f"--namespace={space}", "--output=name").split(),
            *(_to_keep(kubectl, space, of) if of else ()),
        ]
        for space in namespaces
    }
    return {name: names for name, names in held.items() if names}


def counted(held: Collection[str]) -> str:
    """Say how much of what kind: "2 pod, 1 ConfigMap (its chart keeps it)"."""
    count: dict[tuple[str, str], int] = {}
    for name in held:
        said = TO_KEEP if name.endswith(TO_KEEP) else ""
        at = (name.partition("/")[0], said)
        count[at] = count.get(at, 0) + 1
    return ", ".join(f"{number} {kind}{said}" for (kind, said), number in count.items())


def _to_keep(kubectl: Kubectl, namespace: str, kinds: str) -> Iterator[str]:
    fields: Mapping[str, str] = {"kind": "{.kind}", "name": "{.metadata.name}", "policy": POLICY}
    for row in rows(kubectl, kinds, f"--namespace={namespace}", fields=fields):
        if is_to_keep(row["policy"]):
            yield f"{row['kind']}/{row['name']}{TO_KEEP}"
