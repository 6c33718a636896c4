"""Elastic nodes of any cloud: which offers may be tried for them, and which may be ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from ...schemas.diagnostics import Diagnostic
from ..provider import provider_error
from .engine.events import NO_CAPACITY
from .plan import CloudPlan, CloudPool, Keyed

OfferT = TypeVar("OfferT", bound=Keyed)
MachineT = TypeVar("MachineT")


def open_offers(pool: CloudPool[OfferT], used: Collection[str]) -> tuple[OfferT, ...]:
    """Return the offers to try: only the one in use, if any.

    A pool's nodes are in one fabric domain, so later ones are bought by the same offer as existing
    ones, unless the spec allows a mix.

    Args:
        pool: the pool to grow.
        used: keys of the offers that its machines were bought by; "" is ignored.
    """
    bound = {key for key in used if key}
    if pool.mixed or not bound:
        return pool.offers
    return tuple(offer for offer in pool.offers if offer.key in bound)


def no_capacity(pool: CloudPool[Any], missing: Sequence[str]) -> Diagnostic:
    """Return the message where no offer had all the missing nodes."""
    summary = f'pool "{pool.name}": no offer has {len(missing)} machines of {pool.machine}'
    return provider_error(NO_CAPACITY, summary).diagnostics[0]


def to_end(
    plan: CloudPlan[Any], names: Collection[str], elastic: Mapping[str, MachineT]
) -> dict[str, MachineT]:
    """Return the elastic machines of these names.

    Args:
        plan: the site.
        names: of nodes.
        elastic: name -> machine, of those that came with a burst.

    Raises:
        ProviderError: GC917, a node of the spec is among them; then nothing may be ended.
    """
    refuse_fixed(plan, names)
    return {name: elastic[name] for name in names if name in elastic}


def refuse_fixed(plan: CloudPlan[Any], names: Collection[str]) -> None:
    """Refuse to end nodes of the spec; raises ProviderError (GC917) where one is among them."""
    if kept := plan.fixed_nodes.intersection(names):
        raise provider_error(
            "GC917",
            f"node {min(kept)} belongs to the spec, not elastic",
            hint="lower the pool's count in the spec and run `gcluster up`",
        )
