"""Which storage of the spec each part of a site's data is there for (pure)."""

from __future__ import annotations

from ...schemas.spec import ClusterSpec, ObjectStorage
from ..pulumi.names import Names
from .plan import StoragePlan
from .stores import split_container


def data_names(
    spec: ClusterSpec, site: str, plan: StoragePlan, names: Names
) -> dict[str, tuple[str, ...]]:
    """Return name of a component or container -> the storage that needs it.

    A file system needs the account and the container that are behind it, if they are made here.
    """
    users: dict[tuple[str, str], set[str]] = {}
    for name, item in spec.storage.items():
        if not isinstance(item, ObjectStorage) or not item.bucket.startswith("az://"):
            continue
        if item.create and item.site in (None, site):
            users.setdefault(split_container(item.bucket), set()).add(name)
    for system in plan.file_systems:
        for part in (system.container, system.logging):
            if part is not None and part.made:
                users.setdefault((part.account, part.name), set()).add(system.name)
    found: dict[str, set[str]] = {}
    for (account, container), mine in users.items():
        found.setdefault(names(f"data-{account}"), set()).update(mine)
        found[names(f"{account}-{container}")] = mine
    for system in plan.file_systems:
        found[names(f"lustre-{system.name}")] = {system.name}
    return {resource: tuple(sorted(mine)) for resource, mine in found.items()}
