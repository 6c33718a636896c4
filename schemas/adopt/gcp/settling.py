"""What is left of a blueprint's modules is listed, setting by setting or as a whole module."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from ..draft import Draft, Why
from ..source import Kind, Path, shown
from .blueprint import Blueprint

_NO_PARTS: dict[str, tuple[str, Kind]] = {
    "custom-image": ("gcluster bakes an image by its own roles", "replaced"),
    "service-account": ("identities with least rights are made: roles of the site", "replaced"),
    "firewall-rules": ("what the cluster needs is let in", "replaced"),
    "service-enablement": ("up names a service that is off", "replaced"),
    "dashboard": ("monitoring: {prometheus: true}, without dashboards", "lost"),
    "gke-persistent-volume": ("each account gets a volume and a claim of the storage", "replaced"),
    "gke-job-template": ("a job is no part of a cluster", "replaced"),
    "gke-topology-scheduler": ("topology follows from the cloud's own labels", "replaced"),
}


def settle_modules(blueprint: Blueprint, read: AbstractSet[str], draft: Draft, why: Why) -> None:
    """List and count the settings of every module.

    Args:
        blueprint: its modules.
        read: keys of those whose settings were looked at one by one; others are one line.
        draft: it is listed there.
        why: says why a setting of those isn't carried.
    """
    for module in blueprint.modules:
        name = f"module {module.key}"
        if module.key not in read:
            reason, kind = _NO_PARTS.get(module.kind, ("the spec has no word for it", "lost"))
            count = sum(1 for _ in module.settings.not_carried())
            draft.leave(f"{name} ({module.kind})", reason, kind, settings=count)
            draft.carry(module.settings.total() - count)
            continue

        def where(path: Path, value: Any, name: str = name) -> str:
            return f"{name}: {shown(path, value)}"

        draft.settle(module.settings, why, where)
