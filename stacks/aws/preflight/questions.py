"""Checks with AWS, all at once, what would stop `up`: each result a diagnostic; read-only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ....schemas.catalog import Catalog
from ....schemas.diagnostics import Diagnostic
from ....schemas.spec import ClusterSpec
from ...pulumi.preflight import (
    Cloud,
    ExistingMachines,
    Question,
    by_image,
    run_preflight,
    site_quotas,
)
from .. import offers
from ..api import Api
from ..hosts import instances
from ..plan.types import PoolPlan, SitePlan
from . import blocks, capacity, existing

_AWS = Cloud(name="AWS", not_logged_in="GC970", unanswered="GC970")


def preflight(
    api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog
) -> tuple[Diagnostic, ...]:
    """Return what blocks `up` of a site, in a fixed order; see `run_preflight`."""
    return run_preflight(_AWS, _questions(api, spec, plan, catalog))


def existing_machines(api: Api, plan: SitePlan) -> ExistingMachines:
    """Return the site's existing resources, by its tags; queried when first needed."""
    return ExistingMachines(lambda: (machine.pool for machine in instances(api, plan)))


def _questions(api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog) -> Iterator[Question]:
    machines = existing_machines(api, plan)
    yield Question("the account", partial(existing.check_account, api, plan))
    yield Question("the login's rights", partial(existing.check_rights, api, plan))
    yield Question("the network", partial(existing.check_network, api, plan, machines))
    yield Question("the security groups", partial(existing.check_groups, api, plan))
    for need in site_quotas(spec, catalog, plan.site):
        yield Question(f"quota {need.code}", partial(capacity.check_limit, api, need))
        room = partial(capacity.check_room, api, spec, catalog, need, machines)
        yield Question(f"what is left of quota {need.code}", room)
    for pool in plan.pools:
        yield from _of_pool(api, pool, catalog, machines)
    yield from _of_images(api, plan, catalog)
    keys = [plan.kms_key, *(lustre.kms_key for lustre in plan.lustre)]
    keys += [system.kms_key for system in plan.efs]
    keys += [system.kms_key for system in plan.openzfs]
    for key in dict.fromkeys(key for key in keys if key):
        yield Question(f"key {key}", partial(existing.check_key, api, key))
    profiles = (plan.identity.node_profile, plan.identity.burst_profile)
    for profile in dict.fromkeys(profile for profile in profiles if profile):
        yield Question(f"role {profile}", partial(existing.check_profile, api, profile))
    if spot := tuple(pool.name for pool in plan.pools if pool.buys_spot):
        yield Question("the role of spot requests", partial(existing.check_spot_role, api, spot))


def _of_pool(
    api: Api, pool: PoolPlan, catalog: Catalog, machines: ExistingMachines
) -> Iterator[Question]:
    yield Question(f'zones of pool "{pool.name}"', partial(capacity.check_zones, api, pool))
    for offer in pool.offers:
        option = offer.option
        if option.reservation is not None:
            fits = partial(capacity.check_reservation, api, pool, offer, machines)
            yield Question(f"reservation {option.reservation}", fits)
        if option.buy_hours is not None:
            block = partial(blocks.check_block_offering, api, pool, offer, machines)
            yield Question(f'capacity blocks for pool "{pool.name}"', block)
    for market in dict.fromkeys(offer.option.market for offer in pool.offers):
        what = f"{market} price of {pool.machine}"
        yield Question(what, partial(offers.check_price, api, pool, market, catalog))


def _of_images(api: Api, plan: SitePlan, catalog: Catalog) -> Iterator[Question]:
    """Yield a question for each image, however many pools boot from it."""
    users = by_image(plan.pools, lambda pool: pool.image.ami, catalog)
    for (ami, architecture), pools in users.items():
        names = tuple(pool.name for pool in pools)
        check = partial(existing.check_image, api, pools[0].image, architecture, names)
        yield Question(f"image {ami}", check)
