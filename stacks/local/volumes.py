"""Storage that the nodes of a local site share: a volume of the engine simulates each export.

The kernel gives containers no NFS, so what the spec has of it is simulated by a folder of this
machine, mounted where the spec says. It holds data: `down` keeps it unless it is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...schemas.derived.storage import mount_point, simulated_nfs
from ...schemas.spec import ClusterSpec, NfsStorage
from ..provider import Resource, ResourceChange, SiteContext
from . import labels, records
from .engine import Engine, Volume

_HOMES = "/home"


def volume_name(spec: ClusterSpec, site: str, storage: str) -> str:
    """Return the name of the volume that simulates a storage."""
    return f"gcluster-{spec.name}-{site}-{storage}"


def mounted(spec: ClusterSpec, pool: str) -> tuple[str, ...]:
    """Return the storage that a pool's nodes share, in the order of the spec.

    Pods have it as their nodes do. What belongs to no pool, such as the builder of an image, mounts
    none.
    """
    if pool not in spec.pools:
        return ()
    wanted = frozenset(simulated_nfs(spec, pool))
    return tuple(name for name in spec.storage if name in wanted)


def mounts_text(spec: ClusterSpec, pool: str) -> str:
    """Return what a node of the pool mounts: "home:/home scratch:/scratch:ro", "" for nothing."""
    return " ".join(f"{name}:{_place(spec, name)}" for name in mounted(spec, pool))


def _place(spec: ClusterSpec, name: str) -> str:
    storage = spec.storage[name]
    is_read_only = isinstance(storage, NfsStorage) and storage.read_only
    return mount_point(storage) + (":ro" if is_read_only else "")


def flags(spec: ClusterSpec, site: str, pool: str) -> tuple[str, ...]:
    """Return the flags that a new node mounts its storage by."""
    return tuple(
        f"--volume={volume_name(spec, site, name)}:{_place(spec, name)}"
        for name in mounted(spec, pool)
    )


def opening_script(spec: ClusterSpec, pool: str) -> str:
    """Return a script for a new node that lets all users write to what is empty; "" for none.

    A server has its own rights, which are not simulated. Homes are made by root.
    """
    places = (_place(spec, name) for name in mounted(spec, pool))
    open_ones = [each for each in places if not each.endswith(":ro") and each != _HOMES]
    if not open_ones:
        return ""
    words = " ".join(f"'{each}'" for each in open_ones)
    return f'for each in {words}; do [ -n "$(ls -A "$each")" ] || chmod 1777 "$each"; done'


def resources(spec: ClusterSpec, site: str) -> tuple[Resource, ...]:
    """Return the volumes of a site, in the order of the spec."""
    pools = [name for name, pool in spec.pools.items() if pool.site == site]
    wanted = {name for pool in pools for name in mounted(spec, pool)}
    return tuple(
        Resource(
            kind="volume",
            name=volume_name(spec, site, name),
            properties={"storage": name, "simulates": "nfs"},
        )
        for name in spec.storage
        if name in wanted
    )


def change(found: Mapping[str, Volume], resource: Resource) -> ResourceChange:
    """Return what apply would do to a volume of the graph."""
    if resource.name in found:
        return ResourceChange(effect="keep", resource=resource)
    reason = "it does not exist: a folder of this machine, which simulates NFS"
    return ResourceChange(effect="create", resource=resource, reason=reason)


def unplanned(found: Mapping[str, Volume], wanted: Iterable[str]) -> list[ResourceChange]:
    """Return the volumes that the spec no longer has: their data stays."""
    names = frozenset(wanted)
    return [
        ResourceChange(
            effect="keep",
            resource=Resource(kind="volume", name=name),
            reason="no longer in the spec: its data is kept",
        )
        for name in sorted(found)
        if name not in names
    ]


def make(context: SiteContext, engine: Engine, missing: Iterable[Resource]) -> None:
    """Make the missing volumes, each with its intent in the ledger.

    Raises:
        ProviderError: the engine failed.
    """
    wanted = tuple(missing)
    if not wanted:
        return
    intents = context.ledger.intend_many(context.site, wanted)
    for resource in wanted:
        intent = intents[resource.key]
        object_labels = {
            **labels.owner(context),
            labels.KIND: "volume",
            labels.STORAGE: str(resource.properties["storage"]),
            labels.TOKEN: intent,
        }
        engine.call("volume", "create", *labels.flags(object_labels), resource.name)
        context.ledger.created(intent, resource.name)
        with records.updated(context) as remembered:
            remembered.ids[resource.key] = resource.name
