"""Checks with Google, all at once, what would stop `up`: each result a diagnostic; read-only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ....schemas.catalog import Catalog
from ....schemas.diagnostics import Diagnostic
from ....schemas.spec import ClusterSpec
from ...pulumi.names import label_value
from ...pulumi.preflight import (
    Cloud,
    ExistingMachines,
    Question,
    by_image,
    run_preflight,
    site_quotas,
)
from ..api import Api
from ..hosts import ALIVE, instances
from ..plan.layout import SitePlan
from ..plan.pools import PoolPlan
from . import capacity, existing

_GOOGLE = Cloud(name="Google Cloud", not_logged_in="GC980", unanswered="GC988")


def preflight(
    api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog
) -> tuple[Diagnostic, ...]:
    """Return what blocks `up` of a site, in a fixed order; see `run_preflight`."""
    return run_preflight(_GOOGLE, _questions(api, spec, plan, catalog))


def _existing_pools(api: Api, plan: SitePlan) -> Iterator[str]:
    """Yield the pool of each machine that is there; labels hold names in their own spelling."""
    pools = {label_value(pool.name): pool.name for pool in plan.pools}
    for machine in instances(api, plan):
        if machine.status in ALIVE:
            yield pools.get(machine.pool, machine.pool)


def _questions(api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog) -> Iterator[Question]:
    machines = ExistingMachines(partial(_existing_pools, api, plan))
    yield Question("the APIs that are enabled", partial(existing.check_services, api, plan))
    yield Question("the login's rights", partial(existing.check_rights, api, plan))
    yield Question("the subnet", partial(existing.check_subnet, api, plan, catalog, machines))
    yield Question("private services access", partial(existing.check_peering, plan))
    for network in plan.fabric_networks:
        if network.existing is not None:
            check = partial(existing.check_fabric_network, api, plan, network)
            yield Question(f"network {network.existing}", check)
    for need in site_quotas(spec, catalog, plan.site):
        yield Question(f"quota {need.code}", partial(capacity.check_limit, api, need))
        room = partial(capacity.check_room, api, spec, catalog, need, machines)
        yield Question(f"what is left of quota {need.code}", room)
    for pool in plan.pools:
        yield from _of_pool(api, plan, pool, catalog, machines)
    yield from _of_images(api, plan, catalog)
    yield Question("the accounts to make", partial(existing.check_own_identities, api, plan))
    for email in dict.fromkeys((plan.access.node, plan.access.burst)):
        if email is not None:
            check_email = partial(existing.check_identity, api, email)
            yield Question(f"service account {email}", check_email)


def _of_pool(
    api: Api, plan: SitePlan, pool: PoolPlan, catalog: Catalog, machines: ExistingMachines
) -> Iterator[Question]:
    for zone in dict.fromkeys(option.zone for option in pool.offers):
        yield Question(f"{pool.machine} in {zone}", partial(capacity.check_zone, api, pool, zone))
    for option in pool.offers:
        if option.reservation is not None:
            fits = partial(capacity.check_reservation, api, pool, option, machines)
            yield Question(f"reservation {option.reservation}", fits)
    price = partial(capacity.check_price, plan, pool, catalog)
    yield Question(f"price of {pool.machine}", price)


def _of_images(api: Api, plan: SitePlan, catalog: Catalog) -> Iterator[Question]:
    """Yield a question for each image, however many pools boot from it."""
    users = by_image(plan.pools, lambda pool: pool.image, catalog)
    for (image, architecture), pools in users.items():
        names = tuple(pool.name for pool in pools)
        check = partial(existing.check_image, api, image, architecture, names)
        yield Question(f"image {image}", check)
