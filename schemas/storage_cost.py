"""What managed storage costs that a spec has made, where the provider's price is known."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from .catalog import Catalog, Citation, LustreOffer
from .checks.storage.lustre_sizes import offers
from .spec import ClusterSpec, LustreStorage, ObjectStorage
from .spec.sites.site import CloudSite

_GIB = 2.0**30
_MB = 1e6


class StorageCost(msgspec.Struct, frozen=True, kw_only=True):
    """One file system or bucket that is made at a cloud and billed by its size."""

    name: str
    site: str | None
    type: str
    gib: float | None
    """Size to make; None: as large as what is put in."""
    usd_per_month: float | None
    """None: the price is not known, or the size isn't."""
    citation: Citation | None = None
    """Where the price comes from."""


def storage_costs(spec: ClusterSpec, catalog: Catalog) -> Iterator[StorageCost]:
    """Yield the managed storage that the spec makes; what exists already is not of its making."""
    for name, storage in spec.storage.items():
        site = spec.sites.get(storage.site) if storage.site is not None else None
        if isinstance(storage, ObjectStorage) and storage.create:
            yield StorageCost(
                name=name, site=storage.site, type="object", gib=None, usd_per_month=None
            )
        elif (
            isinstance(storage, LustreStorage)
            and isinstance(site, CloudSite)
            and storage.capacity is not None
            and storage.existing is None
        ):
            yield _lustre(name, storage, site, catalog)


def _lustre(name: str, storage: LustreStorage, site: CloudSite, catalog: Catalog) -> StorageCost:
    gib = None if storage.capacity is None else storage.capacity.value / _GIB
    offer = _offer(storage, site, catalog)
    told = StorageCost(name=name, site=storage.site, type="lustre", gib=gib, usd_per_month=None)
    if offer is None or offer.usd_per_gib_month is None or gib is None:
        return told
    return msgspec.structs.replace(
        told,
        usd_per_month=gib * offer.usd_per_gib_month,
        citation=Citation(source=offer.source, date=offer.date),
    )


def _offer(storage: LustreStorage, site: CloudSite, catalog: Catalog) -> LustreOffer | None:
    """Return the kind of file system that the spec asks for."""
    facts = catalog.providers.get(site.provider)
    asked = None if storage.throughput is None else storage.throughput.value / _MB
    fitting = [
        offer
        for offer in ([] if facts is None else offers(storage, facts))
        if asked is None
        or offer.throughput_mb_per_s_per_tib is None
        or math.isclose(offer.throughput_mb_per_s_per_tib, asked)
    ]
    return fitting[0] if len(fitting) == 1 else None
